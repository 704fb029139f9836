//! Why and how a plugin process ended.

use std::fmt;

use mu_protocol::declaration::Declaration;
use mu_protocol::invalid::InvalidMessage;
use mu_protocol::load::LoadRefusal;
use mu_protocol::messages::method::Method;
use mu_protocol::objects::{Fault, Mismatch};

use crate::os::{Exit, Signal};
use crate::reached;

/// Why the stop sequence began. The first cause stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// mu had no more use for it.
    Done,
    /// This signal told mu to end (PRC-09).
    Signal(Signal),
    /// A load rule refused its declaration.
    Refused(LoadRefusal),
    /// It sent an invalid message (TRN-14 to TRN-18, TRN-21).
    Broken(Break),
    /// It did not answer `initialize` in time (HSK-08).
    HandshakeDeadline,
    /// It did not answer this call in time (TMO-04).
    Deadline {
        /// The call's id.
        id: u64,
        /// What was asked.
        method: Method,
    },
    /// The verb gave this call up when it had been sent (TMO-04).
    Cancelled {
        /// The call's id.
        id: u64,
        /// What was asked.
        method: Method,
    },
    /// It closed its stdout.
    StdoutClosed,
    /// Its leader exited.
    LeaderExited,
}

impl Cause {
    /// Notes which it is.
    pub(super) fn mark(&self) {
        match self {
            Cause::Done => reached!("PRC-07 stopped: no more use for it"),
            Cause::Signal(_) => reached!("PRC-09 stopped: a signal"),
            Cause::Refused(_) => reached!("LOAD-01 stopped: a load rule"),
            Cause::Broken(_) => reached!("TRN-18 stopped: an invalid message"),
            Cause::HandshakeDeadline => reached!("HSK-08 stopped: no answer in time"),
            Cause::Deadline { .. } => reached!("TMO-04 stopped: a call is overdue"),
            Cause::Cancelled { .. } => reached!("TMO-04 stopped: a call was given up"),
            Cause::StdoutClosed => reached!("A-72 stopped: its stdout is closed"),
            Cause::LeaderExited => reached!("A-04 stopped: its leader is gone"),
        }
    }

    /// The call that brought the stop about.
    pub fn call(&self) -> Option<u64> {
        match self {
            Cause::Deadline { id, .. } | Cause::Cancelled { id, .. } => Some(*id),
            _ => None,
        }
    }
}

/// An invalid message: which line of the plugin's stdout, and what is wrong with it. Never holds content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Break {
    /// Number of the line, the first being 1.
    pub line: u64,
    /// What is wrong.
    pub reason: BreakReason,
}

impl fmt::Display for Break {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {} of its stdout is not a valid message: {}", self.line, self.reason)
    }
}

/// The ways in which a line can be wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BreakReason {
    /// Wrong in itself.
    Invalid(InvalidMessage),
    /// A reply whose result or error has not the shape that its method answers with.
    Misshapen {
        /// What was asked.
        method: Method,
        /// Whether it is the error, and not the result.
        error: bool,
        /// Offset in bytes from the start of the line.
        at: usize,
        /// What is wrong.
        mismatch: Mismatch,
    },
    /// A reply whose id no pending request has (TRN-16).
    NoSuchCall {
        /// The id it carried.
        id: u64,
    },
    /// A notification for a watch that does not exist.
    NoSuchWatch,
}

impl fmt::Display for BreakReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BreakReason::Invalid(invalid) => invalid.fmt(f),
            BreakReason::Misshapen { method, error, at, mismatch } => {
                let what = if *error { "error" } else { "result" };
                let rule = match &mismatch.fault {
                    Fault::UnknownMember => "TRN-15",
                    _ if *error => "TRN-11",
                    _ => "A-07",
                };
                write!(f, "byte {at}: the {what} of {method} is off the schema: {} ({rule})", mismatch.fault)
            }
            BreakReason::NoSuchCall { id } => {
                write!(f, "a reply with id {id}, which no pending request has (TRN-16)")
            }
            BreakReason::NoSuchWatch => {
                write!(f, "a notification for a watch that was never started (A-13)")
            }
        }
    }
}

/// What is known once the group is empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ending {
    /// Why it was stopped.
    pub cause: Cause,
    /// How the leader ended.
    pub exit: Exit,
    /// The group outlived the grace and was killed (PRC-07).
    pub grace_over: bool,
    /// Bytes seen on stdout while stdin was open.
    pub stdout_bytes: u64,
    /// Bytes seen on stdout after that. When there were none before, the sign of an unflushed buffer.
    pub late_bytes: u64,
    /// Complete lines judged.
    pub lines: u64,
    /// The beginning of its output, for recognising what it speaks instead of the protocol. Never shown.
    pub first_bytes: Vec<u8>,
    /// What it declared, when that had passed the load rules.
    pub declaration: Option<Declaration>,
    /// Calls that were sent and never answered, `initialize` among them (TRN-19, TMO-09).
    pub unanswered: Vec<u64>,
    /// The first line of its stderr.
    pub stderr: StderrLine,
}

/// The first line of stderr, fit for display (TRN-09, A-12).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StderrLine {
    raw: Vec<u8>,
    complete: bool,
}

impl StderrLine {
    /// As much of a first line as can matter: 400 characters of four bytes, with room for stripped ones.
    const KEPT: usize = 4096;
    /// Characters shown at most (TRN-09).
    pub const SHOWN: usize = 400;

    /// More bytes of stderr. All but the first line is forgotten at once.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.complete {
            return;
        }
        let line = match bytes.iter().position(|&byte| byte == b'\n') {
            Some(end) => {
                self.complete = true;
                &bytes[..end]
            }
            None => bytes,
        };
        let room = Self::KEPT - self.raw.len();
        self.raw.extend_from_slice(&line[..room.min(line.len())]);
        self.complete |= self.raw.len() == Self::KEPT;
    }

    /// Decoded lossily, without control characters, cut to 400 characters; `None` when nothing is left.
    pub fn text(&self) -> Option<String> {
        let decoded = String::from_utf8_lossy(&self.raw);
        let text: String = decoded.chars().filter(|c| !c.is_control()).take(Self::SHOWN).collect();
        (!text.trim().is_empty()).then_some(text)
    }
}
