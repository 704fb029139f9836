//! Processes: their table, their descriptors, and how they end.

use std::ffi::OsString;
use std::path::PathBuf;
use std::rc::Rc;
use std::task::{Poll, Waker};

use mu_core::os::{Exit, Pid};
use nix::errno::Errno;

use super::signal::{SIGCHLD, SIGKILL, SIGSTOP, SignalSet};
use super::waiters::Waiters;
use super::{Disposition, Kernel, OsCallHook};
use crate::executor::TaskId;
use crate::trace::{PipeId, Role, Std, What};

/// A place in the process table; never used again within a run, unlike pids.
pub(crate) type Index = usize;

/// The process that adopts orphans and reaps them.
pub(crate) const INIT: Index = 0;
pub(crate) const INIT_PID: Pid = Pid(1);
/// The shell from which a person starts programs. It waits for each of them.
pub(crate) const SHELL: Index = 1;
const SHELL_PID: Pid = Pid(2);
const FIRST_PID: i32 = 100;

/// A descriptor of one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fd(pub u32);

/// Standard input.
pub const STDIN: Fd = Fd(0);
/// Standard output.
pub const STDOUT: Fd = Fd(1);
/// Standard error.
pub const STDERR: Fd = Fd(2);

/// What a descriptor leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Read(PipeId),
    Write(PipeId),
    /// `/dev/null`.
    Null,
}

/// Where a process stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Running,
    Stopped,
    /// Ended; its parent has not asked yet. Its pid and group id stay taken.
    Zombie(Exit),
    Reaped(Exit),
}

/// What a process executes.
#[derive(Debug)]
pub(crate) struct Image {
    pub(crate) argv: Rc<[OsString]>,
    pub(crate) vars: Vec<(OsString, OsString)>,
    pub(crate) cwd: PathBuf,
}

pub(crate) struct Process {
    pub(crate) pid: Pid,
    pub(crate) parent: Index,
    pub(crate) group: Pid,
    pub(crate) session: Pid,
    pub(crate) uid: u32,
    /// The file name of its program, for reports.
    pub(crate) name: Rc<str>,
    /// How many processes of that name were started before it. Streams are named by it: pids would shift.
    pub(crate) nth: u32,
    pub(crate) image: Rc<Image>,
    /// Clock ticks since the machine was started, its sleep included.
    pub(crate) started: u64,
    pub(crate) state: State,
    pub(crate) task: Option<TaskId>,
    pub(crate) fds: Vec<Option<End>>,
    /// `init` and the shell: no program, no signal reaches them.
    pub(crate) permanent: bool,
    pub(crate) actions: [Disposition; 32],
    /// Signals that wait until the process is continued.
    pub(crate) pending: SignalSet,
    /// Handled signals that the program has not fetched, in the order in which they came, each once.
    pub(crate) caught: Vec<i32>,
    pub(crate) signal_waiters: Waiters,
    pub(crate) exit_waiters: Waiters,
    pub(crate) os_calls: u64,
    pub(crate) on_os_call: Option<OsCallHook>,
    pub(crate) terminal: bool,
}

impl Process {
    pub(crate) fn alive(&self) -> bool {
        matches!(self.state, State::Running | State::Stopped)
    }

    pub(crate) fn exit(&self) -> Option<Exit> {
        match self.state {
            State::Zombie(exit) | State::Reaped(exit) => Some(exit),
            State::Running | State::Stopped => None,
        }
    }

    pub(crate) fn end_of(&self, fd: Fd) -> Option<End> {
        self.fds.get(fd.0 as usize).copied().flatten()
    }

    pub(crate) fn action(&self, number: i32) -> Disposition {
        self.actions[number as usize]
    }
}

/// What a new process is made of.
pub(crate) struct Birth {
    pub(crate) parent: Index,
    pub(crate) name: Rc<str>,
    pub(crate) image: Image,
    pub(crate) uid: u32,
    pub(crate) group: Group,
    /// Signals that do not stay ignored.
    pub(crate) defaults: Vec<i32>,
    pub(crate) terminal: bool,
    pub(crate) on_os_call: Option<OsCallHook>,
}

/// The process group of a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// That of its parent.
    Same,
    /// A new one, which it leads.
    Own,
    /// This one, which must exist in the session of its parent (`EPERM`).
    Of(Pid),
    /// A new one in a new session (`setsid`).
    Session,
}

impl Kernel {
    /// The two processes that are always there.
    pub(crate) fn add_permanent(&mut self) {
        for (name, pid) in [("init", INIT_PID), ("shell", SHELL_PID)] {
            let image = Image { argv: [OsString::from(name)].into(), vars: Vec::new(), cwd: "/".into() };
            let birth = Birth {
                parent: INIT,
                name: name.into(),
                image,
                uid: 0,
                group: Group::Same,
                defaults: Vec::new(),
                terminal: false,
                on_os_call: None,
            };
            self.add(birth, pid, pid, pid, true);
        }
    }

    fn add(&mut self, birth: Birth, pid: Pid, group: Pid, session: Pid, permanent: bool) -> Index {
        let mut actions = [Disposition::Default; 32];
        if !permanent {
            // Ignored signals stay ignored over fork and exec; handlers do not survive.
            for (mine, its) in actions.iter_mut().zip(self.procs[birth.parent].actions) {
                *mine = if its == Disposition::Ignore { its } else { Disposition::Default };
            }
            for number in birth.defaults {
                actions[number as usize] = Disposition::Default;
            }
        }
        let nth = self.count_name(&birth.name);
        let started = self.clocks.ticks(self.exec.now());
        let index = self.procs.len();
        self.procs.push(Process {
            pid,
            parent: birth.parent,
            group,
            session,
            uid: birth.uid,
            name: birth.name,
            nth,
            image: Rc::new(birth.image),
            started,
            state: State::Running,
            task: None,
            fds: Vec::with_capacity(8),
            permanent,
            actions,
            pending: SignalSet::default(),
            caught: Vec::new(),
            signal_waiters: Waiters::default(),
            exit_waiters: Waiters::default(),
            os_calls: 0,
            on_os_call: birth.on_os_call,
            terminal: birth.terminal,
        });
        self.listed.push(index);
        index
    }

    fn count_name(&mut self, name: &Rc<str>) -> u32 {
        match self.names.iter_mut().find(|(known, _)| known == name) {
            Some((_, count)) => {
                *count += 1;
                *count
            }
            None => {
                self.names.push((name.clone(), 0));
                0
            }
        }
    }

    /// Adds a process without descriptors and without a task.
    pub(crate) fn create(&mut self, birth: Birth) -> Result<Index, Errno> {
        let parent = &self.procs[birth.parent];
        let (parent_group, parent_session) = (parent.group, parent.session);
        let pid = self.free_pid();
        let (group, session) = match birth.group {
            Group::Same => (parent_group, parent_session),
            Group::Own => (pid, parent_session),
            Group::Session => (pid, pid),
            Group::Of(group) => {
                let known = self.members(group).any(|member| self.procs[member].session == parent_session);
                if !known {
                    return Err(Errno::EPERM);
                }
                (group, parent_session)
            }
        };
        Ok(self.add(birth, pid, group, session, false))
    }

    fn free_pid(&mut self) -> Pid {
        if self.recycle_pids
            && let Some(free) = (FIRST_PID..self.next_pid).find(|number| !self.is_taken(*number))
        {
            return Pid(free);
        }
        loop {
            let number = self.next_pid.max(FIRST_PID);
            self.next_pid = number + 1;
            if number > self.highest_pid || !self.is_taken(number) {
                self.highest_pid = self.highest_pid.max(number);
                return Pid(number);
            }
        }
    }

    /// Whether a number cannot be handed out again yet.
    fn is_taken(&self, number: i32) -> bool {
        // No kernel runs through all its numbers within a tick: pid and start stay the name of one process.
        let now = self.clocks.ticks(self.exec.now());
        let mut recent = self.procs.iter().rev().take_while(|process| process.started == now);
        recent.any(|process| process.pid.0 == number)
            || self
                .listed
                .iter()
                .map(|index| &self.procs[*index])
                .any(|process| [process.pid, process.group, process.session].iter().any(|id| id.0 == number))
    }

    /// Begins at the first number again.
    pub(super) fn restart_pids(&mut self) {
        self.next_pid = FIRST_PID;
    }

    /// The process with this pid, zombies included.
    pub(crate) fn find(&self, pid: Pid) -> Option<Index> {
        self.listed.iter().copied().find(|index| self.procs[*index].pid == pid)
    }

    /// The processes of a group in the order of their start, zombies included.
    pub(crate) fn members(&self, group: Pid) -> impl Iterator<Item = Index> {
        self.listed.iter().copied().filter(move |index| self.procs[*index].group == group)
    }

    pub(crate) fn group_lives(&self, group: Pid) -> bool {
        self.members(group).any(|member| self.procs[member].alive())
    }

    /// Puts `end` into the lowest free descriptor.
    pub(crate) fn open_fd(&mut self, who: Index, end: End) -> Fd {
        let fds = &self.procs[who].fds;
        let number = fds.iter().position(Option::is_none).unwrap_or(fds.len());
        let fd = Fd(number as u32);
        self.set_fd(who, fd, end);
        fd
    }

    /// Makes `fd` lead to `end`. A pipe without a role gets one from the first standard descriptor it is given to.
    pub(crate) fn set_fd(&mut self, who: Index, fd: Fd, end: End) {
        self.hold(end);
        let number = fd.0 as usize;
        let process = &mut self.procs[who];
        if process.fds.len() <= number {
            process.fds.resize(number + 1, None);
        }
        let before = process.fds[number].replace(end);
        let of = process.pid;
        let stream = match (fd, end) {
            (STDIN, End::Read(id)) => Some((id, Std::In)),
            (STDOUT, End::Write(id)) => Some((id, Std::Out)),
            (STDERR, End::Write(id)) => Some((id, Std::Err)),
            _ => None,
        };
        if let Some((id, stream)) = stream {
            self.pipe(id).role.get_or_insert(Role { of, stream });
        }
        if let Some(before) = before {
            self.release(before);
        }
    }

    /// Closes a descriptor; `EBADF` when it is not open.
    pub(crate) fn close(&mut self, who: Index, fd: Fd) -> Result<(), Errno> {
        let process = &mut self.procs[who];
        let end = process.fds.get_mut(fd.0 as usize).and_then(Option::take).ok_or(Errno::EBADF)?;
        let (pid, last) = (process.pid, !process.fds.contains(&Some(end)));
        if last {
            match end {
                End::Read(id) => self.push(pid, What::CloseRead(self.pipe_ref(id))),
                End::Write(id) => self.push(pid, What::CloseWrite(self.pipe_ref(id))),
                End::Null => {}
            }
        }
        self.release(end);
        Ok(())
    }

    /// Ends a process. From the first line on it is inert: nothing that it still holds can touch the world.
    pub(crate) fn end(&mut self, who: Index, exit: Exit) {
        let process = &mut self.procs[who];
        if !process.alive() {
            return;
        }
        process.state = State::Zombie(exit);
        self.ended.push(who);
        let (pid, group, parent) = (process.pid, process.group, process.parent);
        let fds = std::mem::take(&mut process.fds);
        if let Some(task) = process.task.take() {
            self.exec.kill(task);
        }
        self.push(pid, What::Exit(exit));
        for end in fds.into_iter().flatten() {
            self.release(end);
        }
        self.leave_family(who);
        self.group_waiters.wake(group.0);
        self.procs[who].exit_waiters.wake(0);
        if self.procs[parent].permanent || self.procs[parent].action(SIGCHLD) == Disposition::Ignore {
            self.bury(who);
        } else {
            self.deliver(parent, SIGCHLD);
        }
    }

    /// The program of a task has returned.
    pub(crate) fn task_ended(&mut self, task: TaskId, exit: Exit) {
        let who = self.by_task[task.place()];
        // The place of the task is free already.
        self.procs[who].task = None;
        let exit = match exit {
            Exit::Status(status) => Exit::Status(status & 0xff),
            signal => signal,
        };
        self.end(who, exit);
    }

    /// The program of a task has panicked, which ends a Rust program with status 101.
    pub(crate) fn task_panicked(&mut self, task: TaskId, text: Rc<str>) {
        let pid = self.procs[self.by_task[task.place()]].pid;
        self.push(pid, What::Panic(text));
        self.task_ended(task, Exit::Status(101));
    }

    /// The children go to init, which reaps those that have ended; groups that lose their last parent are told.
    fn leave_family(&mut self, who: Index) {
        let (group, session, parent) =
            (self.procs[who].group, self.procs[who].session, self.procs[who].parent);
        let children: Vec<Index> = self
            .listed
            .iter()
            .copied()
            .filter(|child| self.procs[*child].parent == who && *child != who)
            .collect();
        let mut lost: Vec<Pid> = Vec::new();
        for child in children {
            self.procs[child].parent = INIT;
            let (pid, its_group) = (self.procs[child].pid, self.procs[child].group);
            if !self.procs[child].alive() {
                self.bury(child);
                continue;
            }
            self.push(pid, What::Orphaned);
            if its_group != group && self.procs[child].session == session && !lost.contains(&its_group) {
                lost.push(its_group);
            }
        }
        if self.procs[parent].group != group && self.procs[parent].session == session {
            lost.push(group);
        }
        for group in lost {
            self.hang_up_if_orphaned(group, who);
        }
    }

    /// Takes a zombie from the table, on behalf of its parent.
    fn bury(&mut self, who: Index) {
        if let State::Zombie(exit) = self.procs[who].state {
            self.procs[who].state = State::Reaped(exit);
            let (child, parent) = (self.procs[who].pid, self.procs[who].parent);
            self.push(self.procs[parent].pid, What::Reap { child });
            self.listed.retain(|listed| *listed != who);
        }
    }

    /// The exit of a child, without reaping it; `ECHILD` when it is none.
    pub(crate) fn exited(&mut self, who: Index, child: Pid, waker: &Waker) -> Poll<Result<Exit, Errno>> {
        let Some(index) = self.child(who, child) else { return Poll::Ready(Err(Errno::ECHILD)) };
        let poll = self.exec.polls();
        match self.procs[index].exit() {
            Some(exit) => Poll::Ready(Ok(exit)),
            None => {
                self.procs[index].exit_waiters.add(who, 0, poll, waker);
                Poll::Pending
            }
        }
    }

    /// Reaps a child that has ended; `ECHILD` when it is no child, `EAGAIN` when it lives.
    pub(crate) fn reap(&mut self, who: Index, child: Pid) -> Result<Exit, Errno> {
        let index = self.child(who, child).ok_or(Errno::ECHILD)?;
        let exit = self.procs[index].exit().ok_or(Errno::EAGAIN)?;
        self.bury(index);
        Ok(exit)
    }

    fn child(&self, who: Index, child: Pid) -> Option<Index> {
        self.find(child).filter(|index| self.procs[*index].parent == who)
    }

    /// Ready once nobody in the group lives.
    pub(crate) fn group_empty(&mut self, who: Index, group: Pid, waker: &Waker) -> Poll<()> {
        if !self.group_lives(group) {
            return Poll::Ready(());
        }
        let poll = self.exec.polls();
        self.group_waiters.add(who, group.0, poll, waker);
        Poll::Pending
    }

    /// `setsid`: `EPERM` for the leader of a group.
    pub(crate) fn new_session(&mut self, who: Index) -> Result<Pid, Errno> {
        let process = &mut self.procs[who];
        let (pid, before) = (process.pid, process.group);
        if before == pid || self.members(pid).next().is_some() {
            return Err(Errno::EPERM);
        }
        self.procs[who].group = pid;
        self.procs[who].session = pid;
        self.push(pid, What::NewSession);
        self.group_waiters.wake(before.0);
        Ok(pid)
    }

    /// `setpgid(0, group)`: into a group of its session or into one of its own; `EPERM` otherwise.
    pub(crate) fn join_group(&mut self, who: Index, group: Pid) -> Result<(), Errno> {
        let process = &self.procs[who];
        let (pid, before, session) = (process.pid, process.group, process.session);
        let known = group == pid || self.members(group).any(|member| self.procs[member].session == session);
        if session == pid || !known {
            return Err(Errno::EPERM);
        }
        self.procs[who].group = group;
        self.push(pid, What::NewGroup(group));
        self.group_waiters.wake(before.0);
        Ok(())
    }

    /// Sets what a process does with a signal; `EINVAL` for SIGKILL and SIGSTOP, which nobody can change.
    pub(crate) fn set_action(&mut self, who: Index, number: i32, action: Disposition) -> Result<(), Errno> {
        if !(1..32).contains(&number) || matches!(number, SIGKILL | SIGSTOP) {
            return Err(Errno::EINVAL);
        }
        let process = &mut self.procs[who];
        process.actions[number as usize] = action;
        if action != Disposition::Handle {
            process.caught.retain(|caught| *caught != number);
        }
        Ok(())
    }
}
