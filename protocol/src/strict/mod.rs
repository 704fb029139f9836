//! The strict pass: every line is checked byte by byte before anything is deserialised from it.
//!
//! In come the bytes of one line, out goes the same line as text that is exactly one JSON object (RFC 8259): UTF-8, no
//! member name twice in an object at any depth, at most [`MAX_DEPTH`] levels, no half surrogate pair, nothing after it.
//! serde_json guarantees none of this for types that skip or collapse parts of a value, so none of it is left to it.
//!
//! - `scan.rs`: the grammar, one pass, linear in the length of the line.
//! - `checked.rs`: a JSON value that has passed
//! - `read.rs`: such a value as serde sees it
//! - `plain.rs`: the quick part of a string
//! - `text.rs`: a JSON string as it stands in the line, compared by what it means.
//! - `names.rs`: the member names of one object, to find one that comes twice.

mod checked;
mod names;
mod plain;
mod read;
mod scan;
mod text;

pub use checked::Checked;
pub(crate) use read::Reader;
pub(crate) use scan::{Member, object};

use crate::invalid::InvalidMessage;

/// How deep objects and arrays may be nested; the outermost object is level 1.
pub const MAX_DEPTH: usize = 64;

/// Checks that `line`, without its line feed, is one strict JSON object.
///
/// White space around the object is legal, a trailing carriage return included, and not part of what is returned.
pub fn check(line: &[u8]) -> Result<Checked<'_>, InvalidMessage> {
    object(line, |_| {})
}
