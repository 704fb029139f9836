//! Shrinking: of a scenario that fails, the smallest found that fails the same way.
//!
//! In: a [`Scenario`], a judge who plays candidates and knows what "the same way" is, and how many candidates may be played.
//! Out: a scenario that can be written down as a file, in which every fault takes effect. The same comes of the same.
//!
//! A candidate is played only if it is smaller by its [`Cost`], is a scenario at all and was not played before. The
//! passes are repeated until none finds anything more:
//!
//! - `cuts`: steps and faults left out in pieces, large ones first (delta debugging); a plugin with all that names it
//! - `joins`: the changes of a step put into its neighbour
//! - `members`: keys left out, numbers made smaller; `line`: the same in a command line
//!
//! `premise` tells what must stay so that an expectation of an ending still has to hold.

mod cost;
mod cuts;
mod joins;
mod line;
mod members;
mod premise;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

pub use cost::Cost;
pub use premise::is_still_due;

use crate::scenario::{Scenario, Step, is_rule};

/// What the judge says of a candidate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It does not fail, or in another way.
    Other,
    /// It fails the same way.
    Same {
        /// The places of faults that never took effect.
        inert: BTreeSet<usize>,
        /// Something of a step could not happen.
        missed: bool,
    },
}

/// What came of shrinking.
#[derive(Clone, Debug, PartialEq)]
pub struct Shrunk {
    /// The smallest that was found.
    pub scenario: Scenario,
    /// How many candidates were played, the scenario itself among them.
    pub tried: usize,
    /// It might become smaller yet: no more candidates were to be played.
    pub spent: bool,
}

/// Shrinks a scenario with at most `most` candidates. `None`: as it is, it does not fail, or it cannot be written as a
/// scenario in which everything takes place.
pub fn shrink(
    scenario: &Scenario,
    most: usize,
    judge: &mut dyn FnMut(&Scenario) -> Verdict,
) -> Option<Shrunk> {
    let mut search = Search {
        cost: Cost::of(scenario),
        best: scenario.clone(),
        missed: true,
        seen: BTreeSet::new(),
        tried: 0,
        most,
        judge,
    };
    // Without the faults that never take effect it is the same run, whatever it costs.
    let (whole, missed) = search.ask(scenario.clone())?;
    search.take(whole, missed);
    search.mend();
    while !search.is_spent() {
        let before = search.cost.clone();
        cuts::steps(&mut search);
        cuts::faults(&mut search);
        cuts::plugins(&mut search);
        joins::all(&mut search);
        members::all(&mut search);
        if search.cost == before {
            cuts::pairs(&mut search);
        }
        if search.cost == before {
            break;
        }
    }
    let spent = search.is_spent();
    (!search.missed).then_some(Shrunk { scenario: search.best, tried: search.tried, spent })
}

/// The state of it.
struct Search<'a> {
    best: Scenario,
    cost: Cost,
    /// In the best so far, something of a step cannot happen.
    missed: bool,
    /// What was played, as text.
    seen: BTreeSet<String>,
    tried: usize,
    most: usize,
    judge: &'a mut dyn FnMut(&Scenario) -> Verdict,
}

impl Search<'_> {
    /// Plays a candidate; if it is the better one, it is the best from now on.
    fn offer(&mut self, candidate: Scenario) -> bool {
        let candidate = tidy(candidate);
        if Cost::of(&candidate) >= self.cost || self.is_spent() {
            return false;
        }
        match self.ask(candidate) {
            Some((better, missed)) if !missed || self.missed => {
                self.take(better, missed);
                true
            }
            _ => false,
        }
    }

    /// Offers the best so far after a change.
    fn change(&mut self, change: impl FnOnce(&mut Scenario)) -> bool {
        let mut candidate = self.best.clone();
        change(&mut candidate);
        self.offer(candidate)
    }

    fn take(&mut self, scenario: Scenario, missed: bool) {
        self.cost = Cost::of(&scenario);
        self.best = scenario;
        self.missed = missed;
    }

    fn is_spent(&self) -> bool {
        self.tried >= self.most
    }

    /// The candidate, without its inert faults, if it is a scenario and fails the same way; and whether something of a
    /// step could not happen.
    fn ask(&mut self, mut candidate: Scenario) -> Option<(Scenario, bool)> {
        loop {
            let text = candidate.to_toml();
            if Scenario::parse("candidate", &text, &is_rule).as_ref() != Ok(&candidate)
                || !self.seen.insert(text)
            {
                return None;
            }
            self.tried += 1;
            let Verdict::Same { inert, missed } = (self.judge)(&candidate) else { return None };
            if inert.is_empty() {
                return Some((candidate, missed));
            }
            let mut index = 0..;
            candidate.faults.retain(|_| index.next().is_some_and(|index| !inert.contains(&index)));
        }
    }

    /// Takes out what cannot happen in a step, so that the scenario can be written down.
    fn mend(&mut self) {
        for step in 0..self.best.steps.len() {
            if self.missed {
                self.change(|candidate| line::without_key(&mut candidate.steps[step]));
            }
            for deed in (0..self.best.steps[step].backend_do.len()).rev() {
                if self.missed {
                    self.change(|candidate| drop(candidate.steps[step].backend_do.remove(deed)));
                }
            }
        }
    }
}

/// The candidate without what has lost its sense.
fn tidy(mut scenario: Scenario) -> Scenario {
    for step in scenario.steps.iter_mut().filter(|step| step.run.is_none()) {
        *step = joins::changes(step);
    }
    scenario.steps.retain(|step| *step != Step::default());
    scenario.steps.last_mut().into_iter().for_each(|last| last.overlap = false);
    scenario
}
