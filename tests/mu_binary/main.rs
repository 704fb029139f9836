//! The real `mu` with real plugin processes: what only a whole process can show.
//!
//! `memory` floods and peak memory · `ends` how mu ends and what becomes of its plugins · `starts` what mu is started
//! with · `terminal` mu on a terminal · `sessions` many sessions of one process · `answers` refusals on the command line ·
//! `stage` a directory of its own for each test, with everything in it.
//!
//! Nothing here waits by the clock alone: what is waited for is looked at again and again, until a deadline.

// Real processes are what is tested here.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

mod answers;
mod ends;
mod memory;
mod sessions;
mod stage;
mod starts;
#[path = "../support/mod.rs"]
mod support;
mod terminal;
