//! A directory with a home, a database and plugins, and `mu` runs in it.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use mu_sim::fake::{Event, Fault, LogLine, Plan, PluginTable, schema_digest};
use mu_sim::world::with_default_signals;
use nix::errno::Errno;
use nix::libc;
use nix::sys::signal::{SigHandler, Signal, kill, killpg, signal};
use nix::unistd::{Pid, setsid};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{PidfdFlags, pidfd_open};
use serde_json::Value;

use crate::terminal::Terminal;

/// Nothing that is waited for takes longer, or the test fails.
const PATIENCE: Duration = Duration::from_secs(19);
/// How long a process may live that should end: the grace of five seconds.
pub(crate) const GRACE: Duration = Duration::from_secs(5);
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// See the top of this file.
pub(crate) struct Stage {
    dir: tempfile::TempDir,
}

impl Stage {
    pub(crate) fn new() -> Stage {
        let dir = tempfile::Builder::new().prefix("mu-binary-").tempdir().unwrap();
        for sub in ["home", "plugins", "tmp"] {
            fs::create_dir(dir.path().join(sub)).unwrap();
        }
        let stage = Stage { dir };
        // Another process makes the copy: a descriptor that this one holds open for writing could, in the thread of
        // another test, be inherited across a fork, and the file would be busy for a moment.
        let copied = Command::new("/bin/cp")
            .arg(env!("CARGO_BIN_EXE_mu-fake-plugin"))
            .arg(stage.executable())
            .status();
        assert!(copied.unwrap().success());
        fs::set_permissions(stage.executable(), Permissions::from_mode(0o755)).unwrap();
        stage
    }

    fn executable(&self) -> PathBuf {
        self.dir.path().join("fake-plugin")
    }

    /// A path below the directory.
    pub(crate) fn path(&self, below: impl AsRef<Path>) -> PathBuf {
        self.dir.path().join(below)
    }

    /// The database.
    pub(crate) fn db(&self) -> PathBuf {
        self.path("home/.local/state/mu/mu.db")
    }

    /// Where a plugin is, or would be.
    pub(crate) fn place(&self, name: &str) -> String {
        self.path(format!("plugins/mu-plugin-{name}")).to_str().unwrap().to_owned()
    }

    /// Installs a plugin with these faults; answers where it is.
    pub(crate) fn install(&self, name: &str, faults: impl IntoIterator<Item = Fault>) -> String {
        let faults: Vec<Fault> =
            faults.into_iter().map(|fault| Fault { plugin: name.to_owned(), ..fault }).collect();
        let digest = schema_digest(mu_schema().as_bytes());
        let mut plan = Plan::new(name, &PluginTable::default(), &faults, &digest).unwrap();
        plan.record = true;
        let place = self.place(name);
        fs::write(format!("{place}.plan.json"), plan.to_json()).unwrap();
        std::os::unix::fs::symlink(self.executable(), &place).unwrap();
        place
    }

    /// Installs a plugin and has mu register it; its faults are for later starts.
    pub(crate) fn register(&self, name: &str, faults: impl IntoIterator<Item = Fault>) -> String {
        let place = self.install(name, faults);
        self.mu(["plugin", "add", name, "--", &place]).end().succeeds();
        place
    }

    /// What a plugin has written down, oldest first.
    pub(crate) fn log(&self, name: &str) -> Vec<LogLine> {
        let log = fs::read(format!("{}.log", self.place(name))).unwrap_or_default();
        LogLine::parse_all(&log).unwrap()
    }

    /// What happened in one start of a plugin.
    pub(crate) fn events(&self, name: &str, start: u32) -> Vec<Event> {
        let lines = self.log(name).into_iter().filter(|line| line.start == start);
        lines.map(|line| line.event).collect()
    }

    /// Waits until a plugin has been asked for something in this start; answers its process id.
    pub(crate) fn until_asked(&self, name: &str, start: u32) -> i32 {
        until(&format!("{name} is asked for something"), || {
            let log = self.log(name);
            let asked = log.iter().find(|line| line.start == start && matches!(line.event, Event::Line(_)));
            asked.map(|line| line.pid)
        })
    }

    /// A run of mu.
    pub(crate) fn mu<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Mu<'_> {
        Mu {
            stage: self,
            arguments: arguments.into_iter().map(str::to_owned).collect(),
            setup: String::new(),
            variables: Vec::new(),
            without_home: false,
            ignores_sigchld: false,
            lost_stdout: false,
            terminal: None,
        }
    }

    /// The processes of this stage that live.
    pub(crate) fn living(&self) -> Vec<i32> {
        let needle = format!("TMPDIR={}\0", self.path("tmp").display());
        let processes = fs::read_dir("/proc").unwrap();
        processes
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
            .filter(|pid| {
                let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
                String::from_utf8_lossy(&environ).contains(&needle) && !is_zombie(*pid)
            })
            .collect()
    }

    /// mu and its plugins have left no process and no file that does not belong there.
    pub(crate) fn assert_nothing_is_left(&self) {
        assert_eq!(self.living(), [0; 0], "processes live on");
        let names = |below: &str| -> Vec<String> {
            let Ok(entries) = fs::read_dir(self.path(below)) else { return Vec::new() };
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
        };
        assert_eq!(names("tmp"), [""; 0], "temporary files are left");
        let state = names("home/.local/state/mu");
        assert!(state.iter().all(|name| name == "mu.db"), "{state:?}");
        let home = names("home");
        assert!(home.iter().all(|name| name == ".local"), "{home:?}");
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        // A test that failed half-way has left them.
        for pid in self.living() {
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
    }
}

/// The published schema, whose digest a declaration names.
fn mu_schema() -> &'static str {
    include_str!("../../schemas/plugin-protocol-v1.json")
}

fn is_zombie(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_none_or(|(_, rest)| rest.trim_start().starts_with(['Z', 'X']))
}

/// Looks until there is an answer.
pub(crate) fn until<R>(what: &str, mut look: impl FnMut() -> Option<R>) -> R {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(answer) = look() {
            return answer;
        }
        assert!(Instant::now() < deadline, "waited in vain: {what}");
        let _ = poll(&mut [], Some(&timespec(LOOK_EVERY)));
    }
}

fn timespec(span: Duration) -> Timespec {
    Timespec::try_from(span).unwrap()
}

/// A process that lives, by a handle that no other process can come to bear.
pub(crate) struct Watch {
    pid: i32,
    pidfd: OwnedFd,
}

impl Watch {
    pub(crate) fn new(pid: i32) -> Watch {
        let id = rustix::process::Pid::from_raw(pid).unwrap();
        Watch { pid, pidfd: pidfd_open(id, PidfdFlags::empty()).unwrap() }
    }

    /// Whether it ends within this time.
    pub(crate) fn ends_within(&self, span: Duration) -> bool {
        let deadline = Instant::now() + span;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let mut fds = [PollFd::new(&self.pidfd, PollFlags::IN)];
            match poll(&mut fds, Some(&timespec(left))) {
                Err(rustix::io::Errno::INTR) => {}
                ready => return ready.unwrap() > 0,
            }
        }
    }

    pub(crate) fn pid(&self) -> i32 {
        self.pid
    }
}

/// How mu is started.
pub(crate) struct Mu<'a> {
    stage: &'a Stage,
    arguments: Vec<String>,
    setup: String,
    variables: Vec<(String, String)>,
    without_home: bool,
    ignores_sigchld: bool,
    lost_stdout: bool,
    terminal: Option<OwnedFd>,
}

impl<'a> Mu<'a> {
    /// The shell runs this first, in the process that becomes mu.
    pub(crate) fn after(self, setup: &str) -> Mu<'a> {
        Mu { setup: setup.to_owned(), ..self }
    }

    /// One more variable.
    pub(crate) fn var(mut self, name: &str, value: impl AsRef<Path>) -> Mu<'a> {
        self.variables.push((name.to_owned(), value.as_ref().to_str().unwrap().to_owned()));
        self
    }

    /// HOME is not set.
    pub(crate) fn without_home(self) -> Mu<'a> {
        Mu { without_home: true, ..self }
    }

    /// SIGCHLD is ignored.
    pub(crate) fn ignoring_sigchld(self) -> Mu<'a> {
        Mu { ignores_sigchld: true, ..self }
    }

    /// Standard output is a pipe whose reader is gone.
    pub(crate) fn with_lost_stdout(self) -> Mu<'a> {
        Mu { lost_stdout: true, ..self }
    }

    /// All three streams are this terminal, which it controls.
    pub(crate) fn on(self, terminal: &Terminal) -> Mu<'a> {
        Mu { terminal: Some(terminal.slave()), ..self }
    }

    /// Starts it, in a group of its own, as a shell with job control does.
    pub(crate) fn start(self) -> Running {
        let outputs = tempfile::tempdir().unwrap();
        let output = |name| File::create(outputs.path().join(name)).unwrap();
        let mut command = if self.setup.is_empty() {
            Command::new(env!("CARGO_BIN_EXE_mu"))
        } else {
            let mut shell = Command::new("/bin/sh");
            shell.args(["-c", &format!("{}\nexec \"$0\" \"$@\"", self.setup), env!("CARGO_BIN_EXE_mu")]);
            shell
        };
        command.args(&self.arguments).env_clear();
        if !self.without_home {
            command.env("HOME", self.stage.path("home"));
        }
        command.env("PATH", "/usr/bin:/bin").env("TMPDIR", self.stage.path("tmp")).envs(self.variables);
        command.current_dir(self.stage.path("plugins"));
        command.stdin(Stdio::null()).stdout(output("out")).stderr(output("err"));
        if self.lost_stdout {
            let (reader, writer) = io::pipe().unwrap();
            drop(reader);
            command.stdout(writer);
        }
        with_default_signals(&mut command);
        match self.terminal {
            None => drop(command.process_group(0)),
            Some(terminal) => {
                command.stdin(terminal.try_clone().unwrap());
                command.stdout(terminal.try_clone().unwrap()).stderr(terminal);
                // SAFETY: between fork and exec there are only two system calls, which are allowed there.
                unsafe {
                    command.pre_exec(|| {
                        setsid()?;
                        Errno::result(libc::ioctl(0, libc::TIOCSCTTY, 0))?;
                        Ok(())
                    });
                }
            }
        }
        if self.ignores_sigchld {
            // SAFETY: between fork and exec only a signal's action is set, which is allowed there.
            unsafe {
                command.pre_exec(|| {
                    signal(Signal::SIGCHLD, SigHandler::SigIgn)?;
                    Ok(())
                });
            }
        }
        let begun = Instant::now();
        let child = command.spawn().unwrap();
        let watch = Watch::new(child.id() as i32);
        Running { arguments: self.arguments, outputs, child, watch, begun }
    }

    /// Starts it and waits for its end.
    pub(crate) fn end(self) -> Ended {
        self.start().end()
    }
}

/// A mu that runs.
pub(crate) struct Running {
    arguments: Vec<String>,
    outputs: tempfile::TempDir,
    child: Child,
    watch: Watch,
    begun: Instant,
}

impl Running {
    /// Sends mu itself a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.watch.pid()), signal).unwrap();
    }

    /// Sends mu's process group a signal, as the terminal does for Ctrl-C.
    pub(crate) fn signal_group(&self, signal: Signal) {
        killpg(Pid::from_raw(self.watch.pid()), signal).unwrap();
    }

    /// The most memory that it has had at once so far, in KiB; 0 once it has ended.
    pub(crate) fn peak_kib(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.watch.pid())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        line.map_or(0, |line| line.split_whitespace().next().unwrap().parse().unwrap())
    }

    /// Whether it has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.watch.ends_within(Duration::ZERO)
    }

    /// Waits for its end.
    pub(crate) fn end(mut self) -> Ended {
        if !self.watch.ends_within(PATIENCE.saturating_sub(self.begun.elapsed())) {
            self.signal_group(Signal::SIGKILL);
            self.child.wait().unwrap();
            panic!("mu {:?} does not end", self.arguments);
        }
        let took = self.begun.elapsed();
        let status = self.child.wait().unwrap();
        let text = |name| String::from_utf8(fs::read(self.outputs.path().join(name)).unwrap()).unwrap();
        Ended { arguments: self.arguments, status, stdout: text("out"), stderr: text("err"), took }
    }
}

/// A mu that has ended.
#[derive(Debug)]
pub(crate) struct Ended {
    arguments: Vec<String>,
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) took: Duration,
}

impl Ended {
    /// It exited with 0.
    #[track_caller]
    pub(crate) fn succeeds(self) -> Ended {
        assert_eq!(self.status.code(), Some(0), "{self:?}");
        self
    }

    /// It died of this signal, having said nothing on standard output and one line on standard error.
    #[track_caller]
    pub(crate) fn died_of(&self, signal: Signal) {
        assert_eq!(self.status.signal(), Some(signal as i32), "{self:?}");
        assert_eq!(self.stdout, "");
        assert_eq!(self.stderr.lines().count(), 1, "{self:?}");
    }

    /// It failed with this exit code and name, and said so in every way the command line promises.
    #[track_caller]
    pub(crate) fn fails(&self, exit: i32, error: &str) -> Value {
        assert_eq!(self.status.code(), Some(exit), "{self:?}");
        assert_eq!(self.stdout.matches('\n').count(), 1, "{self:?}");
        assert!(self.stdout.ends_with('\n'), "{self:?}");
        let envelope: Value = serde_json::from_str(&self.stdout).unwrap();
        let names: Vec<&String> = envelope.as_object().unwrap().keys().collect();
        assert_eq!(names, ["error", "exit", "message", "next", "ok"], "{self:?}");
        assert_eq!(envelope["ok"], false);
        assert_eq!(envelope["error"], error, "{self:?}");
        assert_eq!(envelope["exit"], exit);
        let message = envelope["message"].as_str().unwrap();
        assert!(!message.is_empty() && !message.contains('\n'), "{self:?}");
        if self.arguments.iter().any(|argument| argument == "--json") {
            assert_eq!(self.stderr, "");
        } else {
            assert_eq!(self.stderr, format!("mu: {message}\n"));
        }
        envelope
    }
}
