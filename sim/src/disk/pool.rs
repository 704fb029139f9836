//! Connections that are used again.
//!
//! To open a database costs SQLite hundreds of microseconds, of which it parses the schema for most: more than all that
//! mu then does with it. On a disk with a pool ([`super::Disk::set_pooled`]) a connection that has read the same schema
//! before takes the place of a fresh one: its two files are given to the new process, its shared memory is emptied, and
//! SQLite finds what it always finds when it is the first at a database: a memory that says nothing, a log to recover, and
//! a cache that is worth nothing.
//!
//! The world must not notice, nor what ran before in this thread: whether a connection of the pool is used, and what of the
//! disk is asked then, follows from the disk alone. When the pool has none that fits, one is made on a disk of its own. A
//! process that is killed loses its connection to the pool.
//!
//! What the pool hides is the opening itself: faults in it, and what a connection keeps from its former life. That is why
//! some runs go without, and all scripted ones.

use std::cell::RefCell;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::ptr::null;
use std::rc::Rc;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ffi};

use super::handle::Handle;
use super::locks::Level;
use super::ops::Who;
use super::pages::{PAGE, Page, Pages};
use super::shm::Shm;
use super::tree::{Inode, READ, SEARCH, WRITE, resolve};
use super::vfs::{OpenFile, Vfs, Which};
use super::{Disk, Inner, Node, Owner, ROOT, open};

/// How many idle connections a thread keeps: as many mus as run at once in a world, and a few schemas.
const KEPT: usize = 8;

/// How many compiled statements a connection keeps: all that mu and the oracles have.
const STATEMENTS: usize = 128;

thread_local! {
    static IDLE: RefCell<Vec<Kept>> = const { RefCell::new(Vec::new()) };
}

/// A connection of a simulated process to a database. Dropping it closes it, as far as the disk can tell.
pub struct Database {
    /// Taken by `drop`.
    connection: Option<Connection>,
    /// What makes it fit for the pool; a fresh connection has none.
    parts: Option<Parts>,
}

impl From<Connection> for Database {
    fn from(connection: Connection) -> Database {
        Database { connection: Some(connection), parts: None }
    }
}

impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Database").field("connection", &self.connection).finish_non_exhaustive()
    }
}

impl Deref for Database {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        self.connection.as_ref().expect("it is there until the end")
    }
}

impl DerefMut for Database {
    /// What can be set this way (hooks) cannot be taken back for sure, so the connection never goes to the pool.
    fn deref_mut(&mut self) -> &mut Connection {
        self.parts = None;
        self.connection.as_mut().expect("it is there until the end")
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let Some(connection) = self.connection.take() else { return };
        if let Some(parts) = self.parts.take()
            && let Some(kept) = (Kept { connection, parts }).close()
        {
            // The thread is being torn down when there is no list.
            let _ = IDLE.try_with(|idle| {
                let mut idle = idle.borrow_mut();
                if idle.len() < KEPT {
                    idle.push(kept);
                }
            });
        }
    }
}

/// A connection that works nowhere, or the whole of one that a process has.
struct Kept {
    connection: Connection,
    parts: Parts,
}

/// What belongs to a connection of the pool.
struct Parts {
    main: OpenFile,
    wal: OpenFile,
    /// SQLite knows where it lies, so it goes along.
    memory: Rc<Shm>,
    schema: Schema,
    path: Rc<Path>,
    vfs: Rc<Vfs>,
}

/// A connection of the pool for `who` to the database at `path`; `None` when it has to be a fresh one.
pub(super) fn take(disk: &Rc<Inner>, who: &Who, path: &Path) -> Option<Database> {
    Vfs::free_closed();
    let inode = ordinary(disk, who, path)?;
    let pages = inode.file()?.current.borrow().clone();
    let fits = |kept: &Kept| *kept.parts.path == *path && kept.parts.schema.is_of(&pages);
    let idle = IDLE.with_borrow_mut(|idle| idle.iter().rposition(fits).map(|at| idle.swap_remove(at)));
    let kept = idle.or_else(|| Kept::made(path, &pages))?;
    kept.open(disk, who, &inode)
}

/// The database at `path`, when nothing about it is out of the ordinary for the first process that opens it.
fn ordinary(disk: &Inner, who: &Who, path: &Path) -> Option<Rc<Inode>> {
    let place = resolve(&disk.root, path, who.uid, true).ok()?;
    let inode = place.inode.clone()?;
    let open = |inode: &Rc<Inode>| disk.handles.borrow().values().any(|one| Rc::ptr_eq(&one.inode, inode));
    let is_usable = who.process.alive.get()
        && !place.through_link
        && place.path() == path
        && inode.allows(who.uid, READ | WRITE)
        && inode.file()?.shm.borrow().is_none()
        && !open(&inode);
    let beside = |suffix| resolve(&disk.root, &beside(path, suffix), who.uid, false).ok();
    let may_be = |suffix| {
        let Some(place) = beside(suffix) else { return false };
        match (&place.inode, place.parent()) {
            (Some(inode), _) => inode.file().is_some() && inode.allows(who.uid, READ | WRITE) && !open(inode),
            (None, Some((holder, ..))) => holder.allows(who.uid, WRITE | SEARCH),
            (None, None) => false,
        }
    };
    let has_journal = || beside("-journal").is_none_or(|place| place.inode.is_some());
    (is_usable && !has_journal() && may_be("-wal") && may_be("-shm")).then_some(inode)
}

/// The path of a file that SQLite keeps beside a database.
fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

impl Kept {
    /// A connection that has read the schema of these pages, on a disk of its own.
    fn made(path: &Path, pages: &Rc<Pages>) -> Option<Kept> {
        let schema = Schema::of(pages)?;
        let disk = Disk::new();
        disk.put(path, ROOT, 0o600, Node::Bytes);
        disk.inode(path).ok()?.file()?.current.replace(pages.clone());
        let who = Who { process: disk.0.process(Owner(0)), uid: ROOT };
        let (connection, vfs) = disk.open_fresh(&who, path).ok()?;
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(())).ok()?;
        let main = OpenFile::of(&connection, Which::Main)?;
        let wal = OpenFile::of(&connection, Which::Wal)?;
        // SAFETY: the connection is open and keeps both files open.
        let handle = unsafe { main.handle() }?;
        let memory = handle.memory()?;
        let locked = handle.inode.file()?.locks.borrow().level(handle.id);
        assert_eq!(
            locked,
            Level::Shared,
            "an idle connection to a database with a log keeps it from being removed"
        );
        connection.set_prepared_statement_cache_capacity(STATEMENTS);
        let parts = Parts { main, wal, memory, schema, path: Rc::from(path), vfs };
        let kept = Kept { connection, parts };
        kept.leave();
        Some(kept)
    }

    /// Gives it to a process that opens this database. `None`, and it stays in the pool, when a fault is in the way: SQLite
    /// shall meet it by itself.
    fn open(self, disk: &Rc<Inner>, who: &Who, inode: &Rc<Inode>) -> Option<Database> {
        disk.rekey();
        self.parts.vfs.sit(disk, who);
        match self.parts.files(disk, who, inode) {
            Some((main, wal)) => {
                // SAFETY: the connection is open, keeps both files open, and does nothing at the moment.
                let former = unsafe { (self.parts.main.swap(Some(main)), self.parts.wal.swap(Some(wal))) };
                assert!(matches!(former, (None, None)), "an idle connection has no files");
                Some(Database { connection: Some(self.connection), parts: Some(self.parts) })
            }
            None => {
                self.parts.vfs.leave();
                IDLE.with_borrow_mut(|idle| idle.push(self));
                None
            }
        }
    }

    /// The process closes it, as SQLite does: whoever is the last at a database moves the log into it and removes the log.
    /// Gives back what can be used again; otherwise it is closed for good.
    fn close(self) -> Option<Kept> {
        let Parts { main, memory, .. } = &self.parts;
        // SAFETY: the connection is open and keeps the file open.
        let handle = unsafe { main.handle() }?;
        // It was told to leave the log alone, which must not outlast this process.
        if self.connection.db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE).ok()? {
            return None;
        }
        if !handle.who.process.alive.get() {
            return self.outlive();
        }
        let is_alone = memory.is_alone(handle.id)
            && !handle
                .disk
                .handles
                .borrow()
                .values()
                .any(|one| one.id != handle.id && Rc::ptr_eq(&one.inode, &handle.inode));
        if !is_alone
            || !self.connection.is_autocommit()
            || !self.is_moved()
            || !handle.who.process.alive.get()
        {
            return None;
        }
        self.leave();
        let _ = open::delete(&handle.disk, &handle.who, &beside(&handle.path, "-wal"), false);
        Some(self)
    }

    /// The process is dead: takes the connection from it. Nothing of what SQLite does here reaches its disk.
    fn outlive(self) -> Option<Kept> {
        if !self.parts.memory.is_deserted() {
            return None;
        }
        if !self.connection.is_autocommit() {
            // Reads may be refused; then SQLite forgets all that it holds, which is as well.
            let _ = self.connection.execute_batch("ROLLBACK");
        }
        // SAFETY: the connection is open.
        let state = unsafe { ffi::sqlite3_txn_state(self.connection.handle(), null()) };
        if state != ffi::SQLITE_TXN_NONE || !self.connection.is_autocommit() {
            return None;
        }
        self.leave();
        Some(self)
    }

    /// Moves the log into the database; tells whether nothing is left.
    fn is_moved(&self) -> bool {
        let (mut frames, mut moved) = (-1, -1);
        // SAFETY: the connection is open and the two numbers are ours.
        let code = unsafe {
            ffi::sqlite3_wal_checkpoint_v2(
                self.connection.handle(),
                null(),
                ffi::SQLITE_CHECKPOINT_PASSIVE,
                &mut frames,
                &mut moved,
            )
        };
        code == ffi::SQLITE_OK && frames == moved
    }

    /// Lets go of files, locks and memory; the name of the memory goes too.
    fn leave(&self) {
        let Parts { main, wal, vfs, .. } = &self.parts;
        // SAFETY: the connection is open, keeps both files open, and does nothing at the moment.
        let (main, wal) = unsafe { (main.swap(None), wal.swap(None)) };
        let main: Rc<Handle> = main.expect("it is at work");
        let _ = main.shm_unmap(true);
        main.close();
        if let Some(wal) = wal {
            wal.close();
        }
        vfs.leave();
    }
}

impl Parts {
    /// The database and its log, opened, with the memory of this connection.
    fn files(&self, disk: &Rc<Inner>, who: &Who, inode: &Rc<Inode>) -> Option<(Rc<Handle>, Rc<Handle>)> {
        let flags = ffi::SQLITE_OPEN_READWRITE | ffi::SQLITE_OPEN_CREATE;
        let open = |path: &Path, kind| open::open(disk, &self.vfs, who, path, flags | kind).ok();
        let main = open(&self.path, ffi::SQLITE_OPEN_MAIN_DB)?;
        let log = || {
            main.lock(Level::Shared).ok()?;
            self.memory.clear();
            inode.file()?.shm.replace(Some(self.memory.clone()));
            main.attach().ok()?;
            open(&beside(&self.path, "-wal"), ffi::SQLITE_OPEN_WAL)
        };
        match log() {
            Some(log) => Some((main, log)),
            None => {
                main.close();
                None
            }
        }
    }
}

/// Where page 1 says what kind of file it is, and what SQLite remembers of it: sizes, versions, the schema's number, the
/// text encoding, and the tree of `sqlite_schema` itself. Not its counters and not `user_version`, which are read anew.
const HEAD: [std::ops::Range<usize>; 5] = [0..24, 40..48, 52..60, 64..68, 100..PAGE];
/// Bytes 18 and 19 of a database with a log to write ahead.
const WAL_VERSION: [u8; 2] = [2, 2];
/// Kinds of a page of a table: inner, leaf.
const INNER: u8 = 5;
const LEAF: u8 = 13;
/// More bytes than this of one row do not stay in its page.
const LOCAL: u64 = PAGE as u64 - 35;

/// The pages of `sqlite_schema`.
struct Schema {
    first: Page,
    leaves: Vec<(usize, Page)>,
}

impl Schema {
    /// Reads them off a database with a log to write ahead; `None` for anything else, and for a schema of unusual size.
    fn of(pages: &Pages) -> Option<Schema> {
        let first = pages.page(0)?.clone();
        if first[16..18] != (PAGE as u16).to_be_bytes() || first[18..20] != WAL_VERSION {
            return None;
        }
        let mut leaves = Vec::new();
        match first[100] {
            LEAF => fits(&first[..], 100)?,
            INNER => {
                let right = u32::from_be_bytes(first[108..112].try_into().ok()?);
                let child =
                    |cell: usize| Some(u32::from_be_bytes(first.get(cell..cell + 4)?.try_into().ok()?));
                let left = cells(&first[..], 100, 12)?.into_iter().map(child);
                for number in left.chain([Some(right)]) {
                    let index = number?.checked_sub(1)? as usize;
                    let leaf = pages.page(index)?.clone();
                    if leaf[0] != LEAF {
                        return None;
                    }
                    fits(&leaf[..], 0)?;
                    leaves.push((index, leaf));
                }
            }
            _ => return None,
        }
        Some(Schema { first, leaves })
    }

    /// Whether these pages have the same.
    fn is_of(&self, pages: &Pages) -> bool {
        let same = |index: usize, ours: &Page| {
            pages.page(index).is_some_and(|theirs| Rc::ptr_eq(theirs, ours) || theirs == ours)
        };
        pages
            .page(0)
            .is_some_and(|first| HEAD.iter().all(|part| first[part.clone()] == self.first[part.clone()]))
            && self.leaves.iter().all(|(index, page)| same(*index, page))
    }
}

/// Where the cells of a page of a tree begin, whose head of `len` bytes is at `at`.
fn cells(page: &[u8], at: usize, len: usize) -> Option<Vec<usize>> {
    let number = |at: usize| Some(usize::from(u16::from_be_bytes(page.get(at..at + 2)?.try_into().ok()?)));
    let count = number(at + 3)?;
    (0..count).map(|cell| number(at + len + 2 * cell)).collect()
}

/// `None` when a row of a leaf goes on in another page.
fn fits(page: &[u8], at: usize) -> Option<()> {
    let small = |cell: usize| {
        let mut size = 0;
        for byte in page.get(cell..cell + 3)? {
            size = size << 7 | u64::from(byte & 0x7f);
            if byte & 0x80 == 0 {
                return (size <= LOCAL).then_some(());
            }
        }
        None
    };
    cells(page, at, 8)?.into_iter().try_for_each(small)
}
