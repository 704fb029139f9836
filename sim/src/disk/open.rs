//! What SQLite asks of the disk by name: open, delete, exists. The answers are those of its own Unix code.

use std::ffi::c_int;
use std::path::Path;
use std::rc::Rc;

use nix::errno::Errno;
use rusqlite::ffi;

use super::handle::Handle;
use super::ops::{Kind, Stop, Who};
use super::tree::{Inode, READ, ROOT, WRITE, resolve};
use super::vfs::Vfs;
use super::{Inner, Node};

/// The kinds of file that SQLite creates beside a database and syncs together with their directory.
const JOURNALS: c_int = ffi::SQLITE_OPEN_SUPER_JOURNAL | ffi::SQLITE_OPEN_MAIN_JOURNAL | ffi::SQLITE_OPEN_WAL;

/// Opens `path`; the empty path is a new file without a name.
///
/// A file that may not be written is opened for reading; the handle tells.
pub(super) fn open(
    disk: &Rc<Inner>,
    vfs: &Rc<Vfs>,
    who: &Who,
    path: &Path,
    flags: c_int,
) -> Result<Rc<Handle>, Stop> {
    let path: Rc<Path> = Rc::from(path);
    disk.admit(&who.process, (Kind::Open, &path, 0, 0))?;
    let journal = flags & ffi::SQLITE_OPEN_CREATE != 0 && flags & JOURNALS != 0;
    let (inode, read_only) = if path.as_os_str().is_empty() {
        (Inode::new(who.uid, 0o600, Node::Bytes), false)
    } else {
        find(disk, who.uid, &path, flags).map_err(|errno| {
            let missing =
                || matches!(resolve(&disk.root, &path, who.uid, true), Ok(place) if place.inode.is_none());
            // A journal that cannot be created: the directory is at fault.
            match errno == Errno::EACCES && journal && missing() {
                true => Stop(ffi::SQLITE_READONLY_DIRECTORY),
                false => Stop(Kind::Open.code(errno)),
            }
        })?
    };
    Ok(disk.opened(vfs, who, path, inode, read_only, journal))
}

/// The file at `path`, made when it is missing and may be; and whether it may only be read.
fn find(disk: &Inner, uid: u32, path: &Path, flags: c_int) -> Result<(Rc<Inode>, bool), Errno> {
    let place = resolve(&disk.root, path, uid, false)?;
    let writes = flags & ffi::SQLITE_OPEN_READWRITE != 0;
    let Some(inode) = &place.inode else {
        if flags & ffi::SQLITE_OPEN_CREATE == 0 {
            return Err(Errno::ENOENT);
        }
        let (owner, mode) = new_owner(disk, uid, path, flags);
        return Ok((disk.create(&place, uid, owner, mode)?, false));
    };
    if flags & ffi::SQLITE_OPEN_EXCLUSIVE != 0 {
        return Err(Errno::EEXIST);
    }
    if inode.file().is_none() {
        // SQLite reads and writes at offsets; nothing but a regular file can do that here.
        return Err(Errno::EISDIR);
    }
    match (writes && inode.allows(uid, READ | WRITE), inode.allows(uid, READ)) {
        (true, _) => Ok((inode.clone(), false)),
        (false, true) => Ok((inode.clone(), true)),
        (false, false) => Err(Errno::EACCES),
    }
}

/// Owner and mode of a file that `uid` makes: a journal or WAL takes the mode of its database and, when the superuser
/// makes it, the owner too.
fn new_owner(disk: &Inner, uid: u32, path: &Path, flags: c_int) -> (u32, u32) {
    let beside = flags & (ffi::SQLITE_OPEN_MAIN_JOURNAL | ffi::SQLITE_OPEN_WAL) != 0;
    let text = path.as_os_str().as_encoded_bytes();
    let dash = text.iter().rposition(|byte| *byte == b'-').filter(|_| beside);
    let database = dash.and_then(|dash| {
        // The bytes before a dash in a path of SQLite's making are the path of the database.
        let name = std::os::unix::ffi::OsStrExt::from_bytes(&text[..dash]);
        resolve(&disk.root, Path::new::<std::ffi::OsStr>(name), ROOT, true).ok()?.inode
    });
    match database {
        Some(database) if uid == ROOT => (database.uid.get(), database.mode.get() & 0o777),
        Some(database) => (uid, database.mode.get() & 0o777),
        None => (uid, 0o600),
    }
}

/// Removes the name `path`, durably when `sync` says so.
pub(super) fn delete(disk: &Inner, who: &Who, path: &Path, sync: bool) -> Result<(), Stop> {
    disk.admit(&who.process, (Kind::Delete, &Rc::from(path), 0, 0))?;
    let place = resolve(&disk.root, path, who.uid, false);
    let removed = place.and_then(|place| place.unlink(who.uid).map(|()| place));
    let place = removed.map_err(|errno| Stop(Kind::Delete.code(errno)))?;
    if sync {
        place.sync_directory();
    }
    Ok(())
}

/// Whether `path` exists (an empty file does not, for SQLite), or may be read and written.
pub(super) fn access(disk: &Inner, who: &Who, path: &Path, exists: bool) -> Result<bool, Stop> {
    disk.admit(&who.process, (Kind::Access, &Rc::from(path), 0, 0))?;
    let inode = resolve(&disk.root, path, who.uid, true).ok().and_then(|place| place.inode);
    Ok(inode.is_some_and(|inode| match exists {
        true => inode.file().is_none_or(|file| file.current.borrow().len() > 0),
        false => inode.allows(who.uid, READ | WRITE),
    }))
}
