//! Benches: `cargo bench -p mu-benches`. Each file of `benches/` compares one part of mu with its peers in one run.
//!
//! - [`clock`]: what is counted: time on a processor, and medians of rounds in which all take turns
//! - [`executables`]: the programs that are measured, in the release profile
//! - [`child`]: a plugin that does nothing, as the other end of a pipe
//! - [`rows`]: many rows of mu's tables at once
//! - [`stage`]: a directory with a database and such a plugin, and `mu` runs in it

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "stopwatches and real processes; nothing of mu's is decided here"
)]

pub mod child;
pub mod clock;
pub mod executables;
pub mod rows;
pub mod stage;
