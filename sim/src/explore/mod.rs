//! Scenarios drawn from a seed.

use crate::fake::PluginTable;
use crate::scenario::{Scenario, Step};
use std::collections::BTreeMap;

/// The scenario of a seed.
pub fn draw(seed: u64) -> Scenario {
    let step = |run: &str| Step { run: Some(run.to_owned()), ..Step::default() };
    Scenario {
        title: format!("Seed {seed}"),
        why: None,
        rules: Vec::new(),
        seed,
        real: true,
        why_not_real: None,
        plugins: BTreeMap::from([("box".to_owned(), PluginTable::default())]),
        faults: Vec::new(),
        steps: vec![step("mu plugin add box -- {box}"), step("mu plugin check --json")],
    }
}
