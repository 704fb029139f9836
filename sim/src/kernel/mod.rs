//! A Unix machine in memory. It has clocks (three), pipes that fill up, signals, and processes in groups and sessions that
//! stay zombies until they are reaped.
//!
//! In: programs (async functions of a [`Sys`]), installed by name and started by executing a file of the disk that
//! bears the name, and what the world around does: start a program, send a signal, step the clock, cut the power.
//! Out: a [`crate::trace::Trace`] of all that happened, the outputs and the exits of what was started, and a report of
//! who waits for whom when nothing can go on.
//!
//! - `machine` the whole: start, run, look; `setup` what it is built with, and how a person starts a program;
//! - `sys` what a program sees: system calls, bound to its pid;
//! - `spawn` finding a program on the disk and starting it;
//! - `process` the table of processes, their descriptors, how they end;
//! - `signal`, `pipe`, `clock` one thing each;
//! - `waiters` who is to be woken; `deadlock` the report that is made from it.
//!
//! A process that ends is marked first and dropped second: whatever its destructors ask of the machine is refused.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use mu_core::os::{Exit, Pid};

use crate::disk::{Disk, Owner};
use crate::executor::{Executor, TaskId};
use crate::trace::{Trace, What};

use clock::Clocks;
use pipe::Pipe;
use process::{Index, Process};
use waiters::Waiters;

pub use clock::WALL_START_MS;
pub use deadlock::{Blocked, Deadlock, Named, Wait};
pub use machine::{Machine, ProcessFacts, Remote, Started, Stuck};
pub use pipe::{PIPE_ATOMIC, PIPE_CAPACITY};
pub use process::{Fd, Group, STDERR, STDIN, STDOUT};
pub use setup::{Budget, Command, Input, Options, OsCall, OsCallHook, OsCallVerdict, Output};
pub use signal::{
    Disposition, SIGABRT, SIGCHLD, SIGCONT, SIGHUP, SIGINT, SIGKILL, SIGPIPE, SIGSTOP, SIGTERM, SIGTSTP,
    signal_name,
};
pub use spawn::{Fork, Give, Program, ProgramFuture, Spawn, Spawned};
pub use sys::{Sleep, Sys};

mod clock;
mod deadlock;
mod machine;
mod pipe;
mod process;
mod setup;
mod signal;
mod spawn;
mod sys;
#[cfg(test)]
mod tests;
mod waiters;

/// The state of the machine apart from the futures of its programs.
pub(crate) struct Kernel {
    pub(crate) exec: Rc<Executor<Exit>>,
    pub(crate) trace: Trace,
    pub(crate) seed: u64,
    pub(crate) procs: Vec<Process>,
    /// Those that are not reaped, in the order of their start.
    pub(crate) listed: Vec<Index>,
    /// Whose task is at each place of the executor.
    by_task: Vec<Index>,
    /// Those that have ended since the disk was told.
    ended: Vec<Index>,
    names: Vec<(Rc<str>, u32)>,
    next_pid: i32,
    /// The highest number handed out so far.
    highest_pid: i32,
    recycle_pids: bool,
    pub(crate) pipes: Vec<Pipe>,
    /// One read, or write of more than [`PIPE_ATOMIC`] bytes, in so many is short.
    short_io: Option<u64>,
    group_waiters: Waiters,
    pub(crate) clocks: Clocks,
}

impl Kernel {
    pub(crate) fn push(&mut self, pid: Pid, what: What) {
        self.trace.push(self.exec.now(), pid, what);
    }

    fn runs_as(&mut self, who: Index, task: TaskId) {
        self.procs[who].task = Some(task);
        if self.by_task.len() <= task.place() {
            self.by_task.resize(task.place() + 1, process::INIT);
        }
        self.by_task[task.place()] = who;
    }
}

/// The payload that unwinds a program which makes system calls for ever without waiting.
struct OutOfBudget;

/// Everything that programs share.
pub(crate) struct World {
    pub(crate) exec: Rc<Executor<Exit>>,
    pub(crate) kernel: RefCell<Kernel>,
    pub(crate) disk: Disk,
    programs: RefCell<BTreeMap<String, Program>>,
    budget: Budget,
    power_watch: RefCell<Option<Rc<dyn Fn()>>>,
    calls: Cell<u64>,
}

impl World {
    /// Lets `f` change the state. Afterwards, and before any program code runs, the disk knows who has ended.
    pub(crate) fn with<R>(&self, f: impl FnOnce(&mut Kernel) -> R) -> R {
        let mut kernel = self.kernel.borrow_mut();
        let result = f(&mut kernel);
        if !kernel.ended.is_empty() {
            let ended = std::mem::take(&mut kernel.ended);
            drop(kernel);
            for who in ended {
                self.disk.end(owner(who));
            }
        }
        result
    }

    fn steps(&self) -> u64 {
        self.calls.get() + self.exec.polls()
    }

    /// Counts a system call. A program that never waits is unwound once the budget is spent: no poll would ever
    /// return to the loop that watches it.
    fn spend(&self) {
        self.calls.set(self.calls.get() + 1);
        if self.steps() > self.budget.steps && !std::thread::panicking() {
            let payload: Box<dyn Any + Send> = Box::new(OutOfBudget);
            std::panic::resume_unwind(payload);
        }
    }
}

/// A process as the disk knows it: by its place, since pids can be used again.
pub(crate) fn owner(who: Index) -> Owner {
    Owner(who as u64)
}
