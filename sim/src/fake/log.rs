//! What the real executable writes down beside itself, for those who judge a run on real processes afterwards.

use serde::{Deserialize, Serialize};

use super::sys::Note;

/// One line of the log file, `<argv0>.log`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogLine {
    /// The machine's monotonic clock in milliseconds; the same for all processes.
    pub ms: u64,
    /// The process that writes.
    pub pid: i32,
    /// Which start of the plugin it is.
    pub start: u32,
    /// What happened.
    pub event: Event,
}

/// What can happen to a fake plugin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Event {
    /// It started.
    Started {
        /// The arguments, `argv[0]` not among them.
        args: Vec<String>,
        /// The names of its environment variables, never their values (SEC-03).
        env: Vec<String>,
    },
    /// A line on stdin.
    Line(String),
    /// A line on stdin that is not UTF-8, in hexadecimal digits.
    Bytes(String),
    /// stdin ended, with this many bytes of an unfinished line.
    Eof(usize),
    /// A fault of the plan began.
    Fault(String),
    /// A signal arrived, and will end the process.
    Signal(String),
    /// It left a child with this process id.
    Child(i32),
    /// It is about to exit with this status.
    Exit(i32),
}

impl From<Note<'_>> for Event {
    fn from(note: Note<'_>) -> Event {
        match note {
            Note::Line(line) => match std::str::from_utf8(line) {
                Ok(text) => Event::Line(text.to_owned()),
                Err(_) => Event::Bytes(line.iter().map(|byte| format!("{byte:02x}")).collect()),
            },
            Note::Eof { unfinished } => Event::Eof(unfinished),
            Note::Fault(name) => Event::Fault(name.to_owned()),
        }
    }
}

impl LogLine {
    /// As it stands in the file, with its LF.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut line = serde_json::to_vec(self).expect("a log line has string keys alone");
        line.push(b'\n');
        line
    }

    /// A whole log file. A line that a killed process left unfinished at the end is skipped.
    pub fn parse_all(file: &[u8]) -> Result<Vec<LogLine>, serde_json::Error> {
        let whole = file.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        file[..whole]
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty())
            .map(serde_json::from_slice)
            .collect()
    }
}
