//! Directories, names, owners and modes.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;

use nix::errno::Errno;

use super::Node;
use super::locks::Locks;
use super::pages::Pages;
use super::shm::Shm;

/// Links followed before `ELOOP`, as on Linux.
const MAX_LINKS: u32 = 40;

/// The superuser: no permission is asked of it. The world itself acts as it.
pub(super) const ROOT: u32 = 0;

/// The permission to read, in one digit of a mode.
pub(super) const READ: u32 = 4;
/// The permission to write.
pub(super) const WRITE: u32 = 2;
/// The permission to execute, or to pass through a directory.
pub(super) const SEARCH: u32 = 1;

/// A file of any kind, apart from its names.
pub(super) struct Inode {
    pub(super) uid: Cell<u32>,
    pub(super) mode: Cell<u32>,
    pub(super) body: Body,
}

pub(super) enum Body {
    Directory(Directory),
    Bytes(File),
    /// A fifo, a socket, a device, a link or a program.
    Other(Node),
}

/// What a directory holds now, and what it holds after a power loss.
#[derive(Default)]
pub(super) struct Directory {
    pub(super) current: RefCell<BTreeMap<OsString, Rc<Inode>>>,
    pub(super) durable: RefCell<BTreeMap<OsString, Rc<Inode>>>,
}

/// A regular file: its bytes now, its bytes after a power loss, and the locks that open handles hold on it.
#[derive(Default)]
pub(super) struct File {
    pub(super) current: RefCell<Rc<Pages>>,
    pub(super) durable: RefCell<Rc<Pages>>,
    pub(super) locks: RefCell<Locks>,
    pub(super) shm: RefCell<Option<Rc<Shm>>>,
}

impl File {
    /// Everything written so far survives a power loss.
    pub(super) fn sync(&self) {
        self.durable.replace(self.current.borrow().clone());
    }

    /// Replaces the bytes, now and durably.
    pub(super) fn set(&self, bytes: &[u8]) {
        self.current.replace(Rc::new(Pages::from_bytes(bytes)));
        self.sync();
    }
}

impl Inode {
    pub(super) fn new(uid: u32, mode: u32, node: Node) -> Rc<Inode> {
        let body = match node {
            Node::Directory => Body::Directory(Directory::default()),
            Node::Bytes => Body::Bytes(File::default()),
            other => Body::Other(other),
        };
        Rc::new(Inode { uid: Cell::new(uid), mode: Cell::new(mode & 0o7777), body })
    }

    pub(super) fn directory(&self) -> Option<&Directory> {
        match &self.body {
            Body::Directory(directory) => Some(directory),
            _ => None,
        }
    }

    pub(super) fn file(&self) -> Option<&File> {
        match &self.body {
            Body::Bytes(file) => Some(file),
            _ => None,
        }
    }

    pub(super) fn link(&self) -> Option<&Path> {
        match &self.body {
            Body::Other(Node::Link(target)) => Some(target),
            _ => None,
        }
    }

    /// Whether `uid` has all of `wanted`. There are no groups: who does not own the file is one of the others.
    pub(super) fn allows(&self, uid: u32, wanted: u32) -> bool {
        let digit = if uid == self.uid.get() { self.mode.get() >> 6 } else { self.mode.get() };
        uid == ROOT || digit & wanted == wanted
    }

    fn entry(&self, name: &OsStr) -> Option<Rc<Inode>> {
        self.directory()?.current.borrow().get(name).cloned()
    }
}

/// Where a path leads.
pub(super) struct Place {
    /// The directories on the way, from the root; one for each name.
    dirs: Vec<Rc<Inode>>,
    /// The names without links and dots.
    names: Vec<OsString>,
    /// What is there; `None` when only the last name is missing.
    pub(super) inode: Option<Rc<Inode>>,
    /// Whether a link was followed.
    pub(super) through_link: bool,
}

impl Place {
    /// The path without links and dots.
    pub(super) fn path(&self) -> PathBuf {
        std::iter::once(OsStr::new("/")).chain(self.names.iter().map(OsString::as_os_str)).collect()
    }

    /// The directory that holds the last name, and that name; `None` for the root itself.
    pub(super) fn parent(&self) -> Option<(&Rc<Inode>, &Directory, &OsStr)> {
        let dir = self.dirs.last()?;
        Some((dir, dir.directory()?, self.names.last()?))
    }

    /// Gives the last name to `inode`, replacing whatever had it. Not durable yet.
    pub(super) fn bind(&self, inode: &Rc<Inode>) {
        let (_, dir, name) = self.parent().expect("only the root has no name");
        dir.current.borrow_mut().insert(name.to_owned(), inode.clone());
    }

    /// Makes the name and those of all directories above durable.
    pub(super) fn sync(&self) {
        for (dir, name) in self.dirs.iter().zip(&self.names) {
            let dir = dir.directory().expect("a path leads through directories");
            let mut durable = dir.durable.borrow_mut();
            match dir.current.borrow().get(name) {
                Some(inode) => durable.insert(name.clone(), inode.clone()),
                None => durable.remove(name),
            };
        }
    }

    /// Makes everything that happened to the names in the same directory durable.
    pub(super) fn sync_directory(&self) {
        if let Some((_, dir, _)) = self.parent() {
            dir.durable.replace(dir.current.borrow().clone());
            self.sync();
        }
    }

    /// `unlink` by `uid`.
    pub(super) fn unlink(&self, uid: u32) -> Result<(), Errno> {
        let inode = self.inode.as_ref().ok_or(Errno::ENOENT)?;
        let (holder, dir, name) = self.parent().ok_or(Errno::EISDIR)?;
        if !holder.allows(uid, WRITE | SEARCH) {
            return Err(Errno::EACCES);
        }
        let sticky = holder.mode.get() & 0o1000 != 0;
        if sticky && uid != ROOT && uid != inode.uid.get() && uid != holder.uid.get() {
            return Err(Errno::EPERM);
        }
        if inode.directory().is_some() {
            return Err(Errno::EISDIR);
        }
        dir.current.borrow_mut().remove(name);
        Ok(())
    }
}

/// Walks `path` from the root on behalf of `uid`. A link in the last place is followed only when `follow` says so.
///
/// A missing last name is no error; a missing name before it is `ENOENT`. Also `ENOTDIR`, `EACCES` (a directory that
/// `uid` may not pass) and `ELOOP`.
pub(super) fn resolve(root: &Rc<Inode>, path: &Path, uid: u32, follow: bool) -> Result<Place, Errno> {
    let mut todo: Vec<OsString> = Vec::new();
    push(&mut todo, path);
    let mut place = Place { dirs: Vec::new(), names: Vec::new(), inode: None, through_link: false };
    let mut here = root.clone();
    let mut links = 0;
    while let Some(name) = todo.pop() {
        if here.directory().is_none() {
            return Err(Errno::ENOTDIR);
        }
        if !here.allows(uid, SEARCH) {
            return Err(Errno::EACCES);
        }
        if name == ".." {
            place.names.pop();
            here = place.dirs.pop().unwrap_or(here);
            continue;
        }
        let Some(child) = here.entry(&name) else {
            if !todo.is_empty() {
                return Err(Errno::ENOENT);
            }
            place.dirs.push(here);
            place.names.push(name);
            return Ok(place);
        };
        match child.link() {
            Some(target) if follow || !todo.is_empty() => {
                links += 1;
                if links > MAX_LINKS {
                    return Err(Errno::ELOOP);
                }
                place.through_link = true;
                if target.is_absolute() {
                    place.dirs.clear();
                    place.names.clear();
                    here = root.clone();
                }
                push(&mut todo, target);
            }
            _ => {
                place.dirs.push(here);
                place.names.push(name);
                here = child;
            }
        }
    }
    place.inode = Some(here);
    Ok(place)
}

/// Puts the names of `path` on the stack, the first on top.
fn push(todo: &mut Vec<OsString>, path: &Path) {
    todo.extend(path.components().rev().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    }));
}

/// Everything not durable is gone, in and below `inode`; so are all locks and shared memory.
pub(super) fn lose_power(inode: &Inode) {
    match &inode.body {
        Body::Directory(dir) => {
            dir.current.replace(dir.durable.borrow().clone());
            dir.current.borrow().values().for_each(|child| lose_power(child));
        }
        Body::Bytes(file) => {
            file.current.replace(file.durable.borrow().clone());
            file.locks.take();
            file.shm.take();
        }
        Body::Other(_) => {}
    }
}

/// A copy of `inode` and all below that shares the pages. Files with several names stay one file.
pub(super) fn fork(inode: &Rc<Inode>, done: &mut BTreeMap<*const Inode, Rc<Inode>>) -> Rc<Inode> {
    if let Some(copy) = done.get(&Rc::as_ptr(inode)) {
        return copy.clone();
    }
    let mut names = |map: &RefCell<BTreeMap<OsString, Rc<Inode>>>| {
        RefCell::new(map.borrow().iter().map(|(name, child)| (name.clone(), fork(child, done))).collect())
    };
    let body = match &inode.body {
        Body::Directory(dir) => {
            Body::Directory(Directory { current: names(&dir.current), durable: names(&dir.durable) })
        }
        Body::Bytes(file) => Body::Bytes(File {
            current: file.current.clone(),
            durable: file.durable.clone(),
            ..File::default()
        }),
        Body::Other(node) => Body::Other(node.clone()),
    };
    let copy = Rc::new(Inode { uid: inode.uid.clone(), mode: inode.mode.clone(), body });
    done.insert(Rc::as_ptr(inode), copy.clone());
    copy
}

/// Every regular file below `dir` with its first `limit` bytes, in the order of the paths.
pub(super) fn files(dir: &Directory, path: &Path, limit: u64, found: &mut Vec<(PathBuf, Vec<u8>)>) {
    for (name, inode) in dir.current.borrow().iter() {
        let path = path.join(name);
        match &inode.body {
            Body::Directory(dir) => files(dir, &path, limit, found),
            Body::Bytes(file) => found.push((path, file.current.borrow().head(limit))),
            Body::Other(_) => {}
        }
    }
}
