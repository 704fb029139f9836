//! JSON, production by production, and the ways around it: tables of lines with what becomes of each.
//!
//! - `numbers.txt`, `strings.txt`, `structure.txt`, `bytes.txt`, `names.txt`: the strict pass, beside serde_json
//! - `envelope.txt`: what JSON-RPC makes of a line that has passed
//! - `integers.txt`: numbers as an integer member takes them
//!
//! A case stands in one line: the verdict (`ok`, or a variant of the error's type), the section of an RFC or the rule or
//! decision that decides it, in the strict tables whether serde_json agrees (`=`, or a word of [`DIFFERENCES`] for why
//! it does not), and the line itself. In it `‸` stands before the byte at which the refusal points, `<0a>` for one byte,
//! `<3*ab>` for `ababab`.

use std::collections::BTreeSet;

use mu_protocol::envelope;
use mu_protocol::invalid::{InvalidMessage, Why};
use mu_protocol::messages::method::{Method, parse_result};
use mu_protocol::objects::Fault;
use mu_protocol::strict::{Checked, check};
use serde_json::Value;

const STRICT: [(&str, &str); 5] = [
    ("numbers.txt", include_str!("numbers.txt")),
    ("strings.txt", include_str!("strings.txt")),
    ("structure.txt", include_str!("structure.txt")),
    ("bytes.txt", include_str!("bytes.txt")),
    ("names.txt", include_str!("names.txt")),
];
const ENVELOPE: (&str, &str) = ("envelope.txt", include_str!("envelope.txt"));
const INTEGERS: (&str, &str) = ("integers.txt", include_str!("integers.txt"));

/// Why serde_json may judge a line otherwise, and whether it is the one that accepts it.
const DIFFERENCES: [(&str, bool, &[Why]); 5] = [
    // It takes any value at the top; a line is one object (TRN-01, TRN-02).
    ("object", true, &[Why::Batch, Why::NotAnObject]),
    // It keeps the last of several members of one name.
    ("twice", true, &[Why::DuplicateName]),
    // It goes 127 levels deep (TRN-14).
    ("depth", true, &[Why::TooDeep]),
    // It has no limit (TRN-04).
    ("length", true, &[Why::TooLong]),
    // It makes a float of a number, and there is none so large.
    ("range", false, &[]),
];

/// All variants of [`Why`]; the match below fails to build when one is left out.
macro_rules! every_why {
    ($($variant:ident)*) => {
        const EVERY_WHY: &[(&str, Why)] = &[$((stringify!($variant), Why::$variant)),*];

        #[expect(dead_code, reason = "only to be complete")]
        fn complete(why: Why) {
            match why {
                $(Why::$variant => {})*
            }
        }
    };
}

every_why! {
    TooLong NotUtf8 ByteOrderMark Blank Batch NotAnObject TrailingBytes Unfinished ExpectedValue ExpectedName
    ExpectedColon ExpectedCommaOrBrace ExpectedCommaOrBracket BadLiteral BadNumber BadEscape ControlCharacter
    LoneSurrogate DuplicateName TooDeep MissingVersion WrongVersion UnknownMember Request NoIdNoMethod IdNotNumber
    IdOutOfRange NoOutcome TwoOutcomes ErrorNotObject ParamsInReply OutcomeInNotification MethodNotString
    UnknownNotification MissingParams ParamsNotObject
}

/// One line of a table.
struct Case {
    /// File and line, for messages.
    place: String,
    verdict: &'static str,
    by: &'static str,
    serde: Option<&'static str>,
    line: Vec<u8>,
    at: Option<usize>,
}

impl Case {
    /// What must become of the line.
    fn expected(&self) -> Result<(), InvalidMessage> {
        if self.verdict == "ok" {
            assert_eq!(self.at, None, "{}: an accepted line with a place", self.place);
            return Ok(());
        }
        let known = EVERY_WHY.iter().find(|(name, _)| *name == self.verdict);
        let (_, why) = known.unwrap_or_else(|| panic!("{}: no such verdict", self.place));
        let at = self.at.unwrap_or_else(|| panic!("{}: a refusal without a place", self.place));
        Err(InvalidMessage { at, why: *why })
    }
}

fn cases((file, text): (&'static str, &'static str), columns: usize) -> impl Iterator<Item = Case> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    lines.map(move |(number, line)| {
        let place = format!("{file}:{}", number + 1);
        let fields: Vec<&str> = line.splitn(columns, " | ").collect();
        assert_eq!(fields.len(), columns, "{place}: columns");
        let (mut bytes, mut at) = (Vec::new(), None);
        write_out(fields[columns - 1], &mut bytes, &mut at);
        let serde = (columns == 4).then(|| fields[2]);
        Case { place, verdict: fields[0], by: fields[1], serde, line: bytes, at }
    })
}

fn strict_cases() -> impl Iterator<Item = Case> {
    STRICT.into_iter().flat_map(|table| cases(table, 4))
}

/// The bytes that `text` stands for, and the place of its caret.
fn write_out(mut text: &str, bytes: &mut Vec<u8>, at: &mut Option<usize>) {
    while let Some(first) = text.chars().next() {
        let rest = &text[first.len_utf8()..];
        text = match first {
            '‸' => {
                assert_eq!(at.replace(bytes.len()), None, "two carets");
                rest
            }
            '<' => {
                let inside = &rest[..closing(rest)];
                match inside.split_once('*') {
                    Some((times, what)) => {
                        let mut once = Vec::new();
                        write_out(what, &mut once, at);
                        bytes.extend(once.repeat(times.parse().expect("how often")));
                    }
                    None => bytes.push(u8::from_str_radix(inside, 16).expect("two hex digits")),
                }
                &rest[inside.len() + 1..]
            }
            _ => {
                bytes.extend_from_slice(first.encode_utf8(&mut [0; 4]).as_bytes());
                rest
            }
        };
    }
}

/// Where the bracket closes that was opened before `text`.
fn closing(text: &str) -> usize {
    let mut depth = 1;
    text.bytes()
        .position(|byte| {
            depth += match byte {
                b'<' => 1,
                b'>' => -1,
                _ => 0,
            };
            depth == 0
        })
        .expect("a closing bracket")
}

/// TRN-14
#[test]
fn each_line_is_judged_as_the_tables_say() {
    let mut wrong = Vec::new();
    for case in strict_cases() {
        let found = check(&case.line);
        if found.map(drop) != case.expected() {
            wrong.push(format!("{}: expected {:?}, not {:?}", case.place, case.expected(), found));
        }
        if let Ok(object) = found {
            let object = object.get().as_bytes();
            let start = case.line.iter().position(|byte| *byte == b'{').expect("a brace");
            assert_eq!(object, &case.line[start..start + object.len()], "{}: what is returned", case.place);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// TRN-14
#[test]
fn the_envelope_refuses_what_the_strict_pass_refuses_and_in_the_same_way() {
    for case in strict_cases() {
        if let Err(refusal) = case.expected() {
            assert_eq!(envelope::parse(&case.line).map(drop), Err(refusal), "{}", case.place);
        }
    }
}

/// TRN-01
#[test]
fn each_envelope_is_judged_as_the_table_says() {
    for case in cases(ENVELOPE, 3) {
        assert_eq!(envelope::parse(&case.line).map(drop), case.expected(), "{}", case.place);
    }
}

///
#[test]
fn each_integer_is_judged_as_the_table_says() {
    for case in cases(INTEGERS, 3) {
        let number = String::from_utf8(case.line).expect("text");
        // In a line it is JSON, whatever the member makes of it.
        assert!(check(format!("{{\"a\":{number}}}").as_bytes()).is_ok(), "{}", case.place);
        let result = format!("{{\"handle\":\"h\",\"deadlineAt\":{number}}}");
        let result = Checked::value(&result).expect("JSON");
        let found = match parse_result(Method::HostAcquire, result).map_err(|mismatch| mismatch.fault) {
            Ok(_) => "ok",
            Err(Fault::WrongType) => "WrongType",
            Err(Fault::WrongValue) => "WrongValue",
            Err(other) => panic!("{}: {other}", case.place),
        };
        assert_eq!(found, case.verdict, "{}", case.place);
    }
}

/// TRN-14
#[test]
fn serde_json_agrees_but_for_the_reasons_given() {
    for case in strict_cases() {
        let found = serde_json::from_slice::<Value>(&case.line).is_ok();
        let expected = case.expected();
        let reason = case.serde.expect("a strict case");
        if reason == "=" {
            assert_eq!(found, expected.is_ok(), "{}", case.place);
            continue;
        }
        let (_, accepts, whys) =
            DIFFERENCES.into_iter().find(|(name, ..)| *name == reason).expect("a known reason");
        assert!(found == accepts && expected.is_ok() != accepts, "{}: they agree", case.place);
        assert!(
            expected.map_or_else(|refusal| whys.contains(&refusal.why), |()| whys.is_empty()),
            "{}",
            case.place
        );
    }
}

#[test]
fn each_way_to_be_wrong_has_a_case() {
    let shown: BTreeSet<&str> = strict_cases()
        .chain(cases(ENVELOPE, 3))
        .map(|case| case.verdict)
        .filter(|verdict| *verdict != "ok")
        .collect();
    let every: BTreeSet<&str> = EVERY_WHY.iter().map(|(name, _)| *name).collect();
    assert_eq!(shown, every);
}

#[test]
fn no_case_stands_twice() {
    for table in
        [strict_cases().collect::<Vec<_>>(), cases(ENVELOPE, 3).collect(), cases(INTEGERS, 3).collect()]
    {
        let mut seen = BTreeSet::new();
        for case in table {
            assert!(seen.insert(case.line), "{}", case.place);
        }
    }
}

#[test]
fn each_case_names_what_decides_it() {
    let pages = [include_str!("../../../docs/protocol.md"), include_str!("../../../docs/decisions.md")];
    for case in strict_cases().chain(cases(ENVELOPE, 3)).chain(cases(INTEGERS, 3)) {
        let anchor = format!("<a id=\"{}\">", case.by.to_lowercase());
        let known = case.by.starts_with("RFC ") || pages.iter().any(|page| page.contains(&anchor));
        assert!(known, "{}: {}", case.place, case.by);
    }
}

/// RFC 8259, 2
#[test]
fn of_all_characters_four_are_white_space() {
    for char in '\0'..=char::MAX {
        let white = matches!(char, ' ' | '\t' | '\n' | '\r');
        assert_eq!(check(format!("{{{char}}}").as_bytes()).is_ok(), white, "{char:?}");
    }
}

/// RFC 8259, 7
#[test]
fn of_all_characters_eight_stand_behind_a_backslash_alone() {
    for char in '\0'..=char::MAX {
        let escape = matches!(char, '"' | '\\' | '/' | 'b' | 'f' | 'n' | 'r' | 't');
        assert_eq!(check(format!("{{\"a\":\"\\{char}\"}}").as_bytes()).is_ok(), escape, "{char:?}");
    }
}

/// RFC 8259, 7 and 8.2
#[test]
fn of_all_units_but_the_surrogates_each_stands_alone_in_either_case() {
    for unit in 0..=u16::MAX {
        let surrogate = (0xd800..0xe000).contains(&unit);
        for escape in [format!("\\u{unit:04x}"), format!("\\u{unit:04X}")] {
            let line = format!("{{\"a\":\"{escape}\"}}");
            let found = check(line.as_bytes()).map(drop).map_err(|refusal| (refusal.at, refusal.why));
            assert_eq!(found, if surrogate { Err((6, Why::LoneSurrogate)) } else { Ok(()) }, "{escape}");
        }
    }
}
