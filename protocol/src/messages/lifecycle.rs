//! The messages without target and deadline: they are about a plugin's process, not about its work.

use serde::{Deserialize, Serialize};

use super::values::{Count, Label, RequestId, WatchId};

/// The method of the first request (HSK-01). Its result is the declaration.
pub const INITIALIZE: &str = "initialize";
/// The notification with [`Cancel`] as its parameters (TMO-04, WATCH-06).
pub const CANCEL: &str = "$/cancel";
/// The notification that begins a stop. It has no `params` member.
pub const SHUTDOWN: &str = "shutdown";

/// Parameters of `initialize` (HSK-01).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InitializeParams {
    /// The versions of the protocol that mu speaks.
    pub protocol: VersionRange,
    /// mu's own generation.
    pub mu: Label,
}

/// A range of versions, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VersionRange {
    /// The lowest.
    pub min: Count,
    /// The highest.
    pub max: Count,
}

/// Parameters of `$/cancel`: exactly one of two.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cancel {
    /// Gives up a call.
    #[serde(rename = "id")]
    Call(RequestId),
    /// Ends a watch.
    #[serde(rename = "watchId")]
    Watch(WatchId),
}
