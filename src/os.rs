//! The handle.

use std::cell::OnceCell;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::task::{Context, Poll};

use mu_core::os::{BootTime, Env, EpochMs, Exec, FileFacts, Mono, Os, Pid, ProcessId, Signal, Stream};
use rustix::io::Errno;
use rustix::rand::{GetRandomFlags, getrandom};

use crate::child::{RealChild, Started, spawn};
use crate::clock::{self, RealSleep};
use crate::output::Output;
use crate::signals::{self, Signals};
use crate::{files, group, identity, startup};

/// The operating system that mu runs on. Cheap to clone; belongs to one thread.
#[derive(Clone)]
pub struct RealOs(Rc<Inner>);

struct Inner {
    env: Env,
    signals: Signals,
    out: Output,
    err: Output,
    started: Started,
    /// The boot id, once it was asked for.
    boot: OnceCell<String>,
}

impl RealOs {
    /// Puts the process in order (descriptors, signals, see the crate's map) and takes hold of what it was started
    /// with. To be called once, from within a current-thread tokio runtime with IO and time enabled.
    ///
    /// # Errors
    ///
    /// When `/proc` is missing or another namespace's, and when no descriptor is left.
    ///
    /// # Panics
    ///
    /// Outside of a runtime.
    pub fn new() -> io::Result<RealOs> {
        startup::prepare()?;
        Ok(RealOs(Rc::new(Inner {
            env: environment(),
            signals: Signals::new()?,
            out: Output::new(Stream::Out),
            err: Output::new(Stream::Err),
            started: Started::default(),
            boot: OnceCell::new(),
        })))
    }

    fn boot_id(&self) -> &str {
        self.0.boot.get_or_init(|| {
            identity::boot().unwrap_or_else(|error| panic!("the kernel does not tell its boot id: {error}"))
        })
    }

    /// SIGKILL to every group that was started and not reaped: the way out when mu itself has failed (PRC-13).
    pub fn kill_started_groups(&self) {
        self.0.started.kill_all();
    }
}

#[allow(clippy::disallowed_methods)] // this is what `Os::env` answers with
fn environment() -> Env {
    Env {
        argv: std::env::args_os().collect(),
        vars: std::env::vars_os().collect(),
        // Empty when the directory is gone: relative paths then fail where they are used, and the rest works.
        cwd: std::env::current_dir().unwrap_or_else(|_| PathBuf::new()),
        euid: rustix::process::geteuid().as_raw(),
        stdout_is_terminal: io::stdout().is_terminal(),
        pid: Pid(rustix::process::getpid().as_raw_pid()),
    }
}

impl Os for RealOs {
    type Child = RealChild;
    type Sleep = RealSleep;
    type Db = Box<rusqlite::Connection>;

    fn now(&self) -> Mono {
        clock::mono()
    }

    fn wall(&self) -> EpochMs {
        clock::wall()
    }

    fn boot(&self) -> BootTime {
        BootTime { boot: self.boot_id().to_owned(), since: clock::boottime() }
    }

    fn sleep_until(&self, at: Mono) -> RealSleep {
        RealSleep::until(at)
    }

    fn spawn(&self, exec: &Exec) -> io::Result<RealChild> {
        let boot = self.boot_id().to_owned();
        spawn(exec, boot, &self.0.started)
    }

    fn identify(&self, pid: Pid) -> Option<ProcessId> {
        let told = identity::started(pid);
        let started = told.unwrap_or_else(|error| {
            panic!("the kernel does not tell whether process {pid} lives: {error}")
        })?;
        Some(ProcessId { pid, started, boot: self.boot_id().to_owned() })
    }

    fn group_alive(&self, leader: &ProcessId) -> bool {
        let alive = || group::is_alive(leader.pid, leader.started);
        leader.boot == self.boot_id()
            && alive().unwrap_or_else(|error| {
                panic!("the kernel does not tell whether group {} lives: {error}", leader.pid)
            })
    }

    fn poll_signal(&self, cx: &mut Context<'_>) -> Poll<Signal> {
        self.0.signals.poll(cx)
    }

    fn raise_default(&self, signal: Signal) {
        signals::die_of(signal)
    }

    fn facts(&self, path: &Path) -> io::Result<FileFacts> {
        files::facts(path)
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        files::create_dir_all(path)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        std::fs::remove_file(path)
    }

    fn read_file(&self, path: &Path, limit: usize) -> io::Result<Vec<u8>> {
        files::read(path, limit)
    }

    fn open_db(&self, path: &Path) -> rusqlite::Result<Self::Db> {
        files::open_db(&self.0.env.cwd.join(path)).map(Box::new)
    }

    fn random(&self, buf: &mut [u8]) {
        let mut filled = 0;
        while filled < buf.len() {
            match getrandom(&mut buf[filled..], GetRandomFlags::empty()) {
                Ok(count) => filled += count,
                Err(Errno::INTR) => {}
                Err(error) => panic!("the kernel gives no random bytes: {error}"),
            }
        }
    }

    fn env(&self) -> &Env {
        &self.0.env
    }

    fn poll_write(&self, stream: Stream, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match stream {
            Stream::Out => self.0.out.poll_write(cx, bytes),
            Stream::Err => self.0.err.poll_write(cx, bytes),
        }
    }
}
