//! The list of what is finished, `sim/finished-rules.toml`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde::Deserialize;
use toml::Spanned;

use super::cites;
use crate::cli::Failure;
use crate::scenario::{self, ScenarioError, is_rule, known_rules};

/// Its place in the tree.
pub(crate) const LIST: &str = "sim/finished-rules.toml";

/// Which rules must be shown by something, and which of them are not, and why.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Finished {
    pub(crate) rules: BTreeSet<String>,
    /// Rules of `rules` that nothing here can show yet, each with the reason.
    pub(crate) exceptions: BTreeMap<String, String>,
    /// What looks like a group of rules and is none of the pages, with what it is.
    pub(crate) elsewhere: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    finished: Vec<Spanned<String>>,
    #[serde(default)]
    exceptions: BTreeMap<Spanned<String>, String>,
    #[serde(default)]
    elsewhere: BTreeMap<Spanned<String>, String>,
}

/// Reads the list of the tree.
///
/// # Errors
/// One line with file, line and column.
pub(crate) fn read(tree: &Path) -> Result<Finished, Failure> {
    let text =
        fs::read_to_string(tree.join(LIST)).map_err(|error| Failure::Input(format!("{LIST}: {error}")))?;
    parse(&text).map_err(|error| Failure::Input(error.to_string()))
}

fn parse(text: &str) -> Result<Finished, ScenarioError> {
    let (_, list) = scenario::read::<List>(LIST, text)?;
    let wrong =
        |at: &Spanned<String>, message: String| ScenarioError::at(LIST, text, at.span().start, message);
    let mut finished =
        Finished { rules: BTreeSet::new(), exceptions: BTreeMap::new(), elsewhere: BTreeMap::new() };
    for entry in list.finished {
        let word = entry.get_ref();
        let mut rules = cites::rules(word);
        rules.extend(
            known_rules().iter().filter(|rule| cites::group(rule) == word).map(|rule| (*rule).into()),
        );
        if rules.is_empty() || cites::ids(word).iter().any(|id| !is_rule(&id.text)) {
            return Err(wrong(&entry, format!("`{word}` is no group, rule or range of rules")));
        }
        finished.rules.extend(rules);
    }
    for (rule, reason) in list.exceptions {
        if !finished.rules.contains(rule.get_ref()) {
            return Err(wrong(&rule, format!("`{}` is not among the finished rules", rule.get_ref())));
        }
        finished.exceptions.insert(rule.into_inner(), reason);
    }
    for (group, what) in list.elsewhere {
        if cites::groups().contains(group.get_ref().as_str()) {
            return Err(wrong(&group, format!("`{}` is a group of the pages", group.get_ref())));
        }
        finished.elsewhere.insert(group.into_inner(), what);
    }
    Ok(finished)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_ranges_and_single_rules_are_finished() {
        let finished =
            parse("finished = ['SEC', 'PRC-03..05', 'A-07']\n[exceptions]\nPRC-04 = 'r'\n").unwrap();
        let rules: Vec<&str> = finished.rules.iter().map(String::as_str).collect();
        assert_eq!(rules, ["A-07", "PRC-03", "PRC-04", "PRC-05", "SEC-01", "SEC-02", "SEC-03"]);
        assert_eq!(finished.exceptions["PRC-04"], "r");
    }

    #[test]
    fn what_is_no_rule_is_refused_with_its_place() {
        for (text, message) in [
            ("finished = ['SEX']", ":1:13: `SEX` is no group, rule or range of rules"),
            ("finished = ['SEC-99']", ":1:13: `SEC-99` is no group, rule or range of rules"),
            (
                "finished = ['SEC']\n[exceptions]\nTRN-01 = 'r'",
                ":3:1: `TRN-01` is not among the finished rules",
            ),
            ("finished = ['SEC']\n[elsewhere]\nTRN = 'r'", ":3:1: `TRN` is a group of the pages"),
            (
                "finish = []",
                ":1:1: unknown key `finish`, expected one of `finished`, `exceptions`, `elsewhere`",
            ),
        ] {
            assert_eq!(parse(text).unwrap_err().to_string(), format!("{LIST}{message}"));
        }
    }
}
