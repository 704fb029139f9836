//! A machine in memory: who lives there, and what its clocks show. It starts no process and has no files.

use std::cell::RefCell;
use std::convert::Infallible;
use std::future::{Ready, ready};
use std::io;
use std::path::Path;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use mu_core::os::{
    BootTime, Child, ChildPipe, Env, EpochMs, Exec, Exit, FileFacts, Mono, Os, Pid, ProcessId, Signal, Stream,
};

/// What changes about a machine.
#[derive(Clone, Debug)]
pub struct World {
    /// The living processes, each with a pid of its own.
    pub living: Vec<ProcessId>,
    /// The founders of the process groups that have a living member.
    pub groups: Vec<ProcessId>,
    /// The wall clock.
    pub wall: EpochMs,
    /// The clock of this start of the machine.
    pub boot: BootTime,
}

/// A handle on the machine.
#[derive(Clone, Debug)]
pub struct Machine {
    world: Rc<RefCell<World>>,
    env: Rc<Env>,
}

impl Machine {
    /// A machine on which nobody lives.
    pub fn new() -> Machine {
        let env = Env {
            argv: Vec::new(),
            vars: vec![("MU_DB_PATH".into(), "/mu.db".into())],
            cwd: "/".into(),
            euid: 1000,
            stdout_is_terminal: false,
            pid: Pid(500),
        };
        let boot = BootTime { boot: "boot".into(), since: Duration::ZERO };
        let world = World { living: Vec::new(), groups: Vec::new(), wall: EpochMs(0), boot };
        Machine { world: Rc::new(RefCell::new(world)), env: Rc::new(env) }
    }

    /// Changes the world.
    pub fn change<T>(&self, change: impl FnOnce(&mut World) -> T) -> T {
        change(&mut self.world.borrow_mut())
    }
}

impl Default for Machine {
    fn default() -> Machine {
        Machine::new()
    }
}

fn nothing<T>() -> io::Result<T> {
    Err(io::ErrorKind::NotFound.into())
}

impl Os for Machine {
    type Child = NoChild;
    type Sleep = Ready<()>;
    type Db = Box<rusqlite::Connection>;

    fn now(&self) -> Mono {
        Mono(self.world.borrow().boot.since)
    }

    fn wall(&self) -> EpochMs {
        self.world.borrow().wall
    }

    fn boot(&self) -> BootTime {
        self.world.borrow().boot.clone()
    }

    fn sleep_until(&self, _: Mono) -> Ready<()> {
        ready(())
    }

    fn spawn(&self, _: &Exec) -> io::Result<NoChild> {
        nothing()
    }

    fn identify(&self, pid: Pid) -> Option<ProcessId> {
        self.world.borrow().living.iter().find(|process| process.pid == pid).cloned()
    }

    fn group_alive(&self, leader: &ProcessId) -> bool {
        self.world.borrow().groups.contains(leader)
    }

    fn poll_signal(&self, _: &mut Context<'_>) -> Poll<Signal> {
        Poll::Pending
    }

    fn raise_default(&self, _: Signal) {}

    fn facts(&self, _: &Path) -> io::Result<FileFacts> {
        nothing()
    }

    fn create_dir_all(&self, _: &Path) -> io::Result<()> {
        nothing()
    }

    fn remove_file(&self, _: &Path) -> io::Result<()> {
        nothing()
    }

    fn read_file(&self, _: &Path, _: usize) -> io::Result<Vec<u8>> {
        nothing()
    }

    fn open_db(&self, _: &Path) -> rusqlite::Result<Self::Db> {
        rusqlite::Connection::open_in_memory().map(Box::new)
    }

    fn random(&self, buf: &mut [u8]) {
        buf.fill(7);
    }

    fn env(&self) -> &Env {
        &self.env
    }

    fn poll_write(&self, _: Stream, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(bytes.len()))
    }
}

/// There is none.
#[derive(Debug)]
pub struct NoChild(Infallible);

impl Child for NoChild {
    fn pid(&self) -> Pid {
        match self.0 {}
    }

    fn identity(&self) -> &ProcessId {
        match self.0 {}
    }

    fn poll_write(&mut self, _: &mut Context<'_>, _: &[u8]) -> Poll<io::Result<usize>> {
        match self.0 {}
    }

    fn close_stdin(&mut self) {
        match self.0 {}
    }

    fn poll_read(&mut self, _: ChildPipe, _: &mut Context<'_>, _: &mut [u8]) -> Poll<io::Result<usize>> {
        match self.0 {}
    }

    fn poll_exited(&mut self, _: &mut Context<'_>) -> Poll<Exit> {
        match self.0 {}
    }

    fn poll_group_empty(&mut self, _: &mut Context<'_>) -> Poll<()> {
        match self.0 {}
    }

    fn kill_group(&mut self) {
        match self.0 {}
    }

    fn reap(&mut self) {
        match self.0 {}
    }
}
