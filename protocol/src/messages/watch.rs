//! The two notifications of a plugin, each of which ends a watch (TRN-13, WATCH-02).

use serde::{Deserialize, Serialize};

use super::channel::Observation;
use super::values::{Incarnation, WatchId};
use crate::objects::{Mismatch, from_checked};
use crate::strict::Checked;

/// What a plugin says unasked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notification {
    /// `watch/settled`.
    Settled(Settled),
    /// `watch/restarted`.
    Restarted(Restarted),
}

impl Notification {
    /// Parses `params` by `method`; `None` for a method that is no notification (TRN-21).
    pub fn parse(method: &str, params: Checked<'_>) -> Option<Result<Self, Mismatch>> {
        match method {
            "watch/settled" => Some(from_checked(params).map(Notification::Settled)),
            "watch/restarted" => Some(from_checked(params).map(Notification::Restarted)),
            _ => None,
        }
    }

    /// The watch that it ends.
    pub fn watch_id(&self) -> &WatchId {
        match self {
            Notification::Settled(Settled { watch_id, .. }) => watch_id,
            Notification::Restarted(Restarted { watch_id, .. }) => watch_id,
        }
    }
}

/// A turn past the watch's count has settled (WATCH-03).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Settled {
    /// The watch.
    pub watch_id: WatchId,
    /// The turn.
    pub observation: Observation,
}

/// The channel's session was replaced (WATCH-05).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Restarted {
    /// The watch.
    pub watch_id: WatchId,
    /// The new session.
    pub incarnation: Incarnation,
}
