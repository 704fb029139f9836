//! A checked line as a reply or a notification: the JSON-RPC envelope, closed against every other member.

use crate::invalid::{InvalidMessage, Why};
use crate::messages::values::MAX_INTEGER;
use crate::strict::{self, Checked, Member};

/// What a plugin may say to mu.
#[derive(Clone, Copy, Debug)]
pub enum Incoming<'a> {
    /// The answer to the request with this id.
    Reply {
        /// An integer from 1 to [`MAX_INTEGER`].
        id: u64,
        /// What it answers.
        body: Body<'a>,
    },
    /// The end of a watch (TRN-13).
    Notification {
        /// Which of the two.
        method: NotificationMethod,
        /// A JSON object.
        params: Checked<'a>,
    },
}

/// The outcome in a reply. Its text has passed the strict pass; its shape is the method's business.
#[derive(Clone, Copy, Debug)]
pub enum Body<'a> {
    /// Any JSON value, `null` included.
    Result(Checked<'a>),
    /// A JSON object.
    Error(Checked<'a>),
}

/// The methods of the notifications that a plugin may send (TRN-13).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NotificationMethod {
    /// `watch/settled`: a turn past the asked one has settled.
    WatchSettled,
    /// `watch/restarted`: the channel has begun another session.
    WatchRestarted,
}

impl NotificationMethod {
    /// Both of them.
    pub const ALL: [NotificationMethod; 2] =
        [NotificationMethod::WatchSettled, NotificationMethod::WatchRestarted];

    /// Its name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            NotificationMethod::WatchSettled => "watch/settled",
            NotificationMethod::WatchRestarted => "watch/restarted",
        }
    }
}

/// Reads one line, given without its line feed: first the strict pass, then the envelope.
///
/// Members may stand in any order. Whether the id is one that mu waits for is for the session to judge (TRN-16), whether
/// result, error or params have the right shape for the method of their request.
pub fn parse(line: &[u8]) -> Result<Incoming<'_>, InvalidMessage> {
    let mut found = Found::default();
    strict::object(line, |member| found.add(member))?;
    let start = line.iter().position(|&byte| byte == b'{').unwrap_or(0);
    found.version(start)?;
    if let Some(at) = found.unknown_at {
        return Err(InvalidMessage::new(at, Why::UnknownMember));
    }
    match (found.id, found.method) {
        (Some(_), Some(method)) => Err(InvalidMessage::new(method.name_at, Why::Request)),
        (Some(id), None) => found.reply(start, id),
        (None, Some(method)) => found.notification(start, method),
        (None, None) => Err(InvalidMessage::new(start, Why::NoIdNoMethod)),
    }
}

/// The members of the envelope.
#[derive(Default)]
struct Found<'a> {
    jsonrpc: Option<Member<'a>>,
    id: Option<Member<'a>>,
    method: Option<Member<'a>>,
    params: Option<Member<'a>>,
    result: Option<Member<'a>>,
    error: Option<Member<'a>>,
    /// Where the first member stands that is none of these.
    unknown_at: Option<usize>,
}

impl<'a> Found<'a> {
    fn add(&mut self, member: Member<'a>) {
        let slot = match member.name.decode().as_ref() {
            "jsonrpc" => &mut self.jsonrpc,
            "id" => &mut self.id,
            "method" => &mut self.method,
            "params" => &mut self.params,
            "result" => &mut self.result,
            "error" => &mut self.error,
            _ => {
                self.unknown_at = self.unknown_at.or(Some(member.name_at));
                return;
            }
        };
        *slot = Some(member);
    }

    /// TRN-01
    fn version(&self, start: usize) -> Result<(), InvalidMessage> {
        let Some(version) = self.jsonrpc else {
            return Err(InvalidMessage::new(start, Why::MissingVersion));
        };
        match version.value.string() {
            Some(text) if text.is("2.0") => Ok(()),
            _ => Err(InvalidMessage::new(version.value_at, Why::WrongVersion)),
        }
    }

    fn reply(&self, start: usize, id: Member<'a>) -> Result<Incoming<'a>, InvalidMessage> {
        if let Some(params) = self.params {
            return Err(InvalidMessage::new(params.name_at, Why::ParamsInReply));
        }
        let id = id_of(id)?;
        // a member that is present counts, `null` or not.
        let body = match (self.result, self.error) {
            (Some(result), None) => Body::Result(result.value),
            (None, Some(error)) if !error.value.is_object() => {
                return Err(InvalidMessage::new(error.value_at, Why::ErrorNotObject));
            }
            (None, Some(error)) => Body::Error(error.value),
            (None, None) => return Err(InvalidMessage::new(start, Why::NoOutcome)),
            (Some(result), Some(error)) => {
                return Err(InvalidMessage::new(result.name_at.max(error.name_at), Why::TwoOutcomes));
            }
        };
        Ok(Incoming::Reply { id, body })
    }

    fn notification(&self, start: usize, method: Member<'a>) -> Result<Incoming<'a>, InvalidMessage> {
        if let Some(outcome) = self.result.or(self.error) {
            return Err(InvalidMessage::new(outcome.name_at, Why::OutcomeInNotification));
        }
        let Some(name) = method.value.string() else {
            return Err(InvalidMessage::new(method.value_at, Why::MethodNotString));
        };
        let Some(method) = NotificationMethod::ALL.into_iter().find(|known| name.is(known.name())) else {
            return Err(InvalidMessage::new(method.value_at, Why::UnknownNotification));
        };
        let Some(params) = self.params else {
            return Err(InvalidMessage::new(start, Why::MissingParams));
        };
        if !params.value.is_object() {
            return Err(InvalidMessage::new(params.value_at, Why::ParamsNotObject));
        }
        Ok(Incoming::Notification { method, params: params.value })
    }
}

/// Read from the digits themselves: through a float, 2^53 and 2^53+1 would be one number.
fn id_of(id: Member<'_>) -> Result<u64, InvalidMessage> {
    let digits = id.value.get();
    if !digits.starts_with(|first: char| first == '-' || first.is_ascii_digit()) {
        return Err(InvalidMessage::new(id.value_at, Why::IdNotNumber));
    }
    match digits.parse() {
        Ok(number) if (1..=MAX_INTEGER).contains(&number) => Ok(number),
        _ => Err(InvalidMessage::new(id.value_at, Why::IdOutOfRange)),
    }
}
