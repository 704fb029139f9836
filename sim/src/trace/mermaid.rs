//! A timeline as a Mermaid sequence diagram, for a comment in an issue or a page of notes.
//!
//! Whatever a program may have printed stands in it, so everything that means something to Mermaid is written as an
//! entity: a line that it cannot parse makes it refuse the whole diagram.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::timeline::{Kind, Timeline};

/// Characters of a text: a diagram has no room for more, and Mermaid refuses one of 50,000 in all.
const SHOWN: usize = 80;
/// From this many virtual nanoseconds on a leap is told.
pub const LEAP: u64 = 10_000_000;

impl Timeline {
    /// The diagram. `findings` are what did not hold: the entry behind which each belongs, and its text.
    pub fn mermaid(&self, findings: &[(usize, String)]) -> String {
        let mut text = String::from("sequenceDiagram\n");
        let names: BTreeMap<usize, String> =
            self.participants().map(|lane| (lane, format!("p{lane}"))).collect();
        for (lane, name) in &names {
            line(&mut text, &format!("participant {name} as {}", escaped(&self.lanes[*lane].name)));
        }
        let all = match (names.values().next(), names.values().next_back()) {
            (Some(first), Some(last)) if first != last => format!("{first},{last}"),
            (Some(only), _) => only.clone(),
            _ => return text,
        };
        let mut before = 0;
        for (place, entry) in self.entries.iter().enumerate() {
            if entry.at - before >= LEAP {
                line(&mut text, &format!("Note over {all}: {}", leap(entry.at - before)));
            }
            before = entry.at;
            let who = &names[&entry.who];
            let again =
                if entry.again > 0 { format!(" ({} times more)", entry.again) } else { String::new() };
            let what = escaped(&format!("{}{again}", entry.sentence()));
            let told = match entry.to.filter(|to| *to != entry.who).map(|to| &names[&to]) {
                Some(to) => format!("{who}->>{to}: {what}"),
                None => format!("Note over {who}: {what}"),
            };
            if matches!(entry.kind, Kind::Fault | Kind::Killed | Kind::Panic | Kind::Power) {
                line(&mut text, "rect rgba(230, 80, 60, 0.25)");
                line(&mut text, &told);
                line(&mut text, "end");
            } else {
                line(&mut text, &told);
            }
            for (_, finding) in findings.iter().filter(|(behind, _)| *behind == place) {
                line(&mut text, &format!("Note over {all}: VIOLATED {}", escaped(finding)));
            }
        }
        text
    }

    /// The lanes with an entry, in the order of the diagram.
    fn participants(&self) -> impl Iterator<Item = usize> {
        let mut lanes: Vec<usize> =
            self.entries.iter().flat_map(|entry| [Some(entry.who), entry.to]).flatten().collect();
        lanes.sort_unstable();
        lanes.dedup();
        lanes.into_iter()
    }
}

/// How far virtual time has leapt, as `+9.999 s`.
pub fn leap(ns: u64) -> String {
    let (seconds, ms) = (ns / 1_000_000_000, ns % 1_000_000_000 / 1_000_000);
    format!("+{seconds}.{ms:03} s")
}

fn line(text: &mut String, what: &str) {
    writeln!(text, "    {what}").expect("a String takes all");
}

/// On one line, cut, and nothing in it that Mermaid would read: what is no letter, digit or harmless sign is an entity. Two of
/// its words and a keyword are spoiled likewise.
fn escaped(text: &str) -> String {
    let mut cut: String = text.chars().take(SHOWN).collect();
    if cut.len() < text.len() {
        cut.push('…');
    }
    let mut all = String::new();
    for c in cut.chars() {
        match c {
            c if c.is_control() => all.push(' '),
            c if c.is_alphanumeric() || " .,:'()[]/=+-_…".contains(c) => all.push(c),
            c => write!(all, "#{};", u32::from(c)).expect("a String takes all"),
        }
    }
    // What stands behind a `style` or a `classDef` loses the end of its entity.
    without_end(&all).replace("style", "styl#101;").replace("classDef", "classDe#102;")
}

/// `end` closes a block, in whatever case it is written.
fn without_end(text: &str) -> String {
    let words = text.split_inclusive(|c: char| !c.is_alphanumeric());
    let spoiled = words.map(|word| match word.split_at_checked(3) {
        Some((end, rest)) if end.eq_ignore_ascii_case("end") && rest.chars().count() < 2 => {
            format!("{}#{};{rest}", &end[..2], end.as_bytes()[2])
        }
        _ => word.to_owned(),
    });
    spoiled.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_mermaid_would_read_is_left_in_a_text() {
        let text = escaped("a;b#c end sends END\n%%{init: {}}%% <b> style: classDef \\ \"q\" é");
        let entities = [
            "a#59;b#35;c en#100; sends EN#68; #37;",
            "#37;#37;#123;init",
            "#60;b#62;",
            "styl#101;",
            "#92;",
            "é",
        ];
        for wanted in entities {
            assert!(text.contains(wanted), "{wanted}: {text}");
        }
        assert_eq!(escaped("end"), "en#100;");
        assert!(!text.contains("style") && !text.contains("classDef") && !text.contains('\n'), "{text}");
        // A `#` begins and a `;` ends an entity, and nothing else.
        for part in text.split('#').skip(1) {
            let (code, _) = part.split_once(';').expect("an entity has an end");
            assert!(code.bytes().all(|byte| byte.is_ascii_digit()), "{text}");
        }
        assert_eq!(text.matches('#').count(), text.matches(';').count());
    }

    #[test]
    fn a_long_text_is_cut_before_it_is_escaped() {
        let text = escaped(&";".repeat(200));
        assert_eq!(text, format!("{}…", "#59;".repeat(SHOWN)));
    }
}
