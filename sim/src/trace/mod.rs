//! What happened, in order: the one source for oracles, transcripts and the proof of determinism.
//!
//! In: events, as the machine makes them. Out: the list of [`Event`]s, when they are recorded, and always a hash chain
//! over all of them with their count. Times are virtual nanoseconds since the start of the run; no pointer, address or
//! host time ever enters.
//!
//! - `chain`: the fingerprint; `show`: a line of text for every single event
//! - [`timeline`]: what of it matters to a reader; `journal`: mu's rows at the moments at which they changed
//! - `transcript`, `mermaid`: a timeline as text and as a diagram

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::rc::Rc;

use mu_core::os::{Exit, Pid};

use crate::disk::Kind;

pub use chain::{Chain, Digest};

mod chain;
mod journal;
mod mermaid;
mod show;
pub mod timeline;
mod transcript;

pub use journal::{Change, Moment, Row, compared};
pub use mermaid::{LEAP, leap};
pub use timeline::Timeline;
pub use transcript::transcript;

/// One pipe of the machine. Numbers are never used again within a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PipeId(pub u32);

/// Which stream of a process a pipe was made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Std {
    /// Descriptor 0.
    In,
    /// Descriptor 1.
    Out,
    /// Descriptor 2.
    Err,
}

/// What a pipe is for: the stream of the process it was first given to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Role {
    /// That process.
    pub of: Pid,
    /// Its stream.
    pub stream: Std,
}

/// A pipe and its role, if it has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PipeRef {
    /// The pipe.
    pub id: PipeId,
    /// Whose stream it is.
    pub role: Option<Role>,
}

/// Where a signal went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Target {
    /// One process.
    Process(Pid),
    /// Every process of a group.
    Group(Pid),
}

/// What a signal did when it reached a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Effect {
    /// It ended the process.
    Kills,
    /// It stopped the process.
    Stops,
    /// It continued the process.
    Continues,
    /// The process has a handler, which now knows.
    Handled,
    /// Nobody cares.
    Ignored,
    /// The process is stopped: the signal waits.
    Pending,
}

/// Who or what stood behind an event that no process caused.
pub const OUTSIDE: Pid = Pid(0);

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Virtual nanoseconds since the start of the run.
    pub at: u64,
    /// The process that did it, or to which it happened; [`OUTSIDE`] for the world around.
    pub pid: Pid,
    /// What.
    pub what: What,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// The process started `child`. A start from outside has [`OUTSIDE`] as the process.
    Spawn {
        /// The new process.
        child: Pid,
        /// Its program and arguments.
        argv: Rc<[OsString]>,
        /// Its process group.
        group: Pid,
        /// Its session.
        session: Pid,
    },
    /// The process could not start this program.
    ExecFailed {
        /// What it tried to execute.
        program: OsString,
        /// The OS error number.
        errno: i32,
    },
    /// The process ended.
    Exit(Exit),
    /// The process panicked; its exit follows.
    Panic(Rc<str>),
    /// The process was given to init because its parent ended.
    Orphaned,
    /// The process collected the exit status of its child.
    Reap {
        /// The child.
        child: Pid,
    },
    /// The process sent a signal.
    Signal {
        /// To whom.
        to: Target,
        /// Its number.
        number: i32,
    },
    /// A signal reached the process.
    Delivered {
        /// Its number.
        number: i32,
        /// What came of it.
        effect: Effect,
    },
    /// The process leads a new session and group.
    NewSession,
    /// The process has moved to this group.
    NewGroup(Pid),
    /// The process wrote bytes.
    Write {
        /// To where.
        pipe: PipeRef,
        /// What.
        bytes: Rc<[u8]>,
    },
    /// The process read bytes.
    Read {
        /// From where.
        pipe: PipeRef,
        /// Its place in the stream: how many bytes were read from the pipe before.
        offset: u64,
        /// How many.
        count: u64,
    },
    /// The process read the end of the stream.
    Eof(PipeRef),
    /// The process wrote to a pipe that nobody can read.
    Broken(PipeRef),
    /// The process closed its last descriptor of the end for reading.
    CloseRead(PipeRef),
    /// The process closed its last descriptor of the end for writing.
    CloseWrite(PipeRef),
    /// SQLite asked the disk for something on behalf of the process.
    Disk {
        /// The number of the operation on this disk.
        number: u64,
        /// What is asked.
        kind: Kind,
        /// The file.
        path: Rc<Path>,
        /// In bytes, mostly; see [`Kind`].
        offset: u64,
        /// In bytes, mostly; see [`Kind`].
        len: u64,
    },
    /// Nobody was ready and time jumped to now.
    Jump,
    /// The wall clock was stepped to this many milliseconds since 1970.
    WallStep(i64),
    /// The machine slept; boottime and wall clock went on by this many nanoseconds.
    Suspend(u64),
    /// The power failed.
    PowerOff,
    /// The machine started, with this boot id.
    Boot(u128),
    /// A scripted or drawn fault took place.
    Fault(Rc<str>),
    /// Anything else worth telling a reader.
    Note(Rc<str>),
    /// Something at the backend of the plugins, on another machine.
    Backend(Rc<str>),
    /// Something in the network between the two.
    Net(Rc<str>),
}

/// The events of a run and their chain.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    chain: Chain,
    count: u64,
    events: Option<Vec<Event>>,
}

impl Trace {
    /// An empty trace that keeps the events when `recording`, and only their chain otherwise.
    pub fn new(recording: bool) -> Trace {
        Trace { events: recording.then(Vec::new), ..Trace::default() }
    }

    /// Adds an event.
    pub fn push(&mut self, at: u64, pid: Pid, what: What) {
        self.begin(at, pid);
        what.absorb(&mut self.chain);
        if let Some(events) = &mut self.events {
            events.push(Event { at, pid, what });
        }
    }

    /// Adds a [`What::Write`] without making one when events are not recorded.
    pub fn push_write(&mut self, at: u64, pid: Pid, pipe: PipeRef, bytes: &[u8]) {
        self.begin(at, pid);
        absorb_write(&mut self.chain, pipe, bytes);
        if let Some(events) = &mut self.events {
            events.push(Event { at, pid, what: What::Write { pipe, bytes: bytes.into() } });
        }
    }

    fn begin(&mut self, at: u64, pid: Pid) {
        self.count += 1;
        self.chain.word(at);
        self.chain.word(pid.0 as u64);
    }

    /// The recorded events; none when recording is off.
    pub fn events(&self) -> &[Event] {
        self.events.as_deref().unwrap_or_default()
    }

    /// How many events there were, recorded or not.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The fingerprint of all events so far.
    pub fn digest(&self) -> Digest {
        self.chain.digest()
    }
}

fn absorb_write(chain: &mut Chain, pipe: PipeRef, bytes: &[u8]) {
    chain.word(9);
    pipe.absorb(chain);
    chain.bytes(bytes);
}

impl PipeRef {
    fn absorb(self, chain: &mut Chain) {
        chain.word(u64::from(self.id.0));
        chain.word(self.role.map_or(0, |role| (role.of.0 as u64) << 2 | (role.stream as u64 + 1)));
    }
}

impl What {
    /// Tags are part of the chain: a new kind takes the next free number.
    fn absorb(&self, chain: &mut Chain) {
        match self {
            What::Spawn { child, argv, group, session } => {
                chain.word(1);
                chain.word(child.0 as u64);
                chain.word(group.0 as u64);
                chain.word(session.0 as u64);
                chain.word(argv.len() as u64);
                for argument in argv.iter() {
                    chain.bytes(argument.as_bytes());
                }
            }
            What::ExecFailed { program, errno } => {
                chain.word(2);
                chain.word(*errno as u64);
                chain.bytes(program.as_bytes());
            }
            What::Exit(Exit::Status(status)) => absorb_pair(chain, 3, *status as u64),
            What::Exit(Exit::Signal(number)) => absorb_pair(chain, 4, *number as u64),
            What::Panic(text) => absorb_text(chain, 5, text),
            What::Reap { child } => absorb_pair(chain, 6, child.0 as u64),
            What::Signal { to, number } => {
                let (kind, pid) = match to {
                    Target::Process(pid) => (0, pid),
                    Target::Group(pid) => (1, pid),
                };
                absorb_pair(chain, 7, (*number as u64) << 1 | kind);
                chain.word(pid.0 as u64);
            }
            What::Delivered { number, effect } => {
                absorb_pair(chain, 8, *number as u64);
                chain.word(*effect as u64);
            }
            What::Write { pipe, bytes } => absorb_write(chain, *pipe, bytes),
            What::Read { pipe, offset, count } => {
                absorb_pair(chain, 10, *offset);
                chain.word(*count);
                pipe.absorb(chain);
            }
            What::Eof(pipe) => absorb_pipe(chain, 11, *pipe),
            What::Broken(pipe) => absorb_pipe(chain, 12, *pipe),
            What::CloseRead(pipe) => absorb_pipe(chain, 13, *pipe),
            What::CloseWrite(pipe) => absorb_pipe(chain, 14, *pipe),
            What::Disk { number, kind, path, offset, len } => {
                absorb_pair(chain, 15, *number);
                chain.word(*kind as u64);
                chain.word(*offset);
                chain.word(*len);
                chain.bytes(path.as_os_str().as_bytes());
            }
            What::Jump => chain.word(16),
            What::WallStep(ms) => absorb_pair(chain, 17, *ms as u64),
            What::Suspend(span) => absorb_pair(chain, 18, *span),
            What::PowerOff => chain.word(19),
            What::Boot(id) => {
                absorb_pair(chain, 20, *id as u64);
                chain.word((*id >> 64) as u64);
            }
            What::Fault(text) => absorb_text(chain, 21, text),
            What::Note(text) => absorb_text(chain, 22, text),
            What::NewSession => chain.word(23),
            What::NewGroup(group) => absorb_pair(chain, 24, group.0 as u64),
            What::Orphaned => chain.word(25),
            What::Backend(text) => absorb_text(chain, 26, text),
            What::Net(text) => absorb_text(chain, 27, text),
        }
    }
}

fn absorb_pair(chain: &mut Chain, tag: u64, value: u64) {
    chain.word(tag);
    chain.word(value);
}

fn absorb_pipe(chain: &mut Chain, tag: u64, pipe: PipeRef) {
    chain.word(tag);
    pipe.absorb(chain);
}

fn absorb_text(chain: &mut Chain, tag: u64, text: &str) {
    chain.word(tag);
    chain.bytes(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pipe() -> PipeRef {
        PipeRef { id: PipeId(3), role: Some(Role { of: Pid(101), stream: Std::In }) }
    }

    #[test]
    fn the_chain_is_the_same_whether_events_are_recorded_or_not() {
        let mut traces = [Trace::new(true), Trace::new(false)];
        for trace in &mut traces {
            trace.push_write(5, Pid(100), pipe(), b"line\n");
            trace.push(6, Pid(101), What::Eof(pipe()));
        }
        let [recorded, bare] = traces;
        assert_eq!((recorded.digest(), recorded.count()), (bare.digest(), bare.count()));
        assert_eq!((recorded.events().len(), bare.events().len()), (2, 0));
    }

    #[test]
    fn a_write_has_one_hash_whichever_way_it_was_added() {
        let mut shortcut = Trace::new(false);
        shortcut.push_write(5, Pid(100), pipe(), b"line\n");
        let mut plain = Trace::new(false);
        plain.push(5, Pid(100), What::Write { pipe: pipe(), bytes: b"line\n"[..].into() });
        assert_eq!(shortcut.digest(), plain.digest());
    }

    #[test]
    fn time_process_and_role_are_part_of_the_chain() {
        let digest = |at, pid, pipe| {
            let mut trace = Trace::new(false);
            trace.push(at, Pid(pid), What::Eof(pipe));
            trace.digest()
        };
        let base = digest(1, 100, pipe());
        assert_ne!(base, digest(2, 100, pipe()));
        assert_ne!(base, digest(1, 101, pipe()));
        assert_ne!(base, digest(1, 100, PipeRef { role: None, ..pipe() }));
        let other = Role { of: Pid(101), stream: Std::Out };
        assert_ne!(base, digest(1, 100, PipeRef { role: Some(other), ..pipe() }));
    }
}
