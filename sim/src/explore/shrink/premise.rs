//! What an expectation of an ending rests upon.
//!
//! Commands without faults have to succeed at once only because everything that was spoiled was made good before: the
//! step that is `calm` says so, with files, plans, backend and network. If a candidate left that out and kept what was
//! spoiled, its expectation would fail with every mu.

use crate::fake::{PluginFile, PluginTable};
use crate::scenario::{Db, Scenario, Step};

/// Whether an expectation of a candidate's step is due for the same reasons as one of the whole scenario. Steps are
/// counted from 1. `text` is what did not hold: it names the hosts that had to be asked for.
pub fn is_still_due(whole: (&Scenario, usize), candidate: (&Scenario, usize), text: &str) -> bool {
    let ((whole, of_whole), (shrunk, of_shrunk)) = (whole, candidate);
    let (Some(before), Some(now)) = (calm(whole, of_whole), calm(shrunk, of_shrunk)) else {
        return calm(whole, of_whole).is_none();
    };
    let (first, settled) = (&whole.steps[before], &shrunk.steps[now..of_shrunk]);
    let is_settled = || {
        let (asks, ms) = due(&whole.steps[before..of_whole], text);
        asked(settled, text) >= asks && waited_ms(settled) >= ms
    };
    makes_good(first, shrunk, now) && (!shrunk.steps[of_shrunk - 1].converged || is_settled())
}

/// How often the hosts of a text have to be asked for, and how many milliseconds have to pass, from the step that is calm
/// on: for an effect that is open as in these steps, whose first look but tells since when all is quiet; for
/// anything else one look is enough, once all has landed.
fn due(steps: &[Step], text: &str) -> (usize, u64) {
    match text.ends_with(" is still open") {
        true => (asked(steps, text), waited_ms(steps)),
        false => (asked(steps, text).min(1), waited_ms(&steps[..1])),
    }
}

/// The place of the step, up to this one, from which no fault takes effect.
fn calm(scenario: &Scenario, number: usize) -> Option<usize> {
    scenario.steps.iter().take(number).position(|step| step.calm)
}

/// Whether the step at `now` makes good, as `calm` did, whatever is spoiled before it.
fn makes_good(calm: &Step, shrunk: &Scenario, now: usize) -> bool {
    let (step, before) = (&shrunk.steps[now], &shrunk.steps[..now]);
    let spoils = |does: &dyn Fn(&Step) -> bool| before.iter().any(does);
    let db = calm.db.is_none() || step.db.is_some() || !spoils(&|step| fails(step));
    let net = calm.net == step.net || !spoils(&|step| !step.net.is_empty());
    let own = shrunk.backend.clone().unwrap_or_default();
    let backend = calm.backend_set == step.backend_set
        || own == Default::default() && !spoils(&|step| step.backend_set.is_some());
    let file = |name: &String| {
        calm.file.get(name) == step.file.get(name)
            || shrunk.plugins[name].file == PluginFile::default()
                && !spoils(&|step| step.chmod.contains_key(name) || step.file.contains_key(name))
    };
    let plan = |name: &String| {
        calm.plan.get(name) == step.plan.get(name)
            || calm.plan.get(name).is_some_and(|plan| {
                let own = &shrunk.plugins[name];
                *plan == PluginTable { file: plan.file.clone(), ..own.clone() }
                    && !spoils(&|step| step.plan.contains_key(name))
            })
    };
    let is_quiet = !calm.end_all || step.end_all || !before.iter().any(|step| step.run.is_some());
    db && net && backend && is_quiet && shrunk.plugins.keys().all(|name| file(name) && plan(name))
}

/// Whether the disk or the database is worse after it.
fn fails(step: &Step) -> bool {
    step.disk_error.is_some() || step.db.is_some_and(|db| db != Db::Restored)
}

/// How often the hosts that a text names are asked for.
fn asked(steps: &[Step], text: &str) -> usize {
    let is_named =
        |host: &str| text.split(|c: char| !c.is_alphanumeric() && c != '-').any(|word| word == host);
    let runs = steps.iter().filter_map(|step| step.run.as_ref()?.strip_prefix("mu host status "));
    runs.filter(|run| run.split_whitespace().next().is_some_and(is_named)).count()
}

fn waited_ms(steps: &[Step]) -> u64 {
    steps.iter().filter_map(|step| step.advance_ms).fold(0, u64::saturating_add)
}
