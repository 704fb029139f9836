//! Ids of rules in a text, and whom a comment of a test speaks for.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::scenario::{is_rule, known_rules};

/// Something that looks like the id of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Id {
    /// As it is written.
    pub(crate) text: String,
    /// Where it begins, in bytes.
    at: usize,
}

impl Id {
    /// What stands before the hyphen.
    pub(crate) fn group(&self) -> &str {
        group(&self.text)
    }
}

/// What stands before the hyphen of an id.
pub(crate) fn group(id: &str) -> &str {
    id.split('-').next().unwrap_or(id)
}

/// All groups of the pages.
pub(crate) fn groups() -> BTreeSet<&'static str> {
    known_rules().iter().map(|id| group(id)).collect()
}

/// Everything in the text that is an id or is meant as one: a group that the pages have and a number of any length, or
/// another word in capitals and a number of two digits.
pub(crate) fn ids(text: &str) -> Vec<Id> {
    let groups = groups();
    let word = |char: char| char.is_ascii_alphanumeric() || char == '-' || char == '_';
    let mut found = Vec::new();
    let mut at = 0;
    for part in text.split(|char| !word(char)) {
        if let Some((group, number)) = part.split_once('-')
            && (1..=6).contains(&group.len())
            && group.bytes().all(|byte| byte.is_ascii_uppercase())
            && !number.is_empty()
            && number.bytes().all(|byte| byte.is_ascii_digit())
            && (number.len() == 2 || groups.contains(group))
        {
            found.push(Id { text: part.to_owned(), at });
        }
        at += part.len() + text[at + part.len()..].chars().next().map_or(0, char::len_utf8);
    }
    found
}

/// The rules that a text speaks of; `TRN-14 to TRN-17` and `TRN-14..17` are all from the first to the last.
pub(crate) fn rules(text: &str) -> BTreeSet<String> {
    let mut rules = BTreeSet::new();
    let ids = ids(text);
    for (index, id) in ids.iter().enumerate() {
        let end = id.at + id.text.len();
        let dotted = text[end..].strip_prefix("..").map(|rest| {
            let digits = rest.find(|char: char| !char.is_ascii_digit()).unwrap_or(rest.len());
            format!("{}-{}", id.group(), &rest[..digits])
        });
        let spelled = ids.get(index + 1).filter(|next| &text[end..next.at] == " to ");
        match dotted.or_else(|| spelled.map(|next| next.text.clone())) {
            Some(last) => {
                let within = known_rules().range(id.text.as_str()..=last.as_str().max(&id.text));
                rules.extend(within.filter(|rule| group(rule) == id.group()).map(|rule| (*rule).to_owned()));
            }
            None => rules.extend(is_rule(&id.text).then(|| id.text.clone())),
        }
    }
    rules
}

/// Whether a source file, or what of it stands at the end, is tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Tests, throughout.
    Test,
    /// Benchmarks, throughout.
    Bench,
    /// Code, with a module of tests at its end if there is one.
    Code,
}

/// What kind of source file stands at a path of the tree.
pub(crate) fn kind(path: &Path) -> Kind {
    let named = |name: &str| path.components().any(|part| part.as_os_str() == name);
    if named("benches") {
        Kind::Bench
    } else if named("tests") || named("tests.rs") || named("fuzz_targets") {
        Kind::Test
    } else {
        Kind::Code
    }
}

/// The lines of a source file from which on all is tests, from 0; its length when there are none.
pub(crate) fn first_test_line(kind: Kind, lines: &[&str]) -> usize {
    let module =
        |pair: &[&str]| pair[0] == "#[cfg(test)]" && pair[1].starts_with("mod ") && pair[1].ends_with('{');
    match kind {
        Kind::Code => lines.windows(2).position(module).unwrap_or(lines.len()),
        Kind::Test | Kind::Bench => 0,
    }
}

/// The comment of a line of code, if it has one.
pub(crate) fn comment(line: &str) -> Option<&str> {
    let line = line.trim_start();
    if line.starts_with("//") { Some(line) } else { line.find(" // ").map(|at| &line[at + 1..]) }
}

/// The functions of these lines of tests, with the rules that comments before or within them name. A comment about the
/// whole file (`//!`) names what others show.
pub(crate) fn cited(lines: &[&str]) -> BTreeMap<String, BTreeSet<String>> {
    let mut cited: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut function = None;
    let mut above = BTreeSet::new();
    for line in lines {
        let code = line.trim_start();
        if code.starts_with("//!") {
            continue;
        }
        let named = rules(comment(line).unwrap_or_default());
        if code.starts_with("//") {
            above.extend(named);
            continue;
        }
        if code.starts_with("#[") {
            continue;
        }
        function = name_of(code).or(function);
        let named = named.into_iter().chain(std::mem::take(&mut above));
        cited.entry(function.clone().unwrap_or_default()).or_default().extend(named);
    }
    cited.retain(|_, rules| !rules.is_empty());
    cited
}

/// The name of the function that begins in this line.
fn name_of(code: &str) -> Option<String> {
    let before = ["pub ", "pub(crate) ", "pub(super) ", "async ", "const "];
    let mut rest = code;
    while let Some(shorter) = before.iter().find_map(|word| rest.strip_prefix(word)) {
        rest = shorter;
    }
    let name = rest.strip_prefix("fn ")?;
    Some(name.split(|char: char| !char.is_alphanumeric() && char != '_').next()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<String> {
        ids(text).into_iter().map(|id| id.text).collect()
    }

    #[test]
    fn what_looks_like_an_id_is_found() {
        assert_eq!(texts("TRN-05, (A-07) “PRC-7” §HSK-123."), ["TRN-05", "A-07", "PRC-7", "HSK-123"]);
        assert_eq!(
            texts("XYZ-01 is none, and SHA-256, UTF-8, XTRN-1, a-07 and MU-TRN-05 do not look so"),
            ["XYZ-01"]
        );
    }

    #[test]
    fn a_range_is_all_from_the_first_to_the_last() {
        let list = |text: &str| rules(text).into_iter().collect::<Vec<_>>().join(" ");
        assert_eq!(list("TRN-14 to TRN-17, A-08"), "A-08 TRN-14 TRN-15 TRN-16 TRN-17");
        assert_eq!(list("REG-03..05 and TRN-01"), "REG-03 REG-04 REG-05 TRN-01");
        assert_eq!(list("TRN-17 to TRN-14; TRN-99"), "TRN-14 TRN-17");
    }

    #[test]
    fn a_comment_speaks_for_the_function_below_or_around_it() {
        let lines = "//! TRN-01\n/// TRN-02\n#[test]\nfn one() {\n    // TRN-03\n    a(); // TRN-04\n}\n\n\
            /// TRN-05\n/// more\nasync fn two() {\n    \"TRN-06\"\n}\n";
        let cited = cited(&lines.lines().collect::<Vec<_>>());
        let of = |name: &str| cited[name].iter().map(String::as_str).collect::<Vec<_>>();
        assert_eq!((of("one"), of("two")), (vec!["TRN-02", "TRN-03", "TRN-04"], vec!["TRN-05"]));
        assert_eq!(cited.len(), 2);
    }

    #[test]
    fn tests_are_told_from_code() {
        assert_eq!(kind(Path::new("core/src/session/tests.rs")), Kind::Test);
        assert_eq!(kind(Path::new("benches/benches/reader.rs")), Kind::Bench);
        assert_eq!(kind(Path::new("core/src/testing/mod.rs")), Kind::Code);
        let code = ["fn a() {}", "#[cfg(test)]", "use b;", "#[cfg(test)]", "mod tests {", "}"];
        assert_eq!(first_test_line(Kind::Code, &code), 3);
        assert_eq!(first_test_line(Kind::Code, &code[..3]), 3);
        assert_eq!(first_test_line(Kind::Test, &code), 0);
    }
}
