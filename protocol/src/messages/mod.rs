//! The typed messages, one file per noun of the protocol. What cannot be said on the wire cannot be built here.
//!
//! - [`method`]: the calls by name, their parameters and results, and parsing a result by the method asked for
//! - [`lifecycle`]: `initialize`, `$/cancel`, `shutdown`, which are no calls
//! - [`target`], [`host`], [`link`], [`job`], [`channel`], [`watch`], [`error`]: the shapes
//! - [`lookup`]: the answer to "what became of this key", the same for hosts and jobs
//! - [`checks`]: phases and steps of `host check`
//! - [`dated`]: parameters with their deadline, which is new in each send of the same parameters
//! - [`values`]: strings and numbers with a rule of their own
//!
//! In: the text of `params`, `result` or `error`, which has passed the strict pass. Out: plain structs, and back.

pub mod channel;
pub mod checks;
pub mod dated;
pub mod error;
pub mod host;
pub mod job;
pub mod lifecycle;
pub mod link;
pub mod lookup;
pub mod method;
pub mod target;
pub mod values;
pub mod watch;
