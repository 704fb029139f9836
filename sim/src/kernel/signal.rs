//! Signals: what a process does with them, and what they do when nobody asked.

use std::task::{Poll, Waker};

use mu_core::os::{Exit, Pid};
use nix::errno::Errno;

use super::Kernel;
use super::process::{Index, State};
use crate::trace::{Effect, OUTSIDE, Target, What};

/// Terminal hang-up.
pub const SIGHUP: i32 = 1;
/// Ctrl-C.
pub const SIGINT: i32 = 2;
/// Abort.
pub const SIGABRT: i32 = 6;
/// The end, without appeal.
pub const SIGKILL: i32 = 9;
/// A write that nobody can read.
pub const SIGPIPE: i32 = 13;
/// The polite request to end.
pub const SIGTERM: i32 = 15;
/// A child has ended.
pub const SIGCHLD: i32 = 17;
/// Continue.
pub const SIGCONT: i32 = 18;
/// Stop, without appeal.
pub const SIGSTOP: i32 = 19;
/// Ctrl-Z.
pub const SIGTSTP: i32 = 20;

const SIGURG: i32 = 23;
const SIGWINCH: i32 = 28;

/// The name of a signal with its SIG prefix, as Linux numbers them; `SIG?` for a number that is none.
pub fn signal_name(number: i32) -> &'static str {
    const NAMES: [&str; 32] = [
        "SIG0",
        "SIGHUP",
        "SIGINT",
        "SIGQUIT",
        "SIGILL",
        "SIGTRAP",
        "SIGABRT",
        "SIGBUS",
        "SIGFPE",
        "SIGKILL",
        "SIGUSR1",
        "SIGSEGV",
        "SIGUSR2",
        "SIGPIPE",
        "SIGALRM",
        "SIGTERM",
        "SIGSTKFLT",
        "SIGCHLD",
        "SIGCONT",
        "SIGSTOP",
        "SIGTSTP",
        "SIGTTIN",
        "SIGTTOU",
        "SIGURG",
        "SIGXCPU",
        "SIGXFSZ",
        "SIGVTALRM",
        "SIGPROF",
        "SIGWINCH",
        "SIGIO",
        "SIGPWR",
        "SIGSYS",
    ];
    usize::try_from(number).ok().and_then(|number| NAMES.get(number)).unwrap_or(&"SIG?")
}

/// What a process does when a signal reaches it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Disposition {
    /// What the system does by itself: mostly end the process.
    #[default]
    Default,
    /// Nothing. Survives an exec.
    Ignore,
    /// The program is told ([`super::Sys::poll_signal`]).
    Handle,
}

/// A set of signal numbers.
#[derive(Clone, Copy, Default)]
pub(crate) struct SignalSet(u32);

impl SignalSet {
    pub(crate) fn insert(&mut self, number: i32) {
        self.0 |= 1 << number;
    }

    pub(crate) fn remove(&mut self, number: i32) {
        self.0 &= !(1 << number);
    }

    /// Takes out the lowest one.
    pub(crate) fn pop(&mut self) -> Option<i32> {
        if self.0 == 0 {
            return None;
        }
        let number = self.0.trailing_zeros() as i32;
        self.remove(number);
        Some(number)
    }
}

fn stops_by_default(number: i32) -> bool {
    (SIGSTOP..=22).contains(&number)
}

fn ignored_by_default(number: i32) -> bool {
    matches!(number, SIGCHLD | SIGCONT | SIGURG | SIGWINCH)
}

impl Kernel {
    /// Sends a signal as `sender` (nobody: the world around, which may do everything). Number 0 only asks whether
    /// there is somebody.
    pub(crate) fn send(&mut self, sender: Option<Index>, to: Target, number: i32) -> Result<(), Errno> {
        if !(0..32).contains(&number) {
            return Err(Errno::EINVAL);
        }
        let members: Vec<Index> = match to {
            Target::Process(pid) => self.find(pid).into_iter().collect(),
            Target::Group(group) => self.members(group).collect(),
        };
        if members.is_empty() {
            return Err(Errno::ESRCH);
        }
        let uid = sender.map_or(0, |sender| self.procs[sender].uid);
        let allowed = |who: &Index| uid == 0 || self.procs[*who].uid == uid;
        let reached: Vec<Index> = members.into_iter().filter(allowed).collect();
        if reached.is_empty() {
            return Err(Errno::EPERM);
        }
        if number == 0 {
            return Ok(());
        }
        let from = sender.map_or(OUTSIDE, |sender| self.procs[sender].pid);
        self.push(from, What::Signal { to, number });
        for who in reached {
            self.deliver(who, number);
        }
        Ok(())
    }

    /// A signal reaches a process.
    pub(crate) fn deliver(&mut self, who: Index, number: i32) {
        let process = &mut self.procs[who];
        if process.permanent || !process.alive() {
            return;
        }
        match number {
            SIGKILL => return self.die_of(who, number),
            SIGCONT => {
                for stop in SIGSTOP..=22 {
                    process.pending.remove(stop);
                }
                if process.state == State::Stopped {
                    self.proceed(who);
                }
            }
            _ if stops_by_default(number) => process.pending.remove(SIGCONT),
            _ => {}
        }
        self.act(who, number);
    }

    /// A stopped process continues, and what has waited for it arrives.
    fn proceed(&mut self, who: Index) {
        self.procs[who].state = State::Running;
        if let Some(task) = self.procs[who].task {
            self.exec.resume(task);
        }
        self.told(who, SIGCONT, Effect::Continues);
        while let Some(number) = self.procs[who].pending.pop() {
            self.act(who, number);
        }
    }

    fn act(&mut self, who: Index, number: i32) {
        let process = &mut self.procs[who];
        match (process.action(number), process.state) {
            (_, State::Zombie(_) | State::Reaped(_)) => {}
            (Disposition::Ignore, _) => self.told(who, number, Effect::Ignored),
            (Disposition::Default, _) if ignored_by_default(number) => {
                // Every end of a child sends one of these; silence is no event.
                if !matches!(number, SIGCHLD | SIGCONT) {
                    self.told(who, number, Effect::Ignored);
                }
            }
            (_, State::Stopped) if number != SIGSTOP => {
                process.pending.insert(number);
                self.told(who, number, Effect::Pending);
            }
            (Disposition::Handle, _) => {
                if !process.caught.contains(&number) {
                    process.caught.push(number);
                }
                process.signal_waiters.wake(0);
                self.told(who, number, Effect::Handled);
            }
            (Disposition::Default, _) if stops_by_default(number) => {
                process.state = State::Stopped;
                if let Some(task) = process.task {
                    self.exec.pause(task);
                }
                self.told(who, number, Effect::Stops);
            }
            (Disposition::Default, _) => self.die_of(who, number),
        }
    }

    fn die_of(&mut self, who: Index, number: i32) {
        self.told(who, number, Effect::Kills);
        self.end(who, Exit::Signal(number));
    }

    fn told(&mut self, who: Index, number: i32, effect: Effect) {
        let pid = self.procs[who].pid;
        self.push(pid, What::Delivered { number, effect });
    }

    /// The handled signal that has waited longest.
    pub(crate) fn fetch_signal(&mut self, who: Index, waker: &Waker) -> Poll<i32> {
        let poll = self.exec.polls();
        let process = &mut self.procs[who];
        if process.caught.is_empty() {
            process.signal_waiters.add(who, 0, poll, waker);
            return Poll::Pending;
        }
        Poll::Ready(process.caught.remove(0))
    }

    /// A group without a parent to continue it is told to hang up when one of its members is stopped.
    pub(crate) fn hang_up_if_orphaned(&mut self, group: Pid, dying: Index) {
        let orphaned = self.members(group).all(|member| {
            let process = &self.procs[member];
            let parent = &self.procs[process.parent];
            member == dying
                || !process.alive()
                || parent.pid == super::process::INIT_PID
                || parent.group == group
                || parent.session != process.session
        });
        let stopped = self.members(group).any(|member| self.procs[member].state == State::Stopped);
        if orphaned && stopped {
            for number in [SIGHUP, SIGCONT] {
                // The group has a member: it cannot be missing.
                let _ = self.send(None, Target::Group(group), number);
            }
        }
    }
}
