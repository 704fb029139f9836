//! The bytes of each fault on standard output, built by hand and without the host's types.
//!
//! In: the fault and the sound reply it spoils. Out: pieces, each one write or one deed between writes.

use serde_json::{Map, Value};

use super::catalogue::Act;

/// The longest line of the protocol in bytes, its LF not counted (TRN-04).
pub const LINE_LIMIT: usize = 1 << 20;

/// A sound reply to a request of mu.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Reply {
    /// The request's id, as it came.
    pub id: Value,
    /// The result.
    pub result: Value,
    /// When the call's own `timeoutMs` is over, on the plugin's clock; when it came if it has none.
    pub timeout_at: u64,
}

/// A step of what goes out in place of (or around) a reply.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Piece {
    /// These bytes in one write.
    Out(Vec<u8>),
    /// This byte, so many times, in writes of 64 KiB.
    Fill(u8, u64),
    /// Milliseconds in which nothing is read.
    Wait(u64),
    /// These bytes once stdin has ended.
    Hold(Vec<u8>),
    /// stdout is closed.
    CloseStdout,
    /// The process exits with status 0.
    Exit,
}

impl Reply {
    /// The reply as mu wants it, with its LF.
    pub(crate) fn line(&self) -> Vec<u8> {
        ended(envelope(&self.id, &result_member(&self.result)))
    }
}

/// An error that is the plugin's answer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Failure {
    /// Its kind, by its name on the wire.
    pub kind: &'static str,
    /// Why.
    pub message: String,
    /// What a person has to do.
    pub remedy: Option<String>,
}

impl Failure {
    /// Nothing has happened, and nothing ever will.
    pub(crate) fn permanent(message: impl Into<String>) -> Failure {
        Failure { kind: "permanent", message: message.into(), remedy: None }
    }

    /// The error reply, with its LF.
    pub(crate) fn line(&self, id: &Value) -> Vec<u8> {
        let mut data = Map::from_iter([("kind".to_owned(), Value::from(self.kind))]);
        data.extend(self.remedy.iter().map(|remedy| ("remedy".to_owned(), Value::from(remedy.as_str()))));
        ended(envelope(id, &error_member(&self.message, Some(&text(&Value::Object(data))))))
    }
}

/// The pieces of a fault that is about bytes on stdout; `None` for every other fault. `secret` looks up an environment
/// variable.
pub(crate) fn pieces(
    act: &Act,
    reply: &Reply,
    secret: &dyn Fn(&str) -> Option<Vec<u8>>,
) -> Option<Vec<Piece>> {
    let good = || envelope(&reply.id, &result_member(&reply.result));
    let of_id = |id: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":{id},{}}}"#, string(result_member(&reply.result))).into_bytes()
    };
    let spliced =
        |raw: &[u8]| envelope(&reply.id, &[&b"\"result\":"[..], &splice(&reply.result, raw)].concat());
    let nested = |key: fn(&str) -> String| envelope(&reply.id, &twice_nested(&reply.result, key));
    let error = |data: Option<&str>| envelope(&reply.id, &error_member("the fake plugin refuses", data));
    let line = match act {
        Act::InvalidUtf8Start => [&[0xFF][..], &good()].concat(),
        Act::InvalidUtf8Middle => spliced(&[0xFF]),
        Act::InvalidUtf8End => [&good()[..], &[0xFF]].concat(),
        Act::InvalidUtf8Cut => spliced(&"€".as_bytes()[..2]),
        Act::InvalidUtf8Surrogate => spliced(&[0xED, 0xA0, 0x80]),
        Act::InvalidUtf8Overlong => spliced(&[0xC0, 0xAF]),
        Act::NotJson => b"this is not JSON".to_vec(),
        Act::CutJson => good()[..good().len() / 2].to_vec(),
        Act::Bom => [&[0xEF, 0xBB, 0xBF][..], &good()].concat(),
        Act::Crlf => [&good()[..], b"\r"].concat(),
        Act::BlankLine => Vec::new(),
        Act::SpaceLine => b"   ".to_vec(),
        Act::TwoObjects => good().repeat(2),
        Act::Batch => [b"[", &good()[..], b"]"].concat(),
        Act::Array => format!(r#"["2.0",{},{}]"#, text(&reply.id), text(&reply.result)).into_bytes(),
        Act::Pretty => pretty(&good()),
        Act::UnknownFieldEnvelope => {
            envelope(&reply.id, &[&result_member(&reply.result)[..], b",\"surplus\":true"].concat())
        }
        Act::UnknownFieldResult => envelope(&reply.id, &result_member(&with_surplus(&reply.result, false))),
        Act::UnknownFieldNested => envelope(&reply.id, &result_member(&with_surplus(&reply.result, true))),
        Act::DuplicateKeyTop => of_id(&format!(r#"{0},"id":{0}"#, text(&reply.id))),
        Act::DuplicateKeyEscaped => of_id(&format!(r#"{0},"i\u0064":{0}"#, text(&reply.id))),
        Act::DuplicateKeyNested => nested(|key| text(&Value::from(key))),
        Act::DuplicateKeyNestedEscaped => nested(escaped),
        Act::Neither => format!(r#"{{"jsonrpc":"2.0","id":{}}}"#, text(&reply.id)).into_bytes(),
        Act::Both => {
            let error = error_member("both", Some(r#"{"kind":"permanent"}"#));
            envelope(&reply.id, &[&result_member(&reply.result)[..], b",", &error].concat())
        }
        Act::ResultNull => envelope(&reply.id, b"\"result\":null"),
        Act::NoJsonrpc => {
            format!(r#"{{"id":{},{}}}"#, text(&reply.id), string(result_member(&reply.result))).into_bytes()
        }
        Act::Jsonrpc1 => string(good()).replacen("\"2.0\"", "\"1.0\"", 1).into_bytes(),
        Act::IdWrong => of_id(&(reply.id.as_u64().unwrap_or(0) + 41).to_string()),
        Act::IdRepeated => [&good()[..], b"\n", &good()].concat(),
        Act::IdString => of_id(&format!("\"{}\"", text(&reply.id).trim_matches('"'))),
        Act::IdNull => of_id("null"),
        Act::IdFloat => of_id(&format!("{}.0", text(&reply.id))),
        Act::IdMissing => format!(r#"{{"jsonrpc":"2.0",{}}}"#, string(result_member(&reply.result))).into_bytes(),
        Act::IdHuge => of_id(&((1_u128 << 64) + u128::from(reply.id.as_u64().unwrap_or(0))).to_string()),
        Act::UnknownNotification => unknown_notification(),
        Act::StrayNotification => {
            br#"{"jsonrpc":"2.0","method":"watch/restarted","params":{"watchId":"no-such-watch","incarnation":"2"}}"#.to_vec()
        }
        Act::RequestToMu => br#"{"jsonrpc":"2.0","id":7,"method":"task.list","params":{}}"#.to_vec(),
        Act::Line1Mib => padded(&good(), LINE_LIMIT),
        Act::Line1MibAnd1 => padded(&good(), LINE_LIMIT + 1),
        Act::SeveralLines => [&good()[..], b"\n", &unknown_notification(), b"\nthis is not JSON"].concat(),
        Act::Nul => spliced(&[0]),
        Act::NulEscaped => spliced(br"\u0000"),
        Act::LoneSurrogate => spliced(br"\ud800"),
        Act::Nesting(depth) => envelope(&reply.id, &nested_to(&reply.result, *depth)),
        Act::ContentLength => {
            let good = good();
            [format!("Content-Length: {}\r\n\r\n", good.len() + 1).as_bytes(), &good].concat()
        }
        Act::LogBanner => b"2026-01-01T00:00:00.000Z INFO box: ready, listening on stdio".to_vec(),
        Act::Line(words) => words.clone().into_bytes(),
        Act::Reply => good(),
        Act::AnswerShutdown => envelope(&Value::Null, &result_member(&Value::Null)),
        Act::PaddedString(size) => spliced(&vec![b'x'; *size as usize]),
        Act::WrongShape => envelope(&reply.id, &result_member(&of_another_method(&reply.result))),
        Act::ExitCode(code) => changed(reply, "exitCode", Value::from(*code)),
        Act::StepOkUnknown => changed(reply, "ok", Value::from("maybe")),
        Act::NoFetchHead => good(),
        Act::AcquireWithoutHandle => {
            let mut result = reply.result.clone();
            result.as_object_mut().map(|object| object.remove("handle"));
            envelope(&reply.id, &result_member(&result))
        }
        Act::LookupPending => envelope(&reply.id, br#""result":{"pending":true}"#),
        Act::LookupNone => envelope(&reply.id, br#""result":{"none":true}"#),
        Act::LookupUnknown => envelope(&reply.id, br#""result":{"unknown":"the backend is busy"}"#),
        Act::FoundOtherHandle => {
            let handle = other_handle(&reply.result["found"]);
            envelope(&reply.id, &result_member(&serde_json::json!({ "found": { "handle": handle } })))
        }
        Act::StatusGone => {
            envelope(&reply.id, br#""result":{"state":"gone","reason":"no machine answers"}"#)
        }
        Act::StatusOtherHandle => {
            let handle = other_handle(&reply.result);
            envelope(&reply.id, &result_member(&serde_json::json!({ "state": "up", "handle": handle })))
        }
        Act::ErrorWithoutData => error(None),
        Act::ErrorWithoutKind => error(Some("{}")),
        Act::ErrorUnknownKind => error(Some(r#"{"kind":"transient"}"#)),
        Act::ErrorUnknownField => error(Some(r#"{"kind":"permanent","surplus":true}"#)),
        Act::ErrorRetryable => error(Some(r#"{"kind":"retryable"}"#)),
        Act::ErrorPermanent => error(Some(r#"{"kind":"permanent"}"#)),
        Act::ErrorHuman => error(Some(r#"{"kind":"human","remedy":"log in to the backend"}"#)),
        Act::ErrorHumanWithoutRemedy => error(Some(r#"{"kind":"human"}"#)),
        Act::ErrorUnknownOutcome => error(Some(r#"{"kind":"unknown-outcome"}"#)),
        Act::LeakEnvReply(name) => {
            let value = secret(name).unwrap_or_default();
            let quoted = text(&Value::from(String::from_utf8_lossy(&value)));
            spliced(&quoted.as_bytes()[1..quoted.len() - 1])
        }
        Act::EndlessLine(n) => return Some(vec![Piece::Fill(b'a', *n)]),
        Act::Unterminated => return Some(vec![Piece::Out(good())]),
        Act::UnterminatedExit => return Some(vec![Piece::Out(good()), Piece::Exit]),
        Act::UnterminatedClose => return Some(vec![Piece::Out(good()), Piece::CloseStdout]),
        Act::ByteByByte => return Some(one_by_one(&reply.line(), None)),
        Act::DribbleMs(gap) => return Some(one_by_one(&reply.line(), Some(*gap))),
        Act::SplitChar => return Some(split_in_char(&ended(spliced("é".as_bytes())))),
        Act::HoldUntilEof => return Some(vec![Piece::Hold(reply.line())]),
        Act::NoReply => return Some(Vec::new()),
        Act::HalfReply => {
            let mut half = reply.line();
            half.truncate(half.len() / 2);
            return Some(vec![Piece::Out(half)]);
        }
        _ => return None,
    };
    Some(vec![Piece::Out(ended(line))])
}

fn ended(mut line: Vec<u8>) -> Vec<u8> {
    line.push(b'\n');
    line
}

fn text(value: &Value) -> String {
    value.to_string()
}

fn string(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).expect("sound replies are UTF-8")
}

fn envelope(id: &Value, members: &[u8]) -> Vec<u8> {
    [format!(r#"{{"jsonrpc":"2.0","id":{},"#, text(id)).as_bytes(), members, b"}"].concat()
}

fn result_member(result: &Value) -> Vec<u8> {
    format!(r#""result":{}"#, text(result)).into_bytes()
}

fn error_member(message: &str, data: Option<&str>) -> Vec<u8> {
    let data = data.map(|data| format!(r#","data":{data}"#)).unwrap_or_default();
    format!(r#""error":{{"code":-32000,"message":{}{data}}}"#, text(&Value::from(message))).into_bytes()
}

fn unknown_notification() -> Vec<u8> {
    br#"{"jsonrpc":"2.0","method":"log/line","params":{"text":"ready"}}"#.to_vec()
}

fn pretty(line: &[u8]) -> Vec<u8> {
    let value: Value = serde_json::from_slice(line).expect("sound replies are JSON");
    serde_json::to_vec_pretty(&value).expect("a value is writable")
}

/// Spaces behind the opening brace bring the line to `size` bytes, LF not counted.
fn padded(line: &[u8], size: usize) -> Vec<u8> {
    let spaces = vec![b' '; size.saturating_sub(line.len())];
    [&line[..1], &spaces, &line[1..]].concat()
}

/// Stands where raw bytes are to be put; no declaration holds it.
const MARK: &str = "@@here@@";

/// The text of `value` with `raw` at the end of its first string; a value without strings becomes one.
fn splice(value: &Value, raw: &[u8]) -> Vec<u8> {
    let mut value = value.clone();
    match first_string(&mut value) {
        Some(first) => first.push_str(MARK),
        None => value = Value::from(MARK),
    }
    let text = text(&value);
    let (before, after) = text.split_once(MARK).expect("the mark was just set");
    [before.as_bytes(), raw, after.as_bytes()].concat()
}

fn first_string(value: &mut Value) -> Option<&mut String> {
    match value {
        Value::String(text) => Some(text),
        Value::Array(items) => items.iter_mut().find_map(first_string),
        Value::Object(members) => members.values_mut().find_map(first_string),
        _ => None,
    }
}

/// The first object with members inside `value`, itself not counted.
fn inner_object(value: &mut Value) -> Option<&mut Map<String, Value>> {
    fn here_or_inside(value: &mut Value) -> Option<&mut Map<String, Value>> {
        if value.as_object().is_some_and(|members| !members.is_empty()) {
            value.as_object_mut()
        } else {
            inner_object(value)
        }
    }
    match value {
        Value::Array(items) => items.iter_mut().find_map(here_or_inside),
        Value::Object(members) => members.values_mut().find_map(here_or_inside),
        _ => None,
    }
}

/// The reply with this member of its result set, or of the first object inside it when the result is none.
fn changed(reply: &Reply, member: &str, value: Value) -> Vec<u8> {
    let mut result = reply.result.clone();
    let object = if result.is_object() { result.as_object_mut() } else { inner_object(&mut result) };
    object.map(|object| object.insert(member.to_owned(), value));
    envelope(&reply.id, &result_member(&result))
}

/// A handle that is not the one in this object.
fn other_handle(object: &Value) -> String {
    format!("{}-other", object["handle"].as_str().unwrap_or("vm"))
}

/// A result that is sound for another method: steps for a call that is answered by a run, a run for any other.
fn of_another_method(result: &Value) -> Value {
    match result.get("exitCode") {
        Some(_) => serde_json::json!([{ "step": "reach", "ok": true, "detail": "" }]),
        None => serde_json::json!({ "exitCode": 0, "stdout": "", "stderr": "", "partial": false }),
    }
}

/// An unknown member more, in the result or in an object inside it; each stands for the other where there is only one.
fn with_surplus(result: &Value, inside: bool) -> Value {
    let mut result = result.clone();
    let surplus = || ("surplus".to_owned(), Value::Bool(true));
    if (inside || result.is_array())
        && let Some(object) = inner_object(&mut result)
    {
        object.extend([surplus()]);
    } else if let Value::Object(object) = &mut result {
        object.extend([surplus()]);
    } else {
        result = Value::Object([surplus()].into_iter().collect());
    }
    result
}

/// The member `result`, in which the first member of an inner object is there twice: once more as `key` spells it. A
/// result without one is such an object itself.
fn twice_nested(result: &Value, key: fn(&str) -> String) -> Vec<u8> {
    let mut result = result.clone();
    if result.as_object().is_none_or(|members| members.is_empty()) && inner_object(&mut result).is_none() {
        result = serde_json::json!({ "inner": { "twice": true } });
    }
    let object = match inner_object(&mut result) {
        Some(_) => inner_object(&mut result),
        None => result.as_object_mut(),
    };
    let object = object.expect("there is one now");
    let (name, value) =
        object.iter().next().map(|(name, value)| (name.clone(), value.clone())).expect("it has members");
    object.insert(MARK.to_owned(), value);
    let text = text(&result).replacen(&format!("\"{MARK}\""), &key(&name), 1);
    format!(r#""result":{text}"#).into_bytes()
}

/// The key with its first character spelled as an escape.
fn escaped(key: &str) -> String {
    let quoted = text(&Value::from(key));
    match key.chars().next() {
        Some(first) if first.is_ascii_alphanumeric() => {
            format!("\"\\u{:04x}{}", u32::from(first), &quoted[2..])
        }
        _ => quoted,
    }
}

fn nested_to(result: &Value, depth: u64) -> Vec<u8> {
    let around = if inner_object(&mut result.clone()).is_some() && result.is_array() { 3 } else { 2 };
    let arrays = usize::try_from(depth).unwrap_or(usize::MAX).saturating_sub(around);
    let text = text(&with_surplus(result, false));
    let deep = ["\"surplus\":", &"[".repeat(arrays), &"]".repeat(arrays)].concat();
    format!(r#""result":{}"#, text.replacen("\"surplus\":true", &deep, 1)).into_bytes()
}

fn one_by_one(line: &[u8], gap: Option<u64>) -> Vec<Piece> {
    let mut pieces = Vec::new();
    for byte in line {
        if let Some(gap) = gap
            && !pieces.is_empty()
        {
            pieces.push(Piece::Wait(gap));
        }
        pieces.push(Piece::Out(vec![*byte]));
    }
    pieces
}

fn split_in_char(line: &[u8]) -> Vec<Piece> {
    let inside = 1 + line.iter().position(|byte| *byte >= 0x80).expect("an é was put in");
    vec![Piece::Out(line[..inside].to_vec()), Piece::Out(line[inside..].to_vec())]
}
