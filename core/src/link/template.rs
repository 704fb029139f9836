//! A fetch by the host's own shell command (REG-18): a child of mu's in a group of its own, with nothing to read, cut off
//! at its timeout. Nothing of its group is left when it is over, whatever ended it.

use std::future::poll_fn;
use std::pin::pin;
use std::task::{Context, Poll};
use std::time::Duration;

use mu_protocol::messages::link::Run;

use crate::invocation::Invocation;
use crate::link::LinkError;
use crate::os::{Child, ChildPipe, Exec, Exit, Os};

/// How much of each of its two streams is kept; what comes behind is read and dropped.
const KEPT: usize = 64 * 1024;
/// Bytes read at once.
const CHUNK: usize = 16 * 1024;
/// Bytes read from one pipe before everything else gets its turn.
const TURN: usize = 1024 * 1024;

/// Runs a command with `/bin/sh -c`, in mu's working directory and environment. One that was cut off at `timeout` has no
/// exit status; one that a signal ended has 128 and its number, as in a shell. Bytes that are no UTF-8 are replaced.
///
/// # Errors
/// The shell cannot be executed, or a terminating signal came.
pub(super) async fn run<O: Os>(
    invocation: &Invocation<O>,
    command: String,
    timeout: Duration,
) -> Result<Run, LinkError> {
    let os = invocation.os();
    let until = os.now() + timeout;
    invocation.look_for_signals().await.map_err(LinkError::Interrupted)?;
    let argv = vec!["/bin/sh".into(), "-c".into(), command.into()];
    let child = os
        .spawn(&Exec { argv, env: os.env().vars.clone() })
        .map_err(|error| LinkError::Shell { reason: error.to_string() })?;
    let mut shell = Shell::new(child);
    let mut timer = pin!(invocation.sleep_until(until));
    let mut cut = None;
    poll_fn(|cx| {
        loop {
            if shell.poll(cx).is_ready() {
                return Poll::Ready(());
            }
            if cut.is_some() {
                return Poll::Pending;
            }
            let Poll::Ready(woken) = timer.as_mut().poll(cx) else { return Poll::Pending };
            cut = Some(woken);
            shell.child.kill_group();
        }
    })
    .await;
    if let Some(Err(signal)) = cut {
        return Err(LinkError::Interrupted(signal));
    }
    let exit_code = match (cut, shell.exit) {
        (Some(_), _) | (_, None) => None,
        (None, Some(Exit::Status(status))) => u8::try_from(status).ok(),
        (None, Some(Exit::Signal(number))) => u8::try_from(128 + number).ok(),
    };
    let partial = shell.stdout.cut || shell.stderr.cut;
    Ok(Run { exit_code, stdout: shell.stdout.text(), stderr: shell.stderr.text(), partial })
}

/// The child. Dropped before its end (mu crashes), it takes its group with it (PRC-13).
struct Shell<C: Child> {
    child: C,
    stdout: Captured,
    stderr: Captured,
    exit: Option<Exit>,
    over: bool,
}

#[derive(Default)]
struct Captured {
    bytes: Vec<u8>,
    cut: bool,
    ended: bool,
}

impl Captured {
    fn push(&mut self, bytes: &[u8]) {
        let room = KEPT - self.bytes.len();
        self.cut |= bytes.len() > room;
        self.bytes.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }
}

impl<C: Child> Shell<C> {
    fn new(mut child: C) -> Self {
        child.close_stdin();
        Shell { child, stdout: Captured::default(), stderr: Captured::default(), exit: None, over: false }
    }

    /// Ready when it has ended, what it wrote is read, and its group is empty and reaped. What it left in its group goes
    /// with it.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.read(cx);
        if self.exit.is_none() {
            let Poll::Ready(exit) = self.child.poll_exited(cx) else { return Poll::Pending };
            self.exit = Some(exit);
            self.child.kill_group();
            self.read(cx);
        }
        if self.child.poll_group_empty(cx).is_pending() {
            return Poll::Pending;
        }
        self.child.reap();
        self.over = true;
        Poll::Ready(())
    }

    fn read(&mut self, cx: &mut Context<'_>) {
        let mut buffer = [0; CHUNK];
        for (pipe, captured) in [(ChildPipe::Stdout, &mut self.stdout), (ChildPipe::Stderr, &mut self.stderr)]
        {
            let mut left = TURN;
            while !captured.ended && left > 0 {
                match self.child.poll_read(pipe, cx, &mut buffer) {
                    Poll::Pending => break,
                    Poll::Ready(Ok(count)) if count > 0 => {
                        captured.push(&buffer[..count]);
                        left = left.saturating_sub(count);
                    }
                    Poll::Ready(_) => captured.ended = true,
                }
            }
            if left == 0 {
                cx.waker().wake_by_ref(); // There may be more.
            }
        }
    }
}

impl<C: Child> Drop for Shell<C> {
    fn drop(&mut self) {
        if !self.over {
            self.child.kill_group();
        }
    }
}

#[cfg(test)]
mod tests;
