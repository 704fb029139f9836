//! Whoever types the verbs about hosts: what they believe of a host, and what they do next because of it.
//!
//! A sequence of independent draws hardly ever releases the host that it has acquired, or asks again after a crash; a person
//! does little else. Nothing here knows what mu or the backend make of it: belief follows from what was typed and from what
//! was done to the world.

use std::collections::BTreeMap;

use super::weighted;
use crate::streams::Stream;

/// What somebody believes of a host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Belief {
    /// There is none of that name.
    #[default]
    Absent,
    /// It is there.
    Ready,
    /// Something was cut off in the middle.
    Unsure,
    /// It has ceased to exist.
    Lost,
}

/// What they do, by likelihood.
type Habits = &'static [(u64, &'static str)];

const ABSENT: Habits =
    &[(60, "acquire"), (6, "status"), (4, "exec"), (4, "list"), (4, "add"), (3, "effects")];
const READY: Habits = &[
    (25, "exec"),
    (20, "status"),
    (25, "release"),
    (8, "check"),
    (6, "acquire"),
    (6, "add"),
    (4, "rm"),
    (3, "show"),
];
const UNSURE: Habits = &[
    (25, "acquire"),
    (18, "status"),
    (18, "release"),
    (10, "exec"),
    (8, "resolve"),
    (6, "effects"),
    (6, "add"),
    (4, "rm"),
    (3, "check"),
    (3, "show"),
];
const LOST: Habits =
    &[(30, "status"), (15, "exec"), (15, "release"), (10, "check"), (10, "rm"), (15, "acquire")];
/// What an operator with the right to a last word does as well, where they are unsure.
const LAST_WORD: (u64, &str) = (25, "word");

/// Somebody with hosts of these names in mind.
pub(super) struct Operator {
    hosts: &'static [&'static str],
    at: &'static str,
    beliefs: BTreeMap<&'static str, Belief>,
    has_last_word: bool,
}

impl Operator {
    /// Who begins with any of them.
    pub(super) fn new(stream: &mut Stream, hosts: &'static [&'static str], has_last_word: bool) -> Operator {
        Operator { hosts, at: super::one_of(stream, hosts), beliefs: BTreeMap::new(), has_last_word }
    }

    /// The host they think of now: mostly the same one.
    pub(super) fn host(&mut self, stream: &mut Stream) -> &'static str {
        if stream.chance(1, 5) {
            self.at = super::one_of(stream, self.hosts);
        }
        self.at
    }

    /// What they do about it next.
    pub(super) fn next(&self, stream: &mut Stream) -> &'static str {
        let mut habits = match self.belief() {
            Belief::Absent => ABSENT,
            Belief::Ready => READY,
            Belief::Unsure => UNSURE,
            Belief::Lost => LOST,
        }
        .to_vec();
        if self.has_last_word && self.belief() == Belief::Unsure {
            habits.push(LAST_WORD);
        }
        weighted(stream, &habits)
    }

    /// They did it, and it was `cut_off` or not.
    pub(super) fn did(&mut self, verb: &str, cut_off: bool) {
        let belief = match (verb, self.belief()) {
            ("acquire" | "release" | "resolve", _) if cut_off => Belief::Unsure,
            ("acquire", Belief::Absent | Belief::Unsure) => Belief::Ready,
            ("release" | "rm", _) => Belief::Absent,
            ("word", _) => Belief::Ready,
            (_, belief) => belief,
        };
        self.beliefs.insert(self.at, belief);
    }

    /// They hear that a host has ceased to exist.
    pub(super) fn hears_of_the_end(&mut self, host: &'static str) {
        self.beliefs.insert(host, Belief::Lost);
    }

    fn belief(&self) -> Belief {
        self.beliefs.get(self.at).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How often each verb comes in a thousand draws after these.
    fn after(done: &[(&str, bool)], has_last_word: bool) -> BTreeMap<&'static str, u64> {
        let mut stream = Stream::new(1, "operator");
        let mut operator = Operator::new(&mut stream, &["cave"], has_last_word);
        done.iter().for_each(|(verb, cut_off)| operator.did(verb, *cut_off));
        let mut counts = BTreeMap::new();
        (0..1_000).for_each(|_| *counts.entry(operator.next(&mut stream)).or_default() += 1);
        counts
    }

    #[test]
    fn what_is_not_there_is_acquired_and_what_is_there_is_used_and_released() {
        assert!(after(&[], false)["acquire"] > 500);
        let ready = after(&[("acquire", false)], false);
        assert!(ready["release"] > 150 && ready["exec"] > 150 && ready["acquire"] < 150, "{ready:?}");
        assert!(after(&[("acquire", false), ("release", false)], false)["acquire"] > 500);
    }

    #[test]
    fn only_who_has_the_last_word_speaks_it_and_only_where_something_is_unsure() {
        let cut_off = [("acquire", true)];
        assert!(after(&cut_off, true)["word"] > 100);
        assert!(!after(&cut_off, false).contains_key("word"));
        assert!(!after(&[("acquire", false)], true).contains_key("word"));
    }
}
