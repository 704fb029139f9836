//! Scenarios drawn from a seed: the same type as a scripted scenario, so that each can be written down as a file, read,
//! shortened and kept.
//!
//! In: a seed. Out: a [`Scenario`] of one to three plugins, up to three faults, three to eight verbs without expectations,
//! and an ending without faults that must converge. The oracles judge the rest.
//!
//! - `swarm`: what a run may do at all; each seed leaves a random part of everything out
//! - `plugins`: declarations, sound and not, and the files that are installed
//! - `faults`: faults of the catalogue, their moments and parameters
//! - `sweep`: a scenario that is ended at each of its points in turn; `shrink`: the smallest that fails like one that fails
//! - `provided`: a provider of hosts with its verbs, beside the others; `operator`: who types these
//! - `steps`: command lines and what happens between and during them; `ending`: the ending
//!
//! Every part draws from streams of its own, so that a change of one leaves the others of a seed as they were.

mod ending;
mod faults;
mod operator;
mod plugins;
mod provided;
pub mod shrink;
mod steps;
mod swarm;
pub mod sweep;

#[cfg(test)]
mod tests;

use crate::scenario::{Scenario, Step};
use crate::streams::Stream;

pub use swarm::Swarm;

/// What the run of a seed may do at all.
pub fn swarm(seed: u64) -> Swarm {
    Swarm::draw(&mut stream(seed, "swarm"))
}

/// All options that were drawn for a seed, one sort a line: those of the run, those of its provider of hosts if there is one.
pub fn options(seed: u64) -> Vec<String> {
    let swarm = swarm(seed);
    let provided = provided::draw(seed, &swarm).map(|provided| format!("provider: {:?}", provided.options));
    std::iter::once(format!("swarm: {swarm:?}")).chain(provided).collect()
}

/// The scenario of a seed.
pub fn draw(seed: u64) -> Scenario {
    let swarm = swarm(seed);
    let provided = provided::draw(seed, &swarm);
    // Beside a provider one plugin and a few verbs of its own are enough.
    let (most_plugins, most_steps) = if provided.is_some() { (1, 2) } else { (3, 8) };
    let plugins = plugins::draw(seed, &swarm, most_plugins);
    let faults = faults::draw(&mut stream(seed, "faults"), &swarm, &plugins);
    let drawn = steps::draw(&mut stream(seed, "steps"), &swarm, &plugins, most_steps);
    let plugins =
        provided.as_ref().map_or_else(|| plugins.clone(), |provided| provided::with(&plugins, provided));
    let (before, after, more, backend) = match &provided {
        Some(one) => (one.before.clone(), one.after.clone(), one.faults.clone(), Some(one.backend.clone())),
        None => Default::default(),
    };
    let drawn: Vec<Step> = before.into_iter().chain(drawn).chain(after).collect();
    let ending = ending::draw(&mut stream(seed, "ending"), seed, &swarm, &plugins, &drawn, provided.as_ref());
    let faults = faults.into_iter().chain(more).collect();
    let steps: Vec<Step> = drawn.into_iter().chain(ending).collect();
    let real = provided.is_none() && !steps.iter().any(only_simulated);
    Scenario {
        title: format!("Seed {seed}"),
        why: None,
        // Whatever is drawn, nobody is left behind.
        rules: vec!["PRC-03".into()],
        seed,
        short_io: swarm.short_io,
        used: swarm.used,
        pooled: !seed.is_multiple_of(FRESH),
        real,
        why_not_real: (!real)
            .then(|| "it was drawn for a machine whose clock, disk and calls can be told".into()),
        plugins,
        backend,
        faults,
        steps,
    }
}

/// One seed in so many opens every database afresh.
const FRESH: u64 = 16;

fn stream(seed: u64, name: &str) -> Stream {
    let stream = Stream::new(seed, &format!("explore/{name}"));
    #[cfg(test)]
    let stream = tests::drawn_from(stream, name);
    stream
}

/// One of the items, of which there is at least one.
fn one_of<T: Copy>(stream: &mut Stream, items: &[T]) -> T {
    items[stream.below(items.len() as u64) as usize]
}

/// One of the items, each as likely as its weight says.
fn weighted<T: Copy>(stream: &mut Stream, items: &[(u64, T)]) -> T {
    let mut at = stream.below(items.iter().map(|(weight, _)| weight).sum());
    for (weight, item) in items {
        match at.checked_sub(*weight) {
            Some(rest) => at = rest,
            None => return *item,
        }
    }
    unreachable!("what is drawn is below the sum of all weights")
}

/// A number from 1 to `most`, of which each order of magnitude is as likely as the others.
fn magnitude(stream: &mut Stream, most: u64) -> u64 {
    let bits = stream.between(1, u64::from(most.ilog2()) + 1);
    stream.between(1, ((1 << bits) - 1).min(most))
}

/// Whether a step needs the simulated machine.
fn only_simulated(step: &Step) -> bool {
    step.wall_step_ms.is_some()
        || !step.world.is_empty()
        || step.kill_at_call.is_some()
        || step.panic_at_call.is_some()
        || step.db == Some(crate::scenario::Db::Full)
}
