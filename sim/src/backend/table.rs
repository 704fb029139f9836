//! The backend as a scenario file has it. Each key is a field; `docs/scenarios.md` explains them to authors.

use serde::{Deserialize, Serialize};

/// How long a key is recognised when nobody says otherwise: a day.
pub const WINDOW_MS: u64 = 86_400_000;

/// `[backend]`, and `backend_set` in a step: what is left out stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BackendTable {
    /// Milliseconds that the making of a host takes; meanwhile a lookup says that it is pending.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acquire_ms: Option<u64>,
    /// Milliseconds that the end of a host takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release_ms: Option<u64>,
    /// Milliseconds for which an acquire that has arrived lies where no lookup sees it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub land_ms: Option<u64>,
    /// Lookups and status answers show what was true so many milliseconds ago.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lookup_lag_ms: Option<u64>,
    /// Milliseconds for which a key is recognised.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_ms: Option<u64>,
    /// Whether a fenced lookup that finds nothing bars the key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fence: Option<bool>,
    /// A new host is taken away so many milliseconds after it was made, by what is said of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_ms: Option<i64>,
    /// What is said of the idle time of a new host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_reclaim_ms: Option<u64>,
    /// How many jobs a new host takes, by what is said of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_jobs: Option<u64>,
    /// Milliseconds from a plugin to the backend, and as many back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub net_ms: Option<u64>,
}

/// How a backend behaves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Setup {
    /// Milliseconds that the making of a host takes.
    pub acquire_ms: u64,
    /// Milliseconds that the end of a host takes.
    pub release_ms: u64,
    /// Milliseconds for which an acquire lies unseen.
    pub land_ms: u64,
    /// How old, in milliseconds, is what lookups and status answers show.
    pub lookup_lag_ms: u64,
    /// Milliseconds for which a key is recognised.
    pub window_ms: u64,
    /// Whether a fence bars.
    pub fence: bool,
    /// What is said of a new host.
    pub facts: HostFacts,
    /// Milliseconds one way.
    pub net_ms: u64,
}

/// What is said of a host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostFacts {
    /// Milliseconds from now to its deadline.
    pub deadline_ms: Option<i64>,
    /// After so many idle milliseconds it may be taken away.
    pub idle_reclaim_ms: Option<u64>,
    /// How many jobs it takes.
    pub max_jobs: Option<u64>,
}

impl Default for Setup {
    fn default() -> Setup {
        Setup {
            acquire_ms: 0,
            release_ms: 0,
            land_ms: 0,
            lookup_lag_ms: 0,
            window_ms: WINDOW_MS,
            fence: true,
            facts: HostFacts::default(),
            net_ms: 1,
        }
    }
}

impl Setup {
    /// Takes over what the table names.
    pub fn apply(&mut self, table: &BackendTable) {
        let number = |to: &mut u64, from: Option<u64>| *to = from.unwrap_or(*to);
        number(&mut self.acquire_ms, table.acquire_ms);
        number(&mut self.release_ms, table.release_ms);
        number(&mut self.land_ms, table.land_ms);
        number(&mut self.lookup_lag_ms, table.lookup_lag_ms);
        number(&mut self.window_ms, table.window_ms);
        number(&mut self.net_ms, table.net_ms);
        self.fence = table.fence.unwrap_or(self.fence);
        self.facts.deadline_ms = table.deadline_ms.or(self.facts.deadline_ms);
        self.facts.idle_reclaim_ms = table.idle_reclaim_ms.or(self.facts.idle_reclaim_ms);
        self.facts.max_jobs = table.max_jobs.or(self.facts.max_jobs);
    }
}

/// Something that happens to a host at the backend, in a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BackendAt {
    /// What.
    #[serde(rename = "do")]
    pub deed: BackendDeed,
    /// mu's name of the host. The machine that lives and bears it, or the one that did so last.
    pub host: String,
    /// Milliseconds from the step's start.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub at_ms: u64,
    /// With `facts`: milliseconds from then to its deadline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_ms: Option<i64>,
    /// With `facts`: its idle time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_reclaim_ms: Option<u64>,
    /// With `facts`: how many jobs it takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_jobs: Option<u64>,
    /// With `clear`: which fact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fact: Option<Fact>,
}

/// What can happen to a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BackendDeed {
    /// The machine ceases to exist, and the backend can prove it.
    Lose,
    /// A person has to act before it can be used.
    NeedsHuman,
    /// The backend cannot tell what became of it.
    Unsure,
    /// It is well again, after `needs-human` or `unsure`.
    Well,
    /// Something else is said of it.
    Facts,
    /// One fact does not hold any more.
    Clear,
    /// It is called by another handle.
    Rename,
}

impl BackendDeed {
    /// All of them.
    pub const ALL: [BackendDeed; 7] = [
        BackendDeed::Lose,
        BackendDeed::NeedsHuman,
        BackendDeed::Unsure,
        BackendDeed::Well,
        BackendDeed::Facts,
        BackendDeed::Clear,
        BackendDeed::Rename,
    ];

    /// Its name in a scenario.
    pub fn name(self) -> &'static str {
        match self {
            BackendDeed::Lose => "lose",
            BackendDeed::NeedsHuman => "needs-human",
            BackendDeed::Unsure => "unsure",
            BackendDeed::Well => "well",
            BackendDeed::Facts => "facts",
            BackendDeed::Clear => "clear",
            BackendDeed::Rename => "rename",
        }
    }
}

/// A fact of a host, by its name on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Fact {
    /// When it will be taken away.
    DeadlineAt,
    /// After how much idle time it may be taken away.
    IdleReclaimMs,
    /// How many jobs it takes at once.
    MaxJobs,
}

impl Fact {
    /// All of them.
    pub const ALL: [Fact; 3] = [Fact::DeadlineAt, Fact::IdleReclaimMs, Fact::MaxJobs];

    /// Its name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Fact::DeadlineAt => "deadlineAt",
            Fact::IdleReclaimMs => "idleReclaimMs",
            Fact::MaxJobs => "maxJobs",
        }
    }
}

/// Something that happens to the network between plugins and backend, in a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetAt {
    /// What.
    #[serde(rename = "do")]
    pub deed: NetDeed,
    /// Milliseconds from the step's start.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub at_ms: u64,
    /// With `delay`: milliseconds one way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ms: Option<u64>,
}

/// What can happen to the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NetDeed {
    /// Nothing passes.
    Partition,
    /// Nothing reaches the backend.
    ToBackend,
    /// Nothing reaches the plugins.
    ToPlugin,
    /// Every connection that stands is reset.
    Reset,
    /// From now on a way takes so long.
    Delay,
    /// All passes again, in the usual time.
    Heal,
}

impl NetDeed {
    /// All of them.
    pub const ALL: [NetDeed; 6] = [
        NetDeed::Partition,
        NetDeed::ToBackend,
        NetDeed::ToPlugin,
        NetDeed::Reset,
        NetDeed::Delay,
        NetDeed::Heal,
    ];

    /// Its name in a scenario.
    pub fn name(self) -> &'static str {
        match self {
            NetDeed::Partition => "partition",
            NetDeed::ToBackend => "to-backend",
            NetDeed::ToPlugin => "to-plugin",
            NetDeed::Reset => "reset",
            NetDeed::Delay => "delay",
            NetDeed::Heal => "heal",
        }
    }
}

/// What must stand in the backend's books after a step: `backend` in a step.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Counts {
    /// Only what this instance has; all instances together when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
    /// Machines that live.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hosts: Option<usize>,
    /// Machines that were ever made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ever: Option<usize>,
    /// Different keys of acquires that were ever accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keys: Option<usize>,
    /// Keys that a fence bars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fenced: Option<usize>,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}
