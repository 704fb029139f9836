//! `cargo sim rules`: which scenarios, tests and benchmarks show which rule.
//!
//! In: the pages of the rules, all scenarios, the comments of all sources, and `sim/finished-rules.toml`. Out: a table by
//! group, or every rule with who cites it; exit 1 when a finished rule is shown by nothing, or when something cites a rule
//! that does not exist.
//!
//! - `cites`: ids in a text, and whom a comment speaks for; `finished`: the list of what must be shown

mod cites;
mod finished;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use self::cites::Kind;
use self::finished::{Finished, LIST};
use super::{FOUND, Failure, HELD, Place, files, say};
use crate::scenario::known_rules;

/// What the command prints.
pub(crate) struct Asked {
    /// Rules and groups to be listed with who cites them; the table when there are none.
    pub(crate) words: Vec<String>,
    /// Only what nothing cites.
    pub(crate) uncovered: bool,
}

/// Who shows a rule, by name.
#[derive(Default)]
struct Shown {
    scenarios: BTreeSet<String>,
    tests: BTreeSet<String>,
    benches: BTreeSet<String>,
}

/// Everything that was found out about the tree.
struct Survey {
    shown: BTreeMap<&'static str, Shown>,
    finished: Finished,
    /// What does not hold, each in one line.
    wrong: Vec<String>,
}

/// Prints the table or what is asked for; answers with the exit code.
pub(crate) fn run(place: &Place, asked: &Asked, json: bool) -> Result<u8, Failure> {
    let rules = chosen(&asked.words)?;
    let survey = survey(place)?;
    if json {
        say(&format!("{}\n", survey.json(&rules, asked.uncovered)));
    } else {
        let told = if asked.uncovered {
            survey.list(&rules, false)
        } else if asked.words.is_empty() {
            survey.table()
        } else {
            survey.list(&rules, true)
        };
        say(&told);
        survey.wrong.iter().for_each(|line| say(&format!("{line}\n")));
    }
    Ok(if survey.wrong.is_empty() { HELD } else { FOUND })
}

/// The rules that are meant by words, in order; all when there are none.
fn chosen(words: &[String]) -> Result<Vec<&'static str>, Failure> {
    let of = |word: &str| -> Vec<&'static str> {
        let meant = cites::rules(word);
        known_rules()
            .iter()
            .copied()
            .filter(|rule| meant.contains(*rule) || cites::group(rule) == word)
            .collect()
    };
    if let Some(unknown) = words.iter().find(|word| of(word).is_empty()) {
        return Err(Failure::Input(format!("`{unknown}` is no rule and no group of rules")));
    }
    let chosen: BTreeSet<_> = words.iter().flat_map(|word| of(word)).collect();
    Ok(if words.is_empty() { known_rules() } else { &chosen }.iter().copied().collect())
}

fn survey(place: &Place) -> Result<Survey, Failure> {
    let mut survey = Survey {
        shown: known_rules().iter().map(|rule| (*rule, Shown::default())).collect(),
        finished: finished::read(&place.root)?,
        wrong: Vec::new(),
    };
    for (item, scenario) in files::scenarios(place, &[])? {
        for rule in &scenario.rules {
            survey.shown(rule).scenarios.insert(item.name());
        }
    }
    let mut sources = Vec::new();
    sources_below(&place.root, Path::new(""), &mut sources)
        .map_err(|error| Failure::broken("the sources of the tree", error))?;
    for path in sources {
        let text = fs::read_to_string(place.root.join(&path))
            .map_err(|error| Failure::broken(&path.display().to_string(), error))?;
        survey.add(&path, &text);
    }
    survey.judge();
    Ok(survey)
}

/// Sources and pages below a folder of the tree, in the order of their names, relative to the tree.
fn sources_below(root: &Path, folder: &Path, found: &mut Vec<PathBuf>) -> std::io::Result<()> {
    let mut names = Vec::new();
    for entry in fs::read_dir(root.join(folder))? {
        names.push(entry?.file_name());
    }
    names.sort();
    for name in names {
        let path = folder.join(&name);
        if root.join(&path).is_dir() {
            if name != "target" && name != ".git" {
                sources_below(root, &path, found)?;
            }
        } else if path
            .extension()
            .is_some_and(|extension| ["rs", "md", "toml"].iter().any(|one| extension == *one))
        {
            found.push(path);
        }
    }
    Ok(())
}

impl Survey {
    fn shown(&mut self, rule: &str) -> &mut Shown {
        self.shown.get_mut(rule).expect("only rules of the pages are asked for")
    }

    /// Takes in what a file cites. Strings of tests may be about rules that do not exist; nothing else may.
    fn add(&mut self, path: &Path, text: &str) {
        let lines: Vec<&str> = text.lines().collect();
        let source = path.extension().is_some_and(|extension| extension == "rs");
        let kind = cites::kind(path);
        let tests = if source { cites::first_test_line(kind, &lines) } else { lines.len() };
        for (index, line) in lines.iter().enumerate() {
            let line = if index < tests { line } else { cites::comment(line).unwrap_or_default() };
            for id in cites::ids(line) {
                if !crate::scenario::is_rule(&id.text) && !self.finished.elsewhere.contains_key(id.group()) {
                    let place = format!("{}:{}", path.display(), index + 1);
                    self.wrong.push(format!("{place}: there is no rule {}", id.text));
                }
            }
        }
        for (function, rules) in cites::cited(&lines[tests..]) {
            let name = format!("{} {function}", path.display());
            for rule in rules {
                let shown = self.shown(&rule);
                if kind == Kind::Bench { &mut shown.benches } else { &mut shown.tests }.insert(name.clone());
            }
        }
    }

    /// Holds what is shown against the list of what is finished.
    fn judge(&mut self) {
        for (rule, shown) in &self.shown {
            let excepted = self.finished.exceptions.contains_key(*rule);
            if shown.by_something() && excepted {
                self.wrong.push(format!("{LIST}: {rule} is shown by something and needs no exception"));
            } else if !shown.by_something() && !excepted && self.finished.rules.contains(*rule) {
                self.wrong.push(format!("{rule} is finished, and no scenario, test or benchmark cites it"));
            }
        }
    }

    /// Every group in one row.
    fn table(&self) -> String {
        let mut rows = vec![
            ["group", "rules", "shown", "finished", "excepted", "scenarios", "tests", "benches"]
                .map(str::to_owned)
                .to_vec(),
        ];
        for group in cites::groups() {
            let of: Vec<(&&str, &Shown)> =
                self.shown.iter().filter(|(rule, _)| cites::group(rule) == group).collect();
            let count = |holds: &dyn Fn(&str, &Shown) -> bool| {
                of.iter().filter(|(rule, shown)| holds(rule, shown)).count().to_string()
            };
            let all = |which: fn(&Shown) -> &BTreeSet<String>| {
                of.iter().flat_map(|(_, shown)| which(shown)).collect::<BTreeSet<_>>().len().to_string()
            };
            rows.push(vec![
                group.to_owned(),
                of.len().to_string(),
                count(&|_, shown| shown.by_something()),
                count(&|rule, _| self.finished.rules.contains(rule)),
                count(&|rule, _| self.finished.exceptions.contains_key(rule)),
                all(|shown| &shown.scenarios),
                all(|shown| &shown.tests),
                all(|shown| &shown.benches),
            ]);
        }
        let cell = |(column, cell): (usize, &String)| {
            if column == 0 { format!("{cell:<6}") } else { format!("{cell:>11}") }
        };
        rows.iter().map(|row| row.iter().enumerate().map(cell).collect::<String>() + "\n").collect()
    }

    /// The rules, each with who cites it, or only those that nothing cites.
    fn list(&self, rules: &[&str], cited: bool) -> String {
        let mut text = String::new();
        for rule in rules {
            let shown = &self.shown[rule];
            if !cited && shown.by_something() {
                continue;
            }
            text += rule;
            match self.finished.exceptions.get(*rule) {
                Some(reason) => text += &format!("  excepted: {reason}"),
                None if self.finished.rules.contains(*rule) => text += "  finished",
                None => {}
            }
            text += "\n";
            shown.all().for_each(|name| text += &format!("    {name}\n"));
        }
        text
    }

    fn json(&self, rules: &[&str], uncovered: bool) -> Value {
        let rules = rules.iter().filter(|rule| !uncovered || !self.shown[*rule].by_something());
        let one = |rule: &&str| {
            let shown = &self.shown[rule];
            json!({
                "rule": rule,
                "finished": self.finished.rules.contains(*rule),
                "exception": self.finished.exceptions.get(*rule),
                "scenarios": shown.scenarios,
                "tests": shown.tests,
                "benches": shown.benches,
            })
        };
        let rules: Vec<Value> = rules.map(one).collect();
        json!({ "ok": self.wrong.is_empty(), "rules": rules, "wrong": self.wrong })
    }
}

impl Shown {
    fn all(&self) -> impl Iterator<Item = &String> {
        self.scenarios.iter().chain(&self.tests).chain(&self.benches)
    }

    fn by_something(&self) -> bool {
        self.all().next().is_some()
    }
}
