//! The scenario format: what it reads, what it refuses and where, what it writes.

mod damage;
mod expect;
mod read;
mod refuse;
mod schema;
mod words;

use super::{Scenario, ScenarioError};

/// The rules that these tests know.
fn is_rule(id: &str) -> bool {
    ["TRN-04", "PRC-07", "A-10"].contains(&id)
}

fn parse(text: &str) -> Result<Scenario, ScenarioError> {
    Scenario::parse("s.toml", text, &is_rule)
}

/// Uses every key that a scenario has.
const EVERYTHING: &str = include_str!("everything.toml");
