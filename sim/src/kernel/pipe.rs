//! Pipes: 16 pages, writes of up to 4096 bytes whole or not at all, the end of the stream only after the last writer.
//!
//! As in Linux, bytes lie in pages of 4096. A write begins new pages; only its odd end (its length modulo 4096) goes to
//! the last page in use, if that has room for the whole of it. A page is free again when all of it was read. So a pipe
//! holds 64 KiB at most, and less after many writes of an awkward size.

use std::collections::VecDeque;
use std::io;
use std::task::{Poll, Waker};

use nix::errno::Errno;

use super::process::{End, Fd, Index};
use super::signal::SIGPIPE;
use super::waiters::Waiters;
use super::{Disposition, Kernel};
use crate::streams::Stream;
use crate::trace::{PipeId, PipeRef, Role, What};

/// How many bytes a pipe holds at most.
pub const PIPE_CAPACITY: usize = PAGES * PAGE;
const PAGES: usize = 16;
const PAGE: usize = 4096;
/// A write of up to this many bytes is never split (`PIPE_BUF`).
pub const PIPE_ATOMIC: usize = 4096;

/// A pipe, or an output whose reader is the world around the machine.
#[derive(Default)]
pub(crate) struct Pipe {
    pub(crate) role: Option<Role>,
    bytes: VecDeque<u8>,
    /// Where the bytes lie, in pages; unknown for bytes that were there from the start.
    pages: VecDeque<Page>,
    /// How many descriptors lead to each end. An output that is captured has one reader.
    pub(crate) readers: u32,
    pub(crate) writers: u32,
    taken: u64,
    pub(crate) read_waiters: Waiters,
    pub(crate) write_waiters: Waiters,
    captured: Option<Captured>,
    /// Decides how much of a read or of a large write takes place, when that is to vary.
    short: Option<Stream>,
}

/// A page in use: its bytes are `begin..end`.
struct Page {
    begin: usize,
    end: usize,
}

/// An output that is collected outside of the machine.
#[derive(Default)]
struct Captured {
    bytes: Vec<u8>,
    /// The reader goes away after this many bytes.
    closes_after: Option<usize>,
}

impl Pipe {
    /// How much of the end of a write of `wanted` bytes goes to the last page.
    fn joins(&self, wanted: usize) -> usize {
        let odd = wanted % PAGE;
        match self.pages.back() {
            Some(last) if last.end + odd <= PAGE => odd,
            _ => 0,
        }
    }

    /// How many of `wanted` bytes a write takes now.
    fn free(&self, wanted: usize) -> usize {
        let joins = self.joins(wanted);
        wanted.min(joins + (PAGES - self.pages.len()) * PAGE)
    }

    /// Puts `bytes` into pages; they fit. `wanted` is how many the writer had.
    fn put(&mut self, bytes: &[u8], wanted: usize) {
        let joins = self.joins(wanted).min(bytes.len());
        if let Some(last) = self.pages.back_mut() {
            last.end += joins;
        }
        let pages = bytes[joins..].chunks(PAGE).map(|page| Page { begin: 0, end: page.len() });
        self.pages.extend(pages);
        debug_assert!(self.pages.len() <= PAGES);
        self.bytes.extend(bytes);
    }

    /// What the world around has collected.
    pub(crate) fn captured(&self) -> &[u8] {
        self.captured.as_ref().map_or(&[], |captured| &captured.bytes)
    }

    fn room(&self, wanted: usize) -> usize {
        match &self.captured {
            Some(captured) => {
                let left = captured.closes_after.map_or(usize::MAX, |end| end - captured.bytes.len());
                wanted.min(left)
            }
            None => self.free(wanted),
        }
    }

    /// Reads so many bytes, which are there; answers whether a page has become free.
    fn take(&mut self, buf: &mut [u8]) -> bool {
        let (front, back) = self.bytes.as_slices();
        let first = front.len().min(buf.len());
        buf[..first].copy_from_slice(&front[..first]);
        let second = buf.len() - first;
        buf[first..].copy_from_slice(&back[..second]);
        self.bytes.drain(..buf.len());
        self.taken += buf.len() as u64;
        let (mut left, before) = (buf.len(), self.pages.len());
        while let Some(page) = self.pages.front_mut()
            && left >= page.end - page.begin
        {
            left -= page.end - page.begin;
            self.pages.pop_front();
        }
        if let Some(page) = self.pages.front_mut() {
            page.begin += left;
        }
        self.pages.len() < before
    }
}

impl Kernel {
    /// A new pipe with no descriptor on either end.
    pub(crate) fn new_pipe(&mut self) -> PipeId {
        let id = PipeId(self.pipes.len() as u32);
        let short = self.short_io.map(|_| Stream::new(self.seed, &format!("pipe/{}", id.0)));
        self.pipes.push(Pipe { short, ..Pipe::default() });
        id
    }

    /// A pipe whose reader is the world around, which goes away after `closes_after` bytes.
    pub(crate) fn new_capture(&mut self, closes_after: Option<usize>) -> PipeId {
        let id = self.new_pipe();
        let pipe = self.pipe(id);
        pipe.captured = Some(Captured { bytes: Vec::new(), closes_after });
        pipe.readers = u32::from(closes_after != Some(0));
        id
    }

    /// A pipe that holds `bytes` (any number) and will never get more.
    pub(crate) fn new_source(&mut self, bytes: &[u8]) -> PipeId {
        let id = self.new_pipe();
        self.pipe(id).bytes.extend(bytes);
        id
    }

    pub(crate) fn pipe(&mut self, id: PipeId) -> &mut Pipe {
        &mut self.pipes[id.0 as usize]
    }

    pub(crate) fn pipe_ref(&self, id: PipeId) -> PipeRef {
        PipeRef { id, role: self.pipes[id.0 as usize].role }
    }

    /// One more descriptor leads to this end.
    pub(crate) fn hold(&mut self, end: End) {
        match end {
            End::Read(id) => self.pipe(id).readers += 1,
            End::Write(id) => self.pipe(id).writers += 1,
            End::Null => {}
        }
    }

    /// One descriptor less leads to this end; whoever waits at the other one learns of the last.
    pub(crate) fn release(&mut self, end: End) {
        match end {
            End::Read(id) => {
                let pipe = self.pipe(id);
                pipe.readers -= 1;
                if pipe.readers == 0 {
                    pipe.write_waiters.wake(0);
                }
            }
            End::Write(id) => {
                let pipe = self.pipe(id);
                pipe.writers -= 1;
                if pipe.writers == 0 {
                    pipe.read_waiters.wake(0);
                }
            }
            End::Null => return,
        }
        if let End::Read(id) | End::Write(id) = end {
            let pipe = self.pipe(id);
            if pipe.readers == 0 && pipe.writers == 0 {
                pipe.bytes = VecDeque::new();
                pipe.pages = VecDeque::new();
                pipe.read_waiters.clear();
                pipe.write_waiters.clear();
            }
        }
    }

    /// Reads what is there; waits when nothing is and somebody can still write.
    pub(crate) fn read(
        &mut self,
        who: Index,
        fd: Fd,
        waker: &Waker,
        buf: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let id = match self.procs[who].end_of(fd) {
            Some(End::Read(id)) => id,
            Some(End::Null) => return Poll::Ready(Ok(0)),
            Some(End::Write(_)) | None => return Poll::Ready(Err(Errno::EBADF.into())),
        };
        if buf.is_empty() {
            return Poll::Ready(Ok(0));
        }
        let (at, pid, poll) = (self.exec.now(), self.procs[who].pid, self.exec.polls());
        let short = self.short_io;
        let pipe = &mut self.pipes[id.0 as usize];
        if pipe.bytes.is_empty() {
            if pipe.writers > 0 {
                pipe.read_waiters.add(who, 0, poll, waker);
                return Poll::Pending;
            }
            let end = self.pipe_ref(id);
            self.trace.push(at, pid, What::Eof(end));
            return Poll::Ready(Ok(0));
        }
        let mut count = buf.len().min(pipe.bytes.len());
        if let (Some(stream), Some(odds)) = (&mut pipe.short, short)
            && stream.chance(1, odds)
        {
            count = stream.between(1, count as u64) as usize;
        }
        let offset = pipe.taken;
        if pipe.take(&mut buf[..count]) {
            pipe.write_waiters.wake(0);
        }
        let what = What::Read { pipe: self.pipe_ref(id), offset, count: count as u64 };
        self.trace.push(at, pid, what);
        Poll::Ready(Ok(count))
    }

    /// Waits until [`Kernel::read`] would not.
    pub(crate) fn readable(&mut self, who: Index, fd: Fd, waker: &Waker) -> Poll<io::Result<()>> {
        let poll = self.exec.polls();
        match self.procs[who].end_of(fd) {
            Some(End::Read(id)) => {
                let pipe = self.pipe(id);
                if pipe.bytes.is_empty() && pipe.writers > 0 {
                    pipe.read_waiters.add(who, 0, poll, waker);
                    return Poll::Pending;
                }
                Poll::Ready(Ok(()))
            }
            Some(End::Null) => Poll::Ready(Ok(())),
            Some(End::Write(_)) | None => Poll::Ready(Err(Errno::EBADF.into())),
        }
    }

    /// Writes what fits. Nobody to read: SIGPIPE, and `EPIPE` for those that outlive it.
    pub(crate) fn write(
        &mut self,
        who: Index,
        fd: Fd,
        waker: &Waker,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let id = match self.procs[who].end_of(fd) {
            Some(End::Write(id)) => id,
            Some(End::Null) => return Poll::Ready(Ok(bytes.len())),
            Some(End::Read(_)) | None => return Poll::Ready(Err(Errno::EBADF.into())),
        };
        if bytes.is_empty() {
            return Poll::Ready(Ok(0));
        }
        let (at, pid, poll) = (self.exec.now(), self.procs[who].pid, self.exec.polls());
        let reference = self.pipe_ref(id);
        let short = self.short_io;
        let pipe = &mut self.pipes[id.0 as usize];
        if pipe.readers == 0 {
            self.trace.push(at, pid, What::Broken(reference));
            self.deliver(who, SIGPIPE);
            let outlived = self.procs[who].action(SIGPIPE) != Disposition::Default;
            return if outlived { Poll::Ready(Err(Errno::EPIPE.into())) } else { Poll::Pending };
        }
        let mut count = pipe.room(bytes.len());
        if count == 0 {
            pipe.write_waiters.add(who, 0, poll, waker);
            return Poll::Pending;
        }
        if let (Some(stream), Some(odds)) = (&mut pipe.short, short)
            && bytes.len() > PIPE_ATOMIC
            && stream.chance(1, odds)
        {
            count = stream.between(1, count as u64) as usize;
        }
        match &mut pipe.captured {
            None => {
                pipe.put(&bytes[..count], bytes.len());
                pipe.read_waiters.wake(0);
            }
            Some(captured) => {
                captured.bytes.extend_from_slice(&bytes[..count]);
                if captured.closes_after == Some(captured.bytes.len()) {
                    pipe.readers = 0;
                }
            }
        }
        self.trace.push_write(at, pid, reference, &bytes[..count]);
        Poll::Ready(Ok(count))
    }
}
