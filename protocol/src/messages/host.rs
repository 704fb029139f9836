//! Hosts that a plugin provides: `host.acquire`, `lookup`, `status`, `release`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::target::HostTarget;
use super::values::{Count, EpochMillis, Handle, Key, Millis, Reason};
use crate::objects::Patch;

/// `host.acquire` (effect, HOST-04).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AcquireParams {
    /// The host to be.
    pub target: HostTarget,
    /// The key of this acquire.
    pub key: Key,
    /// What `--param` gave.
    pub params: BTreeMap<String, String>,
}

/// The result of `host.acquire` (HOST-05).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Acquired {
    /// What the plugin calls the host.
    pub handle: Handle,
    /// When it will be taken away.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline_at: Option<EpochMillis>,
    /// After how much idle time it may be taken away.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_reclaim_ms: Option<Millis>,
    /// How many jobs it takes at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_jobs: Option<Count>,
}

/// `host.lookup`. Its result is a [`Lookup`](super::lookup::Lookup) of [`Acquired`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LookupParams {
    /// The host to be.
    pub target: HostTarget,
    /// The key of the acquire.
    pub key: Key,
    /// Whether a `none` is to bar the key for ever.
    pub fence: bool,
}

/// `host.status`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StatusParams {
    /// The host.
    pub target: HostTarget,
}

/// The result of `host.status` (HOST-07).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "kebab-case", rename_all_fields = "camelCase", try_from = "StateMembers")]
pub enum HostState {
    /// It is there. The facts are a patch on the recorded ones (HOST-09, HOST-10).
    Up {
        /// What the plugin calls the host.
        handle: Handle,
        /// When it will be taken away.
        #[serde(skip_serializing_if = "Patch::is_absent")]
        deadline_at: Patch<EpochMillis>,
        /// After how much idle time it may be taken away.
        #[serde(skip_serializing_if = "Patch::is_absent")]
        idle_reclaim_ms: Patch<Millis>,
        /// How many jobs it takes at once.
        #[serde(skip_serializing_if = "Patch::is_absent")]
        max_jobs: Patch<Count>,
    },
    /// It and its worktrees are proved to exist no longer (HOST-11).
    Gone {
        /// What the proof is.
        reason: Reason,
    },
    /// A person has to act first.
    NeedsHuman {
        /// What they have to do.
        remedy: Reason,
    },
    /// The plugin cannot tell; nothing recorded changes (HOST-16).
    Unknown {
        /// Why not.
        reason: Reason,
    },
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum StateWord {
    Up,
    Gone,
    NeedsHuman,
    Unknown,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct StateMembers {
    state: StateWord,
    handle: Option<Handle>,
    #[serde(default)]
    deadline_at: Patch<EpochMillis>,
    #[serde(default)]
    idle_reclaim_ms: Patch<Millis>,
    #[serde(default)]
    max_jobs: Patch<Count>,
    reason: Option<Reason>,
    remedy: Option<Reason>,
}

impl TryFrom<StateMembers> for HostState {
    type Error = &'static str;

    fn try_from(members: StateMembers) -> Result<Self, Self::Error> {
        let StateMembers { state, handle, deadline_at, idle_reclaim_ms, max_jobs, reason, remedy } = members;
        let facts = !(deadline_at.is_absent() && idle_reclaim_ms.is_absent() && max_jobs.is_absent());
        match (state, handle, facts, reason, remedy) {
            (StateWord::Up, Some(handle), _, None, None) => {
                Ok(HostState::Up { handle, deadline_at, idle_reclaim_ms, max_jobs })
            }
            (StateWord::Gone, None, false, Some(reason), None) => Ok(HostState::Gone { reason }),
            (StateWord::NeedsHuman, None, false, None, Some(remedy)) => Ok(HostState::NeedsHuman { remedy }),
            (StateWord::Unknown, None, false, Some(reason), None) => Ok(HostState::Unknown { reason }),
            _ => Err("the members do not fit the host's state"),
        }
    }
}

/// `host.release` (effect, HOST-08). Its result is null.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReleaseParams {
    /// The host.
    pub target: HostTarget,
    /// The key of this release.
    pub key: Key,
}
