//! Which marks of the code and which faults of the catalogue random seeds have reached, and which they must.
//!
//! In: the outcomes of items, and `sim/marks.toml`. Out: what no seed has reached; a mark that the file promises for so
//! many seeds and that was not reached is a failure.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use mu_core::marks::{ALL, Mark};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Failure;
use super::item::{Item, Outcome};
use crate::fake::catalogue;

/// The file of what must be reached, in the workspace.
pub(crate) const FILE: &str = "sim/marks.toml";

/// All marks, in the order of their texts. The same program has the same ones in each of its processes.
static SORTED: LazyLock<Vec<&'static Mark>> = LazyLock::new(|| {
    let mut all: Vec<&Mark> = ALL.iter().collect();
    all.sort_by_key(|mark| mark.text());
    all
});

/// The marks that this process has reached since this was asked last, as numbers for [`text`].
pub(crate) fn take() -> Vec<u16> {
    (0..).zip(SORTED.iter()).filter(|(_, mark)| mark.take() > 0).map(|(number, _)| number).collect()
}

fn text(number: u16) -> Option<&'static str> {
    SORTED.get(usize::from(number)).map(|mark| mark.text())
}

/// What a fault is called among the marks.
fn of_fault(name: &str) -> String {
    format!("fault {name}")
}

/// All marks and faults.
fn known() -> BTreeSet<String> {
    let faults = catalogue().into_iter().map(|entry| of_fault(entry.name));
    SORTED.iter().map(|mark| mark.text().to_owned()).chain(faults).collect()
}

/// What so many seeds must reach.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Promise {
    /// From so many seeds on, wherever they begin.
    seeds: u64,
    /// The texts of the marks; `fault NAME` for a fault.
    marks: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Promises {
    promise: Vec<Promise>,
}

/// Counts what seeds reach.
#[derive(Debug)]
pub(crate) struct Count {
    promises: Vec<Promise>,
    /// All scenarios are played, so that each fault of the catalogue must take effect somewhere.
    whole: bool,
    seeds: u64,
    /// How many seeds reached each.
    reached: BTreeMap<String, u64>,
    /// What anything reached, scenario files too.
    at_all: BTreeSet<String>,
}

impl Count {
    /// Nothing yet; what must be reached is read from the workspace `root`. `whole`: all scenarios are played as well.
    ///
    /// # Errors
    /// The file cannot be read, does not parse, or names a mark that there is not: one line with the place.
    pub(crate) fn new(root: &Path, whole: bool) -> Result<Count, Failure> {
        let text = fs::read_to_string(root.join(FILE))
            .map_err(|error| Failure::Input(format!("{FILE}: {error}")))?;
        let promises = promises(&text, &known()).map_err(|what| Failure::Input(format!("{FILE}: {what}")))?;
        Ok(Count { promises, whole, seeds: 0, reached: BTreeMap::new(), at_all: BTreeSet::new() })
    }

    /// One more item was played.
    pub(crate) fn add(&mut self, outcome: &Outcome) {
        let marks = outcome.reached.iter().filter_map(|number| text(*number)).map(str::to_owned);
        let all: Vec<String> = marks.chain(outcome.fired.keys().map(|name| of_fault(name))).collect();
        if let Item::Seed(_) = outcome.item {
            self.seeds += 1;
            for one in &all {
                *self.reached.entry(one.clone()).or_default() += 1;
            }
        }
        self.at_all.extend(all);
    }

    /// What was promised for so many seeds and not reached, and the faults that never took effect.
    pub(crate) fn broken(&self) -> Vec<String> {
        let due = self.promises.iter().filter(|promise| promise.seeds <= self.seeds);
        let all = due.flat_map(|promise| promise.marks.iter().map(|mark| (promise.seeds, mark)));
        all.filter(|(_, mark)| !self.reached.contains_key(*mark))
            .map(|(seeds, mark)| format!("`{mark}` is to be reached by {seeds} seeds ({FILE}), and was not"))
            .chain(if self.whole { self.unseen_faults() } else { Vec::new() })
            .collect()
    }

    /// Faults of the catalogue that nothing has shown.
    fn unseen_faults(&self) -> Vec<String> {
        let names = catalogue().into_iter().map(|entry| entry.name);
        let unseen = names.filter(|name| !self.at_all.contains(&of_fault(name)));
        unseen.map(|name| format!("fault `{name}` took effect in no scenario and no seed")).collect()
    }

    /// How many there are, and how many of them seeds have reached.
    pub(crate) fn sum(&self) -> (usize, usize) {
        (known().len(), self.reached.len())
    }

    /// Those that no seed has reached, with whether anything else did.
    fn missed(&self) -> Vec<(String, bool)> {
        let missed = known().into_iter().filter(|mark| !self.reached.contains_key(mark));
        missed.map(|mark| (mark.clone(), self.at_all.contains(&mark))).collect()
    }

    /// How many seeds reached each, what none has, and what is to be reached and was not.
    pub(crate) fn json(&self) -> Value {
        let missed: Vec<String> = self.missed().into_iter().map(|(mark, _)| mark).collect();
        json!({ "reached": self.reached, "missed": missed, "broken": self.broken() })
    }

    /// Those that no seed has reached, as text: one a line.
    pub(crate) fn table(&self) -> String {
        let mut table = String::new();
        for (mark, elsewhere) in self.missed() {
            let _ = writeln!(table, "  {mark}{}", if elsewhere { "  (by a scenario)" } else { "" });
        }
        if table.is_empty() { table } else { format!("\nno seed has reached\n{table}") }
    }
}

fn promises(text: &str, known: &BTreeSet<String>) -> Result<Vec<Promise>, String> {
    let Promises { promise } =
        toml::from_str(text).map_err(|error| error.to_string().trim_end().replace('\n', "; "))?;
    for mark in promise.iter().flat_map(|promise| &promise.marks) {
        if !known.contains(mark) {
            let line = text.lines().position(|line| line.contains(mark.as_str())).map_or(0, |line| line + 1);
            return Err(format!("line {line}: no mark is called `{mark}`"));
        }
    }
    Ok(promise)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::is_rule;

    fn count(text: &str) -> Count {
        let promises = promises(text, &known()).unwrap();
        Count { promises, whole: false, seeds: 0, reached: BTreeMap::new(), at_all: BTreeSet::new() }
    }

    fn outcome(seed: u64, reached: &[&str]) -> Outcome {
        let number = |text: &&str| SORTED.iter().position(|mark| mark.text() == *text).unwrap() as u16;
        let reached = reached.iter().map(number).collect();
        Outcome { reached, ..Outcome::crash(Item::Seed(seed), "no crash".into()) }
    }

    const GROUP: &str = "EFF-12 refused: a group that was sent it lives";

    #[test]
    fn every_mark_begins_with_a_rule_or_the_world_and_has_a_text_of_its_own() {
        assert!(SORTED.len() > 50, "there are marks");
        for mark in SORTED.iter() {
            let first = mark.text().split(' ').next().unwrap_or_default();
            assert!(is_rule(first) || first == "world:", "{}", mark.text());
        }
        for two in SORTED.windows(2) {
            assert_ne!(two[0].text(), two[1].text());
        }
    }

    #[test]
    fn a_promise_is_broken_only_after_its_number_of_seeds() {
        let mut count = count(&format!("[[promise]]\nseeds = 2\nmarks = ['{GROUP}', 'fault exit']"));
        count.add(&outcome(0, &[]));
        assert_eq!(count.broken(), Vec::<String>::new());
        count.add(&outcome(1, &[GROUP]));
        assert_eq!(count.broken().len(), 1);
        assert!(count.broken()[0].contains("fault exit"), "{:?}", count.broken());
        let mut fired = outcome(2, &[]);
        fired.fired.insert("exit".into(), 1);
        count.add(&fired);
        assert_eq!(count.broken(), Vec::<String>::new());
        assert_eq!(count.json()["reached"][GROUP], 1);
    }

    #[test]
    fn a_fault_that_never_took_effect_is_told_when_all_is_played() {
        let mut count = Count { whole: true, ..count("promise = []") };
        let mut all = outcome(0, &[]);
        all.fired = catalogue().into_iter().map(|entry| (entry.name.to_owned(), 1)).collect();
        all.fired.remove("bom");
        count.add(&all);
        assert_eq!(count.broken(), ["fault `bom` took effect in no scenario and no seed"]);
    }

    #[test]
    fn what_a_scenario_reaches_is_not_what_seeds_reach() {
        let mut count = count("promise = []");
        let item = Item::File { path: "a".into(), shown: "a".into() };
        count.add(&Outcome { item, ..outcome(0, &[GROUP]) });
        assert!(count.missed().contains(&(GROUP.to_owned(), true)));
        assert!(count.table().contains("(by a scenario)"));
    }

    #[test]
    fn a_mark_that_there_is_not_is_told_with_its_line() {
        let text = "[[promise]]\nseeds = 1\nmarks = [\n  'EFF-12 nonsense',\n]";
        assert_eq!(promises(text, &known()).unwrap_err(), "line 4: no mark is called `EFF-12 nonsense`");
    }

    #[test]
    fn the_marks_that_a_process_reached_are_told_once() {
        take();
        let text = GROUP;
        SORTED.iter().find(|mark| mark.text() == text).unwrap().reach();
        assert!(take().iter().any(|number| super::text(*number) == Some(text)));
    }
}
