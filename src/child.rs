//! A plugin's process: start, pipes, the leader's exit without reaping, kill, reap.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use mu_core::os::{Child, ChildPipe, Exec, Exit, Pid, ProcessId};
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::process::{self, PidfdFlags, Signal, WaitId, WaitIdOptions};

use crate::group::Group;
use crate::identity::started_or_ended;
use crate::watched::{Watched, read, write};

/// The groups that were started and whose leaders are not reaped, so that their numbers are theirs.
#[derive(Clone, Default)]
pub(crate) struct Started(Rc<RefCell<BTreeSet<i32>>>);

impl Started {
    /// SIGKILL to every one of them.
    pub(crate) fn kill_all(&self) {
        for &group in self.0.borrow().iter() {
            kill(process::Pid::from_raw(group).expect("the number of a process is not 0"));
        }
    }
}

fn kill(group: process::Pid) {
    // It fails when nobody is left to kill, or nobody that mu may kill: neither can be helped.
    let _ = process::kill_process_group(group, Signal::KILL);
}

/// A child process of mu, leader of its own group.
pub struct RealChild {
    leader: process::Pid,
    identity: ProcessId,
    /// Readable once the leader has ended; `waitid` works on it, whatever happens to the number.
    pidfd: Watched,
    stdin: Option<Watched>,
    stdout: Watched,
    stderr: Watched,
    exit: Option<Exit>,
    reaped: bool,
    group: Group,
    started: Started,
}

/// See [`mu_core::os::Os::spawn`].
pub(crate) fn spawn(exec: &Exec, boot: String, started: &Started) -> io::Result<RealChild> {
    let mut process = command(exec)?.spawn().map_err(as_os_error)?;
    adopt(&mut process, boot, started).inspect_err(|_| {
        // No descriptor or memory was left to watch it: it cannot be kept.
        kill(pid_of(&process));
        let _ = process.wait();
    })
}

fn command(exec: &Exec) -> io::Result<Command> {
    // A name without a slash would be looked up in PATH.
    let Some((program, arguments)) = exec.argv.split_first().filter(|argv| Path::new(argv.0).is_absolute())
    else {
        return Err(Errno::INVAL.into());
    };
    #[allow(clippy::disallowed_methods)] // this is `Os::spawn`
    let mut command = Command::new(program);
    // `std` opens the pipes close-on-exec, joins the group and execs without running code of ours in the child
    // (posix_spawn), and gives SIGPIPE its default action back. Its environment is a map: of two variables with one
    // name the first must win, which is the one that `getenv` finds.
    command
        .args(arguments)
        .env_clear()
        .envs(exec.env.iter().rev().map(|(name, value)| (name, value)))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    Ok(command)
}

/// `std` refuses a NUL byte in an argument before it asks the system, which would have to say EINVAL.
fn as_os_error(error: io::Error) -> io::Error {
    if error.raw_os_error().is_some() { error } else { Errno::INVAL.into() }
}

fn pid_of(process: &std::process::Child) -> process::Pid {
    process::Pid::from_child(process)
}

fn adopt(process: &mut std::process::Child, boot: String, started: &Started) -> io::Result<RealChild> {
    let leader = pid_of(process);
    let pid = Pid(leader.as_raw_pid());
    // Its own child, not reaped: the kernel knows it, dead or alive.
    let since = started_or_ended(pid)?.ok_or(io::ErrorKind::NotFound)?;
    let stdin = process.stdin.take().expect("stdin is a pipe");
    let stdout = process.stdout.take().expect("stdout is a pipe");
    let stderr = process.stderr.take().expect("stderr is a pipe");
    let child = RealChild {
        leader,
        identity: ProcessId { pid, started: since, boot },
        // Its own child, not reaped: the number is still this process.
        pidfd: Watched::readable(process::pidfd_open(leader, PidfdFlags::empty())?)?,
        stdin: Some(Watched::writable(non_blocking(stdin.into())?)?),
        stdout: Watched::readable(non_blocking(stdout.into())?)?,
        stderr: Watched::readable(non_blocking(stderr.into())?)?,
        exit: None,
        reaped: false,
        group: Group::new(leader),
        started: started.clone(),
    };
    started.0.borrow_mut().insert(leader.as_raw_pid());
    Ok(child)
}

/// Each end of a pipe has a mode of its own: the child's end stays blocking.
fn non_blocking(fd: OwnedFd) -> io::Result<OwnedFd> {
    rustix::fs::fcntl_setfl(&fd, rustix::fs::fcntl_getfl(&fd)? | OFlags::NONBLOCK)?;
    Ok(fd)
}

impl RealChild {
    /// How the leader ended, if it has. `options` decides whether it is reaped by the question.
    fn wait(pidfd: std::os::fd::BorrowedFd<'_>, options: WaitIdOptions) -> Result<Exit, Errno> {
        let status = loop {
            match process::waitid(
                WaitId::PidFd(pidfd),
                WaitIdOptions::EXITED | WaitIdOptions::NOHANG | options,
            ) {
                Err(Errno::INTR) => {}
                other => break other?.ok_or(Errno::AGAIN)?,
            }
        };
        // With EXITED alone, what is not an exit is a death by signal.
        Ok(match status.exit_status() {
            Some(code) => Exit::Status(code),
            None => Exit::Signal(status.terminating_signal().unwrap_or_default()),
        })
    }
}

impl Child for RealChild {
    fn pid(&self) -> Pid {
        self.identity.pid
    }

    fn identity(&self) -> &ProcessId {
        &self.identity
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match &self.stdin {
            Some(stdin) => stdin.poll_io(cx, |fd| write(fd, bytes)),
            None => Poll::Ready(Err(Errno::PIPE.into())),
        }
    }

    fn close_stdin(&mut self) {
        self.stdin = None;
    }

    fn poll_read(
        &mut self,
        pipe: ChildPipe,
        cx: &mut Context<'_>,
        buf: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let pipe = match pipe {
            ChildPipe::Stdout => &self.stdout,
            ChildPipe::Stderr => &self.stderr,
        };
        pipe.poll_io(cx, |fd| read(fd, buf))
    }

    fn poll_exited(&mut self, cx: &mut Context<'_>) -> Poll<Exit> {
        if let Some(exit) = self.exit {
            return Poll::Ready(exit);
        }
        let answer = ready!(self.pidfd.poll_io(cx, |pidfd| RealChild::wait(pidfd, WaitIdOptions::NOWAIT)));
        // Nobody else waits for mu's children and SIGCHLD is not ignored, so the kernel keeps the status.
        let exit = answer.expect("the leader stays a zombie until it is reaped here");
        self.exit = Some(exit);
        Poll::Ready(exit)
    }

    fn poll_group_empty(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        ready!(self.poll_exited(cx));
        self.group.poll_empty(cx)
    }

    fn kill_group(&mut self) {
        // Once reaped, the number may belong to strangers.
        if !self.reaped {
            kill(self.leader);
            self.group.killed();
        }
    }

    fn reap(&mut self) {
        debug_assert!(self.exit.is_some(), "a leader is reaped after its exit was seen");
        if RealChild::wait(self.pidfd.fd(), WaitIdOptions::empty()).is_ok() {
            self.reaped = true;
            self.started.0.borrow_mut().remove(&self.leader.as_raw_pid());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    /// PRC-13
    #[test]
    fn a_reaped_group_is_no_longer_among_those_to_kill() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
        runtime.block_on(async {
            let started = Started::default();
            let exec = Exec { argv: ["/bin/sh", "-c", "exit 0"].map(Into::into).to_vec(), env: Vec::new() };
            let mut child = spawn(&exec, "this boot".into(), &started).unwrap();
            assert_eq!(started.0.borrow().len(), 1);
            poll_fn(|cx| child.poll_exited(cx)).await;
            child.reap();
            assert_eq!(started.0.borrow().len(), 0);
        });
    }
}
