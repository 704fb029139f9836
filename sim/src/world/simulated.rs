//! A scenario on the simulated machine.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use mu_core::os::{EpochMs, Exit};
use rusqlite::Connection;

use super::{AtCall, CANARY, Cannot, ClockChange, HEAD, Outcome, Rows, Run, World, method_of, rows};
use crate::backend::{BackendTable, Books, Control};
use crate::disk::{Disk, Kind as DiskOpKind, Node, Owner, Verdict};
use crate::fake::{Kind, Owner as FileOwner, Plan, PluginFile};
use crate::kernel::{Command, Machine, Options, OsCall, OsCallVerdict, Output, ProgramFuture, Started, Sys};
use crate::net::Network;
use crate::oracle::{self, Leak, Observed, Ran, Violation};
use crate::programs::{self, Installed};
use crate::scenario::Db;
use crate::trace::{Target, What};

/// The user who runs mu.
const USER: u32 = 1000;
/// Somebody else.
const OTHER: u32 = 1001;
/// The superuser.
const ROOT: u32 = 0;
const HOME: &str = "/home/user";
const PLUGINS: &str = "/plugins";
const MU: &str = "/bin/mu";
/// Where mu keeps its database when nobody says otherwise.
const STATE: &str = "/home/user/.local/state/mu";
const REPO: &str = "/home/user/repo";
const FETCH_HEAD: &str = "/home/user/repo/.git/FETCH_HEAD";
const DB: &str = "/home/user/.local/state/mu/mu.db";
/// A process outside the machine that uses the database.
const OUTSIDER: Owner = Owner(u64::MAX);
/// Virtual time in which whatever a dead mu left must be gone.
const AFTERMATH: Duration = Duration::from_secs(30);

struct Invocation {
    started: Started,
    argv: Vec<String>,
    begun: Duration,
    crash: bool,
    heard: bool,
}

/// A machine, its plugins, and everything that was started on it.
pub struct Simulated {
    machine: Machine,
    plugins: BTreeMap<String, Rc<RefCell<Installed>>>,
    files: BTreeMap<String, PluginFile>,
    ran: Vec<Invocation>,
    canary: String,
    lock: Option<Connection>,
    instead: Option<Instead>,
    network: Rc<Network>,
}

/// A program that takes the place of mu's command line.
type Instead = Box<dyn FnOnce(Sys) -> ProgramFuture>;

impl Simulated {
    /// A machine with mu installed and no plugin.
    pub fn new(options: Options) -> Simulated {
        let disk = Disk::new();
        disk.set_seed(options.seed);
        let machine = Machine::with(options, disk);
        programs::install_mu(&machine);
        programs::install_shell(&machine);
        let network = Network::new(machine.remote());
        machine.on_power_loss({
            let network = Rc::downgrade(&network);
            move || {
                if let Some(network) = network.upgrade() {
                    network.power_off();
                }
            }
        });
        let disk = machine.disk();
        disk.put(Path::new(HOME), USER, 0o700, Node::Directory);
        disk.put(Path::new(PLUGINS), USER, 0o755, Node::Directory);
        disk.put(Path::new(MU), 0, 0o755, program(programs::MU));
        disk.put(Path::new("/bin/sh"), 0, 0o755, program(programs::SHELL));
        disk.put(Path::new("/dev/null"), 0, 0o666, Node::Device);
        Simulated {
            machine,
            plugins: BTreeMap::new(),
            files: BTreeMap::new(),
            ran: Vec::new(),
            canary: format!("canary-{:016x}", options.seed ^ 0x5eed_ca7a_a12b_0007),
            lock: None,
            instead: None,
            network,
        }
    }

    /// The next start of mu runs this in place of the command line. It counts as mu for every oracle.
    pub fn run_instead<F>(&mut self, program: impl FnOnce(Sys) -> F + 'static)
    where
        F: Future<Output = Exit> + 'static,
    {
        self.instead = Some(Box::new(|sys| Box::pin(program(sys))));
    }

    /// The machine.
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// What the backend of the plugins has in its books now: the truth about every key and every machine.
    pub fn backend(&self) -> Books {
        self.network.books()
    }

    /// Lets what is left come to its end, then asks every oracle. `stubborn` are plugins that are scripted to ignore
    /// the end of their stdin; `leak` says how far one is scripted to give away its environment.
    pub fn judge(&mut self, stubborn: &BTreeSet<String>, leak: Leak) -> Vec<Violation> {
        let mut found = Vec::new();
        for started in 0..self.ran.len() {
            if let Err(report) = self.finish(started) {
                let text = format!("`{}` does not end: {report}", self.ran[started].argv.join(" "));
                found.push(Violation { oracle: "end", rule: "TMO-05", at: None, text });
            }
        }
        // A plugin that a dead mu left and that waits for ever is a deadlock here; `leftover` says whether it may.
        let _ = self.machine.run_until(self.machine.now() + AFTERMATH);
        let ran: Vec<Ran> = self.ran.iter().map(|one| self.ran(one)).collect();
        let files = self.machine.disk().files();
        let events = self.machine.events();
        let observed = Observed {
            events: &events,
            now: self.machine.now().as_nanos() as u64,
            ran: &ran,
            files: &files,
            canary: &self.canary,
            stubborn,
            leak,
        };
        found.extend(oracle::check(&observed));
        found
    }

    fn ran(&self, one: &Invocation) -> Ran {
        Ran {
            pid: one.started.pid,
            argv: one.argv.clone(),
            stdout: self.machine.stdout(&one.started),
            stderr: self.machine.stderr(&one.started),
            exit: self.machine.exit(&one.started),
            crash: one.crash,
            heard: one.heard,
        }
    }

    /// Uses the database as another program would.
    fn open_db(&self) -> Result<Connection, Cannot> {
        let opened = self.machine.disk().open_db(OUTSIDER, USER, Path::new(DB));
        opened.map_err(|error| Cannot(format!("{DB}: {error}")))
    }

    fn remove_db(&self) {
        for suffix in ["", "-wal", "-shm"] {
            let _ = self.machine.disk().remove(Path::new(&format!("{DB}{suffix}")));
        }
    }

    fn install_file(&self, plugin: &str, file: &PluginFile) {
        let path = PathBuf::from(self.place(plugin));
        let disk = self.machine.disk();
        let _ = disk.remove(&path);
        let owner = match file.owner {
            FileOwner::User => USER,
            FileOwner::Other => OTHER,
            FileOwner::Root => ROOT,
        };
        let name = programs::program_name(plugin);
        let put = |node| disk.put(&path, owner, file.mode.0, node);
        match file.kind {
            Kind::Missing => {}
            Kind::Executable => put(program(&name)),
            Kind::Directory => put(Node::Directory),
            Kind::Fifo => put(Node::Fifo),
            Kind::Garbage => put(Node::Bytes),
            Kind::DanglingLink => put(Node::Link("/plugins/nothing".into())),
            Kind::LinkLoop => put(Node::Link(path.clone())),
            Kind::BadInterpreter => put(Node::Program { name, busy: false, interpreter_missing: true }),
            Kind::Link => {
                let target = PathBuf::from(format!("{PLUGINS}/target-of-{plugin}"));
                disk.put(&target, owner, file.mode.0, program(&name));
                put(Node::Link(target));
            }
            Kind::Busy => {
                put(Node::Program { name: name.clone(), busy: true, interpreter_missing: false });
                if let Some(ms) = file.busy_ms {
                    let (path, mode) = (path.clone(), file.mode.0);
                    self.machine.at(self.machine.now() + Duration::from_millis(ms), move |machine| {
                        machine.disk().put(&path, owner, mode, program(&name));
                    });
                }
            }
        }
    }
}

fn program(name: &str) -> Node {
    Node::Program { name: name.to_owned(), busy: false, interpreter_missing: false }
}

fn sqlite(error: rusqlite::Error) -> Cannot {
    Cannot(format!("{DB}: {error}"))
}

fn io(error: std::io::Error) -> Cannot {
    Cannot(error.to_string())
}

impl World for Simulated {
    fn place(&self, what: &str) -> String {
        match what {
            "dir" => PLUGINS.to_owned(),
            "db" => DB.to_owned(),
            "repo" => REPO.to_owned(),
            plugin => {
                let base = self.files.get(plugin).map(|file| file.basename(plugin));
                format!("{PLUGINS}/{}", base.unwrap_or_else(|| format!("mu-plugin-{plugin}")))
            }
        }
    }

    fn install(&mut self, plugin: &str, file: &PluginFile) -> Result<(), Cannot> {
        self.files.insert(plugin.to_owned(), file.clone());
        self.install_file(plugin, file);
        Ok(())
    }

    fn set_plan(&mut self, plugin: &str, plan: Plan) -> Result<(), Cannot> {
        match self.plugins.get(plugin) {
            Some(installed) => installed.borrow_mut().plan = Rc::new(plan),
            None => {
                let installed = Rc::new(RefCell::new(Installed::new(plan)));
                programs::install_plugin(&self.machine, plugin, Rc::clone(&installed), &self.network);
                self.plugins.insert(plugin.to_owned(), installed);
            }
        }
        Ok(())
    }

    fn chmod(&mut self, plugin: &str, mode: u32) -> Result<(), Cannot> {
        self.machine.disk().set_mode(Path::new(&self.place(plugin)), mode).map_err(io)
    }

    fn set_db(&mut self, db: Db) -> Result<(), Cannot> {
        let (disk, file) = (self.machine.disk(), Path::new(DB));
        disk.create_dir_all(Path::new(STATE), USER, 0o700).map_err(io)?;
        match db {
            Db::Missing => self.remove_db(),
            Db::Garbage => {
                self.remove_db();
                disk.put(file, USER, 0o600, Node::Bytes);
                disk.write_bytes(file, &b"this is not a database, it is a letter\n".repeat(100));
            }
            Db::Newer => {
                let connection = self.open_db()?;
                connection.pragma_update(None, "user_version", 1_000_000).map_err(sqlite)?;
            }
            Db::ReadOnly => {
                // There may be none yet.
                let _ = disk.set_mode(file, 0o400);
                disk.set_mode(Path::new(STATE), 0o500).map_err(io)?;
            }
            Db::ReadOnlyFile => drop(disk.set_mode(file, 0o400)),
            Db::Unreadable => drop(disk.set_mode(file, 0o000)),
            Db::Directory => {
                self.remove_db();
                disk.put(file, USER, 0o700, Node::Directory);
            }
            Db::Full => disk.set_fault(Box::new(|op| match op.kind {
                DiskOpKind::Write => Verdict::Errno(nix::errno::Errno::ENOSPC),
                _ => Verdict::Go,
            })),
            Db::Locked => {
                let connection = self.open_db()?;
                connection.execute_batch("BEGIN IMMEDIATE").map_err(sqlite)?;
                self.lock = Some(connection);
            }
            Db::Restored => {
                self.lock = None;
                disk.clear_fault();
                disk.set_mode(Path::new(STATE), 0o700).map_err(io)?;
                let _ = disk.set_mode(file, 0o600);
            }
        }
        Ok(())
    }

    fn unlock_db(&mut self) {
        self.lock = None;
    }

    fn make_repo(&mut self) -> Result<(), Cannot> {
        let disk = self.machine.disk();
        let git = Path::new(REPO).join(".git");
        disk.put(&git, USER, 0o755, Node::Directory);
        disk.write(&git.join("HEAD"), USER, HEAD).map_err(io)
    }

    fn set_fetch_head(&mut self, text: &str) -> Result<(), Cannot> {
        self.machine.disk().write(Path::new(FETCH_HEAD), USER, text.as_bytes()).map_err(io)
    }

    fn fetch_head(&self) -> Option<Vec<u8>> {
        self.machine.disk().bytes(Path::new(FETCH_HEAD))
    }

    fn set_backend(&mut self, table: &BackendTable) -> Result<(), Cannot> {
        self.network.control(&Control::Set(table.clone()));
        Ok(())
    }

    fn control(&mut self, control: &Control) -> Result<(), Cannot> {
        self.network.control(control);
        Ok(())
    }

    fn books(&self) -> Result<Books, Cannot> {
        Ok(self.network.books())
    }

    fn rows(&self) -> Result<Rows, String> {
        let copy = Disk::new();
        for suffix in ["", "-wal"] {
            let path = PathBuf::from(format!("{DB}{suffix}"));
            if let Some(bytes) = self.machine.disk().bytes(&path) {
                copy.put(&path, USER, 0o600, Node::Bytes);
                copy.write_bytes(&path, &bytes);
            } else if suffix.is_empty() {
                return Ok(Rows::default());
            }
        }
        let opened =
            copy.open_db(OUTSIDER, USER, Path::new(DB)).and_then(|connection| rows::read(&connection));
        opened.map_err(|error| format!("{DB}: {error}"))
    }

    fn reboot(&mut self) -> Result<(), Cannot> {
        self.lock = None;
        self.machine.power_cycle();
        Ok(())
    }

    fn recycle(&mut self) -> Result<(), Cannot> {
        self.machine.recycle_pids();
        Ok(())
    }

    fn start(&mut self, run: &Run) -> Result<usize, Cannot> {
        let mut command = Command::new(run.argv.iter().map(String::as_str));
        command.exec.argv[0] = MU.into();
        command.cwd = HOME.into();
        command.uid = USER;
        let usual = [("HOME", HOME), ("PATH", "/bin:/plugins"), ("LANG", "C.UTF-8"), (CANARY, &self.canary)];
        command.exec.env = super::environment(&usual, &run.env);
        if let Some(bytes) = run.stdout_closed_after {
            command.stdout = Output::ClosedAfter(bytes);
        }
        if let Some(at_call) = run.at_call {
            command.on_os_call = Some(Rc::new(move |call: OsCall| match at_call {
                AtCall::Kill(nth) if call.nth == nth => OsCallVerdict::Kill,
                AtCall::Panic(nth) if call.nth == nth => OsCallVerdict::Panic,
                _ => OsCallVerdict::Go,
            }));
        }
        let begun = self.machine.now();
        let started = match self.instead.take() {
            Some(program) => self.machine.start_fn(&command, program),
            None => self.machine.start(&command),
        };
        let started = started.map_err(io)?;
        for (after, to, number) in &run.signals {
            let mu = (to == "mu").then_some(started.pid);
            let (name, number) = (format!("mu-plugin-{to}"), *number);
            self.machine.at(begun + *after, move |machine| {
                let named = machine.living().into_iter().filter(|one| *one.name == *name);
                if let Some(pid) = mu.or_else(|| named.map(|one| one.pid).max()) {
                    let _ = machine.signal(Target::Process(pid), number);
                }
            });
        }
        for (after, change) in run.clocks.iter().copied() {
            let network = Rc::clone(&self.network);
            self.machine.at(begun + after, move |machine| match change {
                ClockChange::StepWall(by_ms) => machine.step_wall(EpochMs(machine.wall().0 + by_ms)),
                ClockChange::Suspend(span) => {
                    machine.suspend(span);
                    network.slept(span);
                }
            });
        }
        for (after, control) in run.controls.iter().cloned() {
            let network = Rc::clone(&self.network);
            self.machine.at(begun + after, move |_| network.control(&control));
        }
        let heard = run.stdout_closed_after.is_none();
        let crash = matches!(run.at_call, Some(AtCall::Panic(_)));
        self.ran.push(Invocation { started, argv: run.argv.clone(), begun, crash, heard });
        Ok(self.ran.len() - 1)
    }

    fn finish(&mut self, started: usize) -> Result<Outcome, String> {
        let one = &self.ran[started];
        let exit = match self.machine.exit(&one.started) {
            Some(exit) => exit,
            None => self.machine.run_until_exit(&one.started).map_err(|stuck| stuck.to_string())?,
        };
        let events = self.machine.events();
        let died = events
            .iter()
            .rev()
            .find(|event| event.pid == one.started.pid && matches!(event.what, What::Exit(_)))
            .map_or(0, |event| event.at);
        Ok(Outcome {
            exit,
            stdout: self.machine.stdout(&one.started),
            stderr: self.machine.stderr(&one.started),
            took: Duration::from_nanos(died).saturating_sub(one.begun),
        })
    }

    fn advance(&mut self, span: Duration) {
        // Being stuck shows again, with its report, when somebody waits for an end.
        let _ = self.machine.run_until(self.machine.now() + span);
    }

    fn step_wall(&mut self, by_ms: i64) -> Result<(), Cannot> {
        let EpochMs(now) = self.machine.wall();
        self.machine.step_wall(EpochMs(now + by_ms));
        Ok(())
    }

    fn wire(&self, plugin: &str) -> Vec<Vec<String>> {
        let Some(installed) = self.plugins.get(plugin) else { return Vec::new() };
        let installed = installed.borrow();
        installed.heard.iter().map(|lines| lines.iter().map(|line| method_of(line)).collect()).collect()
    }

    fn fired(&self, plugin: &str) -> Vec<String> {
        self.plugins.get(plugin).map_or_else(Vec::new, |installed| installed.borrow().fired.clone())
    }
}
