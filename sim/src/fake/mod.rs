//! The fake plugin: what a correct plugin does, and every way to do it wrong.
//!
//! - `sys`: the operating system that it needs, as a trait; the simulated machine and the real executable implement it.
//! - `behaviour`: one `async fn` over that trait, run from a [`Plan`].
//! - `catalogue`, `faults`: the faults as data; when each is possible.
//! - `host`: what is asked of the backend for the calls of hosts, and what is made of its answers.
//! - `link`: what each call of the link does, how long it takes, what it answers.
//! - `lines`: the bytes of each fault on standard output.
//! - `log`: what the real executable writes down.
//! - `declare`, `file`: the plugin of a scenario: its declaration and the file that is installed for it.
//!
//! Nothing here uses the host's types. What the two must agree on is the protocol, and that is what is being tested.

mod behaviour;
mod catalogue;
mod declare;
mod faults;
mod file;
mod host;
mod lines;
mod link;
mod log;
mod sys;

#[cfg(test)]
mod memory;
#[cfg(test)]
mod tests;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use behaviour::run;
pub use catalogue::{Act, Entry, Topic, When, catalogue};
pub(crate) use declare::json_of;
pub use declare::{DeclareError, PluginTable, Seam, schema_digest};
pub use faults::{Fault, Impossible, METHODS};
pub use file::{Kind, Mode, Owner, PluginFile};
pub use lines::LINE_LIMIT;
pub use link::{CheckStep, Otherwise, Phase, StepOk};
pub use log::{Event, LogLine};
pub use sys::{Background, FORK_EVERY_MS, Fd, Group, Heard, Note, PluginSys, Read, Sig, Until};

/// Everything that one fake plugin needs to know; the same for each of its processes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// The plugin's name.
    pub name: String,
    /// The result of `initialize`.
    pub declaration: Value,
    /// What `link.checkSteps` answers; one step that passed when empty.
    #[serde(default)]
    pub steps: Vec<CheckStep>,
    /// The commit at the host's HEAD, when it matters.
    #[serde(default)]
    pub head: Option<String>,
    /// What goes wrong.
    #[serde(default)]
    pub faults: Vec<Fault>,
    /// Whether the real executable writes a log of what it received beside itself.
    #[serde(default)]
    pub record: bool,
    /// Where the real executable reaches its backend: a Unix socket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backend: Option<PathBuf>,
}

impl Plan {
    /// The plan of the plugin `name`: its declaration, and those of `faults` that are its own. `schema` is the digest
    /// of the published schema, as [`schema_digest`] makes it.
    pub fn new(
        name: &str,
        table: &PluginTable,
        faults: &[Fault],
        schema: &str,
    ) -> Result<Plan, DeclareError> {
        Ok(Plan {
            name: name.to_owned(),
            declaration: table.declaration(name, schema)?,
            steps: table.steps.clone(),
            head: table.head.clone(),
            faults: faults.iter().filter(|fault| fault.plugin == name).cloned().collect(),
            record: false,
            backend: None,
        })
    }

    /// The plan as the real executable reads it.
    pub fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec_pretty(self).expect("a plan has string keys alone")
    }

    /// Reads what [`Plan::to_json`] wrote.
    pub fn from_json(json: &[u8]) -> Result<Plan, serde_json::Error> {
        serde_json::from_slice(json)
    }
}
