//! A simulated Unix machine that runs mu itself against fake plugins.

pub mod fake;
pub mod scenario;
