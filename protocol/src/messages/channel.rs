//! Turns of an agent: `channel.readStates`, `baseline`, `receipt`, `lastRun`, `watch`, and the deliveries `send`,
//! `fresh`, `command`, `interrupt`, `abort`, `answer`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::target::AgentTarget;
use super::values::{AgentPath, Count, EpochMillis, Incarnation, Millis, MsgId, Name, Reason, WatchId, Word};

/// `channel.readStates` (CHAN-10).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadStatesParams {
    /// The agent.
    pub target: AgentTarget,
    /// The same once more.
    pub targets: [AgentTarget; 1],
}

/// The result of `channel.readStates`. Others than the asked agent's are passed over (EFF-22).
pub type Readings = BTreeMap<AgentPath, Reading>;

/// An agent's turn state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reading {
    /// The state.
    pub state: TurnState,
    /// Since when.
    pub since: EpochMillis,
    /// How many turns have settled in the incarnation (CHAN-08).
    pub runs: Count,
    /// The channel's session (CHAN-09).
    pub incarnation: Incarnation,
    /// Why the state is what it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// The dialog that blocks it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pending: Option<Dialog>,
}

/// What an agent is doing (CHAN-07).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TurnState {
    /// Waiting for a prompt.
    Idle,
    /// In a turn.
    Busy,
    /// Waiting for an answer to a dialog.
    Blocked,
    /// The plugin cannot tell.
    Unknown,
}

/// A dialog that waits for an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dialog {
    /// What it asks.
    pub prompt: String,
    /// The answers it offers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub options: Option<Vec<String>>,
}

/// A reading at a point that a wait cares for (CHAN-21).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Observation {
    /// The turn state.
    pub status: TurnState,
    /// Whether the turn it speaks of has settled.
    pub settled: bool,
    /// Since when.
    pub since: EpochMillis,
    /// How many turns have settled in the incarnation (CHAN-08).
    pub runs: Count,
    /// The channel's session (CHAN-09).
    pub incarnation: Incarnation,
    /// Why the status is what it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// The dialog that blocks the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pending: Option<Dialog>,
    /// The text of the turn's last message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_text: Option<String>,
    /// Whether that text was cut.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_text_truncated: Option<bool>,
    /// The error the turn ended in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
}

/// `channel.baseline` (CHAN-11). Its result is a [`Baseline`], or null while the channel is not ready.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BaselineParams {
    /// The agent.
    pub target: AgentTarget,
}

/// A turn count to wait from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Baseline {
    /// How many turns have settled.
    pub runs: Count,
    /// In which session of the channel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub incarnation: Option<Incarnation>,
}

/// `channel.receipt` (CHAN-12).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ReceiptParams {
    /// The agent.
    pub target: AgentTarget,
    /// The delivery.
    pub msg_id: MsgId,
}

/// The result of `channel.receipt` (CHAN-12). `id` must be the msgId asked about (EFF-20).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "kebab-case", try_from = "ReceiptMembers")]
pub enum Receipt {
    /// The agent has the delivery.
    Accepted {
        /// The delivery.
        id: MsgId,
        /// The turn count before the turn it started.
        #[serde(skip_serializing_if = "Option::is_none")]
        runs: Option<Count>,
        /// When it was accepted.
        #[serde(skip_serializing_if = "Option::is_none")]
        at: Option<EpochMillis>,
        /// By which session of the channel.
        #[serde(skip_serializing_if = "Option::is_none")]
        incarnation: Option<Incarnation>,
    },
    /// The agent does not have it, yet: this resolves nothing (EFF-16).
    NotAccepted {
        /// The delivery.
        id: MsgId,
    },
    /// The channel cannot be asked.
    Unreachable {
        /// The delivery.
        id: MsgId,
        /// Why not.
        reason: Reason,
    },
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum ReceiptWord {
    Accepted,
    NotAccepted,
    Unreachable,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReceiptMembers {
    state: ReceiptWord,
    id: MsgId,
    runs: Option<Count>,
    at: Option<EpochMillis>,
    incarnation: Option<Incarnation>,
    reason: Option<Reason>,
}

impl TryFrom<ReceiptMembers> for Receipt {
    type Error = &'static str;

    fn try_from(members: ReceiptMembers) -> Result<Self, Self::Error> {
        let ReceiptMembers { state, id, runs, at, incarnation, reason } = members;
        let bare = runs.is_none() && at.is_none() && incarnation.is_none();
        match (state, bare, reason) {
            (ReceiptWord::Accepted, _, None) => Ok(Receipt::Accepted { id, runs, at, incarnation }),
            (ReceiptWord::NotAccepted, true, None) => Ok(Receipt::NotAccepted { id }),
            (ReceiptWord::Unreachable, true, Some(reason)) => Ok(Receipt::Unreachable { id, reason }),
            _ => Err("the members do not fit the receipt's state"),
        }
    }
}

/// `channel.lastRun` (CHAN-13). Its result is an [`Observation`] or null.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct LastRunParams {
    /// The agent.
    pub target: AgentTarget,
    /// The count that the turn must be past.
    pub after_runs: Count,
    /// The session of the channel it must be in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inc: Option<Incarnation>,
}

/// `channel.watch` (WATCH-01).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct WatchParams {
    /// The agent.
    pub target: AgentTarget,
    /// The count that a turn must be past; the current one when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after_runs: Option<Count>,
    /// The session of the channel it must be in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inc: Option<Incarnation>,
}

/// The result of `channel.watch` (WATCH-01). One notification follows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Watching {
    /// The plugin's name for the watch.
    pub watch_id: WatchId,
    /// How things are now.
    pub initial: Observation,
    /// The count that is watched from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after_runs: Option<Count>,
}

/// `channel.send` (effect, CHAN-14).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct SendParams {
    /// The agent.
    pub target: AgentTarget,
    /// What to deliver.
    pub text: String,
    /// The delivery.
    pub msg_id: MsgId,
    /// Whether it is a turn of its own.
    pub mode: SendMode,
    /// Whether the operator insists.
    pub force: bool,
    /// Whether it brings a spawned agent its first text.
    pub first_prompt: bool,
    /// The session of the channel it is meant for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expect_incarnation: Option<Incarnation>,
}

/// How a delivery relates to a running turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum SendMode {
    /// It is a turn of its own.
    FollowUp,
    /// It joins the running turn.
    Steer,
}

/// The result of `channel.send`, `fresh` and `command` (CHAN-15).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Sent {
    /// The name of the channel seam; must be the declared one (EFF-21).
    pub channel: Name,
    /// What the agent made of it.
    pub ack: SendAck,
    /// The turn count before the turn that the delivery started (CHAN-16).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub baseline: Option<Count>,
    /// The delivery; must be the one sent (EFF-21).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub msg_id: Option<MsgId>,
}

/// How sure a delivery is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SendAck {
    /// The agent has it.
    Accepted,
    /// It was handed on, without confirmation.
    Sent,
    /// No definite answer.
    Unknown,
}

/// `channel.fresh` (effect, CHAN-17). Its result is [`Sent`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct FreshParams {
    /// The agent.
    pub target: AgentTarget,
    /// What to deliver.
    pub text: String,
    /// The delivery.
    pub msg_id: MsgId,
    /// Whether the operator insists.
    pub force: bool,
    /// The session of the channel it is meant for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expect_incarnation: Option<Incarnation>,
}

/// `channel.command` (effect, CHAN-17). Its result is [`Sent`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct CommandParams {
    /// The agent.
    pub target: AgentTarget,
    /// The command.
    pub name: Word,
    /// What the command is to heed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// Whether the operator insists.
    pub force: bool,
    /// The session of the channel it is meant for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expect_incarnation: Option<Incarnation>,
}

/// `channel.interrupt` (effect, CHAN-18).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct InterruptParams {
    /// The agent.
    pub target: AgentTarget,
    /// What to deliver once the running turn has ended.
    pub text: String,
    /// The delivery.
    pub msg_id: MsgId,
    /// How long that end may take.
    pub timeout_ms: Millis,
    /// The session of the channel it is meant for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expect_incarnation: Option<Incarnation>,
}

/// The result of `channel.interrupt` (CHAN-18).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Interrupted {
    /// Whether a turn ran when the interrupt came.
    pub was_busy: bool,
    /// Whether deliveries still wait behind the turn.
    pub pending: bool,
    /// The turn count before the turn the text started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runs: Option<Count>,
    /// The delivery.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub msg_id: Option<MsgId>,
    /// The session of the channel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub incarnation: Option<Incarnation>,
}

/// `channel.abort` (effect, CHAN-19).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct AbortParams {
    /// The agent.
    pub target: AgentTarget,
    /// How long the turn's end may take.
    pub timeout_ms: Millis,
}

/// The result of `channel.abort` (CHAN-19).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Aborted {
    /// The state before the abort.
    pub before: Activity,
    /// The state after it.
    pub after: Activity,
    /// Whether the turn settled within the timeout.
    pub settled: bool,
    /// Whether it ended by this abort and not of itself.
    pub aborted: bool,
    /// Whether deliveries still wait behind the turn.
    pub pending: bool,
}

/// Whether a turn runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Activity {
    /// None.
    Idle,
    /// One.
    Busy,
}

/// `channel.answer` (effect, CHAN-20).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AnswerParams {
    /// The agent.
    pub target: AgentTarget,
    /// What to press in the dialog.
    pub keys: Word,
    /// Whether the operator insists.
    pub force: bool,
}

/// The result of `channel.answer` (CHAN-20).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answered {
    /// What was pressed.
    pub keys: Word,
    /// Whether the dialog took it.
    pub ack: AnswerAck,
}

/// How sure an answer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AnswerAck {
    /// The dialog took it.
    Confirmed,
    /// No definite answer.
    Unknown,
}
