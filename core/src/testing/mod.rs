//! A machine in memory for unit tests: scripted files, plugins and signals, and a clock that jumps; real SQLite in a
//! directory of its own.
//!
//! - `child`: a plugin's process
//! - `dock`: a host with a scripted link; `cloud`: a provider of hosts, scripted

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::future::Future;
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use mu_protocol::declaration::Declaration;
use mu_protocol::schema::SCHEMA_DIGEST;
use rusqlite::{Connection, OpenFlags};
use serde_json::{Value, json};

use crate::invocation::Invocation;
use crate::os::{
    BootTime, Env, EpochMs, Exec, FileFacts, FileKind, Mono, Os, Pid, ProcessId, Signal, Stream,
};
use crate::store::plugins::Plugin;
use crate::store::{Missing, Store};

pub(crate) use child::{Heard, Plugin as PluginProcess, Script, answer, sound};

use child::FakeChild;

mod child;
pub(crate) mod cloud;
pub(crate) mod dock;

/// What `stat` tells of a file.
pub(crate) fn file(kind: FileKind, uid: u32, mode: u32) -> FileFacts {
    FileFacts { kind, uid, mode }
}

/// A declaration with a link, and a channel when it has a name.
pub(crate) fn declaration(name: &str, channel: Option<&str>) -> Declaration {
    let mut seams = json!({"link": {"fetch": false, "slots": "self", "remoteOnTimeout": "unknown",
        "quiescence": "provable", "maxScriptBytes": 131_072, "checks": ["reach"]}});
    if let Some(channel) = channel {
        let caps = json!({"fence": "none", "receipt": "none", "dedupe": "none", "steer": "none", "interrupt": "none",
            "fresh": "none", "answer": false, "command": false, "watch": "stream", "settleText": "tail"});
        seams["channel"] = json!({"name": channel, "caps": caps});
    }
    let text = json!({"protocol": 1, "plugin": {"name": name, "version": "0.1.0"}, "instance": "prod-eu",
        "schema": SCHEMA_DIGEST, "seams": seams});
    Declaration::from_recorded(&text.to_string()).expect("a declaration by the schema")
}

/// A registered plugin.
pub(crate) fn plugin(name: &str, channel: Option<&str>) -> Plugin {
    Plugin {
        name: name.into(),
        argv: vec![format!("/opt/mu-plugin-{name}")],
        declaration: declaration(name, channel),
        added_at: EpochMs(1000),
        declared_at: EpochMs(2000),
    }
}

/// Opens the machine's database as a verb would.
pub(crate) async fn open(os: &FakeOs, missing: Missing) -> Store<FakeOs> {
    Store::open(&Invocation::new(os.clone()), missing).await.expect("the database opens")
}

/// A process of this boot of the machine.
pub(crate) fn process(pid: i32, started: u64) -> ProcessId {
    ProcessId { pid: Pid(pid), started, boot: "4b6f9f0e-9a54-4c1e-8f0c-0d9a7d6b1c11".into() }
}

/// What a run of mu left.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) exit: u8,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ran {
    /// Standard output as the one JSON document it has to be.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The failure's name, after looking at the shape of the envelope (OUT-02).
    pub(crate) fn error(&self) -> String {
        let envelope = self.json();
        let keys: Vec<&String> = envelope.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["error", "exit", "message", "next", "ok"], "{self:?}");
        assert_eq!((&envelope["ok"], &envelope["exit"]), (&json!(false), &json!(self.exit)), "{self:?}");
        assert!(self.out.ends_with('\n') && self.out.lines().count() == 1, "{self:?}");
        envelope["error"].as_str().unwrap().to_owned()
    }

    /// The failure's message.
    pub(crate) fn message(&self) -> String {
        self.error();
        self.json()["message"].as_str().unwrap().to_owned()
    }

    /// The commands in `next`.
    pub(crate) fn next(&self) -> Vec<String> {
        let commands = self.json()["next"]["commands"].clone();
        serde_json::from_value(commands).unwrap_or_default()
    }
}

type Event = Box<dyn FnOnce()>;
type Programs = Box<dyn FnMut(&FakeOs) -> io::Result<Script>>;

struct Machine {
    directory: tempfile::TempDir,
    steps: Arc<AtomicU64>,
    files: RefCell<BTreeMap<PathBuf, Result<FileFacts, io::ErrorKind>>>,
    looked_at: RefCell<Vec<String>>,
    clock: Cell<Mono>,
    timers: RefCell<Vec<Mono>>,
    events: RefCell<Vec<(Mono, Event)>>,
    signals: RefCell<Vec<Signal>>,
    /// How many looks for signals find none.
    deaf: Cell<u32>,
    raised: RefCell<Vec<Signal>>,
    out: RefCell<Vec<u8>>,
    err: RefCell<Vec<u8>>,
    stdout: RefCell<Box<dyn FnMut() -> Poll<io::Result<()>>>>,
    open_flags: Cell<OpenFlags>,
    programs: RefCell<Programs>,
    children: RefCell<Vec<Rc<RefCell<PluginProcess>>>>,
    processes: RefCell<Vec<ProcessId>>,
    groups: RefCell<Vec<ProcessId>>,
    drawn: Cell<u8>,
    panics: Cell<bool>,
    clock_panics: Cell<bool>,
}

/// The machine, and one process on it.
#[derive(Clone)]
pub(crate) struct FakeOs {
    machine: Rc<Machine>,
    env: Rc<Env>,
}

impl FakeOs {
    /// A machine with an empty directory, where the database will be.
    pub(crate) fn new() -> FakeOs {
        let directory = tempfile::tempdir().expect("a directory");
        let database = directory.path().join("state/mu/mu.db");
        let env = Env {
            argv: Vec::new(),
            vars: vec![("MU_DB_PATH".into(), database.into_os_string())],
            cwd: directory.path().to_owned(),
            euid: 1000,
            stdout_is_terminal: false,
            pid: Pid(500),
        };
        let machine = Machine {
            directory,
            steps: Arc::default(),
            files: RefCell::default(),
            looked_at: RefCell::default(),
            clock: Cell::new(Mono(Duration::ZERO)),
            timers: RefCell::default(),
            events: RefCell::default(),
            signals: RefCell::default(),
            deaf: Cell::new(0),
            raised: RefCell::default(),
            out: RefCell::default(),
            err: RefCell::default(),
            stdout: RefCell::new(Box::new(|| Poll::Ready(Ok(())))),
            open_flags: Cell::new(OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE),
            programs: RefCell::new(Box::new(|_| Err(io::Error::from_raw_os_error(2)))),
            children: RefCell::default(),
            processes: RefCell::new(vec![process(500, 7)]),
            groups: RefCell::default(),
            drawn: Cell::new(0),
            panics: Cell::new(false),
            clock_panics: Cell::new(false),
        };
        FakeOs { machine: Rc::new(machine), env: Rc::new(env) }
    }

    pub(crate) fn with_file(self, path: &str, facts: FileFacts) -> FakeOs {
        self.machine.files.borrow_mut().insert(path.into(), Ok(facts));
        self
    }

    pub(crate) fn with_error(self, path: impl Into<PathBuf>, error: io::ErrorKind) -> FakeOs {
        self.machine.files.borrow_mut().insert(path.into(), Err(error));
        self
    }

    /// The same machine, whose processes have this variable; an empty value takes it away.
    pub(crate) fn with_var(&self, name: &str, value: impl Into<OsString>) -> FakeOs {
        let mut env = Env::clone(&self.env);
        env.vars.retain(|(other, _)| other != name);
        env.vars.push((name.into(), value.into()));
        FakeOs { machine: self.machine.clone(), env: Rc::new(env) }
    }

    /// Another process of the same machine, which lives.
    pub(crate) fn as_process(&self, pid: i32, started: u64) -> FakeOs {
        self.lives(process(pid, started));
        let env = Env { pid: Pid(pid), ..Env::clone(&self.env) };
        FakeOs { machine: self.machine.clone(), env: Rc::new(env) }
    }

    /// From now on databases open only for reading.
    pub(crate) fn read_only(self) -> FakeOs {
        self.machine.open_flags.set(OpenFlags::SQLITE_OPEN_READ_ONLY);
        self
    }

    /// From now on every look at a file is a panic.
    pub(crate) fn panicking(self) -> FakeOs {
        self.machine.panics.set(true);
        self
    }

    /// From now on every look at the clock is a panic.
    pub(crate) fn break_clock(&self) {
        self.machine.clock_panics.set(true);
    }

    /// What each write to standard output meets before it succeeds.
    pub(crate) fn with_stdout(self, meets: impl FnMut() -> Poll<io::Result<()>> + 'static) -> FakeOs {
        *self.machine.stdout.borrow_mut() = Box::new(meets);
        self
    }

    /// What happens at each attempt to execute something.
    pub(crate) fn with_programs(
        self,
        programs: impl FnMut(&FakeOs) -> io::Result<Script> + 'static,
    ) -> FakeOs {
        *self.machine.programs.borrow_mut() = Box::new(programs);
        self
    }

    /// From now on this process lives, in the place of any other with its pid.
    pub(crate) fn lives(&self, process: ProcessId) {
        self.ends(process.pid);
        self.machine.processes.borrow_mut().push(process);
    }

    /// From now on no process with this pid lives.
    pub(crate) fn ends(&self, pid: Pid) {
        self.machine.processes.borrow_mut().retain(|other| other.pid != pid);
    }

    /// From now on the group that this process founded has a living member, or has none.
    pub(crate) fn group_lives(&self, founder: ProcessId, lives: bool) {
        let mut groups = self.machine.groups.borrow_mut();
        groups.retain(|other| *other != founder);
        groups.extend(lives.then_some(founder));
    }

    /// The processes that were started, in order.
    pub(crate) fn children(&self) -> Vec<Rc<RefCell<PluginProcess>>> {
        self.machine.children.borrow().clone()
    }

    /// Sends a signal to the next process that looks.
    pub(crate) fn signal(&self, signal: Signal) {
        self.machine.signals.borrow_mut().push(signal);
    }

    /// Sends a signal that only the `nth` look from now on finds.
    pub(crate) fn signal_at_look(&self, signal: Signal, nth: u32) {
        self.machine.deaf.set(nth - 1);
        self.signal(signal);
    }

    /// Lets something happen once the clock has come this far.
    pub(crate) fn after(&self, span: Duration, event: impl FnOnce() + 'static) {
        let at = self.now() + span;
        self.machine.events.borrow_mut().push((at, Box::new(event)));
    }

    /// Signals that ended a process.
    pub(crate) fn raised(&self) -> Vec<Signal> {
        self.machine.raised.borrow().clone()
    }

    /// Paths that were looked at.
    pub(crate) fn looked_at(&self) -> Vec<String> {
        self.machine.looked_at.borrow().clone()
    }

    /// Where the database is or will be.
    pub(crate) fn database(&self) -> PathBuf {
        PathBuf::from(self.env.var("MU_DB_PATH").expect("set by new"))
    }

    /// A second connection to the database, as another process would have.
    pub(crate) fn connection(&self) -> Connection {
        let path = self.database();
        self.create_dir_all(path.parent().unwrap()).unwrap();
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
        Connection::open_with_flags(path, flags).expect("the database opens")
    }

    /// How many steps SQLite has taken so far for verbs; the same statement on the same rows takes as many each time.
    pub(crate) fn steps(&self) -> u64 {
        self.machine.steps.load(Ordering::Relaxed)
    }

    /// Drives a future; the clock jumps whenever nothing else can happen.
    pub(crate) fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        let mut future = pin!(future);
        loop {
            if let Poll::Ready(value) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                return value;
            }
            let machine = &self.machine;
            let timers = machine.timers.take().into_iter();
            let next = timers.chain(machine.events.borrow().iter().map(|(at, _)| *at)).min();
            let now = next.expect("nothing left that could happen").max(self.now());
            machine.clock.set(now);
            let events = machine.events.take();
            let (due, later): (Vec<_>, Vec<_>) = events.into_iter().partition(|(at, _)| *at <= now);
            machine.events.borrow_mut().extend(later);
            due.into_iter().for_each(|(_, event)| event());
        }
    }

    /// Runs mu on this machine with these arguments.
    pub(crate) fn run<A: Into<OsString> + Clone>(&self, args: &[A]) -> Ran {
        let mut env = Env::clone(&self.env);
        env.argv = std::iter::once("mu".into()).chain(args.iter().cloned().map(Into::into)).collect();
        let os = FakeOs { machine: self.machine.clone(), env: Rc::new(env) };
        let exit = self.block_on(crate::run(os));
        let text = |bytes: &RefCell<Vec<u8>>| String::from_utf8(bytes.take()).expect("mu writes UTF-8");
        Ran { exit, out: text(&self.machine.out), err: text(&self.machine.err) }
    }
}

/// A timer on the jumping clock.
pub(crate) struct Sleep(FakeOs, Mono);

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        if self.0.now() >= self.1 {
            return Poll::Ready(());
        }
        self.0.machine.timers.borrow_mut().push(self.1);
        Poll::Pending
    }
}

impl Os for FakeOs {
    type Child = FakeChild;
    type Sleep = Sleep;
    type Db = Box<Connection>;

    fn now(&self) -> Mono {
        assert!(!self.machine.clock_panics.get(), "scripted");
        self.machine.clock.get()
    }

    fn wall(&self) -> EpochMs {
        EpochMs(1_000_000 + self.now().0.as_millis() as i64)
    }

    fn boot(&self) -> BootTime {
        BootTime { boot: process(1, 0).boot, since: Duration::from_secs(100) + self.now().0 }
    }

    fn sleep_until(&self, at: Mono) -> Sleep {
        Sleep(self.clone(), at)
    }

    fn spawn(&self, exec: &Exec) -> io::Result<FakeChild> {
        let script = (self.machine.programs.borrow_mut())(self)?;
        let plugin = Rc::new(RefCell::new(PluginProcess::default()));
        plugin.borrow_mut().argv = exec.argv.clone();
        let mut children = self.machine.children.borrow_mut();
        children.push(plugin.clone());
        let identity = process(1000 + children.len() as i32, 10 + children.len() as u64);
        Ok(FakeChild { os: self.clone(), identity, plugin, script })
    }

    /// Those that live since [`FakeOs::lives`], and mu itself; plugins are not among them.
    fn identify(&self, pid: Pid) -> Option<ProcessId> {
        self.machine.processes.borrow().iter().find(|process| process.pid == pid).cloned()
    }

    fn group_alive(&self, founder: &ProcessId) -> bool {
        self.machine.groups.borrow().contains(founder)
    }

    fn poll_signal(&self, _: &mut Context<'_>) -> Poll<Signal> {
        match self.machine.deaf.get() {
            0 => self.machine.signals.borrow_mut().pop().map_or(Poll::Pending, Poll::Ready),
            looks => {
                self.machine.deaf.set(looks - 1);
                Poll::Pending
            }
        }
    }

    fn raise_default(&self, signal: Signal) {
        self.machine.raised.borrow_mut().push(signal);
    }

    fn facts(&self, path: &Path) -> io::Result<FileFacts> {
        assert!(!self.machine.panics.get(), "scripted: a secret");
        self.machine.looked_at.borrow_mut().push(path.display().to_string());
        if let Some(scripted) = self.machine.files.borrow().get(path) {
            return (*scripted).map_err(io::Error::from);
        }
        if !path.starts_with(self.machine.directory.path()) {
            return Err(io::ErrorKind::NotFound.into());
        }
        // The files of the test's own directory are real.
        let meta = path.metadata()?;
        let kind = match meta.file_type() {
            kind if kind.is_file() => FileKind::Regular,
            kind if kind.is_dir() => FileKind::Directory,
            kind if kind.is_fifo() => FileKind::Fifo,
            kind if kind.is_socket() => FileKind::Socket,
            _ => FileKind::Device,
        };
        Ok(FileFacts { kind, uid: meta.uid(), mode: meta.mode() & 0o7777 })
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        if let Some(Err(error)) = self.machine.files.borrow().get(path) {
            return Err((*error).into());
        }
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        std::fs::remove_file(path)
    }

    fn read_file(&self, path: &Path, limit: usize) -> io::Result<Vec<u8>> {
        if self.facts(path)?.kind != FileKind::Regular {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut bytes = Vec::new();
        std::fs::File::open(path)?.take(limit as u64).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn open_db(&self, path: &Path) -> rusqlite::Result<Box<Connection>> {
        let mut db = Connection::open_with_flags(path, self.machine.open_flags.get())?;
        db.busy_timeout(Duration::ZERO)?;
        let steps = Arc::clone(&self.machine.steps);
        let count = move || {
            steps.fetch_add(1, Ordering::Relaxed);
            false
        };
        db.progress_handler(1, Some(count))?;
        Ok(Box::new(db))
    }

    fn random(&self, buf: &mut [u8]) {
        let drawn = self.machine.drawn.get().wrapping_add(1);
        self.machine.drawn.set(drawn);
        buf.fill(drawn);
    }

    fn env(&self) -> &Env {
        &self.env
    }

    fn poll_write(&self, stream: Stream, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let taken = bytes.len().min(100); // A pipe takes what it has room for.
        match stream {
            Stream::Err => self.machine.err.borrow_mut().extend(&bytes[..taken]),
            Stream::Out => {
                match (self.machine.stdout.borrow_mut())() {
                    Poll::Ready(Ok(())) => {}
                    Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                    Poll::Pending => return Poll::Pending,
                }
                self.machine.out.borrow_mut().extend(&bytes[..taken]);
            }
        }
        Poll::Ready(Ok(taken))
    }
}

#[test]
fn a_pid_that_is_used_again_means_another_process() {
    let os = FakeOs::new();
    assert_eq!(os.identify(os.env().pid), Some(process(500, 7)));
    os.lives(process(77, 8));
    os.lives(process(77, 9));
    assert_eq!(os.identify(Pid(77)), Some(process(77, 9)));
    os.ends(Pid(77));
    assert_eq!(os.identify(Pid(77)), None);
}
