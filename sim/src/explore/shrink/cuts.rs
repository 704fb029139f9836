//! What is left out as a whole: steps, faults, plugins.

use std::ops::Range;

use super::Search;
use super::line;
use crate::scenario::{Scenario, Step};

/// Beyond so many steps, pairs of them are too many.
const PAIRED: usize = 10;

/// Leaves out steps.
pub(super) fn steps(search: &mut Search<'_>) {
    thin(search, |scenario| scenario.steps.len(), |scenario, range| drop(scenario.steps.drain(range)));
}

/// Leaves out faults.
pub(super) fn faults(search: &mut Search<'_>) {
    thin(search, |scenario| scenario.faults.len(), |scenario, range| drop(scenario.faults.drain(range)));
}

/// Leaves out pieces of a list: halves first, single elements last, each from the back.
fn thin(search: &mut Search<'_>, len: fn(&Scenario) -> usize, drain: fn(&mut Scenario, Range<usize>)) {
    let mut piece = len(&search.best);
    while piece > 0 {
        let mut end = len(&search.best);
        while end > 0 {
            let start = end.saturating_sub(piece);
            search.change(|candidate| drain(candidate, start..end));
            end = start.min(len(&search.best));
        }
        piece /= 2;
    }
}

/// Leaves out two steps at once: one may undo what the other does.
pub(super) fn pairs(search: &mut Search<'_>) {
    let mut second = search.best.steps.len();
    if second > PAIRED {
        return;
    }
    while second > 1 {
        second -= 1;
        for first in (0..second).rev() {
            let both = |candidate: &mut Scenario| {
                candidate.steps.remove(second);
                candidate.steps.remove(first);
            };
            if search.change(both) {
                second = search.best.steps.len();
                break;
            }
        }
    }
}

/// Leaves out plugins, each with all that names it; or what they are apart from their names.
pub(super) fn plugins(search: &mut Search<'_>) {
    let names: Vec<String> = search.best.plugins.keys().cloned().collect();
    for name in names {
        if !search.change(|candidate| without_plugin(candidate, &name)) {
            search.change(|candidate| drop(candidate.plugins.insert(name.clone(), Default::default())));
        }
    }
}

fn without_plugin(scenario: &mut Scenario, name: &str) {
    scenario.plugins.remove(name);
    scenario.faults.retain(|fault| fault.plugin != name);
    for step in &mut scenario.steps {
        step.chmod.remove(name);
        step.file.remove(name);
        step.plan.remove(name);
        step.kill_plugin_at.remove(name);
        step.starts.remove(name);
        step.signal.retain(|signal| signal.to != name);
        step.wire.retain(|wire| wire.plugin != name);
        if step.run.as_ref().is_some_and(|run| line::names(run, name)) {
            *step = Step { run: None, ..step.clone() };
        }
    }
}
