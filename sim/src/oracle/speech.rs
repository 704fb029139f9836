//! What a plugin wrote to its stdout, as far as the oracles look at it: replies by their id, and what no plugin may say.
//! Each with the moment at which mu had read the whole of it.

use serde_json::{Map, Value};

use super::{Ns, strict};

/// The longest line, without its line feed (TRN-04).
const MAX_LINE: u64 = 1 << 20;

/// One line.
#[derive(Clone, Debug)]
pub struct Said {
    /// What it is.
    pub what: Saying,
    /// What a clean reply says.
    pub outcome: Option<Outcome>,
    /// Place in the trace and time at which mu had read it whole.
    pub read: Option<(usize, Ns)>,
    /// Bytes on stdout up to its end.
    end: u64,
}

/// What a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Saying {
    /// It carries this id and no method. `clean`: a well-formed envelope of JSON-RPC too; whether its result has the shape
    /// that its request asks for is not looked at.
    Reply {
        /// The id.
        id: u64,
        /// See above.
        clean: bool,
    },
    /// No message that a plugin may send, whatever was asked.
    Garbage,
    /// Anything else.
    Other,
}

/// What a reply says.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// The result.
    Result(Value),
    /// The error.
    Error(Value),
}

impl Outcome {
    /// The kind of an error.
    pub fn kind(&self) -> Option<&str> {
        match self {
            Outcome::Result(_) => None,
            Outcome::Error(error) => error["data"]["kind"].as_str(),
        }
    }
}

/// The stream, cut into lines. Linear in its length; holds one line.
#[derive(Clone, Debug, Default)]
pub struct Speech {
    said: Vec<Said>,
    /// How many of `said` mu has read.
    heard: usize,
    written: u64,
    line: Vec<u8>,
    too_long: bool,
    replaces: bool,
}

impl Speech {
    /// All lines, in order.
    pub fn said(&self) -> &[Said] {
        &self.said
    }

    /// Whether the plugin itself wrote a replacement character.
    pub fn holds_replacement(&self) -> bool {
        self.replaces
    }

    pub(super) fn write(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let end = memchr::memchr(b'\n', bytes);
            let piece = &bytes[..end.unwrap_or(bytes.len())];
            let fits = MAX_LINE - self.line.len() as u64;
            if self.too_long {
                self.written += piece.len() as u64;
            } else if piece.len() as u64 > fits {
                self.too_long = true;
                self.line = Vec::new();
                let end = self.written + fits + 1;
                self.said.push(Said { what: Saying::Garbage, outcome: None, read: None, end });
                self.written += piece.len() as u64;
            } else {
                self.line.extend_from_slice(piece);
                self.written += piece.len() as u64;
            }
            let Some(end) = end else { return };
            self.written += 1;
            bytes = &bytes[end + 1..];
            if !std::mem::take(&mut self.too_long) {
                self.judge();
            }
            self.line.clear();
        }
    }

    /// mu has read so many bytes in all.
    pub(super) fn read(&mut self, bytes: u64, place: usize, at: Ns) {
        while let Some(said) = self.said.get_mut(self.heard).filter(|said| said.end <= bytes) {
            said.read = Some((place, at));
            self.heard += 1;
        }
    }

    fn judge(&mut self) {
        let line = &self.line;
        self.replaces |= [&b"\xef\xbf\xbd"[..], b"\\ufffd", b"\\uFFFD"]
            .iter()
            .any(|form| memchr::memmem::find(line, form).is_some());
        let members = strict::object(line);
        let what = members.as_ref().map_or(Saying::Garbage, judge);
        let outcome = members.filter(|_| matches!(what, Saying::Reply { clean: true, .. })).and_then(outcome);
        self.said.push(Said { what, outcome, read: None, end: self.written });
    }
}

fn judge(members: &Map<String, Value>) -> Saying {
    let id = members.get("id").and_then(Value::as_u64);
    match (members.get("method").and_then(Value::as_str), id) {
        (None, Some(id)) => Saying::Reply { id, clean: is_clean(members) },
        (Some("watch/settled" | "watch/restarted"), None) => Saying::Other,
        _ => Saying::Garbage,
    }
}

fn is_clean(members: &Map<String, Value>) -> bool {
    let has = |name| members.contains_key(name);
    let outcome = match (has("result"), members.get("error")) {
        (true, None) => true,
        (false, Some(error)) => error.is_object(),
        _ => false,
    };
    outcome && members.len() == 3 && members.get("jsonrpc") == Some(&Value::from("2.0"))
}

fn outcome(mut members: Map<String, Value>) -> Option<Outcome> {
    let result = members.remove("result").map(Outcome::Result);
    result.or_else(|| members.remove("error").map(Outcome::Error))
}
