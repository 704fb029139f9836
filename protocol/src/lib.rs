//! The plugin protocol: bytes to typed messages and back, the published schema, the declaration and its load rules.
//!
//! What a plugin wrote comes in at the top, and each step proves more of it:
//!
//! - [`mod@line`]: a stream of bytes cut into bounded lines
//! - [`strict`]: a line checked byte by byte to be one strict JSON object
//! - [`envelope`]: that object as a reply or a notification
//! - [`declaration`]: the answer to `initialize`, typed; [`load`]: whether mu takes it
//! - [`objects`] and [`messages`]: every other result, error and notification, typed
//!
//! What fails on the way is named by [`invalid`], one kind for each way for a line to be wrong; [`first_line`] tells what
//! a wrong first line probably was. The other way go the lines of [`outgoing`]. [`schema`] is the published text of it all.

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
