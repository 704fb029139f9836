//! `stat`, directories, small files, and the database file.

use std::fs::{DirBuilder, File};
use std::io::{self, Read};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use mu_core::os::{FileFacts, FileKind};
use rusqlite::{Connection, OpenFlags};
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

/// What `stat` tells, links followed. Opens nothing, so a fifo does not block.
pub(crate) fn facts(path: &Path) -> io::Result<FileFacts> {
    let stat = rustix::fs::stat(path)?;
    let kind = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => FileKind::Regular,
        FileType::Directory => FileKind::Directory,
        FileType::Fifo => FileKind::Fifo,
        FileType::Socket => FileKind::Socket,
        FileType::CharacterDevice | FileType::BlockDevice => FileKind::Device,
        // `stat` follows links, and Linux has no further types.
        FileType::Symlink | FileType::Unknown => return Err(Errno::LOOP.into()),
    };
    Ok(FileFacts { kind, uid: stat.st_uid, mode: stat.st_mode & 0o7777 })
}

/// Creates a directory and its missing parents, each with mode 0700 (less what the umask takes).
pub(crate) fn create_dir_all(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// The first `limit` bytes of a regular file; `EINVAL` for anything else, which is not opened: that could block, let
/// somebody go on who waits at a fifo, or start a device.
pub(crate) fn read(path: &Path, limit: usize) -> io::Result<Vec<u8>> {
    if facts(path)?.kind != FileKind::Regular {
        return Err(Errno::INVAL.into());
    }
    // Something else may have taken its place since.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::empty())?;
    if FileType::from_raw_mode(rustix::fs::fstat(&file)?.st_mode) != FileType::RegularFile {
        return Err(Errno::INVAL.into());
    }
    let mut bytes = Vec::new();
    File::from(file).take(limit as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Opens a database; a missing one is created with mode 0600 whatever the umask grants, its parent is not.
///
/// The path must be absolute, and is taken literally: `/x/:memory:` and `/x/file:y` are files.
pub(crate) fn open_db(path: &Path) -> rusqlite::Result<Connection> {
    // SQLite would create it with 0644, and gives `-wal` and `-shm` the mode of the file. Only a file that is not there
    // is opened here: closing a descriptor of a file drops every POSIX lock this process holds on it, those of another
    // connection included. What goes wrong is left for SQLite to report, which names the file.
    if rustix::fs::stat(path).is_err_and(|error| error == Errno::NOENT) {
        let flags = OFlags::CREATE | OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOCTTY;
        drop(rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR));
    }
    // Not CREATE (done above), not URI (a path is no URI), and one thread uses it.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(std::time::Duration::ZERO)?;
    Ok(connection)
}
