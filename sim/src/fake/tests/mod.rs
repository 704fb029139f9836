//! The fake plugin against an operating system in memory, with a clock that jumps.

mod bytes;
mod declare;
mod faults;
mod host;
mod life;
mod link;
mod log;
