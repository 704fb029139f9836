//! The host seam of a correct plugin: what is asked of the backend, and what is said of its answer or its silence.
//!
//! It says what it knows (ERR-06). What was asked and not answered may have happened (`unknown-outcome` for an effect,
//! `unknown` for a question). What was never asked has not happened (`retryable`), unless the call may be a repeat of one
//! that did: it keeps nothing in mind itself, and a release, or an acquire of a plugin without lookups, may be one.

use serde_json::{Value, json};

use super::Plan;
use super::lines::Failure;
use crate::backend::{Answer, Question, Refusal};

/// Milliseconds after which a connection that does not stand is given up.
pub(crate) const DIAL_MS: u64 = 3_000;
/// Milliseconds of silence after which a sign of life is asked for.
pub(crate) const PING_MS: u64 = 2_000;
/// Milliseconds without it after which a connection is dead.
pub(crate) const SILENCE_MS: u64 = 6_000;

/// What the plugin says to a call.
pub(crate) type Said = Result<Value, Failure>;

/// How a call is answered when the backend was asked and has not answered.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Silence {
    /// By the error `unknown-outcome`; even when it was not asked now, since it may be a repeat.
    UnknownOutcome,
    /// The same, but a call that was not asked now was not asked before either.
    UnknownUnlessFirst,
    /// By a lookup's `unknown`.
    UnknownKey,
    /// By a status's `unknown`.
    UnknownState,
    /// Nothing was to change: by the error `retryable`.
    Harmless,
}

/// What came of a question.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Outcome {
    /// The backend has answered.
    Answered(Answer),
    /// It was never asked.
    NotAsked(String),
    /// It was asked, and nobody knows.
    Unanswered(String),
}

/// What a call makes the plugin ask. `None`: it asks nothing. An error: it is refused without a question.
pub(crate) fn question(
    plan: &Plan,
    method: &str,
    params: &Value,
) -> Option<Result<(Question, Silence), Failure>> {
    let host = &params["target"]["host"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let key = text(&params["key"]);
    let asked = match method {
        "host.acquire" => {
            let given = params["params"].as_object().into_iter().flatten();
            let params = given.map(|(name, value)| (name.clone(), text(value))).collect();
            let question = Question::Acquire { key, host: text(&host["name"]), params };
            let looks_up = plan.declaration["seams"]["host"]["acquire"]["lookup"] != false;
            let silence = if looks_up { Silence::UnknownUnlessFirst } else { Silence::UnknownOutcome };
            return Some(Ok((question, silence)));
        }
        "host.lookup" => {
            let fence = params["fence"].as_bool().unwrap_or(false);
            return Some(Ok((Question::Lookup { key, fence }, Silence::UnknownKey)));
        }
        "host.status" | "host.release" => method,
        // A host of a profile has no handle, and no machine of the backend behind it.
        _ if method.starts_with("link.") && host["handle"].is_string() => method,
        _ => return None,
    };
    let own = plan.declaration["instance"].as_str().unwrap_or_default();
    if host["instance"].as_str().is_some_and(|instance| instance != own) {
        return Some(Err(Failure::permanent("the host is one of another instance")));
    }
    let Some(handle) = host["handle"].as_str().map(str::to_owned) else {
        return Some(Err(Failure::permanent("the host has no handle")));
    };
    Some(Ok(match asked {
        "host.status" => (Question::Status { handle }, Silence::UnknownState),
        "host.release" => (Question::Release { key, handle }, Silence::UnknownOutcome),
        _ => (Question::Reach { handle }, Silence::Harmless),
    }))
}

/// What is said to a call, by what came of its question.
pub(crate) fn said(outcome: Outcome, silence: Silence) -> Said {
    let failure = |kind, message| Err(Failure { kind, message, remedy: None });
    match (outcome, silence) {
        (Outcome::Answered(Answer::Result(result)), _) => Ok(result),
        (Outcome::Answered(Answer::Refused { kind, message, remedy }), _) => {
            let kind = match kind {
                Refusal::Retryable => "retryable",
                Refusal::Permanent => "permanent",
                Refusal::Human => "human",
            };
            Err(Failure { kind, message, remedy })
        }
        (Outcome::NotAsked(reason) | Outcome::Unanswered(reason), Silence::Harmless) => {
            failure("retryable", reason)
        }
        (Outcome::NotAsked(reason) | Outcome::Unanswered(reason), Silence::UnknownOutcome) => {
            failure("unknown-outcome", reason)
        }
        (Outcome::NotAsked(reason), _) => failure("retryable", reason),
        (Outcome::Unanswered(reason), Silence::UnknownUnlessFirst) => failure("unknown-outcome", reason),
        (Outcome::Unanswered(reason), Silence::UnknownKey) => Ok(json!({ "unknown": reason })),
        (Outcome::Unanswered(reason), Silence::UnknownState) => {
            Ok(json!({ "state": "unknown", "reason": reason }))
        }
    }
}
