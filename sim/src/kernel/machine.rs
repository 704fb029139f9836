//! The whole machine, as the world around it sees it.

use std::cell::{Cell, Ref, RefCell};
use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::rc::{Rc, Weak};
use std::time::Duration;

use mu_core::os::{EpochMs, Exit, Pid};
use nix::errno::Errno;

use super::clock::Clocks;
use super::process::{Birth, End, Index, SHELL, STDERR, STDIN, STDOUT, State};
use super::setup::{Command, Input, Options, Output};
use super::spawn::{Program, image, short_name};
use super::waiters::Waiters;
use super::{Deadlock, Fd, Group, Kernel, OutOfBudget, Sys, World, owner};
use crate::disk::{Disk, DiskOp, Owner};
use crate::executor::{Executor, Step, TaskId, TimerId};
use crate::streams::Stream;
use crate::trace::{Digest, Event, OUTSIDE, PipeId, Target, Trace, What};

/// A program that was started from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Started {
    /// Its process id.
    pub pid: Pid,
    index: Index,
    stdout: Option<PipeId>,
    stderr: Option<PipeId>,
}

/// A process that lives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessFacts {
    /// Its process id.
    pub pid: Pid,
    /// That of its parent.
    pub ppid: Pid,
    /// Its group.
    pub group: Pid,
    /// Its session.
    pub session: Pid,
    /// The file name of its program.
    pub name: Rc<str>,
    /// Whether it is stopped.
    pub stopped: bool,
}

/// Why a run did not get to where it was asked to go.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Stuck {
    /// Nobody can go on.
    #[error("{0}")]
    Deadlock(Deadlock),
    /// The budget of polls and system calls is spent.
    #[error("still busy after {steps} polls and system calls, at {at} ns")]
    Steps {
        /// The budget.
        steps: u64,
        /// Virtual nanoseconds since the start.
        at: u64,
    },
    /// The next thing would happen after the end of the budget.
    #[error("the next timer, at {at} ns, is behind the virtual time allowed, {limit} ns")]
    VirtualTime {
        /// Virtual nanoseconds since the start.
        at: u64,
        /// The budget, in nanoseconds.
        limit: u64,
    },
}

/// See the top of [`super`].
pub struct Machine {
    world: Rc<World>,
    _power: Option<Power>,
}

/// A handle on a machine that does not keep it running.
#[derive(Clone)]
pub struct Remote(Weak<World>);

impl Remote {
    /// The machine; `None` once it is gone.
    pub fn machine(&self) -> Option<Machine> {
        Some(Machine { world: self.0.upgrade()?, _power: None })
    }
}

/// Breaks the cycle between the world and the programs that hold it.
struct Power(Rc<World>);

impl Drop for Power {
    fn drop(&mut self) {
        self.0.end_all();
        self.0.exec.clear_timers();
        self.0.programs.take();
    }
}

impl World {
    /// Ends every process by SIGKILL without telling anybody, and drops the programs.
    fn end_all(&self) {
        self.with(|kernel| {
            let living: Vec<Index> = kernel.living().collect();
            // All are inert before the first destructor runs, and nobody is left to be told of another's end.
            for who in &living {
                kernel.procs[*who].state = State::Reaped(Exit::Signal(super::SIGKILL));
                kernel.ended.push(*who);
                let fds = std::mem::take(&mut kernel.procs[*who].fds);
                fds.into_iter().flatten().for_each(|end| kernel.release(end));
                if let Some(task) = kernel.procs[*who].task.take() {
                    kernel.exec.kill(task);
                }
            }
            kernel.listed.retain(|who| kernel.procs[*who].permanent);
        });
        self.exec.bury();
    }
}

impl Machine {
    /// A machine that has just been started, with an empty disk.
    pub fn new(seed: u64) -> Machine {
        Machine::with(Options::new(seed), Disk::new())
    }

    /// A machine with these options and this disk, whose observer it becomes and whose seed it sets.
    pub fn with(options: Options, disk: Disk) -> Machine {
        let exec = Rc::new(Executor::new(Stream::new(options.seed, "order")));
        let mut kernel = Kernel {
            exec: exec.clone(),
            trace: Trace::new(options.recording),
            seed: options.seed,
            procs: Vec::new(),
            listed: Vec::new(),
            by_task: Vec::new(),
            ended: Vec::new(),
            names: Vec::new(),
            next_pid: 0,
            highest_pid: 0,
            recycle_pids: options.recycle_pids,
            pipes: Vec::new(),
            short_io: options.short_io,
            group_waiters: Waiters::default(),
            clocks: Clocks::new(options.seed),
        };
        kernel.add_permanent();
        disk.set_seed(options.seed);
        let boot = What::Boot(kernel.clocks.boot_id);
        kernel.push(OUTSIDE, boot);
        let world = Rc::new(World {
            exec,
            kernel: RefCell::new(kernel),
            disk,
            programs: RefCell::new(BTreeMap::new()),
            budget: options.budget,
            power_watch: RefCell::new(None),
            calls: Cell::new(0),
        });
        let machine = Machine { _power: Some(Power(world.clone())), world };
        let remote = machine.remote();
        machine.disk().set_observer(Box::new(move |op| {
            if let Some(machine) = remote.machine() {
                machine.disk_op(op);
            }
        }));
        machine
    }

    fn disk_op(&self, op: &DiskOp) {
        let DiskOp { number, kind, ref path, offset, len, .. } = *op;
        // No unwinding here: SQLite is between this and the program.
        self.world.calls.set(self.world.calls.get() + 1);
        let pid = self.pid_of(op.owner).unwrap_or(OUTSIDE);
        let what = What::Disk { number, kind, path: path.clone(), offset, len };
        self.world.with(|kernel| kernel.push(pid, what));
    }

    /// The disk.
    pub fn disk(&self) -> &Disk {
        &self.world.disk
    }

    /// Makes `program` what runs when a file of the disk that bears `name` is executed.
    pub fn install<F>(&self, name: &str, program: impl Fn(Sys) -> F + 'static)
    where
        F: Future<Output = Exit> + 'static,
    {
        let program: Program = Rc::new(move |sys| Box::pin(program(sys)));
        self.world.programs.borrow_mut().insert(name.to_owned(), program);
    }

    /// Starts a program of the disk. Errors are those of [`Sys::spawn`].
    pub fn start(&self, command: &Command) -> io::Result<Started> {
        let argv = &command.exec.argv;
        match self.world.program(command.uid, &command.cwd, argv) {
            Ok(program) => Ok(self.launch(command, |sys| program(sys))?),
            Err(errno) => {
                let program = argv.first().cloned().unwrap_or_default();
                self.push(What::ExecFailed { program, errno: errno as i32 });
                Err(errno.into())
            }
        }
    }

    /// Starts an async function as a process, with no file behind it. `EAGAIN`: too many processes.
    pub fn start_fn<F>(&self, command: &Command, program: impl FnOnce(Sys) -> F) -> io::Result<Started>
    where
        F: Future<Output = Exit> + 'static,
    {
        Ok(self.launch(command, |sys| Box::pin(program(sys)))?)
    }

    fn launch(
        &self,
        command: &Command,
        make: impl FnOnce(Sys) -> super::ProgramFuture,
    ) -> Result<Started, Errno> {
        let birth = Birth {
            parent: SHELL,
            name: short_name(&command.exec.argv),
            image: image(&command.exec, command.cwd.clone()),
            uid: command.uid,
            group: Group::Own,
            defaults: Vec::new(),
            terminal: command.stdout_is_terminal,
            on_os_call: command.on_os_call.clone(),
        };
        let (fds, stdout, stderr) = self.world.with(|kernel| {
            let stdin = match &command.stdin {
                Input::Null => End::Null,
                Input::Bytes(bytes) => End::Read(kernel.new_source(bytes)),
            };
            let mut output = |kind: Output| match kind {
                Output::Null => None,
                Output::Captured => Some(kernel.new_capture(None)),
                Output::ClosedAfter(count) => Some(kernel.new_capture(Some(count))),
                Output::Unread => {
                    let id = kernel.new_pipe();
                    kernel.hold(End::Read(id));
                    Some(id)
                }
            };
            let (stdout, stderr) = (output(command.stdout), output(command.stderr));
            let end = |pipe: Option<PipeId>| pipe.map_or(End::Null, End::Write);
            ([(STDIN, stdin), (STDOUT, end(stdout)), (STDERR, end(stderr))], stdout, stderr)
        });
        let index = self.world.launch(OUTSIDE, birth, &fds as &[(Fd, End)], make)?;
        Ok(Started { pid: self.world.kernel.borrow().procs[index].pid, index, stdout, stderr })
    }

    /// How a started program ended; `None` while it lives.
    pub fn exit(&self, started: &Started) -> Option<Exit> {
        self.world.kernel.borrow().procs[started.index].exit()
    }

    /// What a started program has written to its captured standard output.
    pub fn stdout(&self, started: &Started) -> Vec<u8> {
        self.captured(started.stdout)
    }

    /// What a started program has written to its captured standard error.
    pub fn stderr(&self, started: &Started) -> Vec<u8> {
        self.captured(started.stderr)
    }

    fn captured(&self, pipe: Option<PipeId>) -> Vec<u8> {
        let kernel = self.world.kernel.borrow();
        pipe.map_or_else(Vec::new, |id| kernel.pipes[id.0 as usize].captured().to_vec())
    }

    /// How many calls the `SimOs` of a started program has had.
    pub fn os_calls(&self, started: &Started) -> u64 {
        self.world.kernel.borrow().procs[started.index].os_calls
    }

    /// Runs until a started program has ended.
    pub fn run_until_exit(&self, started: &Started) -> Result<Exit, Stuck> {
        let index = started.index;
        self.run(u64::MAX, |kernel| kernel.procs[index].exit())?.ok_or_else(|| self.deadlock())
    }

    /// Runs until nobody lives. A process that lives and cannot go on is a deadlock.
    pub fn run_until_idle(&self) -> Result<(), Stuck> {
        self.run(u64::MAX, |kernel| kernel.living().next().is_none().then_some(()))?
            .ok_or_else(|| self.deadlock())
    }

    /// Runs until this much virtual time has passed since the start of the run, whether anything happens or not.
    pub fn run_until(&self, at: Duration) -> Result<(), Stuck> {
        let at = nanos(at);
        match self.run(at, |_| None::<()>) {
            Err(Stuck::VirtualTime { limit, .. }) if limit == at => {}
            Ok(_) => {}
            Err(stuck) => return Err(stuck),
        }
        self.world.exec.advance_idle(at);
        Ok(())
    }

    /// Runs until `done` has an answer, or `None` when nobody can go on any more.
    fn run<R>(&self, until: u64, done: impl Fn(&Kernel) -> Option<R>) -> Result<Option<R>, Stuck> {
        let world = &self.world;
        let limit = until.min(nanos(world.budget.virtual_time));
        loop {
            if let Some(result) = done(&world.kernel.borrow()) {
                return Ok(Some(result));
            }
            let spent = Stuck::Steps { steps: world.budget.steps, at: world.exec.now() };
            if world.steps() > world.budget.steps {
                return Err(spent);
            }
            match world.exec.step(limit) {
                Step::Polled(_) => {}
                Step::Ended(task, exit) => world.with(|kernel| kernel.task_ended(task, exit)),
                Step::Panicked(_, payload) if payload.is::<OutOfBudget>() => return Err(spent),
                Step::Panicked(task, payload) => {
                    let text = panic_text(payload.as_ref());
                    world.with(|kernel| kernel.task_panicked(task, text));
                }
                Step::Jumped(_) => world.with(|kernel| kernel.push(OUTSIDE, What::Jump)),
                Step::Limit(at) => return Err(Stuck::VirtualTime { at, limit }),
                Step::Idle => return Ok(None),
            }
        }
    }

    /// The report on those that cannot go on. Each is polled once more, so that what it no longer waits for is known
    /// from what it does; one that goes on all the same was not woken by what it waited for.
    fn deadlock(&self) -> Stuck {
        let world = &self.world;
        let tasks: Vec<(Index, TaskId)> = world.with(|kernel| {
            let running = kernel.living().filter(|who| kernel.procs[*who].state == State::Running);
            running.filter_map(|who| Some((who, kernel.procs[who].task?))).collect()
        });
        let (mut unwoken, mut ended) = (Vec::new(), Vec::new());
        for (who, task) in tasks {
            let before = self.event_count();
            match world.exec.poll_anyway(task) {
                Step::Ended(task, exit) => ended.push((task, exit)),
                Step::Panicked(task, _) => ended.push((task, Exit::Status(101))),
                _ if self.event_count() == before => continue,
                _ => {}
            }
            unwoken.push(who);
        }
        let report = world.kernel.borrow().deadlock(&unwoken);
        for (task, exit) in ended {
            world.with(|kernel| kernel.task_ended(task, exit));
        }
        Stuck::Deadlock(report)
    }

    /// Virtual time since the start of the run.
    pub fn now(&self) -> Duration {
        Duration::from_nanos(self.world.exec.now())
    }

    /// Polls so far.
    pub fn polls(&self) -> u64 {
        self.world.exec.polls()
    }

    /// Calls `action` when `at` has passed since the start of the run, between two polls.
    pub fn at(&self, at: Duration, action: impl FnOnce(&Machine) + 'static) {
        let remote = self.remote();
        let act = move || {
            if let Some(machine) = remote.machine() {
                action(&machine);
            }
        };
        self.world.exec.call_at(nanos(at), Box::new(act));
    }

    /// Calls `action` at this instant of virtual time in nanoseconds, between two polls, unless it is cancelled first.
    pub(crate) fn call_at(&self, at: u64, action: Box<dyn FnOnce()>) -> TimerId {
        self.world.exec.call_at(at, action)
    }

    /// Gives up a call; one that has taken place is no error.
    pub(crate) fn cancel_call(&self, timer: TimerId) {
        self.world.exec.cancel_timer(timer);
    }

    /// Has `watch` called whenever the power is cut, before anybody has ended.
    pub(crate) fn on_power_loss(&self, watch: impl Fn() + 'static) {
        self.world.power_watch.replace(Some(Rc::new(watch)));
    }

    /// Hands out process ids from the first on again. Those that are in use are left out.
    pub fn recycle_pids(&self) {
        self.world.with(|kernel| kernel.restart_pids());
    }

    /// A handle for closures that the machine itself comes to hold: hooks, faults of the disk, programs.
    pub fn remote(&self) -> Remote {
        Remote(Rc::downgrade(&self.world))
    }

    /// A started program as the disk knows it.
    pub fn owner(&self, started: &Started) -> Owner {
        owner(started.index)
    }

    /// The pid of a process as the disk knows it, dead or alive.
    pub fn pid_of(&self, owner: Owner) -> Option<Pid> {
        let index = usize::try_from(owner.0).ok()?;
        self.world.kernel.borrow().procs.get(index).map(|process| process.pid)
    }

    /// Sends a signal from outside, as the superuser does. `ESRCH`: nobody there.
    pub fn signal(&self, to: Target, number: i32) -> io::Result<()> {
        Ok(self.world.with(|kernel| kernel.send(None, to, number))?)
    }

    /// Sends a signal from outside when `at` has passed since the start of the run. Nobody there is no error.
    pub fn signal_at(&self, at: Duration, to: Target, number: i32) {
        self.at(at, move |machine| drop(machine.signal(to, number)));
    }

    /// The wall clock.
    pub fn wall(&self) -> EpochMs {
        EpochMs(self.world.kernel.borrow().clocks.wall_ms(self.world.exec.now()))
    }

    /// Steps the wall clock; no other clock and no timer notices.
    pub fn step_wall(&self, to: EpochMs) {
        let now = self.world.exec.now();
        self.world.with(|kernel| {
            kernel.clocks.set_wall(now, to.0);
            kernel.push(OUTSIDE, What::WallStep(to.0));
        });
    }

    /// Puts the machine to sleep for `span`: boottime and wall clock go on, the monotonic clock and timers stand still.
    pub fn suspend(&self, span: Duration) {
        self.world.with(|kernel| {
            kernel.clocks.sleep(nanos(span));
            kernel.push(OUTSIDE, What::Suspend(nanos(span)));
        });
    }

    /// Cuts the power and starts the machine again: nobody lives (each is told as dead of SIGKILL), no destructor touches anything, monotonic clock and
    /// boottime begin anew with another boot id, and the disk has what was durable.
    pub fn power_cycle(&self) {
        self.push(What::PowerOff);
        let watch = self.world.power_watch.borrow().clone();
        if let Some(watch) = watch {
            watch();
        }
        self.world.with(|kernel| {
            let living: Vec<Pid> = kernel.living().map(|who| kernel.procs[who].pid).collect();
            for pid in living {
                kernel.push(pid, What::Exit(Exit::Signal(super::SIGKILL)));
            }
        });
        self.world.end_all();
        self.disk().power_loss();
        let now = self.world.exec.now();
        self.world.with(|kernel| {
            kernel.clocks.reboot(now);
            let boot = What::Boot(kernel.clocks.boot_id);
            kernel.push(OUTSIDE, boot);
        });
    }

    /// Those that live, in the order of their start. Zombies, init and the shell do not count.
    pub fn living(&self) -> Vec<ProcessFacts> {
        let kernel = self.world.kernel.borrow();
        let facts = |who: Index| {
            let process = &kernel.procs[who];
            ProcessFacts {
                pid: process.pid,
                ppid: kernel.procs[process.parent].pid,
                group: process.group,
                session: process.session,
                name: process.name.clone(),
                stopped: process.state == State::Stopped,
            }
        };
        kernel.living().map(facts).collect()
    }

    /// The pids of those that have ended and were not reaped.
    pub fn zombies(&self) -> Vec<Pid> {
        let kernel = self.world.kernel.borrow();
        let zombies = kernel.listed.iter().map(|who| &kernel.procs[*who]).filter(|process| !process.alive());
        zombies.map(|process| process.pid).collect()
    }

    /// The events so far; none when they are not recorded. The machine must not run while they are looked at.
    pub fn events(&self) -> Ref<'_, [Event]> {
        Ref::map(self.world.kernel.borrow(), |kernel| kernel.trace.events())
    }

    /// How many events there were, recorded or not.
    pub fn event_count(&self) -> u64 {
        self.world.kernel.borrow().trace.count()
    }

    /// The hash chain over all events so far.
    pub fn digest(&self) -> Digest {
        self.world.kernel.borrow().trace.digest()
    }

    /// Tells the reader of the transcript something.
    pub fn note(&self, text: &str) {
        self.push(What::Note(text.into()));
    }

    /// Tells that a fault takes place now.
    pub fn fault(&self, text: &str) {
        self.push(What::Fault(text.into()));
    }

    pub(crate) fn push(&self, what: What) {
        self.world.with(|kernel| kernel.push(OUTSIDE, what));
    }

    /// The stream of random numbers called `name` of this run.
    pub fn stream(&self, name: &str) -> Stream {
        Stream::new(self.world.kernel.borrow().seed, name)
    }
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

fn panic_text(payload: &(dyn std::any::Any + Send)) -> Rc<str> {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("a value that is no text")
        .into()
}
