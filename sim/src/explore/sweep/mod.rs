//! The crash-point sweep: a scenario, ended at each of its points in turn, and then brought to a known state.
//!
//! In: a scenario, and what its run called and did ([`Marks`]). Out: its points, and for each a scenario of its own that
//! can be written down and played like any other:
//!
//! 1. the steps up to the one that the point is in, and that one with the end in it;
//! 2. nothing goes wrong any more: no fault takes effect, files and database are sound, a minute passes, and who still
//!    lives then is killed;
//! 3. the verbs of that step and of those after it, once more and one at a time;
//! 4. the convergence: every host is asked for, and mu's rows and the machines behind the plugins must agree.
//!
//! What the scenario expects holds no longer; its own changes that spoil something are left out behind the end.
//!
//! - `points`: which points there are, and which of them are the same world

mod points;

#[cfg(test)]
mod tests;

use crate::fake::PluginFile;
use crate::scenario::{Db, DiskError, Scenario, Step};
use crate::world::Marks;

pub use points::{At, Point, Points, Sort, points};

/// Milliseconds after which every plugin that means to end has ended, and every one that lands late has landed.
const SETTLED_MS: u64 = 60_000;
/// Milliseconds within which a command without faults ends.
const BOUND_MS: u64 = 1_000;

/// Why a scenario has no points.
pub fn unswept(scenario: &Scenario, marks: &[Marks]) -> Option<&'static str> {
    if scenario.steps.iter().all(|step| step.run.is_none()) {
        Some("no step runs mu")
    } else if marks.iter().all(|one| one.marks.is_empty()) {
        Some("mu calls nothing")
    } else {
        None
    }
}

/// The scenario that ends at a point.
pub fn ended_at(scenario: &Scenario, point: &Point) -> Scenario {
    let number = point.step;
    let first = (0..number).rev().take_while(|at| *at + 1 == number || scenario.steps[*at].overlap).last();
    let first = first.unwrap_or(number - 1);
    let last = (number - 1..scenario.steps.len()).find(|at| !scenario.steps[*at].overlap);
    let last = last.unwrap_or(scenario.steps.len() - 1);
    let mut steps: Vec<Step> = scenario.steps[..=last].iter().map(without_expectations).collect();
    end(&mut steps[number - 1], &point.at);
    steps.extend(calm(scenario, &scenario.steps[..=last]));
    steps.extend(scenario.steps[first..].iter().filter_map(once_more));
    steps.extend(convergence());
    Scenario {
        title: format!("{}; {}", scenario.title, point.text()),
        real: false,
        why_not_real: Some("it ends at a point that only the simulated machine counts".into()),
        steps,
        ..scenario.clone()
    }
}

/// The step with its end, which takes the place of any that it had: that one would come later.
fn end(step: &mut Step, at: &At) {
    let ended = Step {
        kill_at_call: None,
        panic_at_call: None,
        kill_at_disk: None,
        power_at_call: None,
        power_at_disk: None,
        ..step.clone()
    };
    match at {
        At::Call { nth, .. } => *step = Step { kill_at_call: Some(*nth), ..ended },
        At::Disk { nth, .. } => *step = Step { kill_at_disk: Some(*nth), ..ended },
        At::PowerAtCall { nth, .. } => *step = Step { power_at_call: Some(*nth), ..ended },
        At::PowerAtDisk { nth, .. } => *step = Step { power_at_disk: Some(*nth), ..ended },
        At::Plugin { plugin, nth, .. } => drop(step.kill_plugin_at.insert(plugin.clone(), *nth)),
        At::DiskError { nth, errno, stays, .. } => {
            step.disk_error = Some(DiskError { at: *nth, errno: *errno, stays: *stays });
        }
    }
}

fn without_expectations(step: &Step) -> Step {
    Step {
        exit: None,
        died_of: None,
        error: None,
        json: Default::default(),
        json_absent: Vec::new(),
        stdout: None,
        stderr: None,
        within_ms: None,
        took_ms: None,
        wire: Vec::new(),
        starts: Default::default(),
        fetch_head: None,
        converged: false,
        ..step.clone()
    }
}

/// Nothing goes wrong any more.
fn calm(scenario: &Scenario, before: &[Step]) -> Vec<Step> {
    let mut steps = vec![Step {
        calm: true,
        file: scenario.plugins.keys().map(|name| (name.clone(), PluginFile::default())).collect(),
        db: Some(Db::Restored),
        advance_ms: Some(SETTLED_MS),
        end_all: true,
        ..Step::default()
    }];
    if super::ending::lost(before) {
        steps.push(Step { db: Some(Db::Missing), ..Step::default() });
    }
    steps
}

/// The same verb, with what it needs and nothing that goes wrong.
fn once_more(step: &Step) -> Option<Step> {
    let again = Step {
        plan: step.plan.clone(),
        repo: step.repo.clone(),
        advance_ms: step.advance_ms,
        run: step.run.clone(),
        env: step.env.clone(),
        ..Step::default()
    };
    (again != Step::default()).then_some(again)
}

/// mu comes to a known state.
fn convergence() -> Vec<Step> {
    let must = |run: &str| Step {
        run: Some(run.into()),
        exit: Some(0),
        within_ms: Some(BOUND_MS),
        ..Step::default()
    };
    let steps = vec![must("mu plugin list --json"), Step { converged: true, ..must("mu host list --json") }];
    steps
}
