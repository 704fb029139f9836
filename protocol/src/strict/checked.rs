//! A JSON value that has passed.

use std::fmt;

use super::scan::{self, Member};
use super::text::Text;
use crate::invalid::InvalidMessage;

/// The text of one JSON value, without white space around it, that has passed the strict pass. Only the pass makes one.
///
/// It is shown by its length alone: the content is the plugin's.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Checked<'a>(&'a str);

impl<'a> Checked<'a> {
    /// Checks that `json` is exactly one JSON value of any kind, as strictly as a line is checked.
    pub fn value(json: &'a str) -> Result<Self, InvalidMessage> {
        scan::value(json)
    }

    /// `json` is what the scan has just stepped over.
    pub(super) fn scanned(json: &'a str) -> Self {
        Checked(json)
    }

    /// The text.
    pub fn get(self) -> &'a str {
        self.0
    }

    pub(crate) fn is_object(self) -> bool {
        self.0.starts_with('{')
    }

    /// The members in their order, if it is an object.
    pub(crate) fn members(self) -> Option<Vec<Member<'a>>> {
        scan::members(self.0)
    }

    /// The elements in their order, if it is an array.
    pub(crate) fn elements(self) -> Option<Vec<Checked<'a>>> {
        scan::elements(self.0)
    }

    /// What stands between the quotes, if it is a string.
    pub(crate) fn string(self) -> Option<Text<'a>> {
        Text::of_value(self.0)
    }
}

impl fmt::Debug for Checked<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Checked({} bytes)", self.0.len())
    }
}
