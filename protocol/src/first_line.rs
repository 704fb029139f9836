//! What a plugin's wrong first line probably was, and what its author should do about it.

use std::fmt;

use crate::invalid::{InvalidMessage, Why};

/// A mistake that plugins commonly make with their first line. Its text is advice and holds nothing of the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Hint {
    /// A banner or log line for people.
    LogText,
    /// A log line as a JSON object.
    LogObject,
    /// A blank line before the answer.
    Blank,
    /// A UTF-8 byte order mark.
    ByteOrderMark,
    /// UTF-16 or UTF-32, with or without a byte order mark.
    WideCharacters,
    /// Header lines before each message, as language servers write them.
    HeaderFraming,
    /// A JSON-RPC batch.
    Batch,
    /// One object spread over several lines.
    SeveralLines,
    /// mu's own request sent back.
    Echo,
}

impl fmt::Display for Hint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Hint::LogText => "stdout is for the protocol only: write log lines and banners to stderr",
            Hint::LogObject => "stdout is for the protocol only: write log lines to stderr, JSON ones too",
            Hint::Blank => "stdout is for the protocol only: write nothing between messages, no blank lines either",
            Hint::ByteOrderMark => "write UTF-8 without a byte order mark",
            Hint::WideCharacters => "write UTF-8: this looks like UTF-16 or UTF-32",
            Hint::HeaderFraming => {
                "messages are framed by line feeds: write one object on each line, without Content-Length headers"
            }
            Hint::Batch => "write one object on each line, not a batch",
            Hint::SeveralLines => "write each object on one line, not pretty-printed",
            Hint::Echo => "this is mu's own request: stdout must not repeat stdin; answer it with a result",
        })
    }
}

/// Recognises the mistake behind an invalid first line.
///
/// `first_bytes` are the first bytes of the plugin's stdout as far as they are at hand; a few dozen are enough, and
/// later lines among them do no harm. `why` is how the line was refused. `None` if nothing is recognised.
pub fn diagnose(first_bytes: &[u8], why: &InvalidMessage) -> Option<Hint> {
    if is_wide(first_bytes) {
        return Some(Hint::WideCharacters);
    }
    match why.why {
        Why::ByteOrderMark => Some(Hint::ByteOrderMark),
        Why::Batch => Some(Hint::Batch),
        Why::Blank => Some(Hint::Blank),
        Why::Unfinished => Some(Hint::SeveralLines),
        Why::MissingVersion => (!is_reply(first_bytes)).then_some(Hint::LogObject),
        Why::Request => is_initialize(first_bytes).then_some(Hint::Echo),
        Why::NotAnObject | Why::NotUtf8 | Why::TooLong => text(first_bytes),
        _ => None,
    }
}

/// What a line is that does not start like an object.
fn text(first_bytes: &[u8]) -> Option<Hint> {
    let line = first_bytes.trim_ascii_start();
    if is_header(line) {
        return Some(Hint::HeaderFraming);
    }
    line.first().is_some_and(|first| *first != b'{').then_some(Hint::LogText)
}

/// A header field as HTTP and language servers write it.
fn is_header(line: &[u8]) -> bool {
    [&b"content-length:"[..], b"content-type:"]
        .iter()
        .any(|name| line.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name)))
}

/// UTF-16 and UTF-32: their byte order marks, or a zero in every other byte as ASCII characters have it there.
fn is_wide(bytes: &[u8]) -> bool {
    matches!(bytes, [0xff, 0xfe, ..] | [0xfe, 0xff, ..] | [0, _, 0, _, ..] | [_, 0, _, 0, ..])
}

/// A reply of JSON-RPC 1.0, which has no version: its author needs no advice about logs.
fn is_reply(bytes: &[u8]) -> bool {
    let end = memchr::memchr(b'\n', bytes).unwrap_or(bytes.len());
    memchr::memmem::find(&bytes[..end], b"\"result\"").is_some()
}

fn is_initialize(bytes: &[u8]) -> bool {
    memchr::memmem::find(bytes, b"\"initialize\"").is_some()
}
