//! A descriptor that is tried first and waited for second.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::task::{Context, Poll, ready};

use rustix::io::Errno;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// An owned descriptor registered with the runtime, for one direction.
pub(crate) struct Watched {
    fd: AsyncFd<OwnedFd>,
    interest: Interest,
}

impl Watched {
    /// Watches for bytes to read, or for a pidfd to report its process's end.
    pub(crate) fn readable(fd: OwnedFd) -> io::Result<Watched> {
        Watched::new(fd, Interest::READABLE)
    }

    /// Watches for room to write.
    pub(crate) fn writable(fd: OwnedFd) -> io::Result<Watched> {
        Watched::new(fd, Interest::WRITABLE)
    }

    fn new(fd: OwnedFd, interest: Interest) -> io::Result<Watched> {
        // SAFETY: an `OwnedFd` is open, always answers with the same number, and is closed only by its drop, which
        // `AsyncFd` orders after the deregistration. `get_mut`, through which it could be replaced, is not exposed.
        let fd = unsafe { AsyncFd::register_with_interest(fd, interest) }.map_err(io::Error::from)?;
        Ok(Watched { fd, interest })
    }

    /// The descriptor.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        use std::os::fd::AsFd;
        self.fd.get_ref().as_fd()
    }

    /// Runs `attempt` until it answers with something else than `EAGAIN`. Pending only directly after the kernel said
    /// `EAGAIN`, with the task registered for the next change.
    pub(crate) fn poll_io<R>(
        &self,
        cx: &mut Context<'_>,
        mut attempt: impl FnMut(BorrowedFd<'_>) -> Result<R, Errno>,
    ) -> Poll<io::Result<R>> {
        match attempt(self.fd()) {
            Err(Errno::AGAIN) => {}
            other => return Poll::Ready(other.map_err(io::Error::from)),
        }
        loop {
            let mut guard = ready!(if self.interest.is_readable() {
                self.fd.poll_read_ready(cx)
            } else {
                self.fd.poll_write_ready(cx)
            })?;
            // The readiness may be an old one: only what the kernel says now counts, and clears it.
            match attempt(self.fd()) {
                Err(Errno::AGAIN) => guard.clear_ready(),
                other => return Poll::Ready(other.map_err(io::Error::from)),
            }
        }
    }
}

/// Reads once, over interruptions; 0 is the end of the stream.
pub(crate) fn read(fd: BorrowedFd<'_>, buf: &mut [u8]) -> Result<usize, Errno> {
    loop {
        match rustix::io::read(fd, &mut *buf) {
            Err(Errno::INTR) => {}
            other => return other,
        }
    }
}

/// Writes once, over interruptions; answers how many bytes were taken.
pub(crate) fn write(fd: BorrowedFd<'_>, bytes: &[u8]) -> Result<usize, Errno> {
    loop {
        match rustix::io::write(fd, bytes) {
            Err(Errno::INTR) => {}
            other => return other,
        }
    }
}

/// Whether `poll(2)` reports anything for one of `events` (or an error) on this descriptor at this moment.
pub(crate) fn is_ready(fd: BorrowedFd<'_>, events: rustix::event::PollFlags) -> Result<bool, Errno> {
    use rustix::event::{PollFd, Timespec, poll};
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    let mut fds = [PollFd::from_borrowed_fd(fd, events)];
    loop {
        match poll(&mut fds, Some(&now)) {
            Err(Errno::INTR) => {}
            other => return other.map(|count| count > 0),
        }
    }
}
