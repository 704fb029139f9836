//! `cargo sim score --shrink`: whether what a seed finds of a planted bug can be shown by a few steps.
//!
//! For each bug the first seed that catches it is shrunk, and the planted program plays the candidates. What comes of it
//! must be small, and must hold without the bug: else it shows something else.

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use super::copy::{Copy, Unbuilt};
use super::planted::Bug;
use crate::cli::item::{Found, Item};
use crate::cli::worker::{self, Stage};
use crate::cli::{FOUND, Failure, HELD, Place, files, say, shrink, tell};
use crate::explore::shrink::Cost;

/// Steps and faults that may be left.
const STEPS: usize = 3;
const FAULTS: usize = 2;
/// A file without the bug may take so long.
const PATIENCE: Duration = Duration::from_secs(60);

/// Candidates that are played for one seed at most.
const CANDIDATES: usize = 3000;

enum Verdict {
    Shrunk(Box<Small>),
    /// No seed fails.
    Missed,
    Failed(String),
}

/// What is left of a seed.
struct Small {
    seed: u64,
    found: Found,
    before: Cost,
    after: Cost,
    tried: usize,
    file: PathBuf,
    /// What fails in it without the bug.
    without: Vec<String>,
}

struct Row {
    bug: Bug,
    verdict: Verdict,
}

/// Plants the bugs one at a time and shrinks; answers with the exit code.
pub(super) fn run(place: &Place, bugs: Vec<Bug>, seeds: u64, jobs: usize, json: bool) -> Result<u8, Failure> {
    let copy = Copy::of(&place.root)?;
    let mut rows = Vec::new();
    for bug in bugs {
        tell(&format!("bug {}: {}\n", bug.number, bug.bug));
        let row = Row { verdict: verdict(place, &copy, &bug, seeds, jobs)?, bug };
        tell(&format!("  {}\n", row.text()));
        rows.push(row);
    }
    let good = rows.iter().all(|row| row.verdict.is_small());
    let all: Vec<Value> = rows.iter().map(Row::json).collect();
    let text = || {
        let lines: String =
            rows.iter().map(|row| format!("{:>3}  {}\n", row.bug.number, row.text())).collect();
        let small = rows.iter().filter(|row| row.verdict.is_small()).count();
        format!(
            "{lines}{small} of {} bugs are shown by {STEPS} steps and {FAULTS} faults at most\n",
            rows.len()
        )
    };
    say(&if json { format!("{}\n", json!({ "ok": good, "bugs": all })) } else { text() });
    Ok(if good { HELD } else { FOUND })
}

/// Plants one bug, builds, shrinks, and takes the bug out again.
fn verdict(place: &Place, copy: &Copy, bug: &Bug, seeds: u64, jobs: usize) -> Result<Verdict, Failure> {
    let planted = bug.planted(copy.tree()).map_err(Failure::Broken)?;
    let sound = copy.exchange(&bug.file, &planted)?;
    let built = copy.build();
    copy.exchange(&bug.file, &sound)?;
    let program = match built {
        Ok(program) => program,
        Err(Unbuilt::Wrong(error)) => return Ok(Verdict::Failed(format!("it does NOT compile: {error}"))),
        Err(Unbuilt::Failed(failure)) => return Err(failure),
    };
    let Some(seed) = first(&program, seeds, jobs)? else { return Ok(Verdict::Missed) };
    small(place, bug, &program, seed)
}

fn small(place: &Place, bug: &Bug, program: &Path, seed: u64) -> Result<Verdict, Failure> {
    let (target, shrunk) =
        match shrink::smallest(&mut Stage::of(program.to_owned()), &Item::Seed(seed), CANDIDATES, true) {
            Ok(both) => both,
            Err(failure) => return Ok(Verdict::Failed(format!("seed {seed} is not shrunk: {failure}"))),
        };
    let file = place.root.join(format!("target/sim/planted-{}.toml", bug.number));
    let written = fs::create_dir_all(file.parent().unwrap_or(&place.root))
        .and_then(|()| fs::write(&file, shrunk.scenario.to_toml()));
    written.map_err(|error| Failure::broken(&file.display().to_string(), error))?;
    let item = Item::File { shown: files::shown(&place.root, &file), path: file.clone() };
    let outcome = Stage::of(worker::own_program()?).play(&item, PATIENCE)?;
    let without = outcome.found.into_iter().map(|found| format!("[{}] {}", found.by, found.text)).collect();
    let (before, after) = (Cost::of(&target.whole), Cost::of(&shrunk.scenario));
    let (found, tried) = (target.found, shrunk.tried);
    Ok(Verdict::Shrunk(Box::new(Small { seed, found, before, after, tried, file, without })))
}

/// The first seed that fails.
fn first(program: &Path, seeds: u64, jobs: usize) -> Result<Option<u64>, Failure> {
    let items: Vec<Item> = (0..seeds).map(Item::Seed).collect();
    let mut failed: Option<u64> = None;
    worker::play_all(program, &items, jobs, |outcome| match outcome.item {
        Item::Seed(seed) if !outcome.found.is_empty() => {
            failed = Some(failed.map_or(seed, |failed| failed.min(seed)));
            ControlFlow::Break(())
        }
        _ => ControlFlow::Continue(()),
    })?;
    Ok(failed)
}

impl Verdict {
    fn is_small(&self) -> bool {
        match self {
            Verdict::Shrunk(small) => small.is_small_enough() && small.without.is_empty(),
            Verdict::Missed | Verdict::Failed(_) => false,
        }
    }
}

impl Small {
    fn is_small_enough(&self) -> bool {
        self.after.steps <= STEPS && self.after.faults <= FAULTS
    }

    fn text(&self) -> String {
        let Small { seed, found, before, after, tried, without, .. } = self;
        let large = if self.is_small_enough() { "" } else { ", which is TOO LARGE" };
        let without = match &without[..] {
            [] => String::new(),
            all => format!("; WITHOUT the bug it fails too: {}", all.join("; ")),
        };
        format!(
            "seed {seed}, {} {}: steps {} to {}, faults {} to {}{large}, {tried} candidates{without}",
            found.by,
            found.rules.join(", "),
            before.steps,
            after.steps,
            before.faults,
            after.faults
        )
    }

    fn json(&self) -> Value {
        let size = |cost: &Cost| json!({ "steps": cost.steps, "faults": cost.faults });
        json!({
            "seed": self.seed,
            "by": self.found.by,
            "broken": self.found.rules,
            "before": size(&self.before),
            "after": size(&self.after),
            "candidates": self.tried,
            "file": self.file.display().to_string(),
            "without_the_bug": self.without,
        })
    }
}

impl Row {
    fn text(&self) -> String {
        match &self.verdict {
            Verdict::Missed => "NO seed fails".into(),
            Verdict::Failed(reason) => reason.clone(),
            Verdict::Shrunk(small) => small.text(),
        }
    }

    fn json(&self) -> Value {
        let (shrunk, error) = match &self.verdict {
            Verdict::Shrunk(small) => (small.json(), Value::Null),
            Verdict::Missed | Verdict::Failed(_) => (Value::Null, self.text().into()),
        };
        json!({
            "number": self.bug.number,
            "rules": self.bug.rules,
            "bug": self.bug.bug,
            "small": self.verdict.is_small(),
            "shrunk": shrunk,
            "error": error,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{Scenario, is_rule};

    /// Of a scenario with so many steps and faults, which fails with this without the bug.
    fn is_small(steps: usize, faults: usize, without: &[&str]) -> bool {
        let text = format!(
            "title = 't'\nrules = ['PRC-03']\n[plugins.box]\n{}{}",
            "[[faults]]\nplugin = 'box'\ndo = 'bom'\n".repeat(faults),
            "[[steps]]\nrun = 'mu plugin list'\n".repeat(steps)
        );
        let scenario = Scenario::parse("test", &text, &is_rule).unwrap();
        let found = Found {
            by: "stopping".into(),
            rules: Vec::new(),
            text: "t".into(),
            at: None,
            step: None,
            replay: None,
        };
        let (before, after) = (Cost::of(&scenario), Cost::of(&scenario));
        let without = without.iter().map(|text| (*text).to_owned()).collect();
        let small = Small { seed: 1, found, before, after, tried: 1, file: "f".into(), without };
        Verdict::Shrunk(Box::new(small)).is_small()
    }

    #[test]
    fn what_is_left_may_have_three_steps_and_two_faults_and_must_hold_without_the_bug() {
        assert!(is_small(STEPS, FAULTS, &[]));
        assert!(!is_small(STEPS + 1, 0, &[]) && !is_small(1, FAULTS + 1, &[]));
        assert!(!is_small(1, 0, &["it fails as well"]));
        assert!(!Verdict::Missed.is_small() && !Verdict::Failed("it does not compile".into()).is_small());
    }
}
