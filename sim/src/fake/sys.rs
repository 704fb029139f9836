//! What a plugin program needs from its operating system, as one trait: the simulated machine and real Linux implement
//! it, and `behaviour` runs unchanged on both.

use std::future::Future;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// What a plugin waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Read {
    /// This many bytes of standard input, at least one.
    Data(usize),
    /// The write end is closed and the pipe is empty.
    Eof,
    /// The given time came first.
    Timeout,
    /// Something came over the connection to the backend that has this number.
    Backend(u32, Heard),
}

/// What came over a connection to the backend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard {
    /// A line, without its LF.
    Line(Vec<u8>),
    /// The connection is no more, or never came to stand; and why.
    Lost(String),
}

/// One of a plugin's standard streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fd {
    /// Descriptor 0.
    Stdin,
    /// Descriptor 1.
    Stdout,
    /// Descriptor 2.
    Stderr,
}

impl Fd {
    /// The descriptor's number.
    pub fn number(self) -> i32 {
        self as i32
    }
}

/// A signal by the name that `kill -l` gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Sig {
    /// Hang-up.
    Hup,
    /// Interrupt.
    Int,
    /// Abort.
    Abrt,
    /// Kill: cannot be ignored.
    Kill,
    /// Segmentation fault.
    Segv,
    /// Broken pipe.
    Pipe,
    /// Terminate.
    Term,
    /// Continue a stopped process.
    Cont,
    /// Stop: cannot be ignored.
    Stop,
}

impl Sig {
    /// Every signal a scenario may name.
    pub const ALL: [Sig; 9] =
        [Sig::Hup, Sig::Int, Sig::Abrt, Sig::Kill, Sig::Segv, Sig::Pipe, Sig::Term, Sig::Cont, Sig::Stop];

    /// Its number on Linux.
    pub fn number(self) -> i32 {
        match self {
            Sig::Hup => 1,
            Sig::Int => 2,
            Sig::Abrt => 6,
            Sig::Kill => 9,
            Sig::Segv => 11,
            Sig::Pipe => 13,
            Sig::Term => 15,
            Sig::Cont => 18,
            Sig::Stop => 19,
        }
    }

    /// Its name without the SIG prefix.
    pub fn name(self) -> &'static str {
        match self {
            Sig::Hup => "HUP",
            Sig::Int => "INT",
            Sig::Abrt => "ABRT",
            Sig::Kill => "KILL",
            Sig::Segv => "SEGV",
            Sig::Pipe => "PIPE",
            Sig::Term => "TERM",
            Sig::Cont => "CONT",
            Sig::Stop => "STOP",
        }
    }

    /// The signal with that number.
    pub fn from_number(number: i32) -> Option<Sig> {
        Sig::ALL.into_iter().find(|sig| sig.number() == number)
    }
}

/// The process group of a process that a plugin leaves behind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Group {
    /// The plugin's own, as PRC-18 wants it.
    #[default]
    Same,
    /// A session and group of its own: it escapes mu's reach.
    Setsid,
}

/// How long such a process lives, if nobody kills it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Until {
    /// For ever (for real: until a safety alarm of two minutes).
    #[default]
    Forever,
    /// This many milliseconds.
    Ms(u64),
    /// Until its standard input ends; it must hold `stdin`.
    Eof,
}

/// A process that the plugin starts and does not wait for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Background {
    /// Where it runs.
    #[serde(default)]
    pub group: Group,
    /// The plugin's streams that it keeps open; all others are closed in it.
    #[serde(default)]
    pub holds: Vec<Fd>,
    /// When it ends by itself.
    #[serde(default)]
    pub until: Until,
    /// How often it starts a child that takes its place, every 10 milliseconds, before it settles down; its time of
    /// life begins then.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub forks: u32,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// Milliseconds from one fork of such a process to the next.
pub const FORK_EVERY_MS: u64 = 10;

/// What a plugin program tells the world that watches it: a transcript, or the log file of the real executable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note<'a> {
    /// A whole line arrived on stdin, without its LF.
    Line(&'a [u8]),
    /// Standard input ended; this many bytes of an unfinished line were left.
    Eof {
        /// Bytes behind the last LF.
        unfinished: usize,
    },
    /// A fault of the plan takes effect now, by its name in the catalogue.
    Fault(&'static str),
}

/// A plugin's operating system. Times are milliseconds on one monotonic clock.
pub trait PluginSys {
    /// Waits until something comes: on standard input, unless there is no `buf` to read it into, over a connection to the
    /// backend, or the time that the clock shows as `until`. A `buf` is not empty.
    fn wait(&mut self, buf: Option<&mut [u8]>, until: Option<u64>) -> impl Future<Output = Read>;
    /// Begins to open a connection to the backend, under a number that is not in use. An empty line comes over it when it
    /// stands.
    fn dial(&mut self, call: u32);
    /// Sends bytes over a connection. That it is gone shows when something is to come over it.
    fn send(&mut self, call: u32, bytes: &[u8]);
    /// Closes a connection; nothing more comes over it.
    fn hang_up(&mut self, call: u32);
    /// Waits until a read of standard input would return at once, and reads nothing.
    fn stdin_ready(&mut self) -> impl Future<Output = ()>;
    /// One blocking `write(2)`; may take a part only. `EPIPE` when nobody can read any more, `EBADF` once closed.
    fn write(&mut self, fd: Fd, bytes: &[u8]) -> impl Future<Output = io::Result<usize>>;
    /// Closes a standard stream; closing it twice does nothing.
    fn close(&mut self, fd: Fd);
    /// The clock.
    fn now_ms(&self) -> u64;
    /// Sleeps until the clock shows `at`; for ever when `None`.
    fn sleep_until(&mut self, at: Option<u64>) -> impl Future<Output = ()>;
    /// Sends a signal to this process. Returns only if it lives on (ignored, or stopped and continued).
    fn raise(&mut self, sig: Sig) -> impl Future<Output = ()>;
    /// Sends a signal to the process that started this one, unless that one is gone already.
    fn kill_parent(&mut self, sig: Sig) -> impl Future<Output = ()>;
    /// Ignores a signal from now on.
    fn ignore(&mut self, sig: Sig);
    /// Starts a background process and goes on.
    fn spawn_background(&mut self, process: &Background) -> impl Future<Output = ()>;
    /// Writes a whole file; a relative path begins at the working directory. The folder must be there.
    fn write_file(&mut self, path: &Path, bytes: &[u8]) -> io::Result<()>;
    /// Which start of this plugin this process is; the first is 1.
    fn start(&self) -> u32;
    /// The value of an environment variable.
    fn env(&self, name: &str) -> Option<Vec<u8>>;
    /// Tells the watching world something; the plugin's behaviour does not depend on it.
    fn note(&mut self, note: Note<'_>);
}
