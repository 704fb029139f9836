//! The crash-point sweep: a scenario, ended at each of its points in turn, and then brought to a known state.
//!
//! In: a scenario, and what its run called and did ([`Course`]). Out: its points, and for each a scenario of its own that
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

use std::collections::BTreeSet;

use crate::backend::{BackendTable, NetAt, NetDeed};
use crate::fake::PluginFile;
use crate::scenario::{Db, DiskError, Scenario, Step};
use crate::world::Course;

pub use points::{At, Point, Points, Sort, points};

/// Milliseconds after which every plugin that means to end has ended.
const SETTLED_MS: u64 = 60_000;
/// What is taken off a span of time that a reboot lies in.
const REBOOT_MARGIN_MS: u64 = 600_000;
/// Milliseconds beyond which nobody waits: a run of the machine lasts thirty days at most.
const LONGEST_MS: u64 = 8 * 86_400_000;
/// Milliseconds within which a command without faults ends.
const BOUND_MS: u64 = 1_000;

/// Why a scenario has no points.
pub fn unswept(scenario: &Scenario, courses: &[Course]) -> Option<&'static str> {
    if scenario.steps.iter().all(|step| step.run.is_none()) {
        Some("no step runs mu")
    } else if courses.iter().all(|one| one.spots.is_empty()) {
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
    // What was to happen to a host while mu ran may find none now, and what was to be done about an open effect too.
    steps[first..].iter_mut().for_each(|step| step.backend_do.retain(|deed| deed.at_ms == 0));
    let mut index = 0..;
    steps.retain(|step| {
        let is_after = index.next().is_some_and(|index| index >= number);
        *step != Step::default() && !(is_after && step.names_key())
    });
    steps.last_mut().into_iter().for_each(|last| last.overlap = false);
    steps.extend(calm(scenario, &scenario.steps[..=last]));
    steps.extend(scenario.steps[first..].iter().filter_map(once_more));
    steps.extend(convergence(scenario));
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
        backend: Vec::new(),
        effects: None,
        records: None,
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
        backend_set: scenario.uses_backend().then(calm_backend),
        net: scenario.uses_backend().then_some(HEALED).into_iter().collect(),
        advance_ms: Some(SETTLED_MS + landed_ms(scenario)),
        wall_step_ms: Some(behind_ms(before)).filter(|ms| *ms != 0),
        end_all: true,
        ..Step::default()
    }];
    if super::ending::lost(before) {
        steps.push(Step { db: Some(Db::Missing), ..Step::default() });
    }
    steps
}

/// The same verb, with what it needs and nothing that goes wrong. What speaks of the one open effect has none to speak of.
fn once_more(step: &Step) -> Option<Step> {
    if step.names_key() {
        return None;
    }
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

/// All passes again between plugins and backend.
pub(super) const HEALED: NetAt = NetAt { deed: NetDeed::Heal, at_ms: 0, ms: None };

/// A backend that does at once what it is asked for, and shows what is true.
pub(super) fn calm_backend() -> BackendTable {
    BackendTable {
        acquire_ms: Some(0),
        release_ms: Some(0),
        land_ms: Some(0),
        lookup_lag_ms: Some(0),
        fence: Some(true),
        net_ms: Some(1),
        ..BackendTable::default()
    }
}

/// Milliseconds after which whatever the backend has accepted has taken place.
fn landed_ms(scenario: &Scenario) -> u64 {
    let tables = scenario.steps.iter().filter_map(|step| step.backend_set.as_ref()).chain(&scenario.backend);
    let of = |table: &BackendTable| -> u64 {
        [table.acquire_ms, table.release_ms, table.land_ms].into_iter().flatten().sum()
    };
    tables.map(of).fold(0, u64::saturating_add).min(LONGEST_MS)
}

/// Milliseconds by which the wall clock may be behind the latest time that it has shown: a clock behind what was written
/// down tells nothing, and effects stay open for as long. What happens while a run lasts may come after the
/// changes of later steps, so all steps back count.
pub(super) fn behind_ms(steps: &[Step]) -> i64 {
    let changes = steps.iter().flat_map(|step| {
        let meanwhile = step.world.iter().filter_map(|change| change.wall_step_ms);
        step.wall_step_ms.into_iter().chain(meanwhile)
    });
    changes.filter(|change| *change < 0).fold(0, i64::saturating_sub)
}

/// Milliseconds after which no acquire is in flight any more, by what providers declare.
fn in_flight_ms(scenario: &Scenario) -> u64 {
    let tables = scenario.steps.iter().flat_map(|step| step.plan.values()).chain(scenario.plugins.values());
    let declared = tables.filter_map(|table| {
        let host = toml::Value::from(table.host.clone()?);
        u64::try_from(host.get("acquire")?.get("inFlightMs")?.as_integer()?).ok()
    });
    declared.max().unwrap_or(0).min(LONGEST_MS)
}

/// The hosts that are acquired anywhere.
fn acquired(scenario: &Scenario) -> BTreeSet<&str> {
    let runs = scenario.steps.iter().filter_map(|step| step.run.as_deref());
    let words = runs.map(|run| run.split_whitespace().skip_while(|word| *word != "acquire").skip(1));
    words.filter_map(|mut words| words.next().filter(|word| !word.starts_with('-'))).collect()
}

/// mu comes to a known state.
fn convergence(scenario: &Scenario) -> Vec<Step> {
    let must = |run: &str| Step {
        run: Some(run.into()),
        exit: Some(0),
        within_ms: Some(BOUND_MS),
        ..Step::default()
    };
    let hosts = acquired(scenario);
    let ask = |name: &&str| Step { run: Some(format!("mu host status {name} --json")), ..Step::default() };
    let mut steps: Vec<Step> = Vec::new();
    if !hosts.is_empty() {
        // The first look stamps since when all is quiet, the second may act upon it.
        steps.extend(hosts.iter().map(ask));
        steps.push(Step {
            advance_ms: Some(REBOOT_MARGIN_MS + 1_000 + in_flight_ms(scenario)),
            ..Step::default()
        });
        steps.extend(hosts.iter().map(ask));
        steps.push(must("mu effect list --json"));
    }
    steps.push(must("mu plugin list --json"));
    steps.push(Step { converged: true, ..must("mu host list --json") });
    steps
}
