//! Agents that a plugin runs: `job.start`, `lookup`, `status`, `stop`, `attach`, `checkSteps`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::channel::Baseline;
use super::checks::Phase;
use super::target::{JobTarget, Target};
use super::values::{AbsolutePath, Handle, Key, MsgId, Name, Reason, RemotePath, SignalNumber, Word};
use crate::objects::Patch;

/// `job.start` (effect, JOB-01).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StartParams {
    /// The job to be.
    pub target: JobTarget,
    /// The token of the job record.
    pub key: Key,
    /// What to start.
    pub spec: JobSpec,
}

/// All that a spawn asked for (JOB-01, JOB-10).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct JobSpec {
    /// The workstream of the agent.
    pub workstream: Name,
    /// The agent's name.
    pub name: Name,
    /// The program that the agent is.
    pub harness: Name,
    /// What it may do.
    pub role: Role,
    /// The command line of the harness, for a POSIX shell.
    pub cmd: String,
    /// Where `cmd` comes from.
    pub command_source: CommandSource,
    /// The directory of the host in which it works.
    pub cwd: RemotePath,
    /// Variables to set.
    pub env: BTreeMap<String, String>,
    /// Sockets it is to reach: the variable that names each, and its path on mu's machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sockets: Option<BTreeMap<String, String>>,
    /// The first turn of a kind whose first turn is at the start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_prompt: Option<FirstPrompt>,
}

/// What an agent may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Anything.
    FullAccess,
    /// Change nothing.
    ReadOnly,
}

/// Where a JobSpec's command line comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CommandSource {
    /// mu made it from the harness.
    Harness,
    /// `--command`.
    Operator,
}

/// The delivery that goes inside a start (SPAWN-12, SPAWN-17).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct FirstPrompt {
    /// Its text.
    pub text: String,
    /// The id its receipt goes by.
    pub msg_id: MsgId,
}

/// The result of `job.start` (JOB-02). Whether a handle and a baseline are a must depends on the declared kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Started {
    /// How to show the job.
    pub view: View,
    /// What the plugin calls the job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handle: Option<Handle>,
    /// The turn count from before the first turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub baseline: Option<Baseline>,
}

/// What a pane on mu's machine runs to show a job; also the result of `job.attach` (JOB-07).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct View {
    /// A command line for a POSIX shell.
    pub command: Word,
    /// Variables to add.
    pub env: BTreeMap<String, String>,
    /// Where to run it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<AbsolutePath>,
}

/// `job.lookup`. Its result is a [`Lookup`](super::lookup::Lookup) of [`FoundJob`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LookupParams {
    /// The job to be.
    pub target: JobTarget,
    /// The key of the start.
    pub key: Key,
    /// Whether a `none` is to bar the key for ever.
    pub fence: bool,
}

/// A start that was found (JOB-03, JOB-04). Whether view and baseline are a must depends on the declared kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FoundJob {
    /// What the plugin calls the job.
    pub handle: Handle,
    /// How to show it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub view: Option<View>,
    /// The turn count from before the first turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub baseline: Option<Baseline>,
}

/// `job.status`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StatusParams {
    /// The job.
    pub target: JobTarget,
}

/// The result of `job.status` (JOB-05).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "lowercase", try_from = "StateMembers")]
pub enum JobState {
    /// It runs.
    Running,
    /// It has ended.
    Ended {
        /// How, if the plugin knows.
        exit: Option<JobExit>,
    },
    /// It is proved to run no more, but not how it ended.
    Lost {
        /// What the proof is.
        reason: Reason,
    },
    /// The plugin cannot tell; never a death (CHAN-05).
    Unknown {
        /// Why not.
        reason: Reason,
    },
}

/// How a job ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum JobExit {
    /// With this exit status.
    Status(u8),
    /// By this signal.
    Signal(SignalNumber),
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum StateWord {
    Running,
    Ended,
    Lost,
    Unknown,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StateMembers {
    state: StateWord,
    #[serde(default)]
    exit: Patch<JobExit>,
    reason: Option<Reason>,
}

impl TryFrom<StateMembers> for JobState {
    type Error = &'static str;

    fn try_from(members: StateMembers) -> Result<Self, Self::Error> {
        let StateMembers { state, exit, reason } = members;
        match (state, exit, reason) {
            (StateWord::Running, Patch::Absent, None) => Ok(JobState::Running),
            (StateWord::Ended, Patch::Null, None) => Ok(JobState::Ended { exit: None }),
            (StateWord::Ended, Patch::Value(exit), None) => Ok(JobState::Ended { exit: Some(exit) }),
            (StateWord::Lost, Patch::Absent, Some(reason)) => Ok(JobState::Lost { reason }),
            (StateWord::Unknown, Patch::Absent, Some(reason)) => Ok(JobState::Unknown { reason }),
            _ => Err("the members do not fit the job's state"),
        }
    }
}

/// `job.stop` (effect, JOB-06). Its result is null.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StopParams {
    /// The job.
    pub target: JobTarget,
    /// The key of this stop.
    pub key: Key,
}

/// `job.attach`. Its result is a [`View`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AttachParams {
    /// The job.
    pub target: JobTarget,
}

/// `job.checkSteps` (JOB-08). Its result is [`Steps`](super::checks::Steps).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckStepsParams {
    /// The host; there is no job yet.
    pub target: Target,
    /// The part of the check.
    pub phase: Phase,
    /// The harness to look for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<Name>,
}
