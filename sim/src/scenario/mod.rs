//! Scenarios: a fault, the commands that meet it, and what must come of them, as one TOML file.
//!
//! - `format`: the types; a file is read into a [`Scenario`] and written back by [`Scenario::to_toml`].
//! - `parse`: text to scenario; every refusal names file, line and column.
//! - `check`: what a well-formed file may still not say.
//! - `words`: a `run` line to its arguments, and back.
//! - `expect`: what a step expects, held against what came.
//! - `write`: a scenario to text.
//!
//! `docs/scenarios.md` is the guide for authors, `schemas/scenario-v1.json` the schema for their editors.

mod check;
mod expect;
mod format;
mod parse;
mod rules;
pub(crate) mod words;
mod write;

#[cfg(test)]
mod tests;

pub use format::{
    Db, DiskErrno, DiskError, RecordState, Repo, Scenario, SignalAt, Step, Text, Wire, WorldAt,
};
pub use parse::ScenarioError;
pub(crate) use parse::{distance, read};
pub use rules::{is_rule, known_rules, rule_text};
pub use words::WordsError;
pub(crate) use write::EXPECTATIONS;
