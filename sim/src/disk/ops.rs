//! Numbered operations, and what a fault makes of them.

use std::cell::{Cell, RefCell};
use std::ffi::c_int;
use std::path::Path;
use std::rc::Rc;

use nix::errno::Errno;
use rusqlite::ffi;

use super::Owner;

/// What SQLite asks of the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Opens (or creates) a file.
    Open,
    /// Closes a handle. Cannot fail.
    Close,
    /// Removes a name.
    Delete,
    /// Asks whether a file exists, or may be read and written.
    Access,
    /// Reads `len` bytes at `offset`.
    Read,
    /// Writes `len` bytes at `offset`.
    Write,
    /// Cuts the file to `offset` bytes.
    Truncate,
    /// Makes the file durable.
    Sync,
    /// Asks for the size.
    Size,
    /// Raises the file lock to level `offset`: 1 shared, 2 reserved, 4 exclusive.
    Lock,
    /// Lowers the file lock to level `offset`: 0 none, 1 shared.
    Unlock,
    /// Asks whether anybody means to write.
    CheckReserved,
    /// Maps piece number `offset` of the shared memory, `len` bytes.
    ShmMap,
    /// Takes `len` locks of the shared memory from number `offset`.
    ShmLock,
    /// Gives `len` locks of the shared memory back from number `offset`.
    ShmUnlock,
    /// Lets go of the shared memory.
    ShmUnmap,
}

impl Kind {
    /// Its name for people.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Open => "open",
            Kind::Close => "close",
            Kind::Delete => "delete",
            Kind::Access => "access",
            Kind::Read => "read",
            Kind::Write => "write",
            Kind::Truncate => "truncate",
            Kind::Sync => "sync",
            Kind::Size => "size",
            Kind::Lock => "lock",
            Kind::Unlock => "unlock",
            Kind::CheckReserved => "check reserved",
            Kind::ShmMap => "shm map",
            Kind::ShmLock => "shm lock",
            Kind::ShmUnlock => "shm unlock",
            Kind::ShmUnmap => "shm unmap",
        }
    }

    /// Whether the operation changes what is on the disk.
    pub fn changes(self) -> bool {
        matches!(self, Kind::Open | Kind::Delete | Kind::Write | Kind::Truncate | Kind::Sync)
    }

    /// What SQLite is told when the system answers with this error, as its Unix code has it.
    pub(super) fn code(self, errno: Errno) -> c_int {
        match (self, errno) {
            (Kind::Open, _) => ffi::SQLITE_CANTOPEN,
            (Kind::Close | Kind::ShmUnmap, _) => ffi::SQLITE_OK,
            (Kind::Delete, Errno::ENOENT) => ffi::SQLITE_IOERR_DELETE_NOENT,
            (Kind::Delete, _) => ffi::SQLITE_IOERR_DELETE,
            (Kind::Access, _) => ffi::SQLITE_IOERR_ACCESS,
            (Kind::Read, Errno::EIO | Errno::ENXIO | Errno::ERANGE) => ffi::SQLITE_IOERR_CORRUPTFS,
            (Kind::Read, _) => ffi::SQLITE_IOERR_READ,
            (Kind::Write, Errno::ENOSPC) => ffi::SQLITE_FULL,
            (Kind::Write, _) => ffi::SQLITE_IOERR_WRITE,
            (Kind::Truncate, _) => ffi::SQLITE_IOERR_TRUNCATE,
            (Kind::Sync, _) => ffi::SQLITE_IOERR_FSYNC,
            (Kind::Size, _) => ffi::SQLITE_IOERR_FSTAT,
            (Kind::Lock, Errno::EACCES | Errno::EAGAIN | Errno::EBUSY | Errno::EINTR | Errno::ENOLCK) => {
                ffi::SQLITE_BUSY
            }
            (Kind::Lock, Errno::EPERM) => ffi::SQLITE_PERM,
            (Kind::Lock, _) => ffi::SQLITE_IOERR_LOCK,
            (Kind::Unlock, _) => ffi::SQLITE_IOERR_UNLOCK,
            (Kind::CheckReserved, _) => ffi::SQLITE_IOERR_CHECKRESERVEDLOCK,
            (Kind::ShmMap, _) => ffi::SQLITE_IOERR_SHMSIZE,
            (Kind::ShmLock | Kind::ShmUnlock, _) => ffi::SQLITE_BUSY,
        }
    }

    /// What SQLite is told when the operation never reached the disk: its process is cut off.
    fn cut_off(self) -> c_int {
        match self {
            Kind::Read => ffi::SQLITE_IOERR_READ,
            Kind::Lock => ffi::SQLITE_IOERR_LOCK,
            Kind::ShmLock => ffi::SQLITE_IOERR_SHMLOCK,
            Kind::ShmUnlock => ffi::SQLITE_OK,
            other => other.code(Errno::EIO),
        }
    }
}

/// One operation of SQLite on the disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskOp {
    /// Its number on this disk, from 1, without gaps.
    pub number: u64,
    /// The process that asks.
    pub owner: Owner,
    /// What is asked.
    pub kind: Kind,
    /// The file; empty for a nameless temporary file. Operations on shared memory name the database file.
    pub path: Rc<Path>,
    /// In bytes; for some kinds another number, see [`Kind`].
    pub offset: u64,
    /// In bytes; for some kinds another number, see [`Kind`].
    pub len: u64,
}

/// What becomes of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It happens.
    Go,
    /// It has no effect and fails with this error number: `ENOSPC` at a write is a full disk, `EIO` at a sync a
    /// broken one. [`Kind::Close`] and [`Kind::ShmUnmap`] happen all the same.
    Errno(Errno),
    /// Neither this nor any later operation of the same owner reaches the disk; its locks stay until it is ended. A
    /// kill in the middle of a commit is this, with [`super::Disk::end`] to follow.
    RefuseFromHere,
}

/// Why an operation does not happen: the code for SQLite.
pub(super) struct Stop(pub(super) c_int);

/// A simulated process as the disk knows it.
pub(super) struct Process {
    pub(super) owner: Owner,
    /// While it is not cut off: refused by a fault, ended, or without power. It never comes back.
    pub(super) alive: Cell<bool>,
}

/// On whose behalf SQLite works.
#[derive(Clone)]
pub(super) struct Who {
    pub(super) process: Rc<Process>,
    pub(super) uid: u32,
}

type Judge = Box<dyn FnMut(&DiskOp) -> Verdict>;
type Observer = Box<dyn FnMut(&DiskOp)>;
type Slot<F> = RefCell<Option<Rc<RefCell<F>>>>;

/// The count of operations and who listens to them.
#[derive(Default)]
pub(super) struct Counter {
    count: Cell<u64>,
    judge: Slot<Judge>,
    observer: Slot<Observer>,
    /// Whether anybody listens; saves the making of a [`DiskOp`] when nobody does.
    heard: Cell<bool>,
}

impl Counter {
    /// Operations so far.
    pub(super) fn count(&self) -> u64 {
        self.count.get()
    }

    pub(super) fn set_judge(&self, judge: Option<Judge>) {
        self.judge.replace(judge.map(|judge| Rc::new(RefCell::new(judge))));
        self.heard.set(self.judge.borrow().is_some() || self.observer.borrow().is_some());
    }

    pub(super) fn set_observer(&self, observer: Option<Observer>) {
        self.observer.replace(observer.map(|observer| Rc::new(RefCell::new(observer))));
        self.heard.set(self.judge.borrow().is_some() || self.observer.borrow().is_some());
    }

    /// Numbers the operation, shows it and asks for the verdict. `refuse` is called when the verdict is to refuse.
    ///
    /// No borrow is held while a listener runs: it may end processes, cut the power or read files.
    pub(super) fn admit(
        &self,
        process: &Process,
        (kind, path, offset, len): (Kind, &Rc<Path>, u64, u64),
        refuse: impl FnOnce(),
    ) -> Result<(), Stop> {
        if !process.alive.get() {
            return Err(Stop(kind.cut_off()));
        }
        let number = self.count.get() + 1;
        self.count.set(number);
        if !self.heard.get() {
            return Ok(());
        }
        let op = DiskOp { number, owner: process.owner, kind, path: path.clone(), offset, len };
        call(&self.observer, |observer| observer(&op));
        let verdict = call(&self.judge, |judge| judge(&op)).unwrap_or(Verdict::Go);
        if verdict == Verdict::RefuseFromHere && process.alive.get() {
            refuse();
        }
        match verdict {
            _ if !process.alive.get() => Err(Stop(kind.cut_off())),
            Verdict::Errno(errno) => Err(Stop(kind.code(errno))),
            Verdict::Go | Verdict::RefuseFromHere => Ok(()),
        }
    }
}

/// Calls the listener, which may replace itself. Operations that it causes itself are not shown to it.
fn call<F, R>(slot: &Slot<F>, f: impl FnOnce(&mut F) -> R) -> Option<R> {
    let listener = slot.borrow().clone()?;
    let mut listener = listener.try_borrow_mut().ok()?;
    Some(f(&mut listener))
}
