//! The member names of one object, to find one that comes twice.

use std::collections::BTreeSet;

use super::text::Text;

/// Up to this many names are compared one by one, which needs no allocation; almost every object stays below.
const FEW: usize = 8;

/// The names seen so far in one object. `n` insertions cost O(n log n) comparisons, whatever the names.
pub(super) struct Names<'a> {
    few: [Text<'a>; FEW],
    len: usize,
    many: BTreeSet<Text<'a>>,
}

impl<'a> Names<'a> {
    pub(super) fn new() -> Self {
        Names { few: [Text::new("", false); FEW], len: 0, many: BTreeSet::new() }
    }

    /// False if the name was there before.
    pub(super) fn insert(&mut self, name: Text<'a>) -> bool {
        if self.len < FEW {
            if self.few[..self.len].contains(&name) {
                return false;
            }
            self.few[self.len] = name;
            self.len += 1;
            return true;
        }
        if self.many.is_empty() {
            self.many.extend(self.few);
        }
        self.many.insert(name)
    }
}
