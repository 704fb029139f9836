//! Every item in two processes: the same chain and the same number of events, or the first event that differs.
//!
//! The second process plays the items in the opposite order, so that what one run leaves for the next in the same
//! process shows as well.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::args::Seeds;
use super::item::{Item, Outcome};
use super::progress::Progress;
use super::worker::{own_program, play_some};
use super::{FOUND, Failure, HELD, Place, files, say};

/// Events shown before the first that differs.
const BEFORE: usize = 3;

/// An item whose two runs were not the same.
struct Difference {
    item: Item,
    /// Chain and number of events in the two processes.
    runs: [String; 2],
    /// Number of the first event that differs, from 1, and what it is in the two processes.
    first: Option<(usize, [String; 2])>,
    before: Vec<String>,
}

/// Compares the named files, or all, and the seeds; answers with the exit code.
pub(crate) fn run(place: &Place, names: &[PathBuf], seeds: Seeds, json: bool) -> Result<u8, Failure> {
    let mut items = files::items(place, names)?;
    items.extend(seeds.items());
    let mut progress = Progress::new("runs in two processes", items.len() * 2, json);
    let [forth, back] = both(&items, &mut progress)?;
    progress.end();
    let mut differences = Vec::new();
    for item in &items {
        let runs = [&forth, &back].map(|runs| fingerprint(&runs[&item.word()]));
        if runs[0] != runs[1] {
            differences.push(difference(item.clone(), runs)?);
        }
    }
    if json {
        let differences: Vec<Value> = differences.iter().map(Difference::json).collect();
        say(&format!(
            "{}\n",
            json!({ "ok": differences.is_empty(), "items": items.len(), "differences": differences })
        ));
    } else {
        differences.iter().for_each(|one| say(&one.text()));
        say(&format!("{} runs, each in two processes: {} differ\n", items.len(), differences.len()));
    }
    Ok(if differences.is_empty() { HELD } else { FOUND })
}

type Runs = BTreeMap<String, Outcome>;

fn both(items: &[Item], progress: &mut Progress) -> Result<[Runs; 2], Failure> {
    let own = &own_program()?;
    let (told, outcomes) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        let forth = told.clone();
        let forth = scope.spawn(move || {
            let mut items = items.iter().cloned();
            play_some(own, || items.next(), |outcome| drop(forth.send((0, outcome))))
        });
        let back = scope.spawn(move || {
            let mut items = items.iter().rev().cloned();
            play_some(own, || items.next(), |outcome| drop(told.send((1, outcome))))
        });
        let mut runs = [Runs::new(), Runs::new()];
        for (which, outcome) in outcomes {
            progress.step(0);
            runs[which].insert(outcome.item.word(), outcome);
        }
        for process in [forth, back] {
            process.join().expect("no thread here panics")?;
        }
        Ok(runs)
    })
}

fn fingerprint(outcome: &Outcome) -> String {
    match &outcome.chain {
        Some(chain) => format!("{chain}, {} events", outcome.events),
        None => outcome.found.iter().map(|found| found.text.as_str()).collect::<Vec<_>>().join("; "),
    }
}

/// Plays the item in two more processes, to find the first event that differs.
fn difference(item: Item, runs: [String; 2]) -> Result<Difference, Failure> {
    let events = || -> Result<Vec<String>, Failure> {
        let output = Command::new(own_program()?)
            .args(["events", &item.word()])
            .stdin(Stdio::null())
            .stderr(Stdio::inherit())
            .output()
            .map_err(|error| Failure::broken("no process to play in", error))?;
        Ok(String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect())
    };
    let [one, other] = [events()?, events()?];
    let at = (0..one.len().max(other.len())).find(|at| one.get(*at) != other.get(*at));
    let shown = |events: &[String], at: usize| events.get(at).cloned().unwrap_or_else(|| "(the end)".into());
    Ok(Difference {
        runs,
        first: at.map(|at| (at + 1, [shown(&one, at), shown(&other, at)])),
        before: at.map_or_else(Vec::new, |at| one[at.saturating_sub(BEFORE)..at].to_vec()),
        item,
    })
}

impl Difference {
    fn text(&self) -> String {
        let [one, other] = &self.runs;
        let mut text =
            format!("DIFFERS {}\n  one process  {one}\n  the other    {other}\n", self.item.name());
        match &self.first {
            Some((number, [one, other])) => {
                self.before.iter().for_each(|event| text += &format!("    {event}\n"));
                text += &format!("  event {number}:\n  - {one}\n  + {other}\n");
            }
            None => {
                text += "  played alone in two new processes it is the same: an earlier run left something behind\n"
            }
        }
        text + &format!("  replay: {}\n", self.item.replay())
    }

    fn json(&self) -> Value {
        let first = self.first.as_ref();
        json!({
            "item": self.item.name(),
            "runs": self.runs,
            "event": first.map(|(number, _)| number),
            "events": first.map(|(_, events)| events),
            "replay": self.item.replay(),
        })
    }
}
