//! The functions that SQLite calls.
//!
//! Each opened connection has a VFS of its own, so that every call says which process of which machine it comes from:
//! no file name carries it, and no global remembers it. A connection of the pool (`pool.rs`) is of one process after the
//! other, and of none in between. All calls come on the thread of the disk; one from another
//! thread (a `Connection` can be sent) is refused before it touches anything.

use std::cell::{RefCell, UnsafeCell};
use std::ffi::{CStr, CString, OsStr, c_char, c_int, c_void};
use std::mem::ManuallyDrop;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr::{NonNull, null, null_mut};
use std::rc::{Rc, Weak};
use std::sync::atomic::{AtomicU64, Ordering};

use nix::errno::Errno;
use rusqlite::{Connection, ffi};

use super::handle::{Handle, code};
use super::locks::Level;
use super::ops::{Stop, Who};
use super::tree::resolve;
use super::{Inner, open};

/// The longest path SQLite may ask for, in bytes, as in its Unix VFS.
const MAX_PATH: c_int = 512;

/// The Julian day of 1970-01-01, in milliseconds.
const EPOCH_IN_JULIAN_MS: i64 = 210_866_760_000_000;

/// Tells threads apart for less than a `ThreadId` costs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Thread(usize);

impl Thread {
    /// This thread; `None` while it is being torn down.
    fn here() -> Option<Thread> {
        thread_local! { static MARK: u8 = const { 0 }; }
        MARK.try_with(|mark| Thread(std::ptr::from_ref(mark) as usize)).ok()
    }
}

thread_local! {
    /// VFSs whose last handle is closed. SQLite may look at the VFS until the close of the connection is through, so
    /// they are freed when the next connection is opened, or with the thread.
    static CLOSED: RefCell<Vec<Rc<Vfs>>> = const { RefCell::new(Vec::new()) };
}

/// The VFS of one connection.
pub(super) struct Vfs {
    raw: UnsafeCell<ffi::sqlite3_vfs>,
    name: CString,
    pub(super) thread: Thread,
    seat: RefCell<Option<Seat>>,
}

/// Where a connection is at work, and for whom.
struct Seat {
    /// Weak: a handle keeps the disk, and the VFS waits in [`CLOSED`] after the last handle.
    disk: Weak<Inner>,
    who: Who,
}

impl Vfs {
    /// A registered VFS for one connection.
    pub(super) fn register(disk: &Rc<Inner>, who: Who) -> Rc<Vfs> {
        static SERIAL: AtomicU64 = AtomicU64::new(0);
        Vfs::free_closed();
        let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
        let name = CString::new(format!("mu-disk-{serial}")).expect("no NUL in it");
        let thread = Thread::here().expect("a thread that opens a database is alive");
        let vfs = Rc::new_cyclic(|this: &Weak<Vfs>| Vfs {
            raw: UnsafeCell::new(raw(name.as_ptr(), this.as_ptr().cast_mut().cast())),
            name,
            thread,
            seat: RefCell::new(Some(Seat { disk: Rc::downgrade(disk), who })),
        });
        // SAFETY: `raw` stays where it is inside the `Rc` and is unregistered before it is freed; the name is beside
        // it. Only SQLite writes to it (the link of its list, under its own mutex), hence the cell.
        let code = unsafe { ffi::sqlite3_vfs_register(vfs.raw.get(), 0) };
        assert_eq!(code, ffi::SQLITE_OK, "a VFS is registered in memory alone");
        vfs
    }

    /// Frees the VFSs of connections that are closed. Not while one is being closed.
    pub(super) fn free_closed() {
        CLOSED.take();
    }

    /// From here on the connection works on `disk` for `who`.
    pub(super) fn sit(&self, disk: &Rc<Inner>, who: &Who) {
        self.seat.replace(Some(Seat { disk: Rc::downgrade(disk), who: who.clone() }));
    }

    /// From here on the connection works nowhere; whatever SQLite asks is refused.
    pub(super) fn leave(&self) {
        self.seat.replace(None);
    }

    /// The name to open a connection with.
    pub(super) fn name(&self) -> &CStr {
        &self.name
    }

    /// A handle is gone: keeps its VFS until SQLite can no longer look at it.
    pub(super) fn retire(self: Rc<Vfs>) {
        let mut kept = Some(self);
        let _ = CLOSED.try_with(|closed| closed.borrow_mut().extend(kept.take()));
        // The thread is being torn down: better lost than freed too early.
        if let Some(vfs) = kept {
            std::mem::forget(vfs);
        }
    }
}

impl Drop for Vfs {
    fn drop(&mut self) {
        // SAFETY: it was registered with this address.
        unsafe { ffi::sqlite3_vfs_unregister(self.raw.get()) };
    }
}

/// The table that SQLite reads.
fn raw(name: *const c_char, vfs: *mut c_void) -> ffi::sqlite3_vfs {
    ffi::sqlite3_vfs {
        iVersion: 2,
        szOsFile: size_of::<Slot>() as c_int,
        mxPathname: MAX_PATH,
        pNext: null_mut(),
        zName: name,
        pAppData: vfs,
        xOpen: Some(open_file),
        xDelete: Some(delete),
        xAccess: Some(access),
        xFullPathname: Some(full_pathname),
        xDlOpen: Some(dl_open),
        xDlError: Some(dl_error),
        xDlSym: Some(dl_sym),
        xDlClose: Some(dl_close),
        xRandomness: Some(randomness),
        xSleep: Some(sleep),
        xCurrentTime: Some(current_time),
        xGetLastError: Some(last_error),
        xCurrentTimeInt64: Some(current_time_ms),
        xSetSystemCall: None,
        xGetSystemCall: None,
        xNextSystemCall: None,
    }
}

/// SQLite's file object: its own head, then the handle.
#[repr(C)]
struct Slot {
    head: ffi::sqlite3_file,
    /// From `Rc::into_raw`; taken back by `close` and [`OpenFile::swap`]. Null while the connection works nowhere.
    handle: *const Handle,
}

/// One of the two files that a connection in WAL mode keeps open.
#[derive(Clone, Copy)]
pub(super) enum Which {
    /// The database.
    Main,
    /// Its log.
    Wal,
}

/// A file that SQLite has open, as long as its connection is.
pub(super) struct OpenFile(NonNull<Slot>);

impl OpenFile {
    /// The file of a connection that has been opened through a VFS of this module and has read a database in WAL mode.
    /// `None` when there is none.
    pub(super) fn of(connection: &Connection, which: Which) -> Option<OpenFile> {
        let wanted = match which {
            Which::Main => ffi::SQLITE_FCNTL_FILE_POINTER,
            Which::Wal => ffi::SQLITE_FCNTL_JOURNAL_POINTER,
        };
        let mut file: *mut ffi::sqlite3_file = null_mut();
        // SAFETY: both operations write one pointer to a file object and nothing else; the connection is open.
        let code = unsafe {
            ffi::sqlite3_file_control(connection.handle(), c"main".as_ptr(), wanted, (&raw mut file).cast())
        };
        let file = NonNull::new(file).filter(|_| code == ffi::SQLITE_OK)?;
        // SAFETY: SQLite's own object; it has no methods when it is not open.
        let methods = unsafe { (*file.as_ptr()).pMethods };
        std::ptr::eq(methods, &METHODS).then_some(OpenFile(file.cast()))
    }

    /// The handle behind it.
    ///
    /// # Safety
    ///
    /// The connection is open, and has not closed this file.
    pub(super) unsafe fn handle(&self) -> Option<Rc<Handle>> {
        // SAFETY: the caller's promise; the count that the slot holds stays with it.
        unsafe {
            let handle = (*self.0.as_ptr()).handle;
            if handle.is_null() {
                return None;
            }
            Rc::increment_strong_count(handle);
            Some(Rc::from_raw(handle))
        }
    }

    /// Puts another handle behind it, or none, and gives back the one that was there. SQLite does not see it.
    ///
    /// # Safety
    ///
    /// As [`OpenFile::handle`], and SQLite does not run on this connection.
    pub(super) unsafe fn swap(&self, handle: Option<Rc<Handle>>) -> Option<Rc<Handle>> {
        let handle = handle.map_or(null(), Rc::into_raw);
        // SAFETY: the caller's promise. The slot gives its count of the old one to the result and takes that of the new.
        unsafe {
            let old = std::ptr::replace(&raw mut (*self.0.as_ptr()).handle, handle);
            (!old.is_null()).then(|| Rc::from_raw(old))
        }
    }
}

/// Runs `f` with the VFS that SQLite calls, its disk and its thread being there.
///
/// # Safety
///
/// `vfs` is a registered table made by [`raw`].
unsafe fn with_vfs(
    vfs: *mut ffi::sqlite3_vfs,
    f: impl FnOnce(&Rc<Vfs>, &Rc<Inner>, &Who) -> Result<(), Stop>,
) -> c_int {
    // SAFETY: `pAppData` is the address of the value in an `Rc<Vfs>`, which lives while the table is registered and,
    // through `CLOSED`, while SQLite may look at it. This reads two plain fields.
    let this = unsafe { (*vfs).pAppData.cast::<Vfs>().cast_const() };
    // SAFETY: as above; the field is never written.
    if Thread::here() != Some(unsafe { (*this).thread }) {
        return ffi::SQLITE_MISUSE;
    }
    // SAFETY: on the thread of the `Rc`. Its count is at least one and stays as it is: nothing is dropped here.
    let this = ManuallyDrop::new(unsafe { Rc::from_raw(this) });
    let seat = this.seat.borrow().as_ref().and_then(|seat| Some((seat.disk.upgrade()?, seat.who.clone())));
    match seat {
        Some((disk, who)) => code(f(&this, &disk, &who)),
        None => ffi::SQLITE_MISUSE,
    }
}

/// Runs `f` with the handle behind SQLite's file object.
///
/// # Safety
///
/// `file` was filled by [`open_file`] and not closed yet.
unsafe fn with_handle(file: *mut ffi::sqlite3_file, f: impl FnOnce(&Handle) -> Result<(), Stop>) -> c_int {
    // SAFETY: `open_file` put the `Slot` there and a count of the `Rc` into it, which `close` and `Slot::swap` alone take away;
    // null is what the latter leaves in an idle connection.
    let Some(handle) = (unsafe { (*file.cast::<Slot>()).handle.as_ref() }) else { return ffi::SQLITE_MISUSE };
    if Thread::here() != Some(handle.vfs.thread) {
        return ffi::SQLITE_MISUSE;
    }
    code(f(handle))
}

/// The path that SQLite passes.
///
/// # Safety
///
/// `name` is a string that ends with NUL and stays for `'a`.
unsafe fn path<'a>(name: *const c_char) -> &'a Path {
    // SAFETY: the caller's promise.
    Path::new(OsStr::from_bytes(unsafe { CStr::from_ptr(name) }.to_bytes()))
}

unsafe extern "C" fn open_file(
    vfs: *mut ffi::sqlite3_vfs,
    name: ffi::sqlite3_filename,
    file: *mut ffi::sqlite3_file,
    flags: c_int,
    out_flags: *mut c_int,
) -> c_int {
    let slot = file.cast::<Slot>();
    // SAFETY: SQLite gives `szOsFile` bytes, aligned for pointers. Null methods say that there is nothing to close.
    unsafe { (*slot).head.pMethods = null() };
    // SAFETY: SQLite passes the table that it was given.
    unsafe {
        with_vfs(vfs, |this, disk, who| {
            // SAFETY: null (a nameless temporary file) or a name that ends with NUL.
            let path = if name.is_null() { Path::new("") } else { path(name) };
            let handle = open::open(disk, this, who, path, flags)?;
            if !out_flags.is_null() {
                let writes = ffi::SQLITE_OPEN_READWRITE | ffi::SQLITE_OPEN_CREATE;
                // SAFETY: not null, so it is SQLite's own variable.
                *out_flags =
                    if handle.read_only { flags & !writes | ffi::SQLITE_OPEN_READONLY } else { flags };
            }
            // SAFETY: as at the top.
            slot.write(Slot { head: ffi::sqlite3_file { pMethods: &METHODS }, handle: Rc::into_raw(handle) });
            Ok(())
        })
    }
}

unsafe extern "C" fn delete(vfs: *mut ffi::sqlite3_vfs, name: *const c_char, sync: c_int) -> c_int {
    // SAFETY: SQLite passes the table that it was given, and a name that ends with NUL.
    unsafe { with_vfs(vfs, |_, disk, who| open::delete(disk, who, path(name), sync & 1 != 0)) }
}

unsafe extern "C" fn access(
    vfs: *mut ffi::sqlite3_vfs,
    name: *const c_char,
    flags: c_int,
    out: *mut c_int,
) -> c_int {
    // SAFETY: SQLite passes the table that it was given, a name that ends with NUL and its own variable.
    unsafe {
        with_vfs(vfs, |_, disk, who| {
            let exists = flags == ffi::SQLITE_ACCESS_EXISTS;
            *out = c_int::from(open::access(disk, who, path(name), exists)?);
            Ok(())
        })
    }
}

unsafe extern "C" fn full_pathname(
    vfs: *mut ffi::sqlite3_vfs,
    name: *const c_char,
    len: c_int,
    out: *mut c_char,
) -> c_int {
    // SAFETY: SQLite passes the table that it was given, a name that ends with NUL and a buffer of `len` bytes.
    unsafe {
        with_vfs(vfs, |_, disk, who| {
            let path = path(name);
            let (full, through_link) = match resolve(&disk.root, path, who.uid, true) {
                Ok(place) => (place.path(), place.through_link),
                // What is missing is found missing when it is opened.
                Err(Errno::ENOENT) => (PathBuf::from("/").join(path), false),
                Err(_) => return Err(Stop(ffi::SQLITE_CANTOPEN)),
            };
            let bytes = full.as_os_str().as_bytes();
            if bytes.len() < 2 || bytes.len() >= len as usize {
                return Err(Stop(ffi::SQLITE_CANTOPEN));
            }
            // SAFETY: the bytes and the NUL fit, as just checked; the buffers are different ones.
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), out.cast(), bytes.len());
            out.add(bytes.len()).write(0);
            if through_link { Err(Stop(ffi::SQLITE_OK_SYMLINK)) } else { Ok(()) }
        })
    }
}

/// No shared libraries are on the disk.
unsafe extern "C" fn dl_open(_: *mut ffi::sqlite3_vfs, _: *const c_char) -> *mut c_void {
    null_mut()
}

unsafe extern "C" fn dl_error(_: *mut ffi::sqlite3_vfs, len: c_int, out: *mut c_char) {
    let text = c"no shared libraries here".to_bytes_with_nul();
    if len as usize >= text.len() {
        // SAFETY: SQLite's buffer has `len` bytes, and the text fits.
        unsafe { std::ptr::copy_nonoverlapping(text.as_ptr(), out.cast(), text.len()) };
    }
}

unsafe extern "C" fn dl_sym(
    _: *mut ffi::sqlite3_vfs,
    _: *mut c_void,
    _: *const c_char,
) -> Option<unsafe extern "C" fn(*mut ffi::sqlite3_vfs, *mut c_void, *const c_char)> {
    None
}

unsafe extern "C" fn dl_close(_: *mut ffi::sqlite3_vfs, _: *mut c_void) {}

/// SQLite asks the default VFS instead, see `prng.rs`; zeros keep this one repeatable too.
unsafe extern "C" fn randomness(_: *mut ffi::sqlite3_vfs, len: c_int, out: *mut c_char) -> c_int {
    // SAFETY: SQLite's buffer has `len` bytes.
    unsafe { out.write_bytes(0, len as usize) };
    len
}

/// Says that it slept. Waiting would stop the whole simulated world.
unsafe extern "C" fn sleep(_: *mut ffi::sqlite3_vfs, micros: c_int) -> c_int {
    micros
}

unsafe extern "C" fn current_time_ms(vfs: *mut ffi::sqlite3_vfs, out: *mut i64) -> c_int {
    // SAFETY: SQLite passes the table that it was given and its own variable.
    unsafe {
        with_vfs(vfs, |_, disk, _| {
            *out = EPOCH_IN_JULIAN_MS + disk.wall.get().0;
            Ok(())
        })
    }
}

unsafe extern "C" fn current_time(vfs: *mut ffi::sqlite3_vfs, out: *mut f64) -> c_int {
    let mut ms = 0;
    // SAFETY: as in the function it calls; `out` is SQLite's own variable.
    unsafe {
        let code = current_time_ms(vfs, &mut ms);
        *out = ms as f64 / 86_400_000.0;
        code
    }
}

unsafe extern "C" fn last_error(_: *mut ffi::sqlite3_vfs, _: c_int, _: *mut c_char) -> c_int {
    0
}

/// Version 2: shared memory, but no mapped files (SQLite then reads; `mmap_size` is 0 by default anyway).
static METHODS: ffi::sqlite3_io_methods = ffi::sqlite3_io_methods {
    iVersion: 2,
    xClose: Some(close),
    xRead: Some(read),
    xWrite: Some(write),
    xTruncate: Some(truncate),
    xSync: Some(sync),
    xFileSize: Some(file_size),
    xLock: Some(lock),
    xUnlock: Some(unlock),
    xCheckReservedLock: Some(check_reserved_lock),
    xFileControl: Some(file_control),
    xSectorSize: Some(sector_size),
    xDeviceCharacteristics: Some(device_characteristics),
    xShmMap: Some(shm_map),
    xShmLock: Some(shm_lock),
    xShmBarrier: Some(shm_barrier),
    xShmUnmap: Some(shm_unmap),
    xFetch: None,
    xUnfetch: None,
};

unsafe extern "C" fn close(file: *mut ffi::sqlite3_file) -> c_int {
    // SAFETY: SQLite passes a file that `open_file` filled, and closes it once.
    unsafe {
        let code = with_handle(file, |handle| {
            handle.close();
            Ok(())
        });
        // From another thread the count must not be touched: the handle is lost, which is safe. A null one has none.
        if code == ffi::SQLITE_OK {
            drop(Rc::from_raw((*file.cast::<Slot>()).handle));
        }
        (*file).pMethods = null();
        code
    }
}

unsafe extern "C" fn read(file: *mut ffi::sqlite3_file, buf: *mut c_void, len: c_int, offset: i64) -> c_int {
    // SAFETY: SQLite passes a file that `open_file` filled and a buffer of `len` bytes that nobody else uses.
    unsafe {
        let buf = std::slice::from_raw_parts_mut(buf.cast(), len as usize);
        with_handle(file, |handle| handle.read(offset as u64, buf))
    }
}

unsafe extern "C" fn write(
    file: *mut ffi::sqlite3_file,
    buf: *const c_void,
    len: c_int,
    offset: i64,
) -> c_int {
    // SAFETY: SQLite passes a file that `open_file` filled and `len` bytes.
    unsafe {
        let bytes = std::slice::from_raw_parts(buf.cast(), len as usize);
        with_handle(file, |handle| handle.write(offset as u64, bytes))
    }
}

unsafe extern "C" fn truncate(file: *mut ffi::sqlite3_file, len: i64) -> c_int {
    // SAFETY: SQLite passes a file that `open_file` filled.
    unsafe { with_handle(file, |handle| handle.truncate(len as u64)) }
}

unsafe extern "C" fn sync(file: *mut ffi::sqlite3_file, _: c_int) -> c_int {
    // SAFETY: SQLite passes a file that `open_file` filled.
    unsafe { with_handle(file, Handle::sync) }
}

unsafe extern "C" fn file_size(file: *mut ffi::sqlite3_file, out: *mut i64) -> c_int {
    // SAFETY: SQLite passes a file that `open_file` filled and its own variable.
    unsafe {
        with_handle(file, |handle| {
            *out = handle.size()? as i64;
            Ok(())
        })
    }
}

/// SQLite's number for a lock, as a level.
fn level(number: c_int) -> Level {
    match number {
        ffi::SQLITE_LOCK_NONE => Level::None,
        ffi::SQLITE_LOCK_SHARED => Level::Shared,
        ffi::SQLITE_LOCK_RESERVED => Level::Reserved,
        ffi::SQLITE_LOCK_PENDING => Level::Pending,
        _ => Level::Exclusive,
    }
}

unsafe extern "C" fn lock(file: *mut ffi::sqlite3_file, number: c_int) -> c_int {
    // SAFETY: SQLite passes a file that `open_file` filled.
    unsafe { with_handle(file, |handle| handle.lock(level(number))) }
}

unsafe extern "C" fn unlock(file: *mut ffi::sqlite3_file, number: c_int) -> c_int {
    // SAFETY: SQLite passes a file that `open_file` filled.
    unsafe { with_handle(file, |handle| handle.unlock(level(number))) }
}

unsafe extern "C" fn check_reserved_lock(file: *mut ffi::sqlite3_file, out: *mut c_int) -> c_int {
    // SAFETY: SQLite passes a file that `open_file` filled and its own variable.
    unsafe {
        with_handle(file, |handle| {
            *out = c_int::from(handle.check_reserved()?);
            Ok(())
        })
    }
}

unsafe extern "C" fn file_control(file: *mut ffi::sqlite3_file, op: c_int, arg: *mut c_void) -> c_int {
    let arg = arg.cast::<c_int>();
    // SAFETY: SQLite passes a file that `open_file` filled; for the two operations that use it, `arg` is an int of its own.
    unsafe {
        with_handle(file, |handle| match op {
            ffi::SQLITE_FCNTL_PERSIST_WAL => {
                match *arg {
                    wish if wish >= 0 => handle.keeps_wal.set(wish != 0),
                    _ => *arg = c_int::from(handle.keeps_wal.get()),
                }
                Ok(())
            }
            ffi::SQLITE_FCNTL_HAS_MOVED => {
                *arg = c_int::from(handle.has_moved());
                Ok(())
            }
            ffi::SQLITE_FCNTL_SIZE_HINT => Ok(()),
            _ => Err(Stop(ffi::SQLITE_NOTFOUND)),
        })
    }
}

unsafe extern "C" fn sector_size(_: *mut ffi::sqlite3_file) -> c_int {
    4096
}

/// What SQLite's Unix VFS says of an ordinary filesystem.
unsafe extern "C" fn device_characteristics(_: *mut ffi::sqlite3_file) -> c_int {
    ffi::SQLITE_IOCAP_POWERSAFE_OVERWRITE | ffi::SQLITE_IOCAP_SUBPAGE_READ
}

unsafe extern "C" fn shm_map(
    file: *mut ffi::sqlite3_file,
    region: c_int,
    bytes: c_int,
    extend: c_int,
    out: *mut *mut c_void,
) -> c_int {
    // SAFETY: SQLite passes a file that `open_file` filled and its own variable.
    unsafe {
        *out = null_mut();
        with_handle(file, |handle| {
            let (answer, at) = match handle.shm_map(region as u64, bytes as u64, extend != 0) {
                Ok(at) => (Ok(()), at),
                Err((stop, at)) => (Err(stop), at),
            };
            *out = at;
            answer
        })
    }
}

unsafe extern "C" fn shm_lock(
    file: *mut ffi::sqlite3_file,
    first: c_int,
    count: c_int,
    flags: c_int,
) -> c_int {
    // SAFETY: SQLite passes a file that `open_file` filled.
    unsafe {
        with_handle(file, |handle| {
            if flags & ffi::SQLITE_SHM_LOCK != 0 {
                handle.shm_lock(first as u32, count as u32, flags & ffi::SQLITE_SHM_EXCLUSIVE != 0)
            } else {
                handle.shm_unlock(first as u32, count as u32)
            }
        })
    }
}

/// One thread sees its own writes in order.
unsafe extern "C" fn shm_barrier(_: *mut ffi::sqlite3_file) {}

unsafe extern "C" fn shm_unmap(file: *mut ffi::sqlite3_file, delete: c_int) -> c_int {
    // SAFETY: SQLite passes a file that `open_file` filled.
    unsafe { with_handle(file, |handle| handle.shm_unmap(delete != 0)) }
}
