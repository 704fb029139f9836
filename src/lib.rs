//! The real machine: tokio and Linux behind [`mu_core::os::Os`].
//!
//! Nothing here decides anything. Each file carries one part of the trait to the kernel:
//!
//! | file | what it holds |
//! | --- | --- |
//! | `os.rs` | [`RealOs`]: the handle, made once per process, and the list of groups it has started |
//! | `enter.rs` | [`enter()`]: runtime and handle around one run, nothing left behind by a panic |
//! | `startup.rs` | what a process inherits and must not pass on: descriptors, signal dispositions, the mask |
//! | `child.rs` | [`RealChild`]: start, pipes, the leader's exit without reaping, kill, reap |
//! | `group.rs` | whether a process group still has a living member |
//! | `identity.rs` | which process a pid means: whether it lives, when it was started, in which boot |
//! | `signals.rs` | SIGINT, SIGTERM and SIGHUP in order of arrival, and dying of one |
//! | `output.rs` | mu's own standard output and error, without a buffer |
//! | `clock.rs` | the two clocks and the timer |
//! | `files.rs` | `stat`, directories, small files, the database file |
//! | `watched.rs` | a descriptor that is tried first and waited for second; everything above that waits uses it |
//!
//! # Nothing is pending that the kernel could answer
//!
//! tokio learns of readiness only when its driver runs, which is when the task has nothing to do. After a call that
//! took seconds (a busy disk), a timer is due while tokio does not yet know of the bytes that lie in a pipe. Every
//! leaf therefore asks the kernel itself and goes to sleep only after that was answered with "not yet": a deadline
//! never beats bytes that were there before it.
//!
//! # Requirements
//!
//! Linux 5.4 or newer with `/proc` mounted for mu's own process namespace, and a current-thread tokio runtime with IO
//! and time enabled.

mod child;
mod clock;
mod enter;
mod files;
mod group;
mod identity;
mod os;
mod output;
mod signals;
mod startup;
mod watched;

pub use child::RealChild;
pub use clock::RealSleep;
pub use enter::enter;
pub use os::RealOs;
