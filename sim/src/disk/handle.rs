//! One open file, and what SQLite does with it.

use std::cell::{Cell, RefCell};
use std::ffi::{c_int, c_void};
use std::path::Path;
use std::ptr::null_mut;
use std::rc::Rc;

use nix::errno::Errno;
use rusqlite::ffi;

use super::Inner;
use super::locks::{Busy, Level};
use super::ops::{Kind, Stop, Who};
use super::pages::Pages;
use super::shm::{Frozen, Shm};
use super::tree::{File, Inode, READ, ROOT, WRITE, resolve};
use super::vfs::Vfs;

/// An open file of one simulated process.
pub(super) struct Handle {
    /// Unique on its disk.
    pub(super) id: u64,
    pub(super) disk: Rc<Inner>,
    pub(super) vfs: Rc<Vfs>,
    pub(super) who: Who,
    /// Without links and dots; empty for a nameless temporary file.
    pub(super) path: Rc<Path>,
    pub(super) inode: Rc<Inode>,
    pub(super) read_only: bool,
    /// The first sync takes the directory along: a new journal or WAL.
    pub(super) syncs_directory: Cell<bool>,
    /// The name has been made durable through this handle.
    pub(super) name_is_durable: Cell<bool>,
    /// SQLite leaves WAL and shared memory behind when it closes the database.
    pub(super) keeps_wal: Cell<bool>,
    pub(super) seat: RefCell<Option<Attached>>,
}

/// A handle's place at the shared memory of its file.
pub(super) struct Attached {
    shm: Rc<Shm>,
    read_only: bool,
    /// Set when the process was cut off.
    frozen: Option<Frozen>,
}

/// What an io method answers.
type Answer = Result<(), Stop>;

impl From<Busy> for Stop {
    fn from(_: Busy) -> Stop {
        Stop(ffi::SQLITE_BUSY)
    }
}

impl Handle {
    fn file(&self) -> &File {
        self.inode.file().expect("only regular files are opened")
    }

    fn admit(&self, kind: Kind, offset: u64, len: u64) -> Answer {
        self.disk.admit(&self.who.process, (kind, &self.path, offset, len))
    }

    fn change(&self, change: impl FnOnce(&mut Pages)) {
        change(Rc::make_mut(&mut self.file().current.borrow_mut()));
    }

    pub(super) fn read(&self, offset: u64, buf: &mut [u8]) -> Answer {
        self.admit(Kind::Read, offset, buf.len() as u64)?;
        let inside = self.file().current.borrow().read(offset, buf);
        if inside < buf.len() { Err(Stop(ffi::SQLITE_IOERR_SHORT_READ)) } else { Ok(()) }
    }

    pub(super) fn write(&self, offset: u64, bytes: &[u8]) -> Answer {
        self.admit(Kind::Write, offset, bytes.len() as u64)?;
        if self.read_only {
            return Err(Stop(Kind::Write.code(Errno::EBADF)));
        }
        self.change(|pages| pages.write(offset, bytes));
        Ok(())
    }

    pub(super) fn truncate(&self, len: u64) -> Answer {
        self.admit(Kind::Truncate, len, 0)?;
        if self.read_only {
            return Err(Stop(Kind::Truncate.code(Errno::EINVAL)));
        }
        self.change(|pages| pages.truncate(len));
        Ok(())
    }

    pub(super) fn sync(&self) -> Answer {
        self.admit(Kind::Sync, 0, 0)?;
        self.file().sync();
        let directory = self.syncs_directory.replace(false);
        let named = self.name_is_durable.replace(true);
        if named && !directory {
            return Ok(());
        }
        // A file that has lost its name, or whose name another file has got, has no name to make durable.
        if let Ok(place) = resolve(&self.disk.root, &self.path, ROOT, false)
            && place.inode.as_ref().is_some_and(|inode| Rc::ptr_eq(inode, &self.inode))
        {
            if directory {
                place.sync_directory();
            } else {
                place.sync();
            }
        }
        Ok(())
    }

    pub(super) fn size(&self) -> Result<u64, Stop> {
        self.admit(Kind::Size, 0, 0)?;
        // SQLite's Unix code takes a file of one byte for an empty one.
        Ok(match self.file().current.borrow().len() {
            1 => 0,
            len => len,
        })
    }

    pub(super) fn lock(&self, level: Level) -> Answer {
        self.admit(Kind::Lock, level as u64, 0)?;
        if level > Level::Shared {
            if self.read_only {
                // A descriptor that cannot write takes no write lock (EBADF).
                return Err(Stop(ffi::SQLITE_IOERR_LOCK));
            }
            self.disk.rekey();
        }
        Ok(self.file().locks.borrow_mut().raise(self.id, level)?)
    }

    pub(super) fn unlock(&self, level: Level) -> Answer {
        self.admit(Kind::Unlock, level as u64, 0)?;
        self.file().locks.borrow_mut().lower(self.id, level);
        Ok(())
    }

    pub(super) fn check_reserved(&self) -> Result<bool, Stop> {
        self.admit(Kind::CheckReserved, 0, 0)?;
        Ok(self.file().locks.borrow().reserved())
    }

    /// Whether the path no longer leads to this file.
    pub(super) fn has_moved(&self) -> bool {
        let place = resolve(&self.disk.root, &self.path, ROOT, false);
        let inode = place.ok().and_then(|place| place.inode);
        self.who.process.alive.get() && !inode.is_some_and(|inode| Rc::ptr_eq(&inode, &self.inode))
    }

    pub(super) fn shm_map(
        &self,
        region: u64,
        bytes: u64,
        extend: bool,
    ) -> Result<*mut c_void, (Stop, *mut c_void)> {
        let refuse = |stop| (stop, null_mut());
        self.admit(Kind::ShmMap, region, bytes).map_err(refuse)?;
        if self.seat.borrow().is_none() {
            self.attach().map_err(refuse)?;
        }
        let seat = self.seat.borrow();
        let seat = seat.as_ref().expect("attached above");
        if seat.read_only && !seat.shm.vouched(self.id) {
            return Err(refuse(Stop(ffi::SQLITE_READONLY_CANTINIT)));
        }
        let at = seat.shm.map(region as usize, bytes as usize, extend && !seat.read_only);
        if seat.read_only { Err((Stop(ffi::SQLITE_READONLY), at)) } else { Ok(at) }
    }

    /// Opens the file beside the database that stands for the shared memory, as SQLite's Unix code does. The memory
    /// itself belongs to the database file; it does not outlive its last user.
    pub(super) fn attach(&self) -> Answer {
        let cannot = Stop(ffi::SQLITE_CANTOPEN);
        let mut name = self.path.as_os_str().to_owned();
        name.push("-shm");
        let Ok(place) = resolve(&self.disk.root, Path::new(&name), self.who.uid, false) else {
            return Err(cannot);
        };
        let read_only = match &place.inode {
            Some(inode) if inode.file().is_some() && inode.allows(self.who.uid, READ | WRITE) => false,
            Some(inode) if inode.file().is_some() && inode.allows(self.who.uid, READ) => true,
            Some(_) => return Err(cannot),
            None => {
                let owner = if self.who.uid == ROOT { self.inode.uid.get() } else { self.who.uid };
                if self.disk.create(&place, self.who.uid, owner, self.inode.mode.get() & 0o777).is_err() {
                    return Err(cannot);
                }
                false
            }
        };
        let shm = self.file().shm.borrow_mut().get_or_insert_default().clone();
        shm.attach(self.id, read_only);
        self.seat.replace(Some(Attached { shm, read_only, frozen: None }));
        Ok(())
    }

    /// The shared memory that it is at.
    pub(super) fn memory(&self) -> Option<Rc<Shm>> {
        self.seat.borrow().as_ref().map(|seat| seat.shm.clone())
    }

    pub(super) fn shm_lock(&self, first: u32, count: u32, alone: bool) -> Answer {
        self.admit(Kind::ShmLock, u64::from(first), u64::from(count))?;
        if alone {
            self.disk.rekey();
        }
        match &*self.seat.borrow() {
            Some(seat) => Ok(seat.shm.lock(self.id, first, count, alone)?),
            None => Err(Stop(ffi::SQLITE_IOERR_SHMLOCK)),
        }
    }

    pub(super) fn shm_unlock(&self, first: u32, count: u32) -> Answer {
        self.admit(Kind::ShmUnlock, u64::from(first), u64::from(count))?;
        if let Some(seat) = &*self.seat.borrow() {
            seat.shm.unlock(self.id, first, count);
        }
        Ok(())
    }

    pub(super) fn shm_unmap(&self, delete: bool) -> Answer {
        if self.seat.borrow().is_none() {
            return Ok(());
        }
        // A failure has no way to show itself here; a process that is cut off lets go of the memory all the same.
        let _ = self.admit(Kind::ShmUnmap, 0, 0);
        if !self.who.process.alive.get() {
            self.thaw();
            return Ok(());
        }
        if self.leave_shm() && delete {
            let mut name = self.path.as_os_str().to_owned();
            name.push("-shm");
            if let Ok(place) = resolve(&self.disk.root, Path::new(&name), self.who.uid, false) {
                // As in SQLite's Unix code, a name that cannot be removed stays.
                let _ = place.unlink(self.who.uid);
            }
        }
        Ok(())
    }

    /// SQLite is done with the handle.
    pub(super) fn close(&self) {
        let _ = self.admit(Kind::Close, 0, 0);
        if self.who.process.alive.get() {
            self.leave_shm();
            self.release();
        } else {
            // Its locks go when it is ended, not with its destructors.
            self.thaw();
        }
    }

    /// The process is cut off: from here on it must not change the shared memory, which it still can.
    pub(super) fn freeze(&self) {
        if let Some(seat) = &mut *self.seat.borrow_mut() {
            if let Some(frozen) = &seat.frozen {
                seat.shm.restore(frozen);
            }
            seat.frozen = Some(seat.shm.freeze());
        }
    }

    /// The process is dead: its locks are gone. SQLite may still use the memory, the living no longer share it unless
    /// they are at it too.
    pub(super) fn bury(&self) {
        self.freeze();
        if let Some(seat) = &*self.seat.borrow() {
            self.leave_seat(seat);
        }
        self.release();
    }

    /// Undoes what SQLite did to the shared memory since the process was cut off. The memory stays allocated until the
    /// handle is dropped.
    fn thaw(&self) {
        if let Some(seat) = &mut *self.seat.borrow_mut()
            && let Some(frozen) = seat.frozen.take()
        {
            seat.shm.restore(&frozen);
        }
    }

    /// Leaves the shared memory; tells whether this handle was the last there.
    fn leave_shm(&self) -> bool {
        self.seat.take().is_some_and(|seat| self.leave_seat(&seat))
    }

    fn leave_seat(&self, seat: &Attached) -> bool {
        let last = seat.shm.detach(self.id);
        let mut slot = self.file().shm.borrow_mut();
        if last && slot.as_ref().is_some_and(|shm| Rc::ptr_eq(shm, &seat.shm)) {
            slot.take();
        }
        last
    }

    fn release(&self) {
        self.file().locks.borrow_mut().lower(self.id, Level::None);
        self.disk.handles.borrow_mut().remove(&self.id);
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.vfs.clone().retire();
    }
}

/// The code that SQLite wants for an answer.
pub(super) fn code(answer: Answer) -> c_int {
    answer.map_or_else(|Stop(code)| code, |()| ffi::SQLITE_OK)
}

#[cfg(test)]
mod tests {
    use super::super::shm::Shm;
    use super::super::{Disk, Node, Owner};
    use super::*;

    fn memory(disk: &Disk, path: &Path) -> Rc<Shm> {
        let inode = disk.inode(path).expect("there");
        inode.file().and_then(|file| file.shm.borrow().clone()).expect("in use")
    }

    #[test]
    fn the_destructors_of_a_dead_process_leave_the_shared_memory_of_the_living_as_it_was() {
        let (disk, path) = (Disk::new(), Path::new("/x/db"));
        disk.put(Path::new("/x"), 5, 0o700, Node::Directory);
        let open = |owner| disk.open_db(Owner(owner), 5, path).expect("opens");
        let (killed, other) = (open(1), open(2));
        killed.execute_batch("PRAGMA journal_mode=WAL; CREATE TABLE t (v)").expect("made");
        other.execute_batch("SELECT * FROM t").expect("reads");
        // More than the cache holds: frames are indexed in the shared memory before the commit. A rollback would take
        // them out again.
        killed
            .execute_batch("PRAGMA cache_size=5; BEGIN; INSERT INTO t VALUES (zeroblob(200000))")
            .expect("writes");
        let before = memory(&disk, path).freeze();
        disk.end(Owner(1));
        drop(killed);
        assert!(memory(&disk, path).freeze() == before);
        other.execute_batch("INSERT INTO t VALUES (1)").expect("not busy");
        assert!(memory(&disk, path).freeze() != before);
    }
}
