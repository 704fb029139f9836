//! Scripts and commits on a host: `link.exec`, `fetch`, `push`, `checkSteps`.

use serde::{Deserialize, Serialize};

use super::checks::Phase;
use super::target::Target;
use super::values::{AbsolutePath, CommitId, Millis, Name, RemotePath};
use crate::objects::nullable;

/// `link.exec` (LINK-01).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ExecParams {
    /// The host.
    pub target: Target,
    /// A POSIX sh script.
    pub script: String,
    /// Where to run it.
    pub cwd: RemotePath,
    /// After how long the plugin is to cut it off.
    pub timeout_ms: Millis,
}

/// `link.fetch` (LINK-03).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct FetchParams {
    /// The host.
    pub target: Target,
    /// The work tree whose HEAD is wanted.
    pub remote_cwd: RemotePath,
    /// The repository whose `FETCH_HEAD` is to name it.
    pub local_repo: AbsolutePath,
    /// After how long the plugin is to cut it off.
    pub timeout_ms: Millis,
}

/// `link.push` (LINK-05).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct PushParams {
    /// The host.
    pub target: Target,
    /// The repository that has the commit.
    pub local_repo: AbsolutePath,
    /// The repository that is to hold it.
    pub remote_repo: RemotePath,
    /// The commit.
    pub rev: CommitId,
    /// After how long the plugin is to cut it off.
    pub timeout_ms: Millis,
}

/// The result of `link.exec`, `link.fetch` and `link.push` (LINK-02).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Run {
    /// The exit status; `None` when the run was cut off at its timeout.
    #[serde(deserialize_with = "nullable")]
    pub exit_code: Option<u8>,
    /// What it wrote on stdout.
    pub stdout: String,
    /// What it wrote on stderr.
    pub stderr: String,
    /// Whether output was cut.
    pub partial: bool,
}

/// `link.checkSteps` (LINK-10). Its result is [`Steps`](super::checks::Steps).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckStepsParams {
    /// The host.
    pub target: Target,
    /// The part of the check.
    pub phase: Phase,
    /// The directory of the host that worktrees go under.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root: Option<RemotePath>,
    /// The harness to look for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<Name>,
}
