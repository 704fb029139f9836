//! SIGINT, SIGTERM and SIGHUP: noted in order of arrival, never fatal by themselves.
//!
//! The handler appends the number to a queue of at most three (a signal that waits already is not queued again, as in
//! the kernel) and rings an eventfd. [`Signals::poll`] looks at the queue directly, so that a signal which came during
//! a long call is seen at the next look, and sleeps on the eventfd.
//!
//! SIGINT and SIGHUP that were ignored when mu started stay ignored: that is what `nohup` and the `&` of a script ask
//! for.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::task::{Context, Poll};

use mu_core::os::Signal;
use nix::errno::Errno;
use nix::sys::signal::{self as posix, SaFlags, SigAction, SigHandler, SigSet, sigaction};
use rustix::event::{EventfdFlags, eventfd};

use crate::watched::Watched;

/// Numbers of the signals that arrived, one a byte, the oldest lowest; 0 is an empty place.
static ARRIVED: AtomicU32 = AtomicU32::new(0);
/// The eventfd that the handler rings.
static BELL: OnceLock<OwnedFd> = OnceLock::new();
/// Its number, where a handler can get at it.
static BELL_NUMBER: AtomicI32 = AtomicI32::new(-1);

/// Installs the handlers.
pub(crate) fn catch() -> io::Result<()> {
    if BELL.get().is_none() {
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        BELL_NUMBER.store(BELL.get_or_init(|| bell).as_raw_fd(), Ordering::SeqCst);
    }
    // Without SA_RESTART, SQLite and others would meet EINTR in the middle of their work.
    let handler = SigAction::new(SigHandler::Handler(note), SaFlags::SA_RESTART, SigSet::all());
    for signal in [Signal::Interrupt, Signal::Terminate, Signal::HangUp] {
        // SAFETY: `note` calls only what is allowed in a handler: atomics that are lock-free, and write(2).
        let before = unsafe { sigaction(posix_signal(signal), &handler) }?;
        if matches!(before.handler(), SigHandler::SigIgn) && signal != Signal::Terminate {
            // SAFETY: puts back "ignore"; no function is installed.
            unsafe { sigaction(posix_signal(signal), &before) }?;
        }
    }
    Ok(())
}

/// Keeps a write beyond the file size limit from ending the process: the write fails. Unlike "ignored", a handler is not
/// passed on to children.
pub(crate) fn survive_large_files() -> io::Result<()> {
    extern "C" fn nothing(_: i32) {}
    let handler = SigAction::new(SigHandler::Handler(nothing), SaFlags::SA_RESTART, SigSet::empty());
    // SAFETY: `nothing` calls nothing.
    unsafe { sigaction(posix::Signal::SIGXFSZ, &handler) }?;
    Ok(())
}

/// The signal handler.
extern "C" fn note(number: i32) {
    let errno = Errno::last_raw();
    let queued =
        ARRIVED.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |queue| append(queue, number as u8));
    if queued.is_ok() {
        // SAFETY: the eventfd lives in a static that is never dropped, and is set before a handler is installed.
        let bell = unsafe { BorrowedFd::borrow_raw(BELL_NUMBER.load(Ordering::SeqCst)) };
        // It can only fail when the counter is full, and then the bell rings anyhow.
        let _ = rustix::io::write(bell, &1u64.to_ne_bytes());
    }
    Errno::set_raw(errno);
}

/// The queue with `number` at its end; none when it waits there already.
fn append(queue: u32, number: u8) -> Option<u32> {
    let mut bytes = queue.to_le_bytes();
    for place in &mut bytes {
        if *place == number {
            return None;
        }
        if *place == 0 {
            *place = number;
            return Some(u32::from_le_bytes(bytes));
        }
    }
    None
}

/// Takes the oldest signal from the queue.
fn take() -> Option<Signal> {
    let queue = ARRIVED
        .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |queue| (queue != 0).then_some(queue >> 8))
        .ok()?;
    let oldest = i32::from(queue.to_le_bytes()[0]);
    [Signal::Interrupt, Signal::Terminate, Signal::HangUp]
        .into_iter()
        .find(|signal| signal.number() == oldest)
}

fn posix_signal(signal: Signal) -> posix::Signal {
    match signal {
        Signal::Interrupt => posix::Signal::SIGINT,
        Signal::Terminate => posix::Signal::SIGTERM,
        Signal::HangUp => posix::Signal::SIGHUP,
    }
}

/// The waiting side. A process is meant to have one: a signal goes to whoever asks first.
pub(crate) struct Signals {
    bell: Watched,
}

impl Signals {
    /// To be called after [`catch`].
    pub(crate) fn new() -> io::Result<Signals> {
        let bell = BELL.get().expect("signals are caught before they are waited for");
        Ok(Signals { bell: Watched::readable(bell.as_fd().try_clone_to_owned()?)? })
    }

    /// Ready with the oldest signal that has arrived and was not yet reported.
    pub(crate) fn poll(&self, cx: &mut Context<'_>) -> Poll<Signal> {
        // The eventfd is never read: readiness is edge-triggered, and each ring is an edge.
        let answer = self.bell.poll_io(cx, |_| take().ok_or(rustix::io::Errno::AGAIN));
        match answer {
            Poll::Ready(Ok(signal)) => Poll::Ready(signal),
            // The runtime is going down: nobody will be woken any more.
            Poll::Ready(Err(_)) | Poll::Pending => Poll::Pending,
        }
    }
}

/// Dies of `signal`: default action, unblocked, raised.
pub(crate) fn die_of(signal: Signal) -> ! {
    let posix = posix_signal(signal);
    let default = SigAction::new(SigHandler::SigDfl, SaFlags::empty(), SigSet::empty());
    // SAFETY: no function is installed.
    let _ = unsafe { sigaction(posix, &default) };
    let mut set = SigSet::empty();
    set.add(posix);
    let _ = set.thread_unblock();
    let _ = posix::raise(posix);
    // `raise` returns only where the signal did not kill: the first process of a container is immune to it, and a
    // debugger may withhold it. The status is the one a shell would make of such a death.
    #[allow(clippy::disallowed_methods)] // the process was to be dead already
    std::process::exit(128 + signal.number())
}

#[cfg(test)]
mod tests {
    use super::append;

    #[test]
    fn the_queue_keeps_the_order_of_arrival() {
        let queue = append(append(0, 15).unwrap(), 2).unwrap();
        assert_eq!(queue.to_le_bytes(), [15, 2, 0, 0]);
    }

    #[test]
    fn a_signal_that_waits_is_not_queued_again() {
        let queue = append(append(0, 15).unwrap(), 2).unwrap();
        assert_eq!(append(queue, 15), None);
        assert_eq!(append(queue, 2), None);
    }
}
