//! Files, directories and the database file.

mod support;

use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;

use mu_core::os::{FileFacts, FileKind, Os};
use nix::sys::stat::{Mode, umask};
use support::{on_real_os, passes_in_own_process};

fn facts(path: impl AsRef<Path>) -> Result<FileFacts, i32> {
    let mut answer = Err(0);
    on_real_os(async |os| answer = os.facts(path.as_ref()).map_err(|error| error.raw_os_error().unwrap()));
    answer
}

/// The permission bits of a path.
fn mode(path: impl AsRef<Path>) -> u32 {
    #[allow(clippy::disallowed_methods)] // checks what `Os` left behind
    let metadata = fs::metadata(path).unwrap();
    metadata.mode() & 0o7777
}

/// REG-06
#[test]
fn a_link_tells_the_type_owner_and_mode_of_what_it_leads_to() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    File::create(&file).unwrap().set_permissions(PermissionsExt::from_mode(0o4751)).unwrap();
    symlink(&file, dir.path().join("link")).unwrap();
    let uid = nix::unistd::geteuid().as_raw();
    let expected = FileFacts { kind: FileKind::Regular, uid, mode: 0o4751 };
    assert_eq!(facts(dir.path().join("link")), Ok(expected));
}

/// REG-05
#[test]
fn a_fifo_is_told_without_opening_it() {
    let dir = tempfile::tempdir().unwrap();
    nix::unistd::mkfifo(&dir.path().join("fifo"), Mode::S_IRWXU).unwrap();
    assert_eq!(facts(dir.path().join("fifo")).unwrap().kind, FileKind::Fifo);
}

/// REG-05
#[test]
fn directories_sockets_and_devices_are_told_apart() {
    let dir = tempfile::tempdir().unwrap();
    let _listener = UnixListener::bind(dir.path().join("socket")).unwrap();
    assert_eq!(facts(dir.path()).unwrap().kind, FileKind::Directory);
    assert_eq!(facts(dir.path().join("socket")).unwrap().kind, FileKind::Socket);
    assert_eq!(facts("/dev/null").unwrap().kind, FileKind::Device);
}

/// REG-05
#[test]
fn a_link_that_leads_nowhere_is_enoent_and_a_circle_eloop() {
    let dir = tempfile::tempdir().unwrap();
    symlink(dir.path().join("missing"), dir.path().join("dangling")).unwrap();
    symlink(dir.path().join("circle"), dir.path().join("circle")).unwrap();
    assert_eq!(facts(dir.path().join("dangling")), Err(nix::libc::ENOENT));
    assert_eq!(facts(dir.path().join("circle")), Err(nix::libc::ELOOP));
}

#[test]
fn every_directory_made_is_for_the_owner_alone_and_older_ones_stay_as_they_are() {
    passes_in_own_process("", || {
        umask(Mode::empty());
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(&dir, PermissionsExt::from_mode(0o755)).unwrap();
        let deep = dir.path().join("a/b/c");
        on_real_os(async |os| os.create_dir_all(&deep).unwrap());
        assert_eq!(mode(&dir), 0o755);
        for made in ["a", "a/b", "a/b/c"] {
            assert_eq!(mode(dir.path().join(made)), 0o700, "{made}");
        }
        on_real_os(async |os| os.create_dir_all(&deep).unwrap());
    });
}

#[test]
fn a_new_database_and_its_log_are_for_the_owner_alone_whatever_the_umask() {
    passes_in_own_process("", || {
        umask(Mode::empty());
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("mu.db");
        on_real_os(async |os| {
            let connection = os.open_db(&path).unwrap();
            connection.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE t (x)").unwrap();
            for file in ["mu.db", "mu.db-wal", "mu.db-shm"] {
                assert_eq!(mode(dir.path().join(file)), 0o600, "{file}");
            }
        });
    });
}

#[test]
fn a_database_behind_a_dangling_link_is_for_the_owner_alone() {
    passes_in_own_process("", || {
        umask(Mode::empty());
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("target.db");
        symlink(&target, dir.path().join("mu.db")).unwrap();
        on_real_os(async |os| {
            os.open_db(&dir.path().join("mu.db")).unwrap().execute_batch("CREATE TABLE t (x)").unwrap();
        });
        assert_eq!(mode(target), 0o600);
    });
}

#[test]
fn an_existing_database_keeps_its_mode() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("mu.db");
    File::create(&path).unwrap().set_permissions(PermissionsExt::from_mode(0o640)).unwrap();
    on_real_os(async |os| os.open_db(&path).unwrap().execute_batch("CREATE TABLE t (x)").unwrap());
    assert_eq!(mode(&path), 0o640);
}

#[test]
fn the_parent_of_a_database_is_not_made() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("missing/mu.db");
    on_real_os(async |os| {
        let error = os.open_db(&path).unwrap_err();
        assert_eq!(error.sqlite_error_code(), Some(rusqlite::ErrorCode::CannotOpen));
    });
    assert!(!dir.path().join("missing").exists());
}

#[test]
fn a_database_path_is_no_uri() {
    passes_in_own_process("cd \"$(mktemp -d)\"", || {
        on_real_os(async |os| {
            for name in ["file:x?mode=memory", ":memory:"] {
                os.open_db(Path::new(name)).unwrap().execute_batch("CREATE TABLE t (x)").unwrap();
                assert!(fs::read(name).unwrap().starts_with(b"SQLite format 3"), "{name}");
            }
        });
        fs::remove_dir_all(std::env::current_dir().unwrap()).unwrap();
    });
}

#[test]
fn a_busy_database_is_told_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("mu.db");
    on_real_os(async |os| {
        let writer = os.open_db(&path).unwrap();
        writer.execute_batch("CREATE TABLE t (x); BEGIN IMMEDIATE").unwrap();
        let other = os.open_db(&path).unwrap();
        let timeout: i64 = other.query_row("PRAGMA busy_timeout", [], |row| row.get(0)).unwrap();
        assert_eq!(timeout, 0);
        let error = other.execute_batch("BEGIN IMMEDIATE").unwrap_err();
        assert_eq!(error.sqlite_error_code(), Some(rusqlite::ErrorCode::DatabaseBusy));
    });
}

/// The POSIX locks of this process, as the kernel lists them.
fn locks_held() -> usize {
    let me = std::process::id().to_string();
    let locks = fs::read_to_string("/proc/locks").unwrap();
    locks.lines().filter(|line| line.split_whitespace().any(|word| word == me)).count()
}

#[test]
fn opening_a_database_again_drops_no_lock_of_an_open_connection() {
    passes_in_own_process("", || {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("mu.db");
        on_real_os(async |os| {
            let writer = os.open_db(&path).unwrap();
            writer.execute_batch("CREATE TABLE t (x); BEGIN IMMEDIATE").unwrap();
            let before = locks_held();
            assert!(before > 0);
            drop(os.open_db(&path).unwrap());
            assert_eq!(locks_held(), before);
        });
    });
}
