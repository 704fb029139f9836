//! A timeline as text for people: when, who, what. One line an entry; a line that comes again and again is told once, with
//! its number.

use std::fmt::Write;

use super::{Event, Timeline};

/// The whole transcript of a trace.
pub fn transcript(events: &[Event]) -> String {
    Timeline::of(events, &[], &[]).transcript()
}

impl Timeline {
    /// Everything that is told, without what mu wrote to its disk.
    pub fn transcript(&self) -> String {
        let mut text = String::new();
        for entry in self.entries.iter().filter(|entry| entry.kind.is_told()) {
            let (s, us) = (entry.at / 1_000_000_000, entry.at % 1_000_000_000 / 1_000);
            let who = &self.who(entry).name;
            writeln!(text, "{s:>4}.{us:06} {who:<9} {}", entry.sentence()).expect("a String takes all");
            if entry.again > 0 {
                writeln!(text, "{:21} … and {} times the same", "", entry.again).expect("a String takes all");
            }
        }
        text
    }
}
