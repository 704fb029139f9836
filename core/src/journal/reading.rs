//! What an answer says about an effect: the second half of the rule table (EFF-03, EFF-12 to EFF-16, EFF-19 to EFF-23).
//!
//! In: what was asked and how, and what came of it. Out: one [`Reading`]. Nothing happens here.

use std::fmt;
use std::time::Duration;

use mu_protocol::declaration::{Declaration, FirstTurn, HandleSource};
use mu_protocol::messages::channel::{
    AnswerAck, FreshParams, InterruptParams, Receipt, SendAck, SendParams, Sent,
};
use mu_protocol::messages::error::{ErrorKind, ReplyError};
use mu_protocol::messages::job::{FoundJob, Started};
use mu_protocol::messages::lookup::Lookup;
use mu_protocol::messages::method::{AnyResult, Method};
use mu_protocol::messages::values::{Count, MsgId, Name};
use mu_protocol::objects::from_json;

use super::moment::Moment;
use super::proof::{Fenced, Warrant};
use super::rules::Ways;
use crate::call_error::CallError;
use crate::reached;

/// How an effect was asked about.
#[derive(Debug)]
pub enum Question {
    /// It was sent, for the first time or again after answers that nothing happened.
    First,
    /// It was sent again, after sends of which the outcome is not known.
    Again,
    /// Its key was looked up.
    LookUp(Option<Fenced>),
    /// The receipt of its delivery was asked for.
    Receipt,
}

/// What an answer must agree with (EFF-19 to EFF-21, SPAWN-14).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expected {
    /// The id of the delivery.
    pub msg_id: Option<MsgId>,
    /// The name of the channel.
    pub channel: Option<Name>,
    /// A start must give handle and view.
    pub handle: bool,
    /// A start must give the turn count 0.
    pub no_turns: bool,
}

impl Expected {
    /// By the effect's parameters, as they were sent, and the declaration of the plugin. Parameters that are not those of
    /// the method expect nothing.
    pub fn of(method: Method, params: &str, declared: &Declaration) -> Expected {
        let job = declared.seams.job.as_ref().filter(|_| method == Method::JobStart);
        let is_delivery = method.as_str().starts_with("channel.");
        let channel = declared.seams.channel.as_ref().filter(|_| is_delivery);
        Expected {
            msg_id: match method {
                Method::ChannelSend => from_json(params).ok().map(|params: SendParams| params.msg_id),
                Method::ChannelFresh => from_json(params).ok().map(|params: FreshParams| params.msg_id),
                Method::ChannelInterrupt => {
                    from_json(params).ok().map(|params: InterruptParams| params.msg_id)
                }
                _ => None,
            },
            channel: channel.and_then(|channel| Name::new(channel.name.as_str()).ok()),
            handle: job.is_some_and(|job| job.handle == HandleSource::Reply),
            no_turns: job.is_some_and(|job| job.begins() == FirstTurn::AtStart),
        }
    }
}

/// A question and all that its answer is judged by.
#[derive(Debug)]
pub struct Asked<'a> {
    /// The question.
    pub question: Question,
    /// What the plugin offers for the effect.
    pub ways: Ways,
    /// What the answer must agree with.
    pub expected: &'a Expected,
    /// Since when all who had to do with the effect are known to be gone.
    pub quiet: Option<&'a Moment>,
    /// When the question was asked: an answer may speak of that moment already.
    pub at: &'a Moment,
}

/// What is known now.
#[derive(Debug, PartialEq, Eq)]
pub enum Reading {
    /// It took place, once; this is its result.
    Done(Warrant, Box<AnyResult>),
    /// It has not taken place and never will.
    Undone(Warrant),
    /// Ask again, so much later than the question was asked.
    AskAgain(Duration),
    /// It may have taken place or not.
    Open(Why),
}

/// Why it is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// There was no answer, or none that tells.
    NoAnswer,
    /// The plugin could not be asked.
    NotAsked,
    /// The plugin is still at it.
    Pending,
    /// The plugin cannot tell.
    Unknown(String),
    /// The answer does not agree with what was asked.
    Mismatch(&'static str),
    /// Nothing was found, and that says nothing: the plugin neither bars the key nor says how long an effect may be on its
    /// way.
    NoneIsNoProof,
    /// Nothing was found, and it may still be on its way for so long.
    NoneTooEarly(Duration),
    /// Nothing was found, and how long ago it was sent is not known: a clock ran backwards.
    NoneInDisorder,
    /// Nothing was found, which does not count for this kind (EFF-14).
    NoneDoesNotCount,
    /// The agent does not have it yet.
    NotAccepted,
    /// The channel cannot be asked.
    Unreachable(String),
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Why::NoAnswer => f.write_str("there is no answer that tells"),
            Why::NotAsked => f.write_str("the plugin could not be asked"),
            Why::Pending => f.write_str("the plugin is still at it"),
            Why::Unknown(reason) => write!(f, "the plugin cannot tell: {reason}"),
            Why::Mismatch(what) => write!(f, "the answer counts for nothing: {what}"),
            Why::NoneIsNoProof => f.write_str(
                "the plugin found nothing, and declares neither `fenceKey` nor `inFlightMs`: it may still come",
            ),
            Why::NoneTooEarly(rest) => {
                let seconds = rest.as_millis().div_ceil(1000);
                write!(f, "the plugin found nothing, and it may still come for {seconds} s")
            }
            Why::NoneInDisorder => f.write_str(
                "the plugin found nothing, and it may still come: the wall clock is behind the time when it was sent",
            ),
            Why::NoneDoesNotCount => {
                f.write_str("the plugin found nothing, which is no proof for a kind whose handle is a file")
            }
            Why::NotAccepted => f.write_str("the agent has not accepted it"),
            Why::Unreachable(reason) => write!(f, "the channel cannot be asked: {reason}"),
        }
    }
}

/// Judges an answer.
pub fn read(asked: Asked<'_>, answer: &Result<AnyResult, CallError>) -> Reading {
    match (asked.question, answer) {
        (Question::First, Err(error)) if error.is_definite() => {
            reached!("EFF-03 undone: a definite error");
            Reading::Undone(Warrant::definite_reply())
        }
        // A plugin vouches by these kinds that the key never took effect, whichever send may have been the one (ERR-06). What
        // is not sent again says nothing about what was sent before.
        (Question::Again, Err(CallError::Refused(_, ReplyError { kind, .. })))
            if *kind != ErrorKind::UnknownOutcome =>
        {
            reached!("A-41 undone: an error answers a repeat");
            Reading::Undone(Warrant::definite_reply())
        }
        (_, Err(error)) if error.was_asked() => {
            reached!("EFF-03 open: no answer that tells");
            Reading::Open(Why::NoAnswer)
        }
        (_, Err(_)) => {
            reached!("EFF-04 open: its plugin could not be asked");
            Reading::Open(Why::NotAsked)
        }
        (Question::First | Question::Again, Ok(result)) => done(asked.expected, result),
        (Question::LookUp(fenced), Ok(AnyResult::HostLookup(lookup))) => {
            let lookup = found(lookup, |acquired| AnyResult::HostAcquire(acquired.clone()));
            looked_up(lookup, fenced, asked.ways, asked.expected, asked.quiet, asked.at)
        }
        (Question::LookUp(fenced), Ok(AnyResult::JobLookup(lookup))) => {
            let lookup = found(lookup, |found| AnyResult::JobLookup(Lookup::Found(found.clone())));
            looked_up(lookup, fenced, asked.ways, asked.expected, asked.quiet, asked.at)
        }
        (Question::Receipt, Ok(AnyResult::ChannelReceipt(receipt))) => received(asked.expected, receipt),
        (Question::LookUp(_) | Question::Receipt, Ok(_)) => {
            Reading::Open(Why::Mismatch("it answers another question"))
        }
    }
}

fn found<T>(lookup: &Lookup<T>, result: impl FnOnce(&T) -> AnyResult) -> Lookup<AnyResult> {
    match lookup {
        Lookup::Found(what) => Lookup::Found(result(what)),
        Lookup::Pending => Lookup::Pending,
        Lookup::None => Lookup::None,
        Lookup::Unknown(reason) => Lookup::Unknown(reason.clone()),
    }
}

/// A result, if it passes its checks (EFF-23).
fn done(expected: &Expected, result: &AnyResult) -> Reading {
    match fault(expected, result) {
        Some(why) => Reading::Open(why),
        None => Reading::Done(Warrant::definite_reply(), Box::new(result.clone())),
    }
}

fn fault(expected: &Expected, result: &AnyResult) -> Option<Why> {
    let start = |handle: bool, view: bool, runs: Option<Count>| {
        if expected.handle && !handle {
            return Some(Why::Mismatch("a start without the job's handle (EFF-19)"));
        }
        if expected.handle && !view {
            return Some(Why::Mismatch("a start without the job's view (EFF-19)"));
        }
        let wrong_count = expected.no_turns && runs != Some(Count::ZERO);
        wrong_count.then_some(Why::Mismatch("a start without the turn count 0 (SPAWN-14)"))
    };
    match result {
        AnyResult::JobStart(Started { handle, baseline, .. }) => {
            start(handle.is_some(), true, baseline.as_ref().map(|baseline| baseline.runs))
        }
        AnyResult::JobLookup(Lookup::Found(FoundJob { view, baseline, .. })) => {
            start(true, view.is_some(), baseline.as_ref().map(|baseline| baseline.runs))
        }
        AnyResult::ChannelSend(sent) | AnyResult::ChannelFresh(sent) | AnyResult::ChannelCommand(sent) => {
            let Sent { channel, ack, msg_id, .. } = sent;
            if expected.channel.as_ref().is_some_and(|expected| expected != channel) {
                return Some(Why::Mismatch("it names another channel (EFF-21)"));
            }
            let of_another = msg_id.is_some() && *msg_id != expected.msg_id;
            if of_another && expected.msg_id.is_some() {
                return Some(Why::Mismatch("it names another delivery (EFF-21)"));
            }
            (*ack == SendAck::Unknown).then_some(Why::NoAnswer)
        }
        AnyResult::ChannelInterrupt(interrupted) => {
            let of_another = interrupted.msg_id.is_some() && interrupted.msg_id != expected.msg_id;
            of_another.then_some(Why::Mismatch("it names another delivery (EFF-21)"))
        }
        AnyResult::ChannelAnswer(answered) => (answered.ack == AnswerAck::Unknown).then_some(Why::NoAnswer),
        _ => None,
    }
}

fn looked_up(
    lookup: Lookup<AnyResult>,
    fenced: Option<Fenced>,
    ways: Ways,
    expected: &Expected,
    quiet: Option<&Moment>,
    at: &Moment,
) -> Reading {
    let Ways::Key { caps, none_counts, .. } = ways else {
        return Reading::Open(Why::Mismatch("it answers a question that the plugin does not serve"));
    };
    match lookup {
        Lookup::Found(result) => {
            reached!("EFF-12 found");
            done(expected, &result)
        }
        Lookup::Pending => {
            reached!("EFF-12 open: pending");
            Reading::Open(Why::Pending)
        }
        Lookup::Unknown(reason) => {
            reached!("EFF-12 open: the plugin cannot tell");
            Reading::Open(Why::Unknown(reason.as_str().to_owned()))
        }
        Lookup::None if !none_counts => Reading::Open(Why::NoneDoesNotCount),
        Lookup::None if fenced.is_some() => {
            reached!("EFF-13 undone: a none that bars its key");
            Reading::Undone(Warrant::definite_reply())
        }
        Lookup::None => {
            let Some(in_flight) = caps.in_flight_ms.map(Duration::from_millis) else {
                reached!("EFF-13 open: a none that nothing backs");
                return Reading::Open(Why::NoneIsNoProof);
            };
            let Some(quiet) = quiet else { return Reading::Open(Why::NoneTooEarly(in_flight)) };
            match quiet.rest_of(in_flight, at) {
                Some(Duration::ZERO) => {
                    reached!("A-42 undone: a none after its time on the way");
                    Reading::Undone(Warrant::definite_reply())
                }
                Some(rest) if rest <= WAITED_OUT => {
                    reached!("A-42 asked again: the rest is waited out");
                    Reading::AskAgain(rest)
                }
                Some(rest) => {
                    reached!("A-42 open: a none too early");
                    Reading::Open(Why::NoneTooEarly(rest))
                }
                None => {
                    reached!("A-42 open: a clock ran backwards");
                    Reading::Open(Why::NoneInDisorder)
                }
            }
        }
    }
}

/// So much of an effect's time on its way is waited out on the spot.
pub const WAITED_OUT: Duration = Duration::from_secs(10);

fn received(expected: &Expected, receipt: &Receipt) -> Reading {
    let (Receipt::Accepted { id, .. } | Receipt::NotAccepted { id } | Receipt::Unreachable { id, .. }) =
        receipt;
    if expected.msg_id.as_ref() != Some(id) {
        return Reading::Open(Why::Mismatch("it names another delivery (EFF-20)"));
    }
    match receipt {
        Receipt::Accepted { .. } => {
            let result = AnyResult::ChannelReceipt(receipt.clone());
            Reading::Done(Warrant::definite_reply(), Box::new(result))
        }
        Receipt::NotAccepted { .. } => Reading::Open(Why::NotAccepted),
        Receipt::Unreachable { reason, .. } => Reading::Open(Why::Unreachable(reason.as_str().to_owned())),
    }
}

#[cfg(test)]
mod tests;
