//! The operating system as mu sees it: clock, processes, files, signals and output behind two traits.
//!
//! `core` does IO through these traits alone. The real binary implements them with tokio and Linux calls, the
//! simulator with a whole simulated machine. Leaves are poll-shaped, so that implementations need no boxing and the
//! driver decides the order in which it looks at things.

use std::ffi::OsString;
use std::fmt;
use std::future::Future;
use std::io;
use std::ops::DerefMut;
use std::path::{Path, PathBuf};
use std::task::{Context, Poll};
use std::time::Duration;

use rusqlite::Connection;

/// A point on the monotonic clock of this run. Deadlines are kept in it; it has no meaning outside the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mono(pub Duration);

impl std::ops::Add<Duration> for Mono {
    type Output = Mono;
    fn add(self, span: Duration) -> Mono {
        Mono(self.0 + span)
    }
}

/// Wall clock time in milliseconds since 1970-01-01 UTC. For the wire and for rows, never for deadlines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EpochMs(pub i64);

/// A process id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pid(pub i32);

impl fmt::Display for Pid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Which process a pid means. Pids are used again; these three together are not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessId {
    /// Its process id.
    pub pid: Pid,
    /// When it was started, as the kernel keeps it: clock ticks since the machine was started.
    pub started: u64,
    /// The id of that start of the machine.
    pub boot: String,
}

/// A moment that means something beyond this run: which start of the machine, and how long after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BootTime {
    /// The id of that start of the machine.
    pub boot: String,
    /// Time since then, with the time in which the machine slept.
    pub since: Duration,
}

/// The signals that tell mu to end (PRC-07).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Signal {
    /// Ctrl-C.
    Interrupt,
    /// The polite request.
    Terminate,
    /// The terminal is gone.
    HangUp,
}

impl Signal {
    /// The name as `kill -l` spells it, with the SIG prefix.
    pub fn name(self) -> &'static str {
        match self {
            Signal::Interrupt => "SIGINT",
            Signal::Terminate => "SIGTERM",
            Signal::HangUp => "SIGHUP",
        }
    }

    /// Its number on Linux.
    pub fn number(self) -> i32 {
        match self {
            Signal::Interrupt => 2,
            Signal::Terminate => 15,
            Signal::HangUp => 1,
        }
    }
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Exit {
    /// It exited with this status.
    Status(i32),
    /// This signal number ended it.
    Signal(i32),
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Exit::Status(status) => write!(f, "status {status}"),
            Exit::Signal(number) => write!(f, "signal {number}"),
        }
    }
}

/// What to execute. The child gets a process group of its own (PRC-02), pipes for its three standard streams, mu's
/// working directory, and exactly the variables given. No other descriptor of mu's is open in it (PRC-15).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exec {
    /// Program (an absolute path) and arguments.
    pub argv: Vec<OsString>,
    /// The whole environment of the child.
    pub env: Vec<(OsString, OsString)>,
}

/// What kind of file a path leads to, links followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileKind {
    /// A regular file.
    Regular,
    /// A directory.
    Directory,
    /// A named pipe.
    Fifo,
    /// A socket.
    Socket,
    /// A block or character device.
    Device,
}

/// What `stat` tells of a file, links followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileFacts {
    /// Its type.
    pub kind: FileKind,
    /// The user id that owns it.
    pub uid: u32,
    /// Permission bits (the low 12 bits of `st_mode`).
    pub mode: u32,
}

/// What a process is started with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Env {
    /// Arguments, `argv[0]` included.
    pub argv: Vec<OsString>,
    /// The variables, in the order the system gives them.
    pub vars: Vec<(OsString, OsString)>,
    /// The working directory.
    pub cwd: PathBuf,
    /// The effective user id.
    pub euid: u32,
    /// Whether standard output is a terminal.
    pub stdout_is_terminal: bool,
    /// mu's own process id.
    pub pid: Pid,
}

impl Env {
    /// The value of a variable, when it is set and not empty.
    pub fn var(&self, name: &str) -> Option<&OsString> {
        self.vars.iter().find(|(key, value)| key == name && !value.is_empty()).map(|(_, value)| value)
    }
}

/// One of mu's own output streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stream {
    /// Standard output.
    Out,
    /// Standard error.
    Err,
}

/// One of a child's two output pipes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ChildPipe {
    /// The child's standard output.
    Stdout,
    /// The child's standard error.
    Stderr,
}

/// A handle on the operating system. Cheap to clone; inert once its process is dead.
pub trait Os: Clone + 'static {
    /// A started process with its pipes.
    type Child: Child;
    /// A timer.
    type Sleep: Future<Output = ()> + Unpin;
    /// A connection to a database; dropping it closes it.
    type Db: DerefMut<Target = Connection> + From<Connection>;

    /// The monotonic clock.
    fn now(&self) -> Mono;
    /// The wall clock.
    fn wall(&self) -> EpochMs;
    /// The clock that outlives this run: what is kept across runs is measured in it.
    fn boot(&self) -> BootTime;
    /// A timer that is ready once `now() >= at`.
    fn sleep_until(&self, at: Mono) -> Self::Sleep;

    /// Forks and executes. Errors are those of `fork` and `execve`, as OS error numbers: `ENOENT` also when the
    /// interpreter is missing, `ETXTBSY` when the file is being written.
    fn spawn(&self, exec: &Exec) -> io::Result<Self::Child>;
    /// The living process with this pid; `None` when there is none. A zombie does not live, a stopped process does.
    ///
    /// # Panics
    ///
    /// When the system does not tell: who may be alive must not be taken for dead.
    fn identify(&self, pid: Pid) -> Option<ProcessId>;
    /// Whether a process group still has a living member, whoever started it; zombies do not count, stopped processes do.
    /// `leader` is the process that founded it, dead or alive. A group that has the number and was founded by another
    /// process is not it: the kernel gives a number away only after its group was empty.
    ///
    /// # Panics
    ///
    /// As [`Os::identify`].
    fn group_alive(&self, leader: &ProcessId) -> bool;
    /// Ready when SIGINT, SIGTERM or SIGHUP has arrived. mu never dies of these three by itself.
    fn poll_signal(&self, cx: &mut Context<'_>) -> Poll<Signal>;
    /// Restores the default action and raises the signal: the process dies of it (PRC-12).
    fn raise_default(&self, signal: Signal);

    /// `stat`: follows links, opens nothing (a fifo must not block).
    fn facts(&self, path: &Path) -> io::Result<FileFacts>;
    /// Creates a directory and its missing parents, each with mode 0700.
    fn create_dir_all(&self, path: &Path) -> io::Result<()>;
    /// Unlinks a file; a link itself, not what it leads to. `NotFound` when there is none, `EISDIR` for a directory.
    fn remove_file(&self, path: &Path) -> io::Result<()>;
    /// The first `limit` bytes of a regular file, links followed; all when it has fewer. `EINVAL` for anything else,
    /// which is not opened (a fifo must not block).
    fn read_file(&self, path: &Path, limit: usize) -> io::Result<Vec<u8>>;
    /// Opens (and creates) a database with `busy_timeout` 0 and mode 0600 when created.
    fn open_db(&self, path: &Path) -> rusqlite::Result<Self::Db>;

    /// Fills `buf` with random bytes.
    fn random(&self, buf: &mut [u8]);
    /// What this process was started with.
    fn env(&self) -> &Env;
    /// Writes to mu's own output; returns how many bytes were taken. `EPIPE` when nobody reads.
    fn poll_write(&self, stream: Stream, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>>;
}

/// A child process, leader of its own group, with pipes to its standard streams.
///
/// Dropping it closes the pipes and neither kills nor waits.
pub trait Child: 'static {
    /// The process id of the leader, which is also the id of the group.
    fn pid(&self) -> Pid;
    /// Which process the leader is, dead or alive.
    fn identity(&self) -> &ProcessId;
    /// Writes to the child's standard input. `EPIPE` when the read end is closed. Must not be called after
    /// [`Child::close_stdin`].
    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>>;
    /// Closes the child's standard input.
    fn close_stdin(&mut self);
    /// Reads from one of the child's output pipes; 0 is the end of the stream.
    fn poll_read(&mut self, pipe: ChildPipe, cx: &mut Context<'_>, buf: &mut [u8])
    -> Poll<io::Result<usize>>;
    /// Ready once the leader has ended. Does not reap: the id of the group stays taken.
    fn poll_exited(&mut self, cx: &mut Context<'_>) -> Poll<Exit>;
    /// Ready once no process of the group lives; zombies do not count, the leader does.
    fn poll_group_empty(&mut self, cx: &mut Context<'_>) -> Poll<()>;
    /// SIGKILL to the whole group. A group that is empty already is no error.
    fn kill_group(&mut self);
    /// Collects the exit status of the leader. To be called once, after it has exited and its group is empty.
    fn reap(&mut self);
}
