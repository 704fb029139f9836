//! A Unix machine that is simulated, with mu itself on it and fake plugins that misbehave as a scenario file or a seed has
//! it, in virtual time; and the oracles, which judge each run.
//!
//! From the bottom up:
//!
//! - [`executor`], [`streams`]: tasks, timers and virtual time; named random streams
//! - [`kernel`]: processes, groups, signals, pipes, clocks; [`disk`]: its filesystem and SQLite on it
//! - [`sim_os`]: `mu_core::os::Os` on that machine
//! - [`fake`]: the fake plugin and the catalogue of faults; [`programs`]: what can be executed there
//! - [`backend`]: the machines behind the plugins; [`net`]: the network to them
//! - [`trace`]: what happened; [`oracle`]: what must hold in every run
//! - [`scenario`]: the file format; [`world`]: where one takes place, simulated or real; [`play`]: the two joined
//! - [`explore`]: scenarios drawn from a seed
//! - [`cli`]: the command line, `cargo sim`

pub mod backend;
pub mod cli;
pub mod disk;
pub mod executor;
pub mod explore;
pub mod fake;
pub mod kernel;
pub mod net;
pub mod oracle;
pub mod play;
pub mod programs;
pub mod scenario;
pub mod sim_os;
pub mod streams;
pub mod trace;
pub mod world;
