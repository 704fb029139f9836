//! What happens at a numbered call of mu, at a numbered operation of its on the disk, or at an act of a plugin; and the
//! list of all of them, from which a sweep chooses.
//!
//! Two neighbours of the list can be the same point: killed (or without power) at the one or at the other, mu leaves the
//! very same world. [`same`] says so only of two points within one poll of mu, in which nobody else has had a turn.

use std::cell::RefCell;
use std::rc::Rc;

use mu_core::reached;
use nix::errno::Errno;

use super::{AtCall, AtDisk};
use crate::disk::{DiskOp, Kind, Owner, Verdict};
use crate::kernel::{Machine, OsCall, OsCallHook, OsCallVerdict, Remote, SIGKILL};
use crate::scenario::{DiskErrno, DiskError};
use crate::trace::{Event, Target, What};

/// What mu was about to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    /// A call of its operating system, by its name.
    Call(&'static str),
    /// An operation on the disk.
    Disk(Kind),
}

/// A point of one run of mu.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spot {
    /// What comes next.
    pub deed: Deed,
    /// Its number among the calls, or the operations, of this mu, from 1.
    pub nth: u64,
    /// To be killed here is to be killed at the spot before.
    pub same_when_killed: bool,
    /// To lose the power here is to lose it at the spot before.
    pub same_without_power: bool,
}

/// Something that a plugin did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Act {
    /// Which.
    pub plugin: String,
    /// Its number since the start of the mu, from 1.
    pub nth: u64,
    /// What it was.
    pub what: &'static str,
}

/// All points of one run of mu.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Course {
    /// The step that ran it, from 1.
    pub step: usize,
    /// Of mu itself, in their order.
    pub spots: Vec<Spot>,
    /// Of all plugins, from the start of this mu to that of the next; of several mu that were started at once the last
    /// one has them.
    pub acts: Vec<Act>,
}

/// Decides about calls and operations on the disk, and keeps their list if it is asked to.
#[derive(Clone, Default)]
pub(super) struct Director(Rc<RefCell<State>>);

#[derive(Default)]
struct State {
    keeps: bool,
    /// Writes fail: there is no room.
    full: bool,
    /// What fails, and how.
    broken: Option<DiskErrno>,
    /// An error that came once, as long as nothing after it could have failed like it.
    alone: Option<DiskErrno>,
    /// One such is over.
    ended_alone: bool,
    /// One for each mu, in the order of their start.
    aims: Vec<Aim>,
}

/// One mu.
struct Aim {
    owner: Owner,
    at_call: Option<AtCall>,
    at_disk: Option<AtDisk>,
    error: Option<DiskError>,
    calls: u64,
    ops: u64,
    raw: Vec<Raw>,
}

/// A point as it was met.
#[derive(Clone, Copy)]
struct Raw {
    deed: Deed,
    nth: u64,
    /// Events up to it.
    events: u64,
    /// Polls up to it.
    polls: u64,
    /// Nobody else has opened a database.
    alone: bool,
}

enum End {
    Kill,
    PowerOff,
}

impl Director {
    /// From here on everything is written down.
    pub(super) fn keep(&self) {
        self.0.borrow_mut().keeps = true;
    }

    /// Whether anything is written down.
    pub(super) fn keeps(&self) -> bool {
        self.0.borrow().keeps
    }

    /// Whether the disk has no room.
    pub(super) fn set_full(&self, full: bool) {
        self.0.borrow_mut().full = full;
    }

    /// The disk is sound again.
    pub(super) fn mend(&self) {
        let mut state = self.0.borrow_mut();
        (state.full, state.broken) = (false, None);
        state.aims.iter_mut().for_each(|aim| aim.error = None);
        state.ended_alone |= state.alone.take().is_some();
    }

    /// Whether an error on the disk was followed, until the disk was mended, by nothing that could have failed like it.
    pub(super) fn failed_alone(&self) -> bool {
        self.0.borrow().ended_alone
    }

    /// The next mu, which has been started and has done nothing yet.
    pub(super) fn started(
        &self,
        owner: Owner,
        at_call: Option<AtCall>,
        at_disk: Option<AtDisk>,
        error: Option<DiskError>,
    ) {
        let aim = Aim { owner, at_call, at_disk, error, calls: 0, ops: 0, raw: Vec::new() };
        self.0.borrow_mut().aims.push(aim);
    }

    /// What was to happen at a point that this mu, the n-th that was started, counted from 0, never came to.
    pub(super) fn idle(&self, mu: usize) -> Vec<String> {
        let state = self.0.borrow();
        let aim = &state.aims[mu];
        let call = aim.at_call.map(|at| match at {
            AtCall::Kill(nth) => ("mu is killed", nth),
            AtCall::Panic(nth) => ("mu panics", nth),
            AtCall::PowerOff(nth) => ("the power fails", nth),
        });
        let disk = aim.at_disk.map(|at| match at {
            AtDisk::Kill(nth) => ("mu is killed", nth),
            AtDisk::PowerOff(nth) => ("the power fails", nth),
        });
        let error = aim.error.map(|error| (error.errno.name(), error.at));
        let late = |(what, nth), made, of| {
            (nth > made).then(|| format!("{what} at {of} {nth}, and there were {made} of them"))
        };
        let call = call.and_then(|at| late(at, aim.calls, "call"));
        let disk = [disk, error].into_iter().flatten();
        call.into_iter().chain(disk.filter_map(|at| late(at, aim.ops, "operation on the disk"))).collect()
    }

    /// What decides about the calls of the mu that is started next; `None` when there is nothing to decide.
    pub(super) fn hook(&self, remote: Remote, at_call: Option<AtCall>) -> Option<OsCallHook> {
        let director = self.clone();
        let index = self.0.borrow().aims.len();
        let hook: OsCallHook = Rc::new(move |call| director.call(&remote, index, at_call, call));
        (self.keeps() || at_call.is_some()).then_some(hook)
    }

    fn call(&self, remote: &Remote, mu: usize, at: Option<AtCall>, call: OsCall) -> OsCallVerdict {
        let Some(machine) = remote.machine() else { return OsCallVerdict::Go };
        let mut state = self.0.borrow_mut();
        state.aims[mu].calls = call.nth;
        if state.keeps {
            let raw = Raw::new(&machine, state.aims[mu].owner, Deed::Call(call.name), call.nth);
            state.aims[mu].raw.push(raw);
        }
        drop(state);
        match at {
            Some(AtCall::Kill(nth)) if call.nth == nth => {
                reached!("world: mu is killed at a call");
                OsCallVerdict::Kill
            }
            Some(AtCall::Panic(nth)) if call.nth == nth => {
                reached!("world: mu panics at a call");
                OsCallVerdict::Panic
            }
            Some(AtCall::PowerOff(nth)) if call.nth == nth => {
                reached!("world: the power fails at a call");
                machine
                    .fault(&format!("the power fails at call {nth} of the operating system, {}", call.name));
                machine.power_cycle();
                OsCallVerdict::Go
            }
            _ => OsCallVerdict::Go,
        }
    }

    /// Decides about an operation on the disk.
    pub(super) fn disk(&self, remote: &Remote, op: &DiskOp) -> Verdict {
        let Some(machine) = remote.machine() else { return Verdict::Go };
        let (end, verdict, nth) = self.decide(&machine, op);
        let kind = op.kind.name();
        match (end, verdict) {
            (Some(End::PowerOff), _) => {
                reached!("world: the power fails at an operation on the disk");
                machine.fault(&format!("the power fails at operation {nth} on the disk, {kind}"));
                machine.power_cycle();
                Verdict::RefuseFromHere
            }
            (Some(End::Kill), _) => {
                reached!("world: mu is killed at an operation on the disk");
                machine.fault(&format!("SIGKILL at operation {nth} on the disk, {kind}"));
                if let Some(pid) = machine.pid_of(op.owner) {
                    // It runs, so it is there.
                    let _ = machine.signal(Target::Process(pid), SIGKILL);
                }
                Verdict::RefuseFromHere
            }
            (None, verdict) => verdict,
        }
    }

    fn decide(&self, machine: &Machine, op: &DiskOp) -> (Option<End>, Verdict, u64) {
        let state = &mut *self.0.borrow_mut();
        let mut errno = None;
        // What the world itself does to a database is no operation of the machine's.
        let Some(aim) = state.aims.iter_mut().find(|aim| aim.owner == op.owner) else {
            return (None, Verdict::Go, 0);
        };
        aim.ops += 1;
        let nth = aim.ops;
        if state.keeps {
            aim.raw.push(Raw::new(machine, op.owner, Deed::Disk(op.kind), nth));
        }
        let end = match aim.at_disk {
            Some(AtDisk::Kill(at)) if at == nth => Some(End::Kill),
            Some(AtDisk::PowerOff(at)) if at == nth => Some(End::PowerOff),
            _ => None,
        };
        if let Some(error) = aim.error.filter(|error| error.at == nth) {
            let (name, kind) = (error.errno.name(), op.kind.name());
            machine.fault(&format!("{name} at operation {nth} on the disk, {kind}"));
            errno = Some(error.errno);
            state.alone = errno;
            state.broken = state.broken.or(errno.filter(|_| error.stays));
        } else if state.alone.is_some_and(|errno| can_fail(op.kind, errno)) {
            state.alone = None;
        }
        if state.full {
            errno = errno.or(Some(DiskErrno::NoSpace));
        }
        let errno = errno.or(state.broken).filter(|errno| can_fail(op.kind, *errno));
        let verdict = errno.map_or(Verdict::Go, |errno| {
            reached!("world: an operation on the disk fails");
            Verdict::Errno(match errno {
                DiskErrno::NoSpace => Errno::ENOSPC,
                DiskErrno::Broken => Errno::EIO,
            })
        });
        (end, verdict, nth)
    }

    /// The points of each mu, in the order of their start. `events` are all that were recorded.
    pub(super) fn spots(&self, events: &[Event]) -> Vec<Vec<Spot>> {
        self.0.borrow().aims.iter().map(|aim| spots(&aim.raw, events)).collect()
    }
}

impl Raw {
    fn new(machine: &Machine, owner: Owner, deed: Deed, nth: u64) -> Raw {
        let alone = !machine.disk().is_open_besides(owner);
        Raw { deed, nth, events: machine.event_count(), polls: machine.polls(), alone }
    }
}

/// Whether this operation can fail with this error: locks are kept by the kernel and never reach the disk, a close has no
/// way to fail, and only what is written takes room.
pub fn can_fail(kind: Kind, errno: DiskErrno) -> bool {
    match errno {
        DiskErrno::NoSpace => kind == Kind::Write,
        DiskErrno::Broken => !matches!(
            kind,
            Kind::Close
                | Kind::Lock
                | Kind::Unlock
                | Kind::CheckReserved
                | Kind::ShmLock
                | Kind::ShmUnlock
                | Kind::ShmUnmap
        ),
    }
}

fn spots(raw: &[Raw], events: &[Event]) -> Vec<Spot> {
    let mut before: Option<&Raw> = None;
    let spot = |now| {
        let (same_when_killed, same_without_power) = before.replace(now).map_or((false, false), |before| {
            same(before, now, &events[before.events as usize..now.events as usize])
        });
        Spot { deed: now.deed, nth: now.nth, same_when_killed, same_without_power }
    };
    raw.iter().map(spot).collect()
}

/// Whether nothing that outlives mu, and nothing that outlives the power, has happened from one point to the next.
fn same(before: &Raw, now: &Raw, between: &[Event]) -> (bool, bool) {
    // In another poll others may have had a turn. Operations on the disk are points themselves; whatever else leaves mu
    // (bytes, a signal, a start, a reaping, an end of a pipe) is an event.
    let apart =
        before.polls != now.polls || between.iter().any(|event| !matches!(event.what, What::Disk { .. }));
    if apart {
        return (false, false);
    }
    match before.deed {
        // The only calls that change something without an event.
        Deed::Call("create_dir_all" | "remove_file") => (false, false),
        Deed::Call(_) => (true, true),
        Deed::Disk(kind) => {
            let changes = matches!(
                kind,
                Kind::Open | Kind::Delete | Kind::Write | Kind::Truncate | Kind::ShmMap | Kind::ShmUnmap
            );
            // Whoever else has the database open shares memory and locks with this mu, beside the files.
            (before.alone && now.alone && !changes, !matches!(kind, Kind::Sync | Kind::Delete))
        }
    }
}

#[cfg(test)]
mod tests {
    use mu_core::os::Pid;

    use super::*;

    fn raw(deed: Deed, events: u64, polls: u64) -> Raw {
        Raw { deed, nth: 1, events, polls, alone: true }
    }

    fn event(what: What) -> Event {
        Event { at: 1, pid: Pid(100), what }
    }

    #[test]
    fn what_leaves_no_trace_parts_no_points() {
        let next = raw(Deed::Call("now"), 0, 1);
        assert_eq!(same(&raw(Deed::Call("env"), 0, 1), &next, &[]), (true, true));
        assert_eq!(same(&raw(Deed::Disk(Kind::Read), 0, 1), &next, &[]), (true, true));
        assert_eq!(same(&raw(Deed::Disk(Kind::Write), 0, 1), &next, &[]), (false, true));
        assert_eq!(same(&raw(Deed::Disk(Kind::Sync), 0, 1), &next, &[]), (true, false));
        assert_eq!(same(&raw(Deed::Disk(Kind::Delete), 0, 1), &next, &[]), (false, false));
        assert_eq!(same(&raw(Deed::Call("create_dir_all"), 0, 1), &next, &[]), (false, false));
        assert_eq!(
            same(&Raw { alone: false, ..raw(Deed::Disk(Kind::Lock), 0, 1) }, &next, &[]),
            (false, true)
        );
    }

    #[test]
    fn another_poll_and_an_event_part_points() {
        let (one, other) = (raw(Deed::Call("env"), 0, 1), raw(Deed::Call("now"), 1, 1));
        assert_eq!(same(&one, &raw(Deed::Call("now"), 0, 2), &[]), (false, false));
        assert_eq!(same(&one, &other, &[event(What::Reap { child: Pid(101) })]), (false, false));
        let disk = What::Disk {
            number: 1,
            kind: Kind::Read,
            path: Rc::from(std::path::Path::new("/")),
            offset: 0,
            len: 0,
        };
        assert_eq!(same(&one, &other, &[event(disk)]), (true, true));
    }

    #[test]
    fn a_full_disk_fails_writes_and_a_broken_one_no_lock() {
        assert!(can_fail(Kind::Write, DiskErrno::NoSpace) && !can_fail(Kind::Sync, DiskErrno::NoSpace));
        assert!(can_fail(Kind::Sync, DiskErrno::Broken) && !can_fail(Kind::ShmLock, DiskErrno::Broken));
    }
}
