//! The disk of a simulated machine: one filesystem with owners and modes, and SQLite on it.
//!
//! SQLite is the real one. It reaches the disk through a VFS of this module, so that two connections on one thread
//! stand for two processes: each has its own locks, shared memory (the wal-index of WAL mode) is shared by those that
//! open the same file of the same disk, and nothing ever waits: what is locked is `BUSY` at once.
//!
//! # What survives what
//!
//! Every regular file has two images, and every directory two lists of names: *current* and *durable*.
//!
//! - Reads and writes of all processes go to the current image. A process that dies ([`Disk::end`]) loses its locks and
//!   its open handles, and no byte that it wrote.
//! - A sync makes the bytes of one file durable, with its size, its own name and the names of the directories above (as
//!   on ext4). The first sync of a new journal or WAL makes all names of its directory durable, and so does a delete
//!   that SQLite asks to be synced. Other new, removed or renamed names are not durable yet.
//! - A power loss ([`Disk::power_loss`]) sets current to durable, everywhere: what was not synced is gone, whole.
//!   Locks and shared memory are gone, and all processes that ever opened a database are dead.
//! - What the *world* does ([`Disk::put`], [`Disk::write_bytes`], [`Disk::remove`], …) is durable at once: it stands
//!   for what was so long before.
//!
//! # Operations
//!
//! Whatever SQLite asks of the disk is an operation with a number, from 1, see [`DiskOp`]. A fault ([`Disk::set_fault`])
//! decides each: it happens, it fails with an error of the system, or it and all later ones of its process never reach
//! the disk. A process that is cut off that way, or ended, is *inert*: its destructors run SQLite's close, which changes
//! nothing and counts nothing.
//!
//! # Map
//!
//! `tree.rs` names, owners and modes · `pages.rs` bytes · `locks.rs` file locks · `shm.rs` shared memory and its locks ·
//! `ops.rs` numbers and faults · `open.rs` and `handle.rs` what SQLite's calls do · `vfs.rs` the calls themselves ·
//! `pool.rs` connections that are used again · `prng.rs` SQLite's randomness.

mod handle;
mod locks;
mod open;
mod ops;
mod pages;
mod pool;
mod prng;
mod shm;
mod tree;
mod vfs;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use mu_core::os::{EpochMs, FileFacts, FileKind};
pub use nix::errno::Errno;
use rusqlite::{Connection, OpenFlags};

use handle::Handle;
use ops::{Counter, Process, Stop, Who};
pub use ops::{DiskOp, Kind, Verdict};
use pages::Pages;
pub use pool::Database;
pub use prng::{forget_statistics, real_draws};
use tree::{File, Inode, Place, READ, ROOT, SEARCH, WRITE, resolve};
use vfs::Vfs;

/// The simulated process that an open file belongs to. Unique for ever: not a process id, which comes again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Owner(pub u64);

/// What is at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Node {
    /// A directory.
    Directory,
    /// A named pipe.
    Fifo,
    /// A socket.
    Socket,
    /// A device.
    Device,
    /// A symbolic link to this target, which a relative path takes from the link's directory.
    Link(PathBuf),
    /// An executable: a regular file without contents that stands for a program of the simulator.
    Program {
        /// Which program it is.
        name: String,
        /// It is being written: executing it is `ETXTBSY`.
        busy: bool,
        /// Its interpreter is not there: executing it is `ENOENT`.
        interpreter_missing: bool,
    },
    /// A regular file; its contents are with the disk ([`Disk::write_bytes`], [`Disk::bytes`]).
    Bytes,
}

/// The filesystem of one simulated machine. A clone is the same filesystem.
///
/// Paths are absolute; a relative one is taken from the root. User id 0 is the superuser, and it is as that user that
/// all methods act which take no user id. There are no groups: a file's mode speaks to its owner and to all others.
#[derive(Clone)]
pub struct Disk(Rc<Inner>);

/// What the clones of a disk share, and the open files hold on to.
struct Inner {
    root: Rc<Inode>,
    handles: RefCell<BTreeMap<u64, Rc<Handle>>>,
    next_handle: Cell<u64>,
    processes: RefCell<BTreeMap<Owner, Rc<Process>>>,
    counter: Counter,
    seed: Cell<u64>,
    /// Connections may come from the pool.
    pooled: Cell<bool>,
    wall: Cell<EpochMs>,
}

impl Inner {
    fn new(root: Rc<Inode>) -> Inner {
        Inner {
            root,
            handles: RefCell::default(),
            next_handle: Cell::new(1),
            processes: RefCell::default(),
            counter: Counter::default(),
            seed: Cell::new(0),
            pooled: Cell::new(false),
            wall: Cell::new(EpochMs(0)),
        }
    }

    /// Numbers an operation and asks whether it happens.
    fn admit(&self, process: &Process, op: (Kind, &Rc<Path>, u64, u64)) -> Result<(), Stop> {
        self.counter.admit(process, op, || {
            process.alive.set(false);
            self.of(process.owner).iter().for_each(|handle| handle.freeze());
        })
    }

    /// The open handles of a process.
    fn of(&self, owner: Owner) -> Vec<Rc<Handle>> {
        let handles = self.handles.borrow();
        handles.values().filter(|handle| handle.who.process.owner == owner).cloned().collect()
    }

    fn process(&self, owner: Owner) -> Rc<Process> {
        let alive = || Rc::new(Process { owner, alive: Cell::new(true) });
        self.processes.borrow_mut().entry(owner).or_insert_with(alive).clone()
    }

    /// The process is dead: first nothing that it does reaches the disk any more, then its locks go.
    fn end(&self, owner: Owner) {
        self.process(owner).alive.set(false);
        self.of(owner).iter().for_each(|handle| handle.bury());
    }

    /// SQLite's next draws depend on the seed and the number of operations alone.
    fn rekey(&self) {
        prng::rekey(prng::mix(self.seed.get()) ^ self.counter.count());
    }

    /// Makes a regular file of `owner` at a free `place` on behalf of `uid`.
    fn create(&self, place: &Place, uid: u32, owner: u32, mode: u32) -> Result<Rc<Inode>, Errno> {
        let (holder, ..) = place.parent().ok_or(Errno::EISDIR)?;
        if !holder.allows(uid, WRITE | SEARCH) {
            return Err(Errno::EACCES);
        }
        let inode = Inode::new(owner, mode, Node::Bytes);
        place.bind(&inode);
        Ok(inode)
    }

    /// Enters a new handle.
    fn opened(
        self: &Rc<Inner>,
        vfs: &Rc<Vfs>,
        who: &Who,
        path: Rc<Path>,
        inode: Rc<Inode>,
        read_only: bool,
        syncs_directory: bool,
    ) -> Rc<Handle> {
        let id = self.next_handle.get();
        self.next_handle.set(id + 1);
        let handle = Rc::new(Handle {
            id,
            disk: self.clone(),
            vfs: vfs.clone(),
            who: who.clone(),
            path,
            inode,
            read_only,
            syncs_directory: Cell::new(syncs_directory),
            name_is_durable: Cell::new(false),
            keeps_wal: Cell::new(false),
            seat: RefCell::new(None),
        });
        self.handles.borrow_mut().insert(id, handle.clone());
        handle
    }
}

impl Default for Disk {
    fn default() -> Disk {
        Disk::new()
    }
}

/// The system's error number as an error.
fn os_error(errno: Errno) -> io::Error {
    io::Error::from_raw_os_error(errno as i32)
}

/// # The world: set-up, faults, oracles
impl Disk {
    /// An empty disk: a root directory that belongs to the superuser and that all may pass.
    pub fn new() -> Disk {
        let disk = Disk(Rc::new(Inner::new(Inode::new(ROOT, 0o755, Node::Directory))));
        disk.0.rekey();
        disk
    }

    /// A copy of all files, current and durable, with the seed, the clock and the use of the pool. The pages are shared until one side
    /// writes, so this is how a prepared database is loaded. Open files, locks, faults and the count stay behind.
    pub fn fork(&self) -> Disk {
        let inner = Inner::new(tree::fork(&self.0.root, &mut BTreeMap::new()));
        inner.seed.set(self.0.seed.get());
        inner.pooled.set(self.0.pooled.get());
        inner.wall.set(self.0.wall.get());
        Disk(Rc::new(inner))
    }

    /// A copy of what a power loss would leave now.
    pub fn durable(&self) -> Disk {
        let copy = self.fork();
        tree::lose_power(&copy.0.root);
        copy
    }

    /// The seed of all that SQLite draws on this disk.
    pub fn set_seed(&self, seed: u64) {
        self.0.seed.set(seed);
        self.0.rekey();
    }

    /// From here on connections are used again where the disk cannot tell, see `pool.rs`. Not for faults of the disk: what
    /// is asked of it to open and to close a database is less then.
    pub fn set_pooled(&self, pooled: bool) {
        self.0.pooled.set(pooled);
    }

    /// What SQL on this disk takes for the time.
    pub fn set_wall(&self, wall: EpochMs) {
        self.0.wall.set(wall);
    }

    /// Puts `node` at `path`, in the place of whatever is there; a directory that is there already keeps its entries.
    /// A link in the last place is replaced, not followed. Missing directories are made, for the same owner with mode
    /// 0755.
    ///
    /// # Panics
    ///
    /// When something else than a directory is in the way, or the path is the root and the node no directory.
    pub fn put(&self, path: &Path, uid: u32, mode: u32, node: Node) {
        if let Some(parent) = path.parent()
            && let Ok(Place { inode: None, .. }) | Err(Errno::ENOENT) =
                resolve(&self.0.root, parent, ROOT, true)
        {
            self.put(parent, uid, 0o755, Node::Directory);
        }
        let place = match resolve(&self.0.root, path, ROOT, false) {
            Ok(place) => place,
            Err(errno) => panic!("{}: {errno}", path.display()),
        };
        match &place.inode {
            Some(inode) if node == Node::Directory && inode.directory().is_some() => {
                inode.uid.set(uid);
                inode.mode.set(mode & 0o7777);
            }
            _ => {
                assert!(place.parent().is_some(), "the root is a directory");
                place.bind(&Inode::new(uid, mode, node));
                place.sync();
            }
        }
    }

    /// Sets the contents of a regular file; links are followed. A missing file is made, mode 0600, for the owner of its
    /// directory.
    ///
    /// # Panics
    ///
    /// When the path does not lead to a regular file, or its directory is missing.
    pub fn write_bytes(&self, path: &Path, bytes: &[u8]) {
        let place = match resolve(&self.0.root, path, ROOT, true) {
            Ok(place) => place,
            Err(errno) => panic!("{}: {errno}", path.display()),
        };
        let inode = place.inode.clone().unwrap_or_else(|| {
            let (holder, ..) = place.parent().expect("the root exists");
            let inode = Inode::new(holder.uid.get(), 0o600, Node::Bytes);
            place.bind(&inode);
            place.sync();
            inode
        });
        match inode.file() {
            Some(file) => file.set(bytes),
            None => panic!("{}: not a regular file", path.display()),
        }
    }

    /// The current contents of a regular file, links followed; `None` when there is none.
    pub fn bytes(&self, path: &Path) -> Option<Vec<u8>> {
        let inode = self.inode(path).ok()?;
        inode.file().map(|file: &File| file.current.borrow().to_vec())
    }

    /// Every regular file with its current contents, in the order of the paths. Programs have none and are left out.
    pub fn files(&self) -> Vec<(PathBuf, Vec<u8>)> {
        self.heads(u64::MAX)
    }

    /// The same, with at most the first `limit` bytes of each.
    pub fn heads(&self, limit: u64) -> Vec<(PathBuf, Vec<u8>)> {
        let mut found = Vec::new();
        let root = self.0.root.directory().expect("the root is a directory");
        tree::files(root, Path::new("/"), limit, &mut found);
        found
    }

    /// `chmod`, links followed. `ENOENT` and the other errors of a path.
    pub fn set_mode(&self, path: &Path, mode: u32) -> io::Result<()> {
        self.inode(path)?.mode.set(mode & 0o7777);
        Ok(())
    }

    /// `chown`, links followed. `ENOENT` and the other errors of a path.
    pub fn set_uid(&self, path: &Path, uid: u32) -> io::Result<()> {
        self.inode(path)?.uid.set(uid);
        Ok(())
    }

    /// Removes the name, a directory with all in it; a link itself. Open files stay open. `ENOENT`, and `EBUSY` for the
    /// root.
    pub fn remove(&self, path: &Path) -> io::Result<()> {
        let place = resolve(&self.0.root, path, ROOT, false).map_err(os_error)?;
        place.inode.as_ref().ok_or_else(|| os_error(Errno::ENOENT))?;
        let (_, dir, name) = place.parent().ok_or_else(|| os_error(Errno::EBUSY))?;
        dir.current.borrow_mut().remove(name);
        dir.durable.borrow_mut().remove(name);
        Ok(())
    }

    /// Gives the file at `from` the name `to`, in the place of whatever is there; links themselves. `ENOENT` when the
    /// file or the new directory is missing, `EBUSY` for the root, `EINVAL` into its own inside.
    pub fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let old = resolve(&self.0.root, from, ROOT, false).map_err(os_error)?;
        let new = resolve(&self.0.root, to, ROOT, false).map_err(os_error)?;
        let inode = old.inode.as_ref().ok_or_else(|| os_error(Errno::ENOENT))?;
        if old.parent().is_none() || new.parent().is_none() {
            return Err(os_error(Errno::EBUSY));
        }
        let (source, target) = (old.path(), new.path());
        if source == target {
            return Ok(());
        }
        if target.starts_with(&source) {
            return Err(os_error(Errno::EINVAL));
        }
        new.bind(inode);
        new.sync();
        self.remove(&source)
    }

    /// What `stat` tells: links are followed. `ENOENT` (also for a link that leads nowhere), `ENOTDIR`, `ELOOP`.
    pub fn facts(&self, path: &Path) -> io::Result<FileFacts> {
        self.facts_for(path, ROOT)
    }

    /// As [`Disk::facts`], on behalf of `uid`: `EACCES` behind a directory that it may not pass.
    pub fn facts_for(&self, path: &Path, uid: u32) -> io::Result<FileFacts> {
        let inode = self.inode_for(path, uid)?;
        let kind = match &inode.body {
            tree::Body::Directory(_) | tree::Body::Other(Node::Directory) => FileKind::Directory,
            tree::Body::Other(Node::Fifo) => FileKind::Fifo,
            tree::Body::Other(Node::Socket) => FileKind::Socket,
            tree::Body::Other(Node::Device) => FileKind::Device,
            tree::Body::Bytes(_) | tree::Body::Other(Node::Bytes | Node::Program { .. } | Node::Link(_)) => {
                FileKind::Regular
            }
        };
        Ok(FileFacts { kind, uid: inode.uid.get(), mode: inode.mode.get() })
    }

    /// What is at `path`, links followed. Errors as of [`Disk::facts`].
    pub fn lookup(&self, path: &Path) -> io::Result<Node> {
        let inode = self.inode(path)?;
        Ok(match &inode.body {
            tree::Body::Directory(_) => Node::Directory,
            tree::Body::Bytes(_) => Node::Bytes,
            tree::Body::Other(node) => node.clone(),
        })
    }

    /// Operations so far; the next one has the next number.
    pub fn ops(&self) -> u64 {
        self.0.counter.count()
    }

    /// Open files of all processes; 0 when no connection is left.
    pub fn open_files(&self) -> usize {
        self.0.handles.borrow().len()
    }

    /// Whether another process than `owner` has a file open.
    pub fn is_open_besides(&self, owner: Owner) -> bool {
        self.0.handles.borrow().values().any(|handle| handle.who.process.owner != owner)
    }

    /// From here on `judge` decides every operation, before it happens. It may use the disk, end processes and cut the
    /// power; it must not panic, since SQLite is between it and whoever could catch it. One that owns a clone of the disk
    /// keeps it alive until it is cleared.
    pub fn set_fault(&self, judge: Box<dyn FnMut(&DiskOp) -> Verdict>) {
        self.0.counter.set_judge(Some(judge));
    }

    /// No faults any more.
    pub fn clear_fault(&self) {
        self.0.counter.set_judge(None);
    }

    /// From here on `observer` sees every operation, before it is decided. What holds for a fault holds for it.
    pub fn set_observer(&self, observer: Box<dyn FnMut(&DiskOp)>) {
        self.0.counter.set_observer(Some(observer));
    }

    /// Nobody watches any more.
    pub fn clear_observer(&self) {
        self.0.counter.set_observer(None);
    }

    /// The process is dead. First it is inert, then its locks go; the connections that it leaves behind can be dropped
    /// at any time, and should be before another process has its turn. An owner that has ended opens nothing more.
    pub fn end(&self, owner: Owner) {
        self.0.end(owner);
    }

    /// The machine loses its power: every process that ever opened a database is dead, and only what is durable is left.
    pub fn power_loss(&self) {
        let owners: Vec<Owner> = self.0.processes.borrow().keys().copied().collect();
        owners.into_iter().for_each(|owner| self.0.end(owner));
        tree::lose_power(&self.0.root);
    }

    fn inode(&self, path: &Path) -> io::Result<Rc<Inode>> {
        self.inode_for(path, ROOT)
    }

    fn inode_for(&self, path: &Path, uid: u32) -> io::Result<Rc<Inode>> {
        let place = resolve(&self.0.root, path, uid, true).map_err(os_error)?;
        place.inode.ok_or_else(|| os_error(Errno::ENOENT))
    }
}

/// # What simulated processes do
impl Disk {
    /// Makes a directory of `uid` and its missing parents, each with `mode`. One that exists is left as it is.
    ///
    /// `EEXIST` when something else has the name, `ENOTDIR` when something else is on the way, `EACCES` when `uid` may
    /// not write where the first missing one belongs. Like any new name, not durable until a file in it is synced.
    pub fn create_dir_all(&self, path: &Path, uid: u32, mode: u32) -> io::Result<()> {
        // A link in the last place is a name that is taken, also when it leads nowhere.
        let place = match resolve(&self.0.root, path, uid, false) {
            Err(Errno::ENOENT) => {
                let parent = path.parent().ok_or_else(|| os_error(Errno::ENOENT))?;
                self.create_dir_all(parent, uid, mode)?;
                resolve(&self.0.root, path, uid, false)
            }
            other => other,
        };
        let place = place.map_err(os_error)?;
        let is_directory = || {
            let place = resolve(&self.0.root, path, uid, true).ok();
            place.and_then(|place| place.inode).is_some_and(|inode| inode.directory().is_some())
        };
        match (&place.inode, place.parent()) {
            (Some(_), _) if is_directory() => Ok(()),
            (Some(_), _) | (None, None) => Err(os_error(Errno::EEXIST)),
            (None, Some((holder, ..))) if !holder.allows(uid, WRITE | SEARCH) => Err(os_error(Errno::EACCES)),
            (None, Some(_)) => {
                place.bind(&Inode::new(uid, mode, Node::Directory));
                Ok(())
            }
        }
    }

    /// Removes a name on behalf of `uid`; a link itself. `ENOENT`, `EISDIR` for a directory, `EACCES` where `uid` may not
    /// write. Not durable until something in the same directory is synced.
    pub fn unlink(&self, path: &Path, uid: u32) -> io::Result<()> {
        resolve(&self.0.root, path, uid, false).and_then(|place| place.unlink(uid)).map_err(os_error)
    }

    /// The first `limit` bytes of a regular file on behalf of `uid`, links followed; a program has none. `EINVAL` for
    /// anything else, `EACCES` when `uid` may not read it.
    pub fn read(&self, path: &Path, uid: u32, limit: usize) -> io::Result<Vec<u8>> {
        let inode = self.inode_for(path, uid)?;
        let mut bytes = match &inode.body {
            tree::Body::Bytes(file) => file.current.borrow().to_vec(),
            tree::Body::Other(Node::Program { .. }) => Vec::new(),
            tree::Body::Directory(_) | tree::Body::Other(_) => return Err(os_error(Errno::EINVAL)),
        };
        if !inode.allows(uid, READ) {
            return Err(os_error(Errno::EACCES));
        }
        bytes.truncate(limit);
        Ok(bytes)
    }

    /// Replaces the contents of a regular file on behalf of `uid`, links followed; a missing one is made, mode 0644. A
    /// device takes everything. Not durable until synced.
    ///
    /// `EISDIR` for a directory, `EACCES` when `uid` may not write it or not make it there, `ENXIO` for a fifo or a socket
    /// (nobody is at its other end), `ETXTBSY` for a program.
    pub fn write(&self, path: &Path, uid: u32, bytes: &[u8]) -> io::Result<()> {
        let place = resolve(&self.0.root, path, uid, true).map_err(os_error)?;
        let inode = match &place.inode {
            Some(inode) if inode.directory().is_some() => return Err(os_error(Errno::EISDIR)),
            Some(inode) if !inode.allows(uid, WRITE) => return Err(os_error(Errno::EACCES)),
            Some(inode) => inode.clone(),
            None => self.0.create(&place, uid, uid, 0o644).map_err(os_error)?,
        };
        match &inode.body {
            tree::Body::Bytes(file) => drop(file.current.replace(Rc::new(Pages::from_bytes(bytes)))),
            tree::Body::Other(Node::Device) => {}
            tree::Body::Other(Node::Program { .. }) => return Err(os_error(Errno::ETXTBSY)),
            tree::Body::Directory(_) | tree::Body::Other(_) => return Err(os_error(Errno::ENXIO)),
        }
        Ok(())
    }

    /// Opens (and creates, mode 0600) a database for process `owner` running as `uid`. Busy timeout 0.
    ///
    /// Errors are SQLite's own: `CANTOPEN` when the file may not be read or its directory is missing, or the process has
    /// ended. A file that may only be read opens, and a write to it is `READONLY`.
    pub fn open_db(&self, owner: Owner, uid: u32, path: &Path) -> rusqlite::Result<Database> {
        let who = Who { process: self.0.process(owner), uid };
        if self.0.pooled.get()
            && let Some(db) = pool::take(&self.0, &who, path)
        {
            return Ok(db);
        }
        self.open_fresh(&who, path).map(|(connection, _)| Database::from(connection))
    }

    fn open_fresh(&self, who: &Who, path: &Path) -> rusqlite::Result<(Connection, Rc<Vfs>)> {
        let vfs = Vfs::register(&self.0, who.clone());
        self.0.rekey();
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags_and_vfs(path, flags, vfs.name())?;
        connection.busy_timeout(Duration::ZERO)?;
        Ok((connection, vfs))
    }
}
