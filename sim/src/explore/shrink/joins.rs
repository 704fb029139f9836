//! Steps that become one: the changes of one are made in the other.

use super::Search;
use crate::fake::PluginTable;
use crate::scenario::Step;

/// Each step with its neighbour, and each plan with its plugin.
pub(super) fn all(search: &mut Search<'_>) {
    let mut second = search.best.steps.len();
    while second > 1 {
        second = second.min(search.best.steps.len()).max(1) - 1;
        if second == 0 {
            break;
        }
        let (first, next) = (search.best.steps[second - 1].clone(), search.best.steps[second].clone());
        let later = joined(&first, &next);
        let earlier = joined(&next, &first);
        for one in [later, earlier] {
            let joined = search.change(|candidate| {
                candidate.steps[second] = one;
                candidate.steps.remove(second - 1);
            });
            if joined {
                break;
            }
        }
    }
    plans(search);
}

/// The changes of `other`, made in `step` as well, which has the last word.
fn joined(other: &Step, step: &Step) -> Step {
    let (mut all, other) = (step.clone(), other.clone());
    all.chmod = other.chmod.into_iter().chain(all.chmod).collect();
    all.file = other.file.into_iter().chain(all.file).collect();
    all.plan = other.plan.into_iter().chain(all.plan).collect();
    all.db = all.db.or(other.db);
    all.repo = all.repo.or(other.repo);
    all.backend_set = all.backend_set.or(other.backend_set);
    all.advance_ms = sum(other.advance_ms, all.advance_ms, u64::saturating_add);
    all.wall_step_ms = sum(other.wall_step_ms, all.wall_step_ms, i64::saturating_add);
    all.backend_do = [other.backend_do, all.backend_do].concat();
    all.net = [other.net, all.net].concat();
    all.reboot |= other.reboot;
    all.recycle |= other.recycle;
    all.calm |= other.calm;
    all.end_all |= other.end_all;
    if all.run.is_some() && other.run.is_none() {
        all.converged |= other.converged;
    }
    all
}

fn sum<T: Copy>(one: Option<T>, other: Option<T>, add: fn(T, T) -> T) -> Option<T> {
    match (one, other) {
        (Some(one), Some(other)) => Some(add(one, other)),
        (one, other) => one.or(other),
    }
}

/// The changes of a step to the world and what it expects of that, without its run and what happens meanwhile.
pub(super) fn changes(step: &Step) -> Step {
    let mut whole = step.clone();
    whole.backend_do.retain(|one| one.at_ms == 0);
    whole.net.retain(|one| one.at_ms == 0);
    Step {
        backend: step.backend.clone(),
        effects: step.effects,
        records: step.records.clone(),
        converged: step.converged,
        ..joined(&whole, &Step::default())
    }
}

/// What a plugin declares later, from the beginning.
fn plans(search: &mut Search<'_>) {
    let names: Vec<String> = search.best.plugins.keys().cloned().collect();
    for name in names {
        let plan = search.best.steps.iter().find_map(|step| step.plan.get(&name)).cloned();
        let Some(plan) = plan else { continue };
        search.change(|candidate| {
            let file = candidate.plugins[&name].file.clone();
            candidate.plugins.insert(name.clone(), PluginTable { file, ..plan });
            candidate.steps.iter_mut().for_each(|step| drop(step.plan.remove(&name)));
        });
    }
}
