//! A simulated Unix machine that runs mu itself against fake plugins.
pub mod disk;
pub mod executor;
pub mod kernel;
pub mod sim_os;
pub mod streams;
pub mod trace;
