//! Why a call has no result, in one line.

use std::fmt;
use std::time::Duration;

use mu_protocol::messages::error::{ErrorKind, ReplyError};
use mu_protocol::messages::method::Method;
use mu_protocol::outgoing::TooLong;

use crate::os::{Exit, Signal};
use crate::session::{Cause, Ending, NotSent};
pub use crate::start_error::StartError;
use crate::start_error::signal_name;

/// A call without a result. `Display` is one line, without the plugin's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallError {
    /// There is no plugin to ask; nothing was sent.
    Start(StartError),
    /// It does not fit into a line; nothing was sent.
    TooLong(Method, TooLong),
    /// Nothing of it was written (TMO-08).
    NotSent(Method, NotSent),
    /// It was sent, and no answer came: what it would do may have happened (TMO-09, TRN-19).
    Unanswered(Box<Unanswered>),
    /// The plugin answered with an error; one of kind `retryable` did so four times (ERR-01), or a signal came between.
    Refused(Method, ReplyError),
}

/// A call that was sent and has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unanswered {
    /// Its id.
    pub id: u64,
    /// What was asked.
    pub method: Method,
    /// How long an answer was waited for at most.
    pub budget: Duration,
    /// How the plugin ended.
    pub ending: Ending,
}

impl CallError {
    /// Whether what was asked for certainly has not happened.
    pub fn is_definite(&self) -> bool {
        match self {
            CallError::Start(_) | CallError::TooLong(..) | CallError::NotSent(..) => true,
            CallError::Unanswered(_) => false,
            CallError::Refused(_, error) => error.kind != ErrorKind::UnknownOutcome,
        }
    }

    /// Whether the plugin was asked at all.
    pub fn was_asked(&self) -> bool {
        matches!(self, CallError::Unanswered(_) | CallError::Refused(..))
    }

    /// The signal that ended mu's interest in the answer.
    pub fn signal(&self) -> Option<Signal> {
        let cause = match self {
            CallError::Start(StartError::Interrupted(signal)) => return Some(*signal),
            CallError::NotSent(_, NotSent::Stopped(cause)) => cause,
            CallError::Unanswered(unanswered) => &unanswered.ending.cause,
            _ => return None,
        };
        match cause {
            Cause::Signal(signal) => Some(*signal),
            _ => None,
        }
    }
}

impl From<StartError> for CallError {
    fn from(error: StartError) -> CallError {
        CallError::Start(error)
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CallError::Start(error) => error.fmt(f),
            CallError::TooLong(method, error) => write!(f, "{method} was not sent: {error}"),
            CallError::NotSent(method, why) => write!(f, "{method} was not sent: {why}"),
            CallError::Unanswered(unanswered) => unanswered.fmt(f),
            CallError::Refused(method, error) => {
                let said = error.message.lines().next().unwrap_or_default();
                let (what, remedy) = match &error.kind {
                    ErrorKind::Retryable => ("failed, nothing happened, and it may work later", None),
                    ErrorKind::Permanent => ("failed, nothing happened, and a repeat is useless", None),
                    ErrorKind::Human { remedy } => ("needs a person", Some(remedy)),
                    ErrorKind::UnknownOutcome if method.changes_nothing() => ("could not be answered", None),
                    ErrorKind::UnknownOutcome => ("may have happened or not", None),
                };
                write!(f, "{method} {what}")?;
                if let Some(remedy) = remedy {
                    write!(f, ": {}", remedy)?;
                }
                if said.is_empty() { Ok(()) } else { write!(f, "; it says: {said}") }
            }
        }
    }
}

impl fmt::Display for NotSent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotSent::Cancelled => f.write_str("it was given up before"),
            NotSent::Overdue => f.write_str("its time was over before the plugin took it"),
            NotSent::WindowOver => f.write_str("the time in which the plugin recognises a repeat is over"),
            NotSent::StdinClosed => f.write_str("the plugin has closed its stdin"),
            NotSent::Gone => f.write_str("the plugin was gone"),
            NotSent::Stopped(cause) => write!(f, "the plugin was stopped, {cause}"),
        }
    }
}

/// As what follows "it was stopped,".
impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cause::Done => f.write_str("since nothing more was to be done"),
            Cause::Signal(signal) => write!(f, "since {} came", signal.name()),
            Cause::Refused(refusal) => refusal.fmt(f),
            Cause::Broken(what) => write!(f, "since {what}"),
            Cause::HandshakeDeadline => f.write_str("since initialize had no answer in time"),
            Cause::Deadline { method, .. } => write!(f, "since {method} had no answer in time"),
            Cause::Cancelled { method, .. } => write!(f, "since {method} was given up"),
            Cause::StdoutClosed => f.write_str("since it closed its stdout"),
            Cause::LeaderExited => f.write_str("since it exited"),
        }
    }
}

impl fmt::Display for Unanswered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Unanswered { id, method, budget, ending } = self;
        match (&ending.cause, ending.exit) {
            (Cause::Deadline { id: late, .. }, _) if late == id => {
                write!(f, "{method} had no answer within {} s", budget.as_secs_f64())?;
            }
            (Cause::LeaderExited, exit) => {
                write!(f, "the plugin {} before it answered {method}", ended(exit))?
            }
            // The end of a process shows as the end of its stdout first: which of the two it was is not known.
            (Cause::StdoutClosed, exit) if !ending.grace_over => {
                write!(f, "the plugin's stdout ended before it answered {method}, and it {}", ended(exit))?;
            }
            (cause, _) => write!(f, "{method} had no answer: the plugin was stopped, {cause}")?,
        }
        match ending.stderr.text() {
            Some(line) => write!(f, "; its stderr begins: {line}"),
            None => Ok(()),
        }
    }
}

/// How the leader ended.
fn ended(exit: Exit) -> String {
    match exit {
        Exit::Status(status) => format!("exited with status {status}"),
        Exit::Signal(number) => format!("was ended by {}", signal_name(number)),
    }
}
