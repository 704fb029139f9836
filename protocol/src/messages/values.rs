//! Strings and numbers with a rule of their own. A value that breaks its rule cannot be built or parsed.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A string that breaks the rule of its type. Says what the rule is, not what the string was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be {0}")]
pub struct BadText(&'static str);

macro_rules! text {
    ($($(#[$doc:meta])* $name:ident: $rule:path, $expected:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            #[doc = concat!("Must be ", $expected, ".")]
            pub fn new(text: impl Into<String>) -> Result<Self, BadText> {
                let text = text.into();
                if $rule(&text) { Ok(Self(text)) } else { Err(BadText($expected)) }
            }

            /// The string itself.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = BadText;
            fn try_from(text: String) -> Result<Self, BadText> {
                Self::new(text)
            }
        }

        impl From<$name> for String {
            fn from(text: $name) -> String {
                text.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    )*};
}

text! {
    /// The name of a plugin, host, workstream, agent, harness, job kind or channel.
    Name: is_name, "a lower-case letter and at most 31 of a-z, 0-9, _ and -";
    /// An agent's place in a map of readings: its workstream and its name (CHAN-10).
    AgentPath: is_agent_path, "a workstream and a name with a slash between them";
    /// The backend configuration that a plugin addresses (HSK-04, A-19).
    Instance: is_label, "1 to 128 characters, none of them a control character";
    /// A version to show, of mu or of a plugin.
    Label: is_label, "1 to 128 characters, none of them a control character";
    /// The digest of a schema file (HSK-07).
    SchemaDigest: is_digest, "sha256: and 64 lower-case hex digits";
    /// A whole commit id (LINK-06).
    CommitId: is_commit_id, "40 or 64 lower-case hex digits";
    /// A path on mu's machine.
    AbsolutePath: is_absolute, "an absolute path";
    /// A path on the host; `.` is where a login starts (LINK-01).
    RemotePath: is_filled, "not empty";
    /// What a person reads: why something is as it is, or what to do about it.
    Reason: is_filled, "not empty";
    /// A string with no further rule: a command line, a step's name, keys to press.
    Word: is_filled, "not empty";
    /// mu's name for one effect.
    Key: is_filled, "not empty";
    /// A plugin's name for a host or a job.
    Handle: is_filled, "not empty";
    /// mu's name for one delivery.
    MsgId: is_filled, "not empty";
    /// A plugin's name for a watch, within one process of the plugin.
    WatchId: is_filled, "not empty";
    /// A plugin's name for one session of a channel. Not an agent's incarnation, which is a number of mu's.
    Incarnation: is_filled, "not empty";
}

impl AgentPath {
    /// The path of an agent.
    pub fn of(workstream: &Name, name: &Name) -> Self {
        AgentPath(format!("{workstream}/{name}"))
    }
}

fn is_filled(text: &str) -> bool {
    !text.is_empty()
}

fn is_absolute(text: &str) -> bool {
    text.starts_with('/')
}

fn is_label(text: &str) -> bool {
    (1..=128).contains(&text.chars().count()) && !text.chars().any(char::is_control)
}

fn is_name(text: &str) -> bool {
    let tail = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-');
    match text.as_bytes() {
        [b'a'..=b'z', rest @ ..] => rest.len() <= 31 && rest.iter().copied().all(tail),
        _ => false,
    }
}

fn is_agent_path(text: &str) -> bool {
    text.split_once('/').is_some_and(|(workstream, name)| is_name(workstream) && is_name(name))
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

fn is_digest(text: &str) -> bool {
    text.strip_prefix("sha256:").is_some_and(|hex| hex.len() == 64 && is_hex(hex))
}

fn is_commit_id(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && is_hex(text)
}

/// The largest integer on the wire, 2^53 - 1: every JSON reader holds it exactly.
pub const MAX_INTEGER: u64 = (1 << 53) - 1;

/// A number outside the range of its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be {0} to {1}")]
pub struct BadNumber(u64, u64);

macro_rules! number {
    ($($(#[$doc:meta])* $name:ident($int:ty as $wire:literal): $min:literal ..= $max:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = $wire, into = $wire)]
        pub struct $name($int);

        impl $name {
            /// The largest there is.
            pub const MAX: Self = Self($max);

            #[doc = concat!("At least ", $min, " and at most [`Self::MAX`].")]
            pub fn new(number: $int) -> Result<Self, BadNumber> {
                let range = $min..=$max;
                if range.contains(&number) { Ok(Self(number)) } else { Err(BadNumber($min, $max.into())) }
            }

            /// The number itself.
            pub fn value(self) -> $int {
                self.0
            }
        }

        impl TryFrom<$int> for $name {
            type Error = BadNumber;
            fn try_from(number: $int) -> Result<Self, BadNumber> {
                Self::new(number)
            }
        }

        impl From<$name> for $int {
            fn from(number: $name) -> $int {
                number.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    )*};
}

number! {
    /// The id of a request, new in each one (CALL-04).
    RequestId(u64 as "u64"): 1 ..= MAX_INTEGER;
    /// Milliseconds since 1970-01-01 UTC.
    EpochMillis(u64 as "u64"): 0 ..= MAX_INTEGER;
    /// A span in milliseconds.
    Millis(u64 as "u64"): 0 ..= MAX_INTEGER;
    /// How many: turns, jobs, bytes, lives.
    Count(u64 as "u64"): 0 ..= MAX_INTEGER;
    /// The number of a signal.
    SignalNumber(u8 as "u8"): 1 ..= 64u8;
}

impl Count {
    /// None.
    pub const ZERO: Count = Count(0);
}
