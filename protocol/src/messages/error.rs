//! The error of a reply (TRN-11, ERR-01 to ERR-04).

use serde::{Deserialize, Serialize};

use super::values::Reason;

/// `error` of a reply.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Wire", into = "Wire")]
pub struct ReplyError {
    /// JSON-RPC's number, which decides nothing.
    pub code: i32,
    /// Text for people; its first line may be stored.
    pub message: String,
    /// What the plugin vouches for.
    pub kind: ErrorKind,
}

/// `data` of an error: what has happened, and what may help.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", try_from = "Data")]
pub enum ErrorKind {
    /// Nothing happened; the same call may work later.
    Retryable,
    /// Nothing happened, and a repeat is useless.
    Permanent,
    /// Nothing happened; a person has to act first.
    Human {
        /// What they have to do.
        remedy: Reason,
    },
    /// It may have happened.
    UnknownOutcome,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wire {
    code: i32,
    message: String,
    data: ErrorKind,
}

impl From<Wire> for ReplyError {
    fn from(Wire { code, message, data }: Wire) -> Self {
        ReplyError { code, message, kind: data }
    }
}

impl From<ReplyError> for Wire {
    fn from(ReplyError { code, message, kind }: ReplyError) -> Self {
        Wire { code, message, data: kind }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum KindWord {
    Retryable,
    Permanent,
    Human,
    UnknownOutcome,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Data {
    kind: KindWord,
    remedy: Option<Reason>,
}

impl TryFrom<Data> for ErrorKind {
    type Error = &'static str;

    fn try_from(Data { kind, remedy }: Data) -> Result<Self, Self::Error> {
        match (kind, remedy) {
            (KindWord::Retryable, None) => Ok(ErrorKind::Retryable),
            (KindWord::Permanent, None) => Ok(ErrorKind::Permanent),
            (KindWord::Human, Some(remedy)) => Ok(ErrorKind::Human { remedy }),
            (KindWord::UnknownOutcome, None) => Ok(ErrorKind::UnknownOutcome),
            _ => Err("a remedy belongs to the kind `human`, and to no other"),
        }
    }
}
