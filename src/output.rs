//! mu's own standard output and error: no buffer, so nothing is lost at exit, and a reader that does not read makes
//! the write pending instead of the process deaf.

use std::cell::OnceCell;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::task::{Context, Poll};

use mu_core::os::Stream;
use rustix::event::PollFlags;
use rustix::io::Errno;

use crate::watched::{Watched, is_ready, write};

/// `PIPE_BUF`: a pipe that reports room takes this much without blocking. The descriptor itself must stay in blocking
/// mode, since the mode belongs to everybody who shares the terminal or pipe.
const CHUNK: usize = 4096;

/// One of the two streams.
pub(crate) struct Output {
    stream: Stream,
    /// Made when the stream has no room for the first time.
    watched: OnceCell<Watched>,
}

impl Output {
    pub(crate) fn new(stream: Stream) -> Output {
        Output { stream, watched: OnceCell::new() }
    }

    /// Writes at most 4096 bytes; answers how many were taken.
    pub(crate) fn poll_write(&self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let chunk = &bytes[..bytes.len().min(CHUNK)];
        match self.with_fd(|fd| write_if_room(fd, chunk)) {
            Err(Errno::AGAIN) => {}
            other => return Poll::Ready(other.map_err(io::Error::from)),
        }
        match self.watched() {
            Ok(watched) => watched.poll_io(cx, |fd| write_if_room(fd, chunk)),
            // What cannot be waited for can only be written.
            Err(_) => Poll::Ready(self.with_fd(|fd| write(fd, chunk)).map_err(io::Error::from)),
        }
    }

    fn watched(&self) -> io::Result<&Watched> {
        if let Some(watched) = self.watched.get() {
            return Ok(watched);
        }
        let watched = Watched::writable(self.with_fd(|fd| fd.try_clone_to_owned())?)?;
        Ok(self.watched.get_or_init(|| watched))
    }

    fn with_fd<R>(&self, use_it: impl FnOnce(BorrowedFd<'_>) -> R) -> R {
        match self.stream {
            Stream::Out => use_it(io::stdout().as_fd()),
            Stream::Err => use_it(io::stderr().as_fd()),
        }
    }
}

/// Writes when `poll(2)` reports room, or an error that the write will then meet.
fn write_if_room(fd: BorrowedFd<'_>, chunk: &[u8]) -> Result<usize, Errno> {
    if is_ready(fd, PollFlags::OUT)? { write(fd, chunk) } else { Err(Errno::AGAIN) }
}
