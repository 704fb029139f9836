//! Whom a call is about (CALL-02). Which of agent and job a call must name is a matter of its noun, hence four types.

use serde::{Deserialize, Serialize};

use super::values::{Count, Handle, Instance, Key, Name};

/// The target of a `host.` call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostTarget {
    /// The host.
    pub host: HostRef,
}

/// The target of a `link.` call and of `job.checkSteps`: a host, and on whose behalf it is asked, if on anybody's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// The agent whose work it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentRef>,
    /// That agent's job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job: Option<JobRef>,
    /// The host.
    pub host: HostRef,
}

/// The target of a `job.` call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobTarget {
    /// The agent that the job is, once it has a row.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentRef>,
    /// The job.
    pub job: JobRef,
    /// The host it runs on.
    pub host: HostRef,
}

/// The target of a `channel.` call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentTarget {
    /// The agent.
    pub agent: AgentRef,
    /// Its job.
    pub job: JobRef,
    /// The host it runs on.
    pub host: HostRef,
}

/// An agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentRef {
    /// The workstream it belongs to.
    pub workstream: Name,
    /// Its name there.
    pub name: Name,
    /// mu's count of the lives of that name; not a channel's incarnation.
    pub incarnation: Count,
}

/// A job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobRef {
    /// The kind that the plugin declared.
    pub kind: Name,
    /// The token of mu's job record.
    pub key: Key,
    /// What the plugin calls the job, once known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handle: Option<Handle>,
}

/// A host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostRef {
    /// mu's name for it.
    pub name: Name,
    /// What the plugin calls it: a provider host's (HOST-03).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handle: Option<Handle>,
    /// The instance it was acquired under: a provider host's (HOST-03).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance: Option<Instance>,
}
