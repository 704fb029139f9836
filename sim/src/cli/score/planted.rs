//! The table of planted bugs, `sim/planted.toml`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use sha2::{Digest, Sha256};
use toml::Spanned;

use crate::cli::Failure;
use crate::scenario::{self, ScenarioError, is_rule};

/// Its place in the tree.
const TABLE: &str = "sim/planted.toml";

/// A change of one place in one file that breaks rules.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Bug {
    /// A stable name.
    pub(crate) number: u32,
    /// The rules that are broken, at least one.
    pub(crate) rules: Vec<String>,
    /// What is wrong then, in one line.
    pub(crate) bug: String,
    /// The file that is changed, relative to the tree.
    pub(crate) file: PathBuf,
    /// A text that stands exactly once in it.
    pub(crate) find: String,
    /// What stands there instead.
    pub(crate) replace: String,
    /// Who must notice.
    #[serde(default)]
    pub(crate) watch: Watch,
}

/// Who must notice a bug.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Watch {
    /// The scenarios and the seeds.
    #[default]
    Play,
    /// `cargo clippy`: what would make two runs of one seed differ is forbidden by name.
    Lint,
    /// `cargo sim determinism`: two processes play the same.
    Determinism,
}

/// Some of the bugs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    All,
    /// Those with these numbers.
    Numbers(Vec<u32>),
    /// So many, chosen by a text.
    Picked {
        count: usize,
        text: String,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    bugs: Vec<Spanned<Bug>>,
}

impl Bug {
    /// The whole text of its file with the bug in it.
    ///
    /// # Errors
    /// One line: the file cannot be read, or does not hold the text exactly once.
    pub(crate) fn planted(&self, tree: &Path) -> Result<String, String> {
        let file = self.file.display();
        let text = fs::read_to_string(tree.join(&self.file)).map_err(|error| format!("{file}: {error}"))?;
        match text.matches(&self.find).count() {
            1 => Ok(text.replacen(&self.find, &self.replace, 1)),
            times => Err(format!("what it finds stands {times} times in {file}, and not once")),
        }
    }
}

/// Reads the table of the tree. All of it is sound: each bug can be planted.
///
/// # Errors
/// One line with file, line and column.
pub(crate) fn read(tree: &Path) -> Result<Vec<Bug>, Failure> {
    let text =
        fs::read_to_string(tree.join(TABLE)).map_err(|error| Failure::Input(format!("{TABLE}: {error}")))?;
    parse(&text, tree).map_err(|error| Failure::Input(error.to_string()))
}

fn parse(text: &str, tree: &Path) -> Result<Vec<Bug>, ScenarioError> {
    let (_, table) = scenario::read::<Table>(TABLE, text)?;
    let mut numbers = BTreeSet::new();
    for entry in &table.bugs {
        let bug = entry.get_ref();
        let wrong = |what: String| {
            let message = format!("bug {}: {what}", bug.number);
            ScenarioError::at(TABLE, text, entry.span().start, message)
        };
        if !numbers.insert(bug.number) {
            return Err(wrong("the number is taken".into()));
        }
        if let Some(unknown) = bug.rules.iter().find(|rule| !is_rule(rule)) {
            return Err(wrong(format!("unknown rule `{unknown}`")));
        }
        // What makes runs differ, or is wrong in the simulator, breaks no rule of the protocol.
        if bug.rules.is_empty() && bug.watch == Watch::Play && !bug.file.starts_with("sim/src") {
            return Err(wrong("it breaks no rule".into()));
        }
        if bug.find == bug.replace {
            return Err(wrong("it changes nothing".into()));
        }
        bug.planted(tree).map_err(wrong)?;
    }
    Ok(table.bugs.into_iter().map(Spanned::into_inner).collect())
}

impl Which {
    /// Those of the bugs that are meant, in the order of the table.
    ///
    /// # Errors
    /// There is no bug with such a number.
    pub(crate) fn of(&self, bugs: Vec<Bug>) -> Result<Vec<Bug>, Failure> {
        let wanted: BTreeSet<u32> = match self {
            Which::All => return Ok(bugs),
            Which::Numbers(numbers) => numbers.iter().copied().collect(),
            Which::Picked { count, text } => {
                let lot = |number: u32| Sha256::digest(format!("{text} {number}").as_bytes());
                let mut lots: Vec<_> = bugs.iter().map(|bug| (lot(bug.number), bug.number)).collect();
                lots.sort();
                lots.into_iter().take(*count).map(|(_, number)| number).collect()
            }
        };
        let known: BTreeSet<u32> = bugs.iter().map(|bug| bug.number).collect();
        if let Some(unknown) = wanted.difference(&known).next() {
            return Err(Failure::Input(format!("{TABLE}: there is no bug {unknown}")));
        }
        Ok(bugs.into_iter().filter(|bug| wanted.contains(&bug.number)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
    }

    fn bug(number: u32) -> Bug {
        let (find, replace) = ("[package]".to_owned(), "[package]\n".to_owned());
        let rules = vec!["PRC-07".to_owned()];
        Bug {
            number,
            rules,
            bug: "b".into(),
            file: "sim/Cargo.toml".into(),
            find,
            replace,
            watch: Watch::Play,
        }
    }

    const SOUND: &str = "[[bugs]]\nnumber = 1\nrules = ['PRC-07']\nbug = 'b'\nfile = 'sim/Cargo.toml'\n\
        find = '[package]'\nreplace = ''\n";

    #[test]
    fn every_bug_of_the_table_can_be_planted() {
        let bugs = read(&tree()).unwrap_or_else(|failure| panic!("{failure}"));
        assert!(!bugs.is_empty());
    }

    #[test]
    fn a_bug_that_cannot_be_planted_is_refused_with_its_place() {
        let refused = |text: &str| parse(text, &tree()).unwrap_err().to_string();
        assert_eq!(parse(SOUND, &tree()).unwrap().len(), 1);
        for (from, to, message) in [
            (
                "[package]",
                "[packages]",
                ":1:1: bug 1: what it finds stands 0 times in sim/Cargo.toml, and not once",
            ),
            ("[package]", ".workspace = true", " times in sim/Cargo.toml, and not once"),
            (
                "sim/Cargo.toml",
                "sim/no.toml",
                ":1:1: bug 1: sim/no.toml: No such file or directory (os error 2)",
            ),
            ("PRC-07", "PRC-99", ":1:1: bug 1: unknown rule `PRC-99`"),
            ("['PRC-07']", "[]", ":1:1: bug 1: it breaks no rule"),
            ("replace = ''", "replace = '[package]'", ":1:1: bug 1: it changes nothing"),
            ("bug =", "bugs =", ":4:1: unknown key `bugs`"),
        ] {
            let said = refused(&SOUND.replace(from, to));
            assert!(said.starts_with("sim/planted.toml") && said.contains(message), "{said}");
        }
        let said = refused(&SOUND.repeat(2));
        assert!(said.ends_with(":8:1: bug 1: the number is taken"), "{said}");
    }

    #[test]
    fn the_same_text_picks_the_same_bugs_and_every_bug_is_picked_by_some_text() {
        let all: Vec<Bug> = (1..=20).map(bug).collect();
        let pick = |text: &str| Which::Picked { count: 5, text: text.into() }.of(all.clone()).unwrap();
        assert_eq!(pick("4f1c"), pick("4f1c"));
        let mut seen = BTreeSet::new();
        for text in 0..100 {
            let picked = pick(&text.to_string());
            assert_eq!(picked.len(), 5);
            assert!(picked.is_sorted_by_key(|bug| bug.number));
            seen.extend(picked.iter().map(|bug| bug.number));
        }
        assert_eq!(seen.len(), 20);
    }

    #[test]
    fn an_unknown_number_is_refused() {
        let which = Which::Numbers(vec![2, 9]);
        assert_eq!(which.of(vec![bug(1), bug(2), bug(9)]).unwrap(), [bug(2), bug(9)]);
        assert_eq!(which.of(vec![bug(2)]).unwrap_err().to_string(), "sim/planted.toml: there is no bug 9");
    }
}
