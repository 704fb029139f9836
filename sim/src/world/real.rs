//! A scenario with real processes: the real `mu` and the real fake-plugin executable in a directory of their own.

// Real processes need real processes, and a real clock to tell how long they take.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::{self, File, Permissions};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use mu_core::os::{Exit, Pid};
use nix::sys::signal::{SigHandler, Signal, kill, signal};
use nix::unistd::{Pid as NixPid, Uid, mkfifo};
use rusqlite::Connection;

use super::backend::RealBackend;
use super::{AtCall, CANARY, Cannot, HEAD, Outcome, Rows, Run, World, method_of, rows};
use crate::backend::{BackendTable, Books, Control};
use crate::fake::{Event, Kind, LogLine, Owner, Plan, PluginFile};
use crate::oracle::{self, Excuses, Leak, Ran, Violation};
use crate::scenario::Db;

/// Names this world in the environment of every process that it starts, so that they can be found again.
const MARK: &str = "MU_SIM_WORLD";
/// mu may take this long; a scenario has deadlines of ten seconds and graces of five.
const PATIENCE: Duration = Duration::from_secs(90);
/// Peak memory that mu may use, in KiB.
const MEMORY_KIB: i64 = 32 * 1024;
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// The programs under test.
#[derive(Clone, Debug)]
pub struct Executables {
    /// The real `mu`.
    pub mu: PathBuf,
    /// The real fake plugin.
    pub plugin: PathBuf,
    /// The real backend behind it.
    pub backend: PathBuf,
}

struct Invocation {
    argv: Vec<String>,
    child: Child,
    begun: Instant,
    /// How it ended, and after what time, once that was seen.
    gone: Option<(ExitStatus, Duration)>,
    ended: Option<Outcome>,
    heard: bool,
}

/// A directory with everything in it.
pub struct Real {
    executables: Executables,
    dir: tempfile::TempDir,
    mark: String,
    canary: String,
    files: BTreeMap<String, PluginFile>,
    ran: Vec<Invocation>,
    lock: Option<Connection>,
    backend: Option<RealBackend>,
    found: Vec<Violation>,
    /// Ends of mu at which somebody lived on.
    left_at_exit: Vec<String>,
}

static WORLDS: AtomicU64 = AtomicU64::new(0);

impl Real {
    /// An empty world.
    ///
    /// # Errors
    /// The system's, when the directory cannot be made.
    pub fn new(executables: Executables) -> std::io::Result<Real> {
        let dir = tempfile::Builder::new().prefix("mu-real-").tempdir()?;
        for sub in ["home", "plugins", "bin"] {
            fs::create_dir(dir.path().join(sub))?;
        }
        fs::copy(&executables.plugin, dir.path().join("bin/fake-plugin"))?;
        let number = WORLDS.fetch_add(1, Ordering::Relaxed);
        let mark = format!("{}-{number}", std::process::id());
        Ok(Real {
            executables,
            canary: format!("canary-{mark}-7f3a"),
            mark,
            dir,
            files: BTreeMap::new(),
            ran: Vec::new(),
            lock: None,
            backend: None,
            found: Vec::new(),
            left_at_exit: Vec::new(),
        })
    }

    /// Leaves what a mu leaves that has run and written no rows.
    ///
    /// # Errors
    /// The system's.
    pub fn make_used(&self) -> Result<(), Cannot> {
        let cannot = |error: &dyn std::fmt::Display| Cannot(format!("{}: {error}", self.db().display()));
        let private = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode));
        fs::create_dir_all(self.state()).map_err(|error| cannot(&error))?;
        for directory in self.state().ancestors().take_while(|path| !path.ends_with("home")) {
            private(directory, 0o700).map_err(|error| cannot(&error))?;
        }
        let db = Connection::open(self.db()).map_err(|error| cannot(&error))?;
        private(&self.db(), 0o600).map_err(|error| cannot(&error))?;
        mu_core::store::migrations::run(&db, &self.db()).map_err(|error| cannot(&error))
    }

    fn state(&self) -> PathBuf {
        self.dir.path().join("home/.local/state/mu")
    }

    fn db(&self) -> PathBuf {
        self.state().join("mu.db")
    }

    fn git(&self) -> PathBuf {
        self.dir.path().join("repo/.git")
    }

    fn backend_dir(&self) -> PathBuf {
        self.dir.path().join("backend")
    }

    fn log(&self, plugin: &str) -> Vec<LogLine> {
        let log = fs::read(format!("{}.log", self.place(plugin))).unwrap_or_default();
        LogLine::parse_all(&log).unwrap_or_default()
    }

    /// Processes of this world that live, mu among them.
    fn living(&self) -> BTreeSet<i32> {
        marked(&format!("{}\0", self.mark))
    }

    /// Processes that live and come from any world that this process has made.
    pub fn left_behind() -> BTreeSet<i32> {
        marked(&format!("{}-", std::process::id()))
    }

    /// Looks for what is left, ends it, and asks the oracles that need no trace. `stubborn` and `leak` as for the
    /// simulated world; `escaping` says that a plugin is scripted to leave its group.
    pub fn judge(&mut self, stubborn: &BTreeSet<String>, leak: Leak, escaping: bool) -> Vec<Violation> {
        for started in 0..self.ran.len() {
            if let Err(report) = self.finish(started) {
                let text = format!("`{}` does not end: {report}", self.ran[started].argv.join(" "));
                self.found.push(Violation { oracle: "end", rule: "TMO-05", at: None, text });
            }
        }
        for text in std::mem::take(&mut self.left_at_exit) {
            if !escaping {
                self.found.push(Violation { oracle: "leftover", rule: "PRC-03", at: None, text });
            }
        }
        let may_stay = escaping || !stubborn.is_empty();
        let mut left = self.living();
        let until = Instant::now() + Duration::from_secs(6);
        while !left.is_empty() && !may_stay && Instant::now() < until {
            thread::sleep(LOOK_EVERY * 10);
            left = self.living();
        }
        if !left.is_empty() && !may_stay {
            let text = format!("processes {left:?} are left behind");
            self.found.push(Violation { oracle: "leftover", rule: "PRC-03", at: None, text });
        }
        for pid in left {
            let _ = kill(NixPid::from_raw(pid), Signal::SIGKILL);
        }
        for one in &self.ran {
            let Some(ended) = &one.ended else { continue };
            let ran = Ran {
                pid: Pid(one.child.id() as i32),
                argv: one.argv.clone(),
                stdout: ended.stdout.clone(),
                stderr: ended.stderr.clone(),
                exit: Some(ended.exit),
                crash: false,
                heard: one.heard,
            };
            oracle::answers::check(&ran, &mut self.found);
            let streams = [("stdout", &ended.stdout), ("stderr", &ended.stderr)];
            for (stream, bytes) in streams {
                if leak == Leak::Nothing && self.is_secret(bytes) {
                    let text = format!("the canary is on the {stream} of `{}`", one.argv.join(" "));
                    self.found.push(Violation { oracle: "secrets", rule: "SEC-01", at: None, text });
                }
            }
        }
        for suffix in ["", "-wal"] {
            let bytes = fs::read(format!("{}{suffix}", self.db().display())).unwrap_or_default();
            if self.is_secret(&bytes) && leak < Leak::Stored {
                let text = "the canary is in the database".to_owned();
                self.found.push(Violation { oracle: "secrets", rule: "SEC-01", at: None, text });
            }
        }
        std::mem::take(&mut self.found)
    }

    fn is_secret(&self, bytes: &[u8]) -> bool {
        memchr::memmem::find(bytes, self.canary.as_bytes()).is_some()
    }

    /// Keeps in mind who has ended since, whoever is waited for.
    fn look(&mut self) -> std::io::Result<()> {
        for one in self.ran.iter_mut().filter(|one| one.gone.is_none()) {
            one.gone = one.child.try_wait()?.map(|status| (status, one.begun.elapsed()));
        }
        Ok(())
    }

    fn output(&self, started: usize, stream: &str) -> PathBuf {
        self.dir.path().join(format!("{stream}-{started}"))
    }

    fn open_db(&self) -> Result<Connection, Cannot> {
        Connection::open(self.db()).map_err(|error| Cannot(error.to_string()))
    }

    fn remove_db(&self) {
        for suffix in ["", "-wal", "-shm"] {
            let path = PathBuf::from(format!("{}{suffix}", self.db().display()));
            let _ = fs::remove_file(&path).or_else(|_| fs::remove_dir(&path));
        }
    }

    fn install_file(&self, plugin: &str, file: &PluginFile) -> std::io::Result<()> {
        let path = PathBuf::from(self.place(plugin));
        let _ = fs::remove_file(&path).or_else(|_| fs::remove_dir_all(&path));
        let executable = self.dir.path().join("bin/fake-plugin");
        let mode = Permissions::from_mode(file.mode.0);
        match file.kind {
            Kind::Missing => return Ok(()),
            Kind::Executable => drop(fs::copy(&executable, &path)?),
            Kind::Directory => fs::create_dir(&path)?,
            Kind::Fifo => mkfifo(&path, nix::sys::stat::Mode::S_IRUSR)?,
            Kind::Garbage => fs::write(&path, [0x7f, 0, 1, 2, 3, 4, 5, 6])?,
            Kind::BadInterpreter => fs::write(&path, "#!/no/such/interpreter\n")?,
            Kind::DanglingLink => return symlink(self.dir.path().join("nothing"), &path),
            Kind::LinkLoop => return symlink(&path, &path),
            Kind::Link => {
                let target = self.dir.path().join(format!("bin/target-of-{plugin}"));
                fs::copy(&executable, &target)?;
                symlink(&target, &path)?;
            }
            Kind::Busy => {
                fs::copy(&executable, &path)?;
                let writer = File::options().append(true).open(&path)?;
                let until = file.busy_ms.map_or(PATIENCE, Duration::from_millis);
                thread::spawn(move || {
                    thread::sleep(until);
                    drop(writer);
                });
            }
        }
        // Both follow links: the mode and the owner of a link are those of its target.
        fs::set_permissions(&path, mode)?;
        if file.owner == Owner::Other { chown(&path, Some(65_534), None) } else { Ok(()) }
    }
}

/// Has the child begin with SIGINT and SIGHUP at their defaults, as a shell with job control starts it, even if this
/// process was started to ignore them (`nohup`, the `&` of a script): ignored signals stay ignored across an exec, and mu
/// keeps them so.
pub fn with_default_signals(command: &mut Command) -> &mut Command {
    let reset = || {
        for number in [Signal::SIGINT, Signal::SIGHUP] {
            // SAFETY: no function is installed.
            unsafe { signal(number, SigHandler::SigDfl) }?;
        }
        Ok(())
    };
    // SAFETY: between fork and exec only the actions of signals are set, which is allowed there.
    unsafe { command.pre_exec(reset) }
}

/// Processes that live and whose mark begins like this.
fn marked(mark: &str) -> BTreeSet<i32> {
    let needle = format!("{MARK}={mark}").into_bytes();
    let Ok(processes) = fs::read_dir("/proc") else { return BTreeSet::new() };
    processes
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|pid: &i32| {
            let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            memchr::memmem::find(&environ, &needle).is_some() && !is_zombie(*pid)
        })
        .collect()
}

fn is_zombie(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_none_or(|(_, rest)| rest.trim_start().starts_with(['Z', 'X']))
}

fn io(error: std::io::Error) -> Cannot {
    Cannot(error.to_string())
}

fn as_root(what: &str) -> Result<(), Cannot> {
    if Uid::effective().is_root() { Ok(()) } else { Err(Cannot(format!("{what} takes root"))) }
}

fn not_as_root(what: &str) -> Result<(), Cannot> {
    if Uid::effective().is_root() { Err(Cannot(format!("{what} does not stop root"))) } else { Ok(()) }
}

impl World for Real {
    fn place(&self, what: &str) -> String {
        let path = match what {
            "dir" => self.dir.path().join("plugins"),
            "db" => self.db(),
            "repo" => self.dir.path().join("repo"),
            plugin => {
                let base = self.files.get(plugin).map(|file| file.basename(plugin));
                self.dir.path().join("plugins").join(base.unwrap_or_else(|| format!("mu-plugin-{plugin}")))
            }
        };
        path.to_string_lossy().into_owned()
    }

    fn install(&mut self, plugin: &str, file: &PluginFile) -> Result<(), Cannot> {
        match file.owner {
            Owner::User => {}
            Owner::Other => as_root("a file of another user")?,
            Owner::Root => return Err(Cannot("who could make a file of root's is root".to_owned())),
        }
        self.files.insert(plugin.to_owned(), file.clone());
        self.install_file(plugin, file).map_err(io)
    }

    fn set_plan(&mut self, plugin: &str, mut plan: Plan) -> Result<(), Cannot> {
        plan.record = true;
        plan.backend = Some(super::backend::socket(&self.backend_dir()));
        let json = serde_json::to_vec(&plan).map_err(|error| Cannot(error.to_string()))?;
        let path = format!("{}.plan.json", self.place(plugin));
        fs::write(format!("{path}.new"), json).map_err(io)?;
        fs::rename(format!("{path}.new"), path).map_err(io)
    }

    fn chmod(&mut self, plugin: &str, mode: u32) -> Result<(), Cannot> {
        fs::set_permissions(self.place(plugin), Permissions::from_mode(mode)).map_err(io)
    }

    fn set_db(&mut self, db: Db) -> Result<(), Cannot> {
        fs::create_dir_all(self.state()).map_err(io)?;
        let sqlite = |error: rusqlite::Error| Cannot(error.to_string());
        let mode = |path: &Path, mode| fs::set_permissions(path, Permissions::from_mode(mode)).map_err(io);
        match db {
            Db::Missing => self.remove_db(),
            Db::Garbage => {
                self.remove_db();
                fs::write(self.db(), b"this is not a database, it is a letter\n".repeat(100)).map_err(io)?;
            }
            Db::Newer => {
                self.open_db()?.pragma_update(None, "user_version", 1_000_000).map_err(sqlite)?;
            }
            Db::ReadOnly => {
                not_as_root("a read-only file")?;
                // There may be none yet.
                let _ = mode(&self.db(), 0o400);
                mode(&self.state(), 0o500)?;
            }
            Db::ReadOnlyFile => {
                not_as_root("a read-only file")?;
                let _ = mode(&self.db(), 0o400);
            }
            Db::Unreadable => {
                not_as_root("an unreadable file")?;
                let _ = mode(&self.db(), 0o000);
            }
            Db::Directory => {
                self.remove_db();
                fs::create_dir(self.db()).map_err(io)?;
            }
            Db::Full => return Err(Cannot("there is no full disk here".into())),
            Db::Locked => {
                let connection = self.open_db()?;
                connection.execute_batch("BEGIN IMMEDIATE").map_err(sqlite)?;
                self.lock = Some(connection);
            }
            Db::Restored => {
                self.lock = None;
                mode(&self.state(), 0o700)?;
                let _ = mode(&self.db(), 0o600);
            }
        }
        Ok(())
    }

    fn idle(&self, _: usize) -> Vec<String> {
        // Moments of a real machine are not exact; the simulated one says of every file what is too late.
        Vec::new()
    }

    fn end_of_step(&mut self) {
        self.lock = None;
    }

    fn make_repo(&mut self) -> Result<(), Cannot> {
        let git = self.git();
        fs::create_dir_all(&git).and_then(|()| fs::write(git.join("HEAD"), HEAD)).map_err(io)
    }

    fn set_fetch_head(&mut self, text: &str) -> Result<(), Cannot> {
        fs::write(self.git().join("FETCH_HEAD"), text).map_err(io)
    }

    fn fetch_head(&self) -> Option<Vec<u8>> {
        fs::read(self.git().join("FETCH_HEAD")).ok()
    }

    fn set_backend(&mut self, table: &BackendTable) -> Result<(), Cannot> {
        let backend = match &mut self.backend {
            Some(backend) => backend,
            none => {
                none.insert(RealBackend::start(&self.executables.backend, &self.dir.path().join("backend"))?)
            }
        };
        backend.control(&Control::Set(table.clone())).map(drop)
    }

    fn control(&mut self, control: &Control) -> Result<(), Cannot> {
        match &self.backend {
            Some(backend) => backend.control(control).map(drop),
            None => Err(Cannot("there is no backend here".to_owned())),
        }
    }

    fn books(&self) -> Result<Books, Cannot> {
        match &self.backend {
            Some(backend) => backend.control(&Control::Books),
            None => Ok(Books::default()),
        }
    }

    fn rows(&self) -> Result<Rows, String> {
        if !self.db().is_file() {
            return Ok(Rows::default());
        }
        let read = || -> Result<Rows, Box<dyn std::error::Error>> {
            let copy = tempfile::tempdir()?;
            let path = |suffix: &str| PathBuf::from(format!("{}{suffix}", self.db().display()));
            for suffix in ["", "-wal"] {
                if path(suffix).is_file() {
                    fs::copy(path(suffix), copy.path().join(format!("mu.db{suffix}")))?;
                }
            }
            Ok(rows::read(&Connection::open(copy.path().join("mu.db"))?)?)
        };
        read().map_err(|error| format!("{}: {error}", self.db().display()))
    }

    fn reboot(&mut self) -> Result<(), Cannot> {
        Err(Cannot("the power of this machine is not ours to cut".into()))
    }

    fn recycle(&mut self) -> Result<(), Cannot> {
        Err(Cannot("the process ids of this machine are not ours to hand out".into()))
    }

    fn start(&mut self, run: &Run) -> Result<usize, Cannot> {
        if !run.meanwhile.is_empty() {
            return Err(Cannot("the clocks and locks of this machine are not ours to change".into()));
        }
        match run.at_call {
            Some(AtCall::Kill(_) | AtCall::Panic(_) | AtCall::PowerOff(_)) => {
                return Err(Cannot("calls of mu on its operating system are not counted here".into()));
            }
            None => {}
        }
        if run.at_disk.is_some() || run.disk_error.is_some() {
            return Err(Cannot("operations on this disk are not counted".into()));
        }
        if !run.plugin_ends.is_empty() {
            return Err(Cannot("the acts of a plugin are not counted here".into()));
        }
        if run.stdout_closed_after.is_some_and(|bytes| bytes > 0) {
            return Err(Cannot("stdout can only be closed from the start here".into()));
        }
        let number = self.ran.len();
        let home = self.dir.path().join("home").to_string_lossy().into_owned();
        let path = format!("/usr/bin:/bin:{}", self.place("dir"));
        let usual = [
            ("HOME", home.as_str()),
            ("PATH", &path),
            ("LANG", "C.UTF-8"),
            (CANARY, &self.canary),
            (MARK, &self.mark),
        ];
        let env: Vec<(OsString, OsString)> = super::environment(&usual, &run.env);
        let file = |stream| File::create(self.output(number, stream)).map_err(io);
        let stdout = if run.stdout_closed_after.is_some() {
            let (reader, writer) = nix::unistd::pipe().map_err(|error| Cannot(error.to_string()))?;
            drop(reader);
            Stdio::from(writer)
        } else {
            Stdio::from(file("out")?)
        };
        let begun = Instant::now(); // before it lives, so that it never seems to take less than it does
        let child = with_default_signals(&mut Command::new(&self.executables.mu))
            .arg0("mu")
            .args(&run.argv[1..])
            .env_clear()
            .envs(env)
            .current_dir(&home)
            .stdin(Stdio::null())
            .stdout(stdout)
            .stderr(Stdio::from(file("err")?))
            .process_group(0)
            .spawn()
            .map_err(io)?;
        let pid = NixPid::from_raw(child.id() as i32);
        for (after, to, signal) in run.signals.clone() {
            let signal = Signal::try_from(signal).map_err(|error| Cannot(error.to_string()))?;
            let log = (to != "mu").then(|| format!("{}.log", self.place(&to)));
            thread::spawn(move || {
                thread::sleep(after);
                let newest = log.map(|log| {
                    let log = fs::read(log).unwrap_or_default();
                    let lines = LogLine::parse_all(&log).unwrap_or_default();
                    lines
                        .iter()
                        .rev()
                        .find(|line| matches!(line.event, Event::Started { .. }))
                        .map(|line| line.pid)
                });
                // A child that was waited for has given up its number; mu is waited for only when it is gone.
                match newest {
                    None => drop(kill(pid, signal)),
                    Some(Some(plugin)) => drop(kill(NixPid::from_raw(plugin), signal)),
                    Some(None) => {}
                }
            });
        }
        for (after, control) in run.controls.clone() {
            let dir = self.backend_dir();
            thread::spawn(move || {
                thread::sleep(after);
                // The scenario may be over.
                let _ = super::backend::control(&dir, &control);
            });
        }
        let (argv, heard) = (run.argv.clone(), run.stdout_closed_after.is_none());
        self.ran.push(Invocation { argv, child, begun, gone: None, ended: None, heard });
        Ok(number)
    }

    fn finish(&mut self, started: usize) -> Result<Outcome, String> {
        let (out, err) = (self.output(started, "out"), self.output(started, "err"));
        if let Some(ended) = &self.ran[started].ended {
            return Ok(ended.clone());
        }
        let mut peak_kib = 0;
        let (status, took) = loop {
            self.look().map_err(|error| error.to_string())?;
            let one = &mut self.ran[started];
            match one.gone {
                Some(gone) => break gone,
                None if one.begun.elapsed() > PATIENCE => {
                    let _ = one.child.kill();
                    let _ = one.child.wait();
                    return Err(format!("it still ran after {} s and was killed", PATIENCE.as_secs()));
                }
                None => {
                    peak_kib = peak_memory_kib(one.child.id()).max(peak_kib);
                    thread::sleep(LOOK_EVERY);
                }
            }
        };
        let one = &mut self.ran[started];
        let exit = match (status.code(), status.signal()) {
            (Some(code), _) => Exit::Status(code),
            (None, signal) => Exit::Signal(signal.unwrap_or(0)),
        };
        let outcome = Outcome {
            exit,
            stdout: fs::read(out).unwrap_or_default(),
            stderr: fs::read(err).unwrap_or_default(),
            took,
        };
        one.ended = Some(outcome.clone());
        let line = one.argv.join(" ");
        // What a killed mu left may take its grace: the judgement at the end looks at that.
        let ended = |other: &Invocation| matches!(&other.ended, Some(ended) if ended.exit != Exit::Signal(9));
        if self.ran.iter().all(ended) {
            let left = self.living();
            if !left.is_empty() {
                self.left_at_exit.push(format!("`{line}` ended while processes {left:?} live"));
            }
        }
        if peak_kib > MEMORY_KIB {
            let text = format!("`{line}` used {peak_kib} KiB of memory");
            self.found.push(Violation { oracle: "memory", rule: "TRN-04", at: None, text });
        }
        Ok(outcome)
    }

    fn end_all(&mut self) -> Result<(), Cannot> {
        Err(Cannot("not everybody on this machine is ours to kill".into()))
    }

    fn unconverged(&mut self, _: Excuses) -> Result<Vec<String>, Cannot> {
        Err(Cannot("nobody here knows of all machines behind the plugins".into()))
    }

    fn advance(&mut self, span: Duration) {
        let until = Instant::now() + span;
        while let Some(left) = until.checked_duration_since(Instant::now()) {
            // What cannot be looked at now is looked at when its end is waited for.
            let _ = self.look();
            thread::sleep(left.min(LOOK_EVERY));
        }
    }

    fn step_wall(&mut self, _: i64) -> Result<(), Cannot> {
        Err(Cannot("the clock of this machine is not ours to step".into()))
    }

    fn starts(&self, plugin: &str) -> usize {
        self.wire(plugin).len()
    }

    fn wire(&self, plugin: &str) -> Vec<Vec<String>> {
        let mut wire: BTreeMap<u32, Vec<String>> = BTreeMap::new();
        for line in self.log(plugin) {
            let heard = wire.entry(line.start).or_default();
            match line.event {
                Event::Line(text) => heard.push(method_of(text.as_bytes())),
                Event::Bytes(_) => heard.push("?".to_owned()),
                _ => {}
            }
        }
        wire.into_values().collect()
    }

    fn fired(&self, plugin: &str) -> Vec<String> {
        let fired = |line: LogLine| match line.event {
            Event::Fault(name) => Some(name),
            _ => None,
        };
        self.log(plugin).into_iter().filter_map(fired).collect()
    }
}

/// The most memory that a living process has had at once.
fn peak_memory_kib(pid: u32) -> i64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}
