//! Bytes of a plugin's stdout in any chunks, to typed messages: the chunking changes nothing, and a slow opinion that shares
//! no code with the reader agrees on each line, its envelope and its shape.
//!
//! The first byte of the input seeds the chunks; some values of the second make the last line as long as a line may be, or
//! longer.

#![no_main]

use libfuzzer_sys::fuzz_target;
use mu_fuzz::{json, schema};
use mu_protocol::envelope::{self, Body, Incoming, NotificationMethod};
use mu_protocol::line::{LineSplitter, MAX_LINE};
use mu_protocol::messages::error::ReplyError;
use mu_protocol::messages::method::{Call, Method, parse_result};
use mu_protocol::messages::watch::{Restarted, Settled};
use mu_protocol::messages::{channel, host, job, link};
use mu_protocol::objects::from_json;
use mu_protocol::strict;
use mu_protocol::strict::Checked;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

fuzz_target!(|data: &[u8]| {
    let &[seed, length, ref bytes @ ..] = data else { return };
    let (bytes, unit) = match length.checked_sub(252) {
        Some(beyond) => (padded(bytes, usize::from(beyond)), 4096),
        None => (bytes.to_vec(), 1),
    };
    let whole = outcomes(std::iter::once(bytes.as_slice()));
    let size = (usize::from(seed) * unit).max(1);
    assert_eq!(outcomes(bytes.chunks(size)), whole, "chunks of one size");
    assert_eq!(outcomes(random_chunks(&bytes, seed, unit)), whole, "chunks of any size");

    let expected = lines(&bytes);
    assert_eq!(whole.len(), expected.len(), "the number of lines");
    for (line, outcome) in expected.into_iter().zip(whole) {
        match line {
            // The white space of a long line says nothing to the slow opinion.
            Some(line) => {
                let end = line.iter().rposition(|&byte| byte != b' ').map_or(0, |at| at + 1);
                judge(&line[..end], outcome.is_ok());
            }
            None => assert!(outcome.is_err(), "TRN-04: a line of more than 1 MiB"),
        }
    }
});

/// The last line is padded with white space to two bytes less than a line may have, or a few more.
fn padded(bytes: &[u8], beyond: usize) -> Vec<u8> {
    let mut padded = bytes.to_vec();
    let last = bytes.rsplit(|&byte| byte == b'\n').next().unwrap_or_default().len();
    padded.resize(bytes.len() + (MAX_LINE + beyond).saturating_sub(last + 2), b' ');
    padded.push(b'\n');
    padded
}

/// Chunks of 1 to 64 units, by a sequence that the seed gives.
fn random_chunks(mut bytes: &[u8], seed: u8, unit: usize) -> impl Iterator<Item = &[u8]> {
    let mut state = u32::from(seed) * 2 + 1;
    std::iter::from_fn(move || {
        state = state.wrapping_mul(747_796_405).wrapping_add(2_891_336_453);
        let size = ((state >> 16) as usize % 64 + 1) * unit;
        let (chunk, rest) = bytes.split_at_checked(size).unwrap_or((bytes, &[]));
        bytes = rest;
        (!chunk.is_empty()).then_some(chunk)
    })
}

/// What the reader makes of the lines, up to the first that is too long.
fn outcomes<'a>(chunks: impl Iterator<Item = &'a [u8]>) -> Vec<Result<String, String>> {
    let mut splitter = LineSplitter::new();
    let mut all = Vec::new();
    for mut chunk in chunks {
        while let Some(line) = splitter.next(&mut chunk) {
            match line {
                Ok(line) => all.push(match envelope::parse(line) {
                    Ok(message) => Ok(format!("{message:?}")),
                    Err(invalid) => Err(invalid.to_string()),
                }),
                Err(invalid) => {
                    all.push(Err(invalid.to_string()));
                    return all;
                }
            }
        }
    }
    all
}

/// The complete lines; `None` for the first that is too long, behind which nothing counts.
fn lines(bytes: &[u8]) -> Vec<Option<&[u8]>> {
    let mut pieces: Vec<&[u8]> = bytes.split(|&byte| byte == b'\n').collect();
    let unfinished = pieces.pop().unwrap_or_default();
    let mut lines: Vec<Option<&[u8]>> =
        pieces.into_iter().map(|line| (line.len() <= MAX_LINE).then_some(line)).collect();
    lines.extend((unfinished.len() > MAX_LINE).then_some(None));
    let end = lines.iter().position(Option::is_none).map_or(lines.len(), |at| at + 1);
    lines.truncate(end);
    lines
}

/// Holds one line against the slow opinion.
fn judge(line: &[u8], is_message: bool) {
    let legal = json::legal(line);
    let checked = strict::check(line);
    assert_eq!(checked.is_ok(), legal.is_some(), "the strict pass says {checked:?}");
    let (Ok(checked), Some(json::Legal { value, seen })) = (checked, legal) else {
        return assert!(!is_message, "a message in an illegal line");
    };
    // A number that serde_json cannot hold: no more can be said.
    let Some(value) = value else { return };
    assert_eq!(parsed(checked.get()), value, "the checked text is the line");
    let again = value.to_string();
    let again = strict::check(again.as_bytes()).expect("what serde_json writes is strict");
    assert_eq!(parsed(again.get()), value);

    assert_eq!(is_message, is_envelope(&value), "the envelope of {value}");
    let Ok(message) = envelope::parse(line) else { return };
    let whole = match message {
        Incoming::Reply { id, body } => {
            assert_eq!(Some(id), value["id"].as_u64());
            match body {
                Body::Result(result) => {
                    assert_eq!(parsed(result.get()), value["result"]);
                    let method = Method::ALL[id as usize % Method::ALL.len()];
                    of_method(method, result.get(), &value["result"], seen.odd_number);
                    true
                }
                Body::Error(error) => {
                    assert_eq!(parsed(error.get()), value["error"]);
                    typed::<ReplyError>("error", error.get(), &value["error"], seen.odd_number)
                }
            }
        }
        Incoming::Notification { method, params } => {
            assert_eq!(parsed(params.get()), value["params"]);
            let (text, params) = (params.get(), &value["params"]);
            match method {
                NotificationMethod::WatchSettled => {
                    typed::<Settled>("watch/settled.params", text, params, seen.odd_number)
                }
                NotificationMethod::WatchRestarted => {
                    typed::<Restarted>("watch/restarted.params", text, params, seen.odd_number)
                }
            }
        }
    };
    // GEN-04: for a message as a whole; its result is any value there.
    let valid = schema::is_valid("pluginMessage", &value);
    assert!(if seen.odd_number { valid || !whole } else { valid == whole }, "{value}: valid is {valid}");
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).expect("a checked text is JSON")
}

/// Whether an object is a reply or one of the two notifications, its error and params any object.
fn is_envelope(value: &Value) -> bool {
    let members = value.as_object().expect("a legal line is an object");
    let mut names: Vec<&str> = members.keys().map(String::as_str).collect();
    names.sort_unstable();
    let id = value["id"].as_u64().is_some_and(|id| (1..1 << 53).contains(&id));
    value["jsonrpc"] == "2.0"
        && match names[..] {
            ["id", "jsonrpc", "result"] => id,
            ["error", "id", "jsonrpc"] => id && value["error"].is_object(),
            ["jsonrpc", "method", "params"] => {
                let known = value["method"] == "watch/settled" || value["method"] == "watch/restarted";
                known && value["params"].is_object()
            }
            _ => false,
        }
}

/// Reads a text as a type that a definition of the schema describes; whether it is one. What is read is written as the same
/// value.
fn typed<T: Serialize + DeserializeOwned>(definition: &str, text: &str, value: &Value, odd: bool) -> bool {
    let read = from_json::<T>(text);
    let valid = schema::is_valid(definition, value);
    let is_typed = read.is_ok();
    // An integer may be spelt `1.0` by the schema, and not by the page.
    assert!(
        if odd { valid || !is_typed } else { valid == is_typed },
        "{definition}: valid is {valid}: {value}"
    );
    if let Ok(read) = read {
        assert_eq!(serde_json::to_value(&read).expect("it is JSON"), *value, "{definition}");
    }
    is_typed
}

fn result_of<C: Call>(text: &str, value: &Value, odd: bool) -> bool {
    typed::<C::Result>(&format!("{}.result", C::METHOD), text, value, odd)
}

/// Reads a result by its method.
fn of_method(method: Method, text: &str, value: &Value, odd: bool) {
    let read: fn(&str, &Value, bool) -> bool = match method {
        Method::HostAcquire => result_of::<host::AcquireParams>,
        Method::HostLookup => result_of::<host::LookupParams>,
        Method::HostStatus => result_of::<host::StatusParams>,
        Method::HostRelease => result_of::<host::ReleaseParams>,
        Method::LinkExec => result_of::<link::ExecParams>,
        Method::LinkFetch => result_of::<link::FetchParams>,
        Method::LinkPush => result_of::<link::PushParams>,
        Method::LinkCheckSteps => result_of::<link::CheckStepsParams>,
        Method::JobStart => result_of::<job::StartParams>,
        Method::JobLookup => result_of::<job::LookupParams>,
        Method::JobStatus => result_of::<job::StatusParams>,
        Method::JobStop => result_of::<job::StopParams>,
        Method::JobAttach => result_of::<job::AttachParams>,
        Method::JobCheckSteps => result_of::<job::CheckStepsParams>,
        Method::ChannelReadStates => result_of::<channel::ReadStatesParams>,
        Method::ChannelBaseline => result_of::<channel::BaselineParams>,
        Method::ChannelReceipt => result_of::<channel::ReceiptParams>,
        Method::ChannelLastRun => result_of::<channel::LastRunParams>,
        Method::ChannelWatch => result_of::<channel::WatchParams>,
        Method::ChannelSend => result_of::<channel::SendParams>,
        Method::ChannelFresh => result_of::<channel::FreshParams>,
        Method::ChannelCommand => result_of::<channel::CommandParams>,
        Method::ChannelInterrupt => result_of::<channel::InterruptParams>,
        Method::ChannelAbort => result_of::<channel::AbortParams>,
        Method::ChannelAnswer => result_of::<channel::AnswerParams>,
    };
    let parsed = Checked::value(text).is_ok_and(|checked| parse_result(method, checked).is_ok());
    assert_eq!(read(text, value, odd), parsed, "{method}");
}
