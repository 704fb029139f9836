//! What a plugin says about itself in its answer to `initialize` (HSK-02).
//!
//! In comes a JSON value that has passed the strict pass, out goes a [`Declaration`] that is legal by the schema, or the first [`Flaw`]. Which
//! legal declarations mu refuses nevertheless is the business of [`crate::load`].
//!
//! - `words.rs`: the closed vocabularies
//! - `read.rs`: from text, member by member, so that a flaw names its place
//!
//! What was optional and absent stays absent: the recorded form repeats what was declared, and no default is mixed into
//! it (REG-09). Methods tell what an absent member means.

mod read;
mod words;

pub use read::Flaw;
pub(crate) use read::{declaration, protocol, shown};
pub use words::*;

use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use crate::strict::Checked;

/// The whole declaration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Declaration {
    /// The version of the protocol that the plugin chose.
    pub protocol: u64,
    /// Which program it is.
    pub plugin: Program,
    /// The backend configuration behind it: 1 to 128 characters, no control characters (HSK-04, A-19).
    pub instance: String,
    /// The digest of the schema it was built against: `sha256:` and 64 lower-case hex digits (HSK-07).
    pub schema: String,
    /// What it can do.
    pub seams: Seams,
}

impl Declaration {
    /// The form that is recorded: typed members only (SEC-01), in the order of the schema.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("strings, integers and booleans always serialise")
    }

    /// Reads what [`Declaration::to_json`] wrote.
    pub fn from_recorded(json: &str) -> Result<Declaration, Flaw> {
        match Checked::value(json) {
            Ok(json) => declaration(json),
            Err(_) => Err(Flaw::no_json()),
        }
    }
}

/// Name and version of a plugin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Program {
    /// The name under which it is registered (LOAD-03).
    pub name: String,
    /// Its version: 1 to 128 characters, no control characters.
    pub version: String,
}

/// The seams it declares; a legal declaration may have none (but see LOAD-09).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Seams {
    /// Scripts and commits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<Link>,
    /// Agents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job: Option<Job>,
    /// Hosts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<Host>,
    /// Turns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channel: Option<Channel>,
}

impl Seams {
    /// Whether it declares `seam`.
    pub fn has(&self, seam: Seam) -> bool {
        match seam {
            Seam::Link => self.link.is_some(),
            Seam::Job => self.job.is_some(),
            Seam::Host => self.host.is_some(),
            Seam::Channel => self.channel.is_some(),
        }
    }
}

/// The link seam (SEAM-01).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Link {
    /// Whether it serves `link.fetch`; else mu runs the host's own template.
    pub fetch: bool,
    /// Whether it serves `link.push`, if it says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub push: Option<bool>,
    /// Who keeps calls from crowding a host.
    pub slots: Slots,
    /// What a timed-out call leaves running.
    pub remote_on_timeout: RemoteOnTimeout,
    /// Whether it can prove that a stopped job no longer writes.
    pub quiescence: Quiescence,
    /// The longest script it takes, in bytes of UTF-8.
    pub max_script_bytes: u64,
    /// The phases of `host check` to which it adds steps.
    pub checks: Vec<Phase>,
}

impl Link {
    /// Whether it serves `link.push`; not saying so means no (SEAM-03).
    pub fn pushes(&self) -> bool {
        self.push.unwrap_or(false)
    }
}

/// The job seam (SEAM-09, SEAM-10).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Job {
    /// The name of this kind of job.
    pub kind: String,
    /// What a job's view is to it.
    pub view: View,
    /// Where a job's handle comes from.
    pub handle: HandleSource,
    /// How a `job.start` of unknown outcome can be resolved.
    pub start: KeyCapabilities,
    /// The name of the channel that its agents use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
    /// The phases of `host check` to which it adds steps.
    pub checks: Vec<Phase>,
    /// When the first turn begins, if it says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_turn: Option<FirstTurn>,
    /// Whether a job survives the loss of its host, if it says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outlives_host: Option<bool>,
    /// Which members of a job's specification it obeys, if it says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub honours: Option<Honours>,
}

impl Job {
    /// When the first turn begins; not saying so means with a delivery of its own.
    pub fn begins(&self) -> FirstTurn {
        self.first_turn.unwrap_or(FirstTurn::OnSend)
    }

    /// Whether a job survives the loss of its host; not saying so means no.
    pub fn survives_host(&self) -> bool {
        self.outlives_host.unwrap_or(false)
    }

    /// What it obeys; not saying so means the environment and the `full-access` role alone (SEAM-11).
    pub fn obeys(&self) -> Honours {
        self.honours.clone().unwrap_or_else(|| Honours {
            command: false,
            env: true,
            sockets: false,
            roles: vec![Role::FullAccess],
        })
    }
}

/// The members of a job's specification that a kind obeys.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Honours {
    /// A command line of the caller's.
    pub command: bool,
    /// Environment variables.
    pub env: bool,
    /// Control sockets.
    pub sockets: bool,
    /// The roles it can hold an agent to.
    pub roles: Vec<Role>,
}

/// The host seam (SEAM-12).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Host {
    /// How a `host.acquire` of unknown outcome can be resolved.
    pub acquire: KeyCapabilities,
}

/// How a keyed effect of unknown outcome can be resolved (SEAM-14).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct KeyCapabilities {
    /// Whether the key can be looked up.
    pub lookup: bool,
    /// Whether a fenced lookup that answers `none` bars the key for ever.
    pub fence_key: bool,
    /// Whether a repeat is recognised, and for how long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dedupe: Option<Dedupe>,
    /// How long after the plugin is gone a sent effect may still land, in milliseconds; absent means for ever.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_flight_ms: Option<u64>,
}

/// A repeat inside the window gets the first result and has no second effect. It is always exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dedupe {
    /// The length of the window in milliseconds.
    pub window_ms: u64,
}

impl Serialize for Dedupe {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut dedupe = serializer.serialize_struct("Dedupe", 2)?;
        dedupe.serialize_field("exact", &true)?;
        dedupe.serialize_field("windowMs", &self.window_ms)?;
        dedupe.end()
    }
}

/// The channel seam (SEAM-13).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Channel {
    /// Its name; with the plugin's name it identifies the channel (REG-13).
    pub name: String,
    /// What it can do.
    pub caps: ChannelCaps,
}

/// What a channel can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ChannelCaps {
    /// To what a delivery can be fenced.
    pub fence: Fence,
    /// What it can tell about a delivery afterwards.
    pub receipt: ReceiptKind,
    /// Whether a repeated delivery is recognised.
    #[serde(serialize_with = "dedupe_or_none")]
    pub dedupe: Option<Dedupe>,
    /// Whether a delivery can join the running turn.
    pub steer: Steer,
    /// Whether `channel.interrupt` and `channel.abort` are served.
    pub interrupt: Interrupt,
    /// What `channel.fresh` does to the session.
    pub fresh: Fresh,
    /// Whether `channel.answer` is served.
    pub answer: bool,
    /// Whether `channel.command` is served.
    pub command: bool,
    /// How mu learns of a settle.
    pub watch: Watch,
    /// How much of a settled turn's text it reports.
    pub settle_text: SettleText,
}

/// A channel spells the absence of deduplication `"none"`.
fn dedupe_or_none<S: Serializer>(dedupe: &Option<Dedupe>, serializer: S) -> Result<S::Ok, S::Error> {
    match dedupe {
        Some(dedupe) => dedupe.serialize(serializer),
        None => serializer.serialize_str("none"),
    }
}
