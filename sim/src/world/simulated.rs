//! A scenario on the simulated machine.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use mu_core::os::{EpochMs, Exit, FileKind};
use mu_core::reached;

use super::journal::Journal;
use super::points::Director;
use super::{
    Act, AtCall, CANARY, Cannot, Course, HEAD, Meanwhile, Outcome, Rows, Run, World, method_of, rows,
};
use crate::backend::{BackendTable, Books, Control};
use crate::disk::{Database, Disk, Node, Owner};
use crate::fake::{Kind, Owner as FileOwner, Plan, PluginFile};
use crate::kernel::{Command, Machine, Options, Output, ProgramFuture, SIGKILL, Started, Sys};
use crate::net::Network;
use crate::oracle::intent::Image;
use crate::oracle::rows::{HEAD_OF_A_DATABASE, databases};
use crate::oracle::{self, Excuses, Leak, Observed, Ran, Violation, ledger};
use crate::programs::{self, Installed};
use crate::scenario::Db;
use crate::sim_os::Watch;
use crate::trace::{Moment, Target, Timeline, What};

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
/// The last of the processes outside the machine that use the database.
const LAST_OUTSIDER: u64 = u64::MAX;
/// Virtual time in which whatever a dead mu left must be gone.
const AFTERMATH: Duration = Duration::from_secs(30);

struct Invocation {
    started: Started,
    argv: Vec<String>,
    begun: Duration,
    crash: bool,
    heard: bool,
    step: usize,
    /// How many acts of each plugin there had been.
    acts: BTreeMap<String, usize>,
    orders: Orders,
}

/// What is to happen at moments of a run, and whether it has.
#[derive(Clone, Default)]
struct Orders(Rc<RefCell<Vec<(String, bool)>>>);

impl Orders {
    /// One more; the result is called when it comes to pass.
    fn add(&self, text: String) -> impl FnOnce() + use<> {
        let (orders, place) = (self.clone(), self.0.borrow().len());
        self.0.borrow_mut().push((text, false));
        move || orders.0.borrow_mut()[place].1 = true
    }

    fn open(&self) -> Vec<String> {
        self.0.borrow().iter().filter(|(_, done)| !done).map(|(text, _)| text.clone()).collect()
    }
}

/// A machine, its plugins, and everything that was started on it.
pub struct Simulated {
    machine: Machine,
    plugins: BTreeMap<String, Rc<RefCell<Installed>>>,
    files: BTreeMap<String, PluginFile>,
    ran: Vec<Invocation>,
    canary: String,
    /// Another process that holds the database throughout a step.
    lock: Option<Database>,
    /// One that holds it for a time, and which that is.
    held: Rc<RefCell<Option<(u64, Database)>>>,
    instead: Option<Instead>,
    network: Rc<Network>,
    director: Director,
    /// Whether the disk asks the director.
    directed: bool,
    /// Processes outside the machine so far: none of them survives a loss of power.
    outsiders: Cell<u64>,
    /// What SQLite had drawn from the real system before.
    real_draws: u64,
    /// What was durable when effects were sent: the number of events before, and the disk.
    sights: Rc<RefCell<Vec<(u64, Disk)>>>,
    journal: Journal,
    /// How many events there had been at the end of each step.
    ends: Vec<u64>,
}

/// A disk with mu's database, as mu makes it.
fn used() -> Disk {
    let (disk, path) = (Disk::new(), Path::new(DB));
    let directories: Vec<&Path> =
        path.ancestors().skip(1).take_while(|path| path.starts_with(HOME)).collect();
    directories.iter().rev().for_each(|directory| disk.put(directory, USER, 0o700, Node::Directory));
    let db = disk.open_db(Owner(0), USER, path).expect("an empty disk has room");
    mu_core::store::migrations::run(&db, path).expect("an empty file becomes a database");
    drop(db);
    // Durable: it was so long before.
    disk.write_bytes(path, &disk.bytes(path).expect("just made"));
    disk
}

/// A program that takes the place of mu's command line.
type Instead = Box<dyn FnOnce(Sys) -> ProgramFuture>;

impl Simulated {
    /// A machine with mu installed and no plugin.
    pub fn new(options: Options) -> Simulated {
        Simulated::on(Disk::new(), options)
    }

    /// The same after a mu that left no rows: its database is there, with all tables.
    pub fn used(options: Options) -> Simulated {
        thread_local! { static USED: Disk = used(); }
        Simulated::on(USED.with(Disk::fork), options)
    }

    fn on(disk: Disk, options: Options) -> Simulated {
        disk.set_seed(options.seed);
        let machine = Machine::with(options, disk);
        let sights: Rc<RefCell<Vec<(u64, Disk)>>> = Rc::default();
        let (seen, remote, watched) = (Rc::clone(&sights), machine.remote(), machine.disk().clone());
        programs::install_mu(
            &machine,
            Watch::new(move || {
                let place = remote.machine().map_or(0, |machine| machine.event_count());
                seen.borrow_mut().push((place, watched.durable()));
            }),
        );
        programs::install_shell(&machine);
        let network = Network::new(machine.remote());
        let journal = Journal::default();
        machine.on_power_loss({
            let (network, journal, remote) = (Rc::downgrade(&network), journal.clone(), machine.remote());
            move || {
                if let Some(network) = network.upgrade() {
                    network.power_off();
                }
                if let Some(machine) = remote.machine() {
                    journal.look(&machine);
                    journal.change(&machine);
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
            held: Rc::default(),
            instead: None,
            network,
            director: Director::default(),
            directed: false,
            outsiders: Cell::new(0),
            real_draws: crate::disk::real_draws(),
            sights,
            journal,
            ends: Vec::new(),
        }
    }

    /// From here on what mu has written down is looked at whenever it may have changed.
    pub fn keep_journal(&mut self) {
        self.journal.keep();
        self.direct();
    }

    /// From here on every call and operation of each mu and every act of each plugin is written down.
    pub fn keep_courses(&mut self) {
        self.director.keep();
        self.direct();
    }

    /// Whether an error on the disk was the last that could have been one, until the disk was mended.
    pub fn failed_alone(&self) -> bool {
        self.director.failed_alone()
    }

    /// What was written down, for each mu in the order of their start; nothing if nobody asked for it.
    pub fn courses(&self) -> Vec<Course> {
        if !self.director.keeps() {
            return Vec::new();
        }
        let spots = self.director.spots(&self.machine.events());
        let ends = self.ran.iter().skip(1).map(|one| one.acts.clone()).chain([self.acts()]);
        let all = self.ran.iter().zip(spots).zip(ends);
        all.map(|((one, spots), end)| Course {
            step: one.step,
            spots,
            acts: self.acts_between(&one.acts, &end),
        })
        .collect()
    }

    fn acts(&self) -> BTreeMap<String, usize> {
        self.plugins.iter().map(|(name, one)| (name.clone(), one.borrow().acts.len())).collect()
    }

    fn acts_between(&self, from: &BTreeMap<String, usize>, to: &BTreeMap<String, usize>) -> Vec<Act> {
        let of = |(name, one): (&String, &Rc<RefCell<Installed>>)| -> Vec<Act> {
            let (from, to) = (from[name], to[name]);
            let acts = one.borrow().acts[from..to].to_vec();
            (1..).zip(acts).map(|(nth, what)| Act { plugin: name.clone(), nth, what }).collect()
        };
        self.plugins.iter().flat_map(of).collect()
    }

    /// Has the disk ask the director about every operation.
    fn direct(&mut self) {
        if !std::mem::replace(&mut self.directed, true) {
            let (director, journal, remote) =
                (self.director.clone(), self.journal.clone(), self.machine.remote());
            self.machine.disk().set_fault(Box::new(move |op| {
                if let Some(machine) = remote.machine() {
                    journal.operation(&machine, op);
                }
                director.disk(&remote, op)
            }));
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
    pub fn judge(&mut self, stubborn: &BTreeSet<String>, leak: Leak, excuses: Excuses) -> Vec<Violation> {
        let mut found = Vec::new();
        for started in 0..self.ran.len() {
            if let Err(report) = self.finish(started) {
                let text = format!("`{}` does not end: {report}", self.ran[started].argv.join(" "));
                found.push(Violation { oracle: "end", rule: "TMO-05", at: None, text });
            }
        }
        // A plugin that a dead mu left and that waits for ever is a deadlock here; `leftover` says whether it may.
        let _ = self.machine.run_until(self.machine.now() + AFTERMATH);
        let drawn = crate::disk::real_draws() - self.real_draws;
        assert_eq!(drawn, 0, "SQLite has drawn from the randomness of the real system");
        let ran: Vec<Ran> = self.ran.iter().map(|one| self.ran(one)).collect();
        let files = self.machine.disk().files();
        let rows = self.all_rows(&self.machine.disk().fork());
        let books = ledger::Books::of(&self.network.books());
        let sights = self.sights.take();
        let image = |(place, disk): &(u64, Disk)| Image { place: *place as usize, rows: self.all_rows(disk) };
        let images: Vec<Image> = sights.iter().map(image).collect();
        let events = self.machine.events();
        let observed = Observed {
            events: &events,
            now: self.machine.now().as_nanos() as u64,
            ran: &ran,
            files: &files,
            canary: &self.canary,
            stubborn,
            leak,
            images: &images,
            rows: &rows,
            books: &books,
            excuses,
        };
        found.extend(oracle::check(&observed));
        found
    }

    /// What happened, for readers; with mu's rows if they were looked at.
    pub fn timeline(&self) -> Timeline {
        self.journal.look(&self.machine);
        Timeline::of(&self.machine.events(), &self.moments(), &self.ends)
    }

    fn moments(&self) -> Vec<Moment> {
        self.journal.moments(|disk| {
            let mut rows = oracle::rows::Rows::default();
            for path in databases(&disk.files()) {
                let db = disk.open_db(self.outsider(), ROOT, &path);
                db.and_then(|db| rows.read(&db)).ok()?;
            }
            Some(rows)
        })
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

    /// What mu has written down, as another program reads it from this disk. A database that cannot be read has nothing.
    fn all_rows(&self, disk: &Disk) -> oracle::rows::Rows {
        let mut rows = oracle::rows::Rows::default();
        for path in databases(&disk.heads(HEAD_OF_A_DATABASE)) {
            let mut its = oracle::rows::Rows::default();
            if self.open_db_on(disk, &path).and_then(|db| its.read(&db)).is_ok() {
                rows.add(its);
            }
        }
        rows
    }

    /// Has something happen to the machine at a time.
    fn later(&self, at: Duration, what: Meanwhile, done: impl FnOnce() + 'static) {
        let network = Rc::clone(&self.network);
        let outsider = matches!(what, Meanwhile::Lock(_)).then(|| self.outsider());
        let slot = Rc::clone(&self.held);
        self.machine.at(at, move |machine| match what {
            Meanwhile::StepWall(by_ms) => {
                done();
                machine.step_wall(EpochMs(machine.wall().0 + by_ms));
            }
            Meanwhile::Suspend(span) => {
                done();
                machine.suspend(span);
                network.slept(span);
            }
            Meanwhile::Lock(span) => {
                // Opening one that may not be written would leave a log beside it that may not be either.
                let facts = machine.disk().facts(Path::new(DB));
                if facts.is_ok_and(|facts| facts.kind == FileKind::Regular && facts.mode & 0o200 != 0)
                    && let Some(outsider) = outsider
                    && let Ok(held) = machine.disk().open_db(outsider, USER, Path::new(DB))
                    && held.execute_batch("BEGIN IMMEDIATE").is_ok()
                {
                    slot.replace(Some((outsider.0, held)));
                    done();
                    reached!("world: another process holds the database");
                    machine.fault("another process holds the database");
                    machine.at(at + span, move |machine| {
                        if slot.borrow().as_ref().is_some_and(|(owner, _)| *owner == outsider.0) {
                            machine.fault("the database is free again");
                            slot.take();
                        }
                    });
                }
            }
        });
    }

    /// Uses the database as another program would.
    fn open_db(&self) -> Result<Database, Cannot> {
        self.open_db_on(self.machine.disk(), Path::new(DB)).map_err(|error| Cannot(format!("{DB}: {error}")))
    }

    fn open_db_on(&self, disk: &Disk, path: &Path) -> rusqlite::Result<Database> {
        disk.open_db(self.outsider(), USER, path)
    }

    /// One more process outside the machine.
    fn outsider(&self) -> Owner {
        let nth = self.outsiders.get();
        self.outsiders.set(nth + 1);
        Owner(LAST_OUTSIDER - nth)
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
        self.journal.look(&self.machine);
        self.journal.change(&self.machine);
        // Whoever held it until now is gone.
        if self.held.take().is_some() {
            self.machine.fault("the database is free again");
        }
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
            Db::Full => {
                self.director.set_full(true);
                self.direct();
            }
            Db::Locked => {
                let connection = self.open_db()?;
                connection.execute_batch("BEGIN IMMEDIATE").map_err(sqlite)?;
                self.lock = Some(connection);
            }
            Db::Restored => {
                self.lock = None;
                self.director.mend();
                disk.set_mode(Path::new(STATE), 0o700).map_err(io)?;
                let _ = disk.set_mode(file, 0o600);
            }
        }
        Ok(())
    }

    fn idle(&self, started: usize) -> Vec<String> {
        let one = &self.ran[started];
        let plugins = self.plugins.iter().filter(|(_, installed)| installed.borrow().ends_at.is_some());
        let acts = self.acts();
        let plugins = plugins.map(|(name, installed)| {
            let (before, at) = (one.acts[name], installed.borrow().ends_at.unwrap_or_default());
            let (nth, made) = (at - before, acts[name] - before);
            format!("{name} is killed at its act {nth}, and there were {made} of them")
        });
        self.director.idle(started).into_iter().chain(one.orders.open()).chain(plugins).collect()
    }

    fn end_of_step(&mut self) {
        self.lock = None;
        self.journal.look(&self.machine);
        self.ends.push(self.machine.event_count());
        self.plugins.values().for_each(|one| one.borrow_mut().ends_at = None);
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
        let opened = self.open_db_on(&copy, Path::new(DB)).and_then(|connection| rows::read(&connection));
        opened.map_err(|error| format!("{DB}: {error}"))
    }

    fn reboot(&mut self) -> Result<(), Cannot> {
        self.lock = None;
        self.held.take();
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
        command.on_os_call = self.director.hook(self.machine.remote(), run.at_call);
        if run.at_disk.is_some() || run.disk_error.is_some() {
            self.direct();
        }
        let acts = self.acts();
        for (name, nth) in &run.plugin_ends {
            if let Some(installed) = self.plugins.get(name) {
                installed.borrow_mut().ends_at = Some(acts[name] + *nth as usize);
            }
        }
        let begun = self.machine.now();
        let started = match self.instead.take() {
            Some(program) => self.machine.start_fn(&command, program),
            None => self.machine.start(&command),
        };
        let started = started.map_err(io)?;
        self.director.started(self.machine.owner(&started), run.at_call, run.at_disk, run.disk_error);
        let orders = Orders::default();
        for (after, to, number) in &run.signals {
            let mu = (to == "mu").then_some(started.pid);
            let (name, number) = (format!("mu-plugin-{to}"), *number);
            let done = orders.add(format!("{to} gets signal {number} after {} ms", after.as_millis()));
            self.machine.at(begun + *after, move |machine| {
                let named = machine.living().into_iter().filter(|one| *one.name == *name);
                if let Some(pid) = mu.or_else(|| named.map(|one| one.pid).max())
                    && machine.signal(Target::Process(pid), number).is_ok()
                {
                    done();
                }
            });
        }
        for (after, change) in run.meanwhile.iter().copied() {
            let done = orders.add(format!("{change} after {} ms", after.as_millis()));
            self.later(begun + after, change, done);
        }
        for (after, control) in run.controls.iter().cloned() {
            let network = Rc::clone(&self.network);
            self.machine.at(begun + after, move |_| network.control(&control));
        }
        let heard = run.stdout_closed_after.is_none();
        let crash = matches!(run.at_call, Some(AtCall::Panic(_)));
        let (argv, step) = (run.argv.clone(), run.step);
        self.ran.push(Invocation { started, argv, begun, crash, heard, step, acts, orders });
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

    fn end_all(&mut self) -> Result<(), Cannot> {
        for one in self.machine.living() {
            // It lives until here, unless the end of another took it along.
            let _ = self.machine.signal(Target::Process(one.pid), SIGKILL);
        }
        Ok(())
    }

    fn unconverged(&mut self, excuses: Excuses) -> Result<Vec<String>, Cannot> {
        let mut found = Vec::new();
        // On a copy: who only looks leaves no trace.
        let disk = self.machine.disk().fork();
        if disk.facts(Path::new(DB)).is_ok()
            && let Err(error) =
                self.open_db_on(&disk, Path::new(DB)).and_then(|db| oracle::database::check(&db, &mut found))
        {
            found.push(format!("the database cannot be read: {error}"));
        }
        let books = ledger::Books::of(&self.network.books());
        let declares = |(name, one): (&String, &Rc<RefCell<Installed>>)| {
            (name.clone(), one.borrow().plan.declaration.clone())
        };
        let declares: Vec<_> = self.plugins.iter().map(declares).collect();
        found.extend(oracle::converged::check(&self.all_rows(&disk), &books, &declares, excuses));
        Ok(found)
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

    fn starts(&self, plugin: &str) -> usize {
        self.plugins.get(plugin).map_or(0, |installed| installed.borrow().heard.len())
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
