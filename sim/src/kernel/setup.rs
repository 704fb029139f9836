//! What a machine is built with, and how a person starts a program on it.

use std::ffi::OsString;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use mu_core::os::{Exec, Pid};

/// How far a run may go before it counts as endless.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Polls, system calls and disk operations together. Every event of a program comes from one of them.
    pub steps: u64,
    /// Virtual time since the start of the run.
    pub virtual_time: Duration,
}

impl Default for Budget {
    /// Ten million steps, thirty days.
    fn default() -> Budget {
        Budget { steps: 10_000_000, virtual_time: Duration::from_secs(30 * 24 * 3600) }
    }
}

/// What a machine is built with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Decides the order between processes and everything else that is drawn.
    pub seed: u64,
    /// Keep the events; their hash chain is made in any case.
    pub recording: bool,
    /// When a run counts as endless.
    pub budget: Budget,
    /// One read, or write of more than [`super::PIPE_ATOMIC`] bytes, in so many takes less than it could.
    pub short_io: Option<u64>,
    /// Use the lowest free pid again as soon as possible, instead of never.
    pub recycle_pids: bool,
}

impl Options {
    /// Recorded, within the default budget, no short IO, no pid used twice.
    pub fn new(seed: u64) -> Options {
        Options { seed, recording: true, budget: Budget::default(), short_io: None, recycle_pids: false }
    }
}

/// What a program started from outside finds on its standard input.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Input {
    /// The end at once.
    #[default]
    Null,
    /// These bytes and then the end.
    Bytes(Vec<u8>),
}

/// Where an output of a program started from outside goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Output {
    /// Collected: [`super::Machine::stdout`], [`super::Machine::stderr`].
    #[default]
    Captured,
    /// Collected until this many bytes have come; then the reader is gone and a write fails with `EPIPE`.
    ClosedAfter(usize),
    /// A pipe of the usual capacity that nobody ever reads.
    Unread,
    /// `/dev/null`.
    Null,
}

/// A call of mu's on its operating system, before it takes place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OsCall {
    /// The process.
    pub pid: Pid,
    /// Its number in this process, from 1.
    pub nth: u64,
    /// The name of the method.
    pub name: &'static str,
}

/// What becomes of such a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OsCallVerdict {
    /// It takes place.
    Go,
    /// The process dies of SIGKILL instead.
    Kill,
    /// It panics instead.
    Panic,
}

/// Decides about each of mu's calls.
pub type OsCallHook = Rc<dyn Fn(OsCall) -> OsCallVerdict>;

/// How a person starts a program: from a shell, in a group of its own.
#[derive(Clone)]
pub struct Command {
    /// Program and arguments, variables.
    pub exec: Exec,
    /// The working directory.
    pub cwd: PathBuf,
    /// The user.
    pub uid: u32,
    /// Standard input.
    pub stdin: Input,
    /// Standard output.
    pub stdout: Output,
    /// Standard error.
    pub stderr: Output,
    /// Whether the program takes its standard output for a terminal.
    pub stdout_is_terminal: bool,
    /// Decides about each call that a `SimOs` of this process gets.
    pub on_os_call: Option<OsCallHook>,
}

impl Command {
    /// These arguments, no variables, working directory `/`, user 1000, no input, outputs captured.
    pub fn new<A: Into<OsString>>(argv: impl IntoIterator<Item = A>) -> Command {
        Command {
            exec: Exec { argv: argv.into_iter().map(Into::into).collect(), env: Vec::new() },
            cwd: "/".into(),
            uid: 1000,
            stdin: Input::Null,
            stdout: Output::Captured,
            stderr: Output::Captured,
            stdout_is_terminal: false,
            on_os_call: None,
        }
    }
}
