//! Whether a process group still has a living member (PRC-16).
//!
//! `kill(-group, 0)` counts zombies, and the group of a plugin always has one: its leader, which is not reaped before
//! the end so that the number stays taken. So the members are looked up in `/proc`. As long as one of them, the
//! *witness*, lives, the group is not empty and nothing needs to be looked up: its pidfd tells when it ends, and only
//! then comes the next look. Nothing is polled by time.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use nix::unistd::getpgid;
use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open, test_kill_process_group};

use crate::clock::{RealSleep, mono};
use crate::identity::started_or_ended;
use crate::watched::{Watched, is_ready};

/// How long until the next look when this one failed for want of descriptors or memory.
const RETRY: Duration = Duration::from_millis(10);

/// The state of waiting for one group to empty.
pub(crate) struct Group {
    id: Pid,
    killed: bool,
    state: State,
}

enum State {
    /// Nothing is known.
    Unknown,
    /// This member was alive.
    Witness(Watched),
    /// The look failed.
    Retry(RealSleep),
    Empty,
}

impl Group {
    pub(crate) fn new(id: Pid) -> Group {
        Group { id, killed: false, state: State::Unknown }
    }

    /// To be told that SIGKILL was sent to the whole group: from then on no member can fork.
    pub(crate) fn killed(&mut self) {
        self.killed = true;
    }

    /// Ready once no member lives. The leader, which is the caller's to watch, must have ended.
    pub(crate) fn poll_empty(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            self.state = match &mut self.state {
                State::Empty => return Poll::Ready(()),
                State::Witness(pidfd) => {
                    let _ =
                        ready!(pidfd.poll_io(cx, |pidfd| ended(pidfd)?.then_some(()).ok_or(Errno::AGAIN)));
                    State::Unknown
                }
                State::Retry(sleep) => {
                    ready!(std::pin::Pin::new(sleep).poll(cx));
                    State::Unknown
                }
                State::Unknown => self.look(),
            }
        }
    }

    /// A member can fork and end between the listing of processes and the look at it; its child is not in that list.
    /// Hence the second look. After SIGKILL to the group there is no such child, and one look is exact.
    fn look(&self) -> State {
        let looks = if self.killed { 1 } else { 2 };
        for _ in 0..looks {
            match living_member(self.id).and_then(|pidfd| pidfd.map(Watched::readable).transpose()) {
                Ok(Some(witness)) => return State::Witness(witness),
                Ok(None) => {}
                Err(_) => return State::Retry(RealSleep::until(mono() + RETRY)),
            }
        }
        State::Empty
    }
}

/// Whether a group that somebody may have started, at any time of this boot, has a living member. `founder` is its
/// number and the pid of the process that founded it, `started` when that was started.
///
/// Errors are those of the kernel.
pub(crate) fn is_alive(founder: mu_core::os::Pid, started: u64) -> io::Result<bool> {
    let Some(group) = Some(founder.0).filter(|number| *number > 0).and_then(Pid::from_raw) else {
        return Ok(false);
    };
    // Most groups have long lost their last member, its zombie included. The kernel tells that in one call.
    if test_kill_process_group(group) == Err(Errno::SRCH) {
        return Ok(false);
    }
    // Twice, for a member that forks and ends during the look.
    for _ in 0..2 {
        if living_member(group)?.is_some() {
            // Whoever has the number now and is not the founder got it after the group was empty.
            return Ok(started_or_ended(founder)?.is_none_or(|its| its == started));
        }
    }
    Ok(false)
}

/// The pidfd of some living process in the group.
fn living_member(group: Pid) -> io::Result<Option<OwnedFd>> {
    for entry in std::fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse().ok()).and_then(Pid::from_raw) else {
            continue;
        };
        if !is_member(pid, group) {
            continue;
        }
        let pidfd = match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(pidfd) => pidfd,
            // It has been reaped since.
            Err(Errno::SRCH | Errno::INVAL) => continue,
            Err(error) => return Err(error.into()),
        };
        // The number may have passed to another process before it was opened. What is alive after that still has its
        // number, so the second question is about the same process.
        if is_member(pid, group) && !ended(pidfd.as_fd())? {
            return Ok(Some(pidfd));
        }
    }
    Ok(None)
}

/// `getpgid` tells in one call what `/proc/<pid>/stat` tells after its bracket, zombies included.
fn is_member(pid: Pid, group: Pid) -> bool {
    getpgid(Some(nix::unistd::Pid::from_raw(pid.as_raw_pid())))
        .is_ok_and(|id| id.as_raw() == group.as_raw_pid())
}

/// Whether the process behind a pidfd has ended: reaped, or a zombie all of whose threads are gone. (A process whose
/// first thread alone has ended shows as a zombie in `/proc` and is alive.)
pub(crate) fn ended(pidfd: BorrowedFd<'_>) -> Result<bool, Errno> {
    is_ready(pidfd, PollFlags::IN)
}
