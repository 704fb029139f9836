//! The one loop that joins a [`Session`] to a process.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::{Action, Ending, Session, Status, StderrLine};
use crate::os::{Child, ChildPipe, Mono, Os, ProcessId};

/// Bytes read from a pipe at once.
const CHUNK: usize = 64 * 1024;
/// Bytes read from one pipe before everything else gets its turn: what a pipe can hold, so that a timer never beats a
/// reply that was there before it, and not more, so that a plugin that never stops writing holds up nobody.
const TURN: usize = 1024 * 1024;

/// A running plugin.
pub struct Process<O: Os> {
    child: O::Child,
    session: Session,
    stderr: StderrLine,
    stdout_open: bool,
    stderr_open: bool,
    exited: bool,
    group_empty: bool,
    /// The first line was offered to the pipe. Nothing is looked at before: there is nothing yet to answer.
    greeted: bool,
    sleep: Option<(Mono, O::Sleep)>,
    buffer: Vec<u8>,
}

impl<O: Os> Process<O> {
    /// Joins a fresh session to the process it describes.
    pub fn new(child: O::Child, session: Session) -> Process<O> {
        Process {
            child,
            session,
            stderr: StderrLine::default(),
            stdout_open: true,
            stderr_open: true,
            exited: false,
            group_empty: false,
            greeted: false,
            sleep: None,
            buffer: vec![0; CHUNK],
        }
    }

    /// Its state machine.
    pub fn session(&mut self) -> &mut Session {
        &mut self.session
    }

    /// SIGKILL to the group at once: the exit that cannot wait (PRC-13).
    pub fn kill(&mut self) {
        self.child.kill_group();
    }

    /// Whether the group is empty and the leader reaped.
    pub fn has_ended(&self) -> bool {
        matches!(self.session.status(), Status::Ended(_))
    }

    /// The ending, with what stderr said. `None` before the end.
    pub fn ending(&self) -> Option<Ending> {
        match self.session.status() {
            Status::Ended(ending) => Some(Ending { stderr: self.stderr.clone(), ..ending.clone() }),
            _ => None,
        }
    }

    /// The leader, which gives the group its number.
    pub fn group(&self) -> &ProcessId {
        self.child.identity()
    }

    /// Takes in what has come: bytes, the leader's exit, the end of the group, each once and in this order. Returns
    /// whether anything had.
    pub fn poll_events(&mut self, os: &O, cx: &mut Context<'_>) -> bool {
        if !self.greeted {
            return false;
        }
        let mut moved = self.read(os, cx) | self.look_for_exit(cx);
        moved |= self.act(os, cx);
        if self.exited && !self.group_empty && self.child.poll_group_empty(cx).is_ready() {
            self.group_empty = true;
            self.session.group_empty();
            self.act(os, cx);
            moved = true;
        }
        moved
    }

    /// Writes what waits for the pipe and does what else the session asks for. To be called after the invocation has
    /// looked at its signals, so that no request follows one (PRC-10).
    pub fn send(&mut self, os: &O, cx: &mut Context<'_>) -> bool {
        self.write(cx) | self.act(os, cx)
    }

    /// Fires what is due.
    pub fn poll_timer(&mut self, os: &O, cx: &mut Context<'_>) -> bool {
        let Some(at) = self.session.wake_at() else {
            self.sleep = None;
            return false;
        };
        if self.sleep.as_ref().is_none_or(|(set, _)| *set != at) {
            self.sleep = Some((at, os.sleep_until(at)));
        }
        let (_, sleep) = self.sleep.as_mut().expect("just set");
        if Pin::new(sleep).poll(cx).is_pending() {
            return false;
        }
        self.sleep = None;
        // What has come by now came before the timer.
        self.poll_events(os, cx);
        self.session.timeout(os.now());
        self.act(os, cx);
        true
    }

    fn look_for_exit(&mut self, cx: &mut Context<'_>) -> bool {
        if self.exited {
            return false;
        }
        let Poll::Ready(exit) = self.child.poll_exited(cx) else { return false };
        self.exited = true;
        self.session.leader_exited(exit);
        true
    }

    fn act(&mut self, os: &O, cx: &mut Context<'_>) -> bool {
        let mut moved = false;
        while let Some(action) = self.session.action() {
            moved = true;
            match action {
                Action::CloseStdin => self.child.close_stdin(),
                Action::KillGroup => self.child.kill_group(),
                Action::Reap => self.child.reap(),
                Action::Drain => {
                    self.read(os, cx);
                    self.session.drained(os.now());
                }
            }
        }
        moved
    }

    fn write(&mut self, cx: &mut Context<'_>) -> bool {
        let mut moved = !std::mem::replace(&mut self.greeted, true);
        while let Some(bytes) = self.session.transmit() {
            match self.child.poll_write(cx, bytes) {
                Poll::Ready(Ok(count)) => {
                    self.session.written(count);
                    moved = true;
                }
                Poll::Ready(Err(_)) => {
                    self.session.write_failed();
                    moved = true;
                }
                Poll::Pending => {
                    self.session.write_blocked();
                    break;
                }
            }
        }
        moved
    }

    fn read(&mut self, os: &O, cx: &mut Context<'_>) -> bool {
        let mut moved = false;
        let mut left = TURN;
        while self.stdout_open && left > 0 {
            match self.child.poll_read(ChildPipe::Stdout, cx, &mut self.buffer) {
                Poll::Pending => break,
                Poll::Ready(Ok(count)) if count > 0 => {
                    self.session.stdout(os.now(), &self.buffer[..count]);
                    left = left.saturating_sub(count);
                }
                Poll::Ready(_) => {
                    self.stdout_open = false;
                    // The end of the pipe and the end of the leader come in either order; when both are here, the
                    // exit explains more.
                    self.look_for_exit(cx);
                    self.session.stdout_closed(os.now());
                }
            }
            moved = true;
        }
        let mut left = TURN;
        while self.stderr_open && left > 0 {
            match self.child.poll_read(ChildPipe::Stderr, cx, &mut self.buffer) {
                Poll::Pending => break,
                Poll::Ready(Ok(count)) if count > 0 => {
                    self.stderr.push(&self.buffer[..count]);
                    left = left.saturating_sub(count);
                }
                Poll::Ready(_) => self.stderr_open = false,
            }
            moved = true;
        }
        moved
    }
}
