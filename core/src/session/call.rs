//! A call as the session sees it: what is asked for, and how it ends.

use mu_protocol::envelope::Body;
use mu_protocol::messages::error::ReplyError;
use mu_protocol::messages::method::{AnyResult, Method, parse_result};
use mu_protocol::objects::from_checked;

use super::{BreakReason, Cause};
use crate::os::Mono;

/// A request that is ready for the pipe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// What is asked.
    pub method: Method,
    /// The whole line.
    pub line: Vec<u8>,
    /// When the call is given up.
    pub deadline: Mono,
}

/// How a call ended that is not unanswered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// A result of the method's own shape.
    Result(AnyResult),
    /// An error of one of the four kinds.
    Error(ReplyError),
    /// Nothing of it was written.
    NotSent(NotSent),
}

/// Why nothing of a call was written. Whatever it would have done has not happened (TMO-08).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotSent {
    /// The verb gave it up.
    Cancelled,
    /// Its deadline passed while earlier lines kept the pipe full, or while its intent was made durable.
    Overdue,
    /// The time was over in which the plugin recognises a repeat.
    WindowOver,
    /// The plugin had closed its stdin.
    StdinClosed,
    /// The plugin was being stopped, or was gone.
    Gone,
    /// The plugin was stopped for this cause while the call waited for the pipe.
    Stopped(Box<Cause>),
}

/// Reads the outcome in a reply to `method`, which stands in `line`.
pub(super) fn read(method: Method, line: &[u8], body: &Body<'_>) -> Result<Answer, BreakReason> {
    let (Body::Result(value) | Body::Error(value)) = body;
    let text = value.get();
    let parsed = match body {
        Body::Result(_) => parse_result(method, *value).map(Answer::Result),
        Body::Error(_) => from_checked(*value).map(Answer::Error),
    };
    parsed.map_err(|mismatch| {
        let start = text.as_ptr() as usize - line.as_ptr() as usize;
        let error = matches!(body, Body::Error(_));
        BreakReason::Misshapen { method, error, at: start + mismatch.at, mismatch }
    })
}
