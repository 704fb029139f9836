//! Who waits for whom, when nothing can go on.

use std::fmt::{self, Display as _};
use std::rc::Rc;

use mu_core::os::Pid;

use super::Kernel;
use super::process::{End, Index, State};
use super::waiters::{Waiters, Waiting};
use crate::trace::{PipeId, PipeRef};

/// No process is ready, no timer is set, and somebody still lives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deadlock {
    /// Virtual nanoseconds since the start of the run.
    pub at: u64,
    /// The living processes in the order of their start.
    pub blocked: Vec<Blocked>,
}

/// A process that cannot go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocked {
    /// Which.
    pub who: Named,
    /// It is stopped, and nobody continues it.
    pub stopped: bool,
    /// It could go on, and nothing has woken it: a waker was lost.
    pub unwoken: bool,
    /// What it waited for when it was polled last.
    pub on: Vec<Wait>,
}

/// A process, as reports name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// Its process id.
    pub pid: Pid,
    /// The file name of its program.
    pub name: Rc<str>,
}

/// Something a process waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Bytes in a pipe, or its end.
    Read {
        /// The pipe.
        pipe: PipeRef,
        /// Whose stream it is.
        of: Option<Named>,
        /// Those who could write or have to close.
        held_by: Vec<Named>,
    },
    /// Room in a pipe, or the end of its reader.
    Write {
        /// The pipe.
        pipe: PipeRef,
        /// Whose stream it is.
        of: Option<Named>,
        /// Those who could read or have to close.
        held_by: Vec<Named>,
    },
    /// The end of a child.
    Exit(Named),
    /// The end of everybody in a group.
    Group {
        /// The group.
        group: Pid,
        /// Those of its processes that live.
        members: Vec<Named>,
    },
    /// A signal.
    Signal,
}

impl Kernel {
    pub(crate) fn deadlock(&self, unwoken: &[Index]) -> Deadlock {
        let living = self.living();
        let blocked = living.map(|who| Blocked {
            who: self.named(who),
            stopped: self.procs[who].state == State::Stopped,
            unwoken: unwoken.contains(&who),
            on: self.waits(who),
        });
        Deadlock { at: self.exec.now(), blocked: blocked.collect() }
    }

    /// The processes that live, without init and the shell, in the order of their start.
    pub(crate) fn living(&self) -> impl Iterator<Item = Index> {
        self.listed.iter().copied().filter(|who| self.procs[*who].alive() && !self.procs[*who].permanent)
    }

    fn named(&self, who: Index) -> Named {
        let process = &self.procs[who];
        Named { pid: process.pid, name: process.name.clone() }
    }

    /// What a process waited for in its last poll; waits of earlier ones may have been given up.
    fn waits(&self, who: Index) -> Vec<Wait> {
        let mut found: Vec<(u64, Wait)> = Vec::new();
        let mut look = |waiters: &Waiters, wait: &dyn Fn(Waiting) -> Wait| {
            for waiting in waiters.waiting().filter(|waiting| waiting.who == who) {
                found.push((waiting.poll, wait(waiting)));
            }
        };
        for (number, pipe) in self.pipes.iter().enumerate() {
            let id = PipeId(number as u32);
            let pipe_ref = self.pipe_ref(id);
            let of = pipe.role.and_then(|role| self.procs.iter().rposition(|process| process.pid == role.of));
            let of = of.map(|index| self.named(index));
            look(&pipe.read_waiters, &|_| Wait::Read {
                pipe: pipe_ref,
                of: of.clone(),
                held_by: self.holders(End::Write(id)),
            });
            look(&pipe.write_waiters, &|_| Wait::Write {
                pipe: pipe_ref,
                of: of.clone(),
                held_by: self.holders(End::Read(id)),
            });
        }
        for (child, process) in self.procs.iter().enumerate() {
            look(&process.exit_waiters, &|_| Wait::Exit(self.named(child)));
            look(&process.signal_waiters, &|_| Wait::Signal);
        }
        look(&self.group_waiters, &|waiting| {
            let group = Pid(waiting.key);
            let members = self.members(group).filter(|member| self.procs[*member].alive());
            Wait::Group { group, members: members.map(|member| self.named(member)).collect() }
        });
        let last = found.iter().map(|(poll, _)| *poll).max();
        found.into_iter().filter(|(poll, _)| Some(*poll) == last).map(|(_, wait)| wait).collect()
    }

    fn holders(&self, end: End) -> Vec<Named> {
        self.living()
            .filter(|who| self.procs[*who].fds.contains(&Some(end)))
            .map(|who| self.named(who))
            .collect()
    }
}

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}[{}]", self.name, self.pid)
    }
}

fn list(f: &mut fmt::Formatter<'_>, names: &[Named]) -> fmt::Result {
    match names {
        [] => f.write_str("nobody"),
        [first, rest @ ..] => {
            first.fmt(f)?;
            rest.iter().try_for_each(|name| write!(f, ", {name}"))
        }
    }
}

fn stream(f: &mut fmt::Formatter<'_>, pipe: &PipeRef, of: Option<&Named>) -> fmt::Result {
    match (pipe.role, of) {
        (Some(role), Some(of)) => write!(f, "{} of {of}", role.stream),
        _ => pipe.fmt(f),
    }
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Wait::Read { pipe, of, held_by } => {
                f.write_str("to read ")?;
                stream(f, pipe, of.as_ref())?;
                f.write_str(", which is open for writing in ")?;
                list(f, held_by)
            }
            Wait::Write { pipe, of, held_by } => {
                f.write_str("to write to ")?;
                stream(f, pipe, of.as_ref())?;
                f.write_str(", which is full and open for reading in ")?;
                list(f, held_by)
            }
            Wait::Exit(child) => write!(f, "for the end of {child}"),
            Wait::Group { group, members } => {
                write!(f, "for group {group} to be empty, in which live ")?;
                list(f, members)
            }
            Wait::Signal => f.write_str("for a signal"),
        }
    }
}

impl fmt::Display for Deadlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, nanos) = (self.at / 1_000_000_000, self.at % 1_000_000_000);
        write!(f, "deadlock at {seconds}.{nanos:09} s: nobody is ready and no timer is set")?;
        for Blocked { who, stopped, unwoken, on } in &self.blocked {
            if *unwoken {
                write!(f, "\n  {who} could go on, but nothing woke it")?;
                continue;
            }
            let state = if *stopped { "is stopped; it waits" } else { "waits" };
            match on.as_slice() {
                [] if *stopped => write!(f, "\n  {who} is stopped")?,
                [] => write!(f, "\n  {who} waits for nothing that the machine knows")?,
                [one] => write!(f, "\n  {who} {state} {one}")?,
                several => {
                    write!(f, "\n  {who} {state}")?;
                    several.iter().try_for_each(|wait| write!(f, "\n    {wait}"))?;
                }
            }
        }
        Ok(())
    }
}
