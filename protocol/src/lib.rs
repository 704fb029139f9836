//! The plugin protocol: bytes to typed messages and back, the published schema, the declaration and its load rules.
//!
//! What a plugin wrote comes in at the top, and each step proves more of it:
//!
//! - [`mod@line`]: a stream of bytes cut into bounded lines
//! - [`strict`]: a line checked byte by byte to be one strict JSON object
//! - [`envelope`]: that object as a reply or a notification
//! - [`invalid`]: each way for a line to be wrong; [`first_line`]: what a wrong first line probably was
//! - [`declaration`]: the answer to `initialize`, typed; [`load`]: whether mu takes it
//! - [`messages`]: params and results of every method, typed, read by [`objects`]
//!
//! The other way:
//!
//! - [`outgoing`]: the lines that mu writes
//!
//! [`schema`] is the published schema, which says the same for every other program.

pub mod declaration;
pub mod envelope;
pub mod first_line;
pub mod invalid;
pub mod line;
pub mod load;
pub mod messages;
pub mod objects;
pub mod outgoing;
pub mod schema;
pub mod strict;

/// The largest integer of the protocol, 2^53-1: every JSON implementation holds it exactly.
pub const MAX_INTEGER: u64 = (1 << 53) - 1;
