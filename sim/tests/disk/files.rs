//! Paths, owners and modes.

use std::io;
use std::path::Path;

use mu_core::os::{FileFacts, FileKind};
use mu_sim::disk::{Disk, Errno, Node, Owner};
use rusqlite::{Error, ErrorCode};

use crate::{USER, database, empty, failure, open, prepared, rows, try_rows};

const OTHER: u32 = 1001;

fn errno<T: std::fmt::Debug>(result: io::Result<T>) -> Errno {
    Errno::from_raw(result.expect_err("an error").raw_os_error().expect("of the system"))
}

fn program(name: &str) -> Node {
    Node::Program { name: name.to_owned(), busy: false, interpreter_missing: false }
}

#[test]
fn a_database_of_another_owner_cannot_be_opened() {
    let disk = prepared();
    disk.set_mode(Path::new("/state"), 0o755).expect("there");
    disk.set_mode(database(), 0o600).expect("there");
    assert_eq!(failure(disk.open_db(Owner(2), OTHER, database())), ErrorCode::CannotOpen);
}

#[test]
fn a_directory_that_may_not_be_passed_hides_the_database() {
    let disk = prepared();
    assert_eq!(failure(disk.open_db(Owner(2), OTHER, database())), ErrorCode::CannotOpen);
}

#[test]
fn a_database_that_may_only_be_read_is_read_and_a_write_is_refused() {
    let disk = prepared();
    disk.set_mode(database(), 0o400).expect("there");
    let db = disk.open_db(Owner(2), USER, database()).expect("opens");
    assert_eq!(rows(&db), "1a 2b");
    assert_eq!(failure(db.execute("DELETE FROM t", [])), ErrorCode::ReadOnly);
    assert_eq!(rows(&db), "1a 2b");
}

/// As on Linux, where the last to close takes no write lock and so clears nothing away.
#[test]
fn a_reader_of_a_read_only_database_leaves_files_that_a_later_writer_cannot_write() {
    let disk = prepared();
    disk.set_mode(database(), 0o400).expect("there");
    let db = disk.open_db(Owner(2), USER, database()).expect("opens");
    assert_eq!(rows(&db), "1a 2b");
    drop(db);
    disk.set_mode(database(), 0o600).expect("there");
    for name in ["/state/mu.db-wal", "/state/mu.db-shm"] {
        assert_eq!(disk.facts(Path::new(name)).expect("left").mode, 0o400, "{name}");
    }
    let db = disk.open_db(Owner(3), USER, database()).expect("opens");
    assert_eq!(failure(db.execute("DELETE FROM t", [])), ErrorCode::ReadOnly);
}

#[test]
fn a_directory_that_may_not_be_written_refuses_the_first_write_and_not_the_opening() {
    let disk = prepared();
    let mode = disk.open_db(Owner(2), USER, database()).expect("opens");
    mode.execute_batch("PRAGMA journal_mode=DELETE").expect("changes");
    drop(mode);
    disk.set_mode(Path::new("/state"), 0o500).expect("there");
    let db = disk.open_db(Owner(3), USER, database()).expect("opens");
    assert_eq!(rows(&db), "1a 2b");
    assert_eq!(failure(db.execute("DELETE FROM t", [])), ErrorCode::ReadOnly);
}

#[test]
fn in_a_directory_that_may_not_be_written_no_database_is_made() {
    let disk = empty();
    disk.set_mode(Path::new("/state"), 0o500).expect("there");
    assert_eq!(failure(disk.open_db(Owner(1), USER, database())), ErrorCode::CannotOpen);
}

#[test]
fn a_reader_of_a_read_only_database_sees_what_a_writer_has_in_the_wal() {
    let disk = prepared();
    let writer = open(&disk, 2);
    writer.execute_batch("INSERT INTO t VALUES (3,'c')").expect("commits");
    for name in ["/state/mu.db", "/state/mu.db-wal", "/state/mu.db-shm"] {
        disk.set_mode(Path::new(name), 0o644).expect("there");
    }
    disk.set_mode(Path::new("/state"), 0o755).expect("there");
    let reader = disk.open_db(Owner(3), OTHER, database()).expect("opens");
    assert_eq!(rows(&reader), "1a 2b 3c");
    disk.end(Owner(2));
    drop(writer);
    drop(reader);
    // Nobody is left who could vouch for the shared memory; the reader finds its way without.
    let alone = disk.open_db(Owner(4), OTHER, database()).expect("opens");
    assert_eq!(rows(&alone), "1a 2b 3c");
}

#[test]
fn the_superuser_reads_all_and_leaves_the_owner_his_files() {
    let disk = prepared();
    let db = disk.open_db(Owner(2), 0, database()).expect("opens");
    db.execute_batch("INSERT INTO t VALUES (3,'c')").expect("commits");
    let facts = disk.facts(Path::new("/state/mu.db-wal")).expect("there");
    assert_eq!(facts, FileFacts { kind: FileKind::Regular, uid: USER, mode: 0o600 });
}

#[test]
fn a_new_database_is_private_and_so_is_all_beside_it() {
    let disk = empty();
    let db = open(&disk, 1);
    db.execute_batch("CREATE TABLE t (k)").expect("made");
    let private = FileFacts { kind: FileKind::Regular, uid: USER, mode: 0o600 };
    for name in ["/state/mu.db", "/state/mu.db-wal", "/state/mu.db-shm"] {
        assert_eq!(disk.facts(Path::new(name)).expect("there"), private, "{name}");
    }
}

#[test]
fn without_its_directory_a_database_cannot_be_opened() {
    let disk = Disk::new();
    assert_eq!(failure(disk.open_db(Owner(1), USER, database())), ErrorCode::CannotOpen);
}

#[test]
fn what_is_no_database_is_not_taken_for_one() {
    let disk = empty();
    disk.put(database(), USER, 0o600, Node::Bytes);
    disk.write_bytes(database(), &[0xa5; 5000]);
    let db = disk.open_db(Owner(1), USER, database()).expect("opens");
    assert_eq!(failure(try_rows(&db)), ErrorCode::NotADatabase);
    assert_eq!(disk.bytes(database()), Some(vec![0xa5; 5000]));
}

#[test]
fn a_directory_or_a_fifo_is_no_database() {
    let disk = empty();
    for node in [Node::Directory, Node::Fifo, Node::Socket, Node::Device] {
        let path = Path::new("/state/odd");
        let _ = disk.remove(path);
        disk.put(path, USER, 0o600, node);
        assert_eq!(failure(disk.open_db(Owner(1), USER, path)), ErrorCode::CannotOpen);
    }
}

#[test]
fn a_database_is_found_through_links_and_its_wal_lies_beside_the_file_itself() {
    let disk = prepared();
    disk.put(Path::new("/home/db"), USER, 0o777, Node::Link("../state/./mu.db".into()));
    let db = disk.open_db(Owner(2), USER, Path::new("/home/db")).expect("opens");
    db.execute_batch("INSERT INTO t VALUES (3,'c')").expect("commits");
    assert!(disk.facts(Path::new("/state/mu.db-wal")).is_ok());
    assert!(disk.facts(Path::new("/home/db-wal")).is_err());
    assert_eq!(rows(&open(&disk, 3)), "1a 2b 3c");
}

#[test]
fn facts_follow_links_and_say_why_not() {
    let disk = Disk::new();
    disk.put(Path::new("/bin/tool"), 5, 0o755, program("tool"));
    disk.put(Path::new("/bin/alias"), 0, 0o777, Node::Link("tool".into()));
    disk.put(Path::new("/bin/nowhere"), 0, 0o777, Node::Link("gone".into()));
    disk.put(Path::new("/bin/ring"), 0, 0o777, Node::Link("/bin/ring".into()));
    let facts = |path: &str| disk.facts(Path::new(path));
    assert_eq!(facts("/bin/alias").ok(), Some(FileFacts { kind: FileKind::Regular, uid: 5, mode: 0o755 }));
    assert_eq!(errno(facts("/bin/nowhere")), Errno::ENOENT);
    assert_eq!(errno(facts("/bin/ring")), Errno::ELOOP);
    assert_eq!(errno(facts("/bin/tool/x")), Errno::ENOTDIR);
    assert_eq!(errno(facts("/bin/x/y")), Errno::ENOENT);
    assert_eq!(disk.lookup(Path::new("/bin/alias")).ok(), Some(program("tool")));
    assert_eq!(facts("/bin/../bin/./tool").ok(), facts("/bin/tool").ok());
}

#[test]
fn facts_tell_every_kind_apart() {
    let disk = Disk::new();
    for (name, node, kind) in [
        ("/d", Node::Directory, FileKind::Directory),
        ("/f", Node::Fifo, FileKind::Fifo),
        ("/s", Node::Socket, FileKind::Socket),
        ("/v", Node::Device, FileKind::Device),
        ("/b", Node::Bytes, FileKind::Regular),
        ("/p", program("p"), FileKind::Regular),
    ] {
        disk.put(Path::new(name), 7, 0o4755, node);
        let facts = disk.facts(Path::new(name)).expect("there");
        assert_eq!(facts, FileFacts { kind, uid: 7, mode: 0o4755 });
    }
}

#[test]
fn create_dir_all_makes_what_is_missing_for_its_user_and_leaves_the_rest() {
    let disk = Disk::new();
    disk.put(Path::new("/home/u"), USER, 0o750, Node::Directory);
    disk.create_dir_all(Path::new("/home/u/a/b"), USER, 0o700).expect("made");
    for (path, mode) in [("/home/u", 0o750), ("/home/u/a", 0o700), ("/home/u/a/b", 0o700)] {
        let facts = disk.facts(Path::new(path)).expect("there");
        assert_eq!(facts, FileFacts { kind: FileKind::Directory, uid: USER, mode });
    }
    disk.create_dir_all(Path::new("/home/u"), OTHER, 0o700).expect("is there");
}

#[test]
fn create_dir_all_says_why_not() {
    let disk = Disk::new();
    disk.put(Path::new("/home/u"), USER, 0o755, Node::Directory);
    disk.put(Path::new("/home/u/file"), USER, 0o644, Node::Bytes);
    disk.put(Path::new("/home/u/shut"), USER, 0o600, Node::Directory);
    let make = |path: &str, uid| errno(disk.create_dir_all(Path::new(path), uid, 0o700));
    assert_eq!(make("/home/u/x", OTHER), Errno::EACCES);
    assert_eq!(make("/home/u/x/y", OTHER), Errno::EACCES);
    assert_eq!(make("/home/u/shut/x", USER), Errno::EACCES);
    assert_eq!(make("/home/u/file", USER), Errno::EEXIST);
    assert_eq!(make("/home/u/file/x", USER), Errno::ENOTDIR);
    assert!(disk.facts(Path::new("/home/u/x")).is_err());
}

#[test]
fn put_replaces_and_makes_parents() {
    let disk = Disk::new();
    disk.put(Path::new("/a/b/c"), 5, 0o644, Node::Bytes);
    disk.write_bytes(Path::new("/a/b/c"), b"x");
    disk.put(Path::new("/a/b/c"), 6, 0o600, Node::Bytes);
    assert_eq!(disk.bytes(Path::new("/a/b/c")), Some(Vec::new()));
    assert_eq!(disk.facts(Path::new("/a/b")).ok().map(|facts| (facts.uid, facts.mode)), Some((5, 0o755)));
    disk.put(Path::new("/a/b"), 7, 0o700, Node::Directory);
    assert!(disk.bytes(Path::new("/a/b/c")).is_some(), "a directory keeps its entries");
}

#[test]
fn files_are_listed_in_the_order_of_their_paths() {
    let disk = Disk::new();
    for (path, bytes) in [("/b", "2"), ("/a/z", "1"), ("/a/b/c", "0")] {
        disk.put(Path::new(path), 0, 0o644, Node::Bytes);
        disk.write_bytes(Path::new(path), bytes.as_bytes());
    }
    disk.put(Path::new("/link"), 0, 0o777, Node::Link("/b".into()));
    let found: Vec<_> = disk.files();
    let found: Vec<_> = found.iter().map(|(path, bytes)| (path.to_str(), bytes.as_slice())).collect();
    assert_eq!(found, [(Some("/a/b/c"), &b"0"[..]), (Some("/a/z"), b"1"), (Some("/b"), b"2")]);
}

#[test]
fn a_renamed_file_keeps_its_bytes_and_replaces_the_other() {
    let disk = Disk::new();
    disk.write_bytes(Path::new("/a"), b"1");
    disk.write_bytes(Path::new("/b"), b"2");
    disk.rename(Path::new("/a"), Path::new("/b")).expect("renamed");
    assert_eq!((disk.bytes(Path::new("/a")), disk.bytes(Path::new("/b"))), (None, Some(b"1".to_vec())));
    disk.put(Path::new("/d/e"), 0, 0o755, Node::Directory);
    assert_eq!(errno(disk.rename(Path::new("/d"), Path::new("/d/e/f"))), Errno::EINVAL);
    assert_eq!(errno(disk.rename(Path::new("/a"), Path::new("/c"))), Errno::ENOENT);
    disk.rename(Path::new("/b"), Path::new("/b")).expect("nothing to do");
    assert!(disk.bytes(Path::new("/b")).is_some());
}

#[test]
fn a_database_that_was_removed_under_a_connection_is_not_written_to() {
    let disk = prepared();
    let db = open(&disk, 2);
    db.execute_batch("PRAGMA journal_mode=DELETE").expect("changes");
    assert_eq!(rows(&db), "1a 2b");
    disk.remove(database()).expect("there");
    assert!(disk.bytes(database()).is_none());
    assert_eq!(rows(&db), "1a 2b", "the open file is still there");
    let Err(Error::SqliteFailure(error, _)) = db.execute("DELETE FROM t", []) else { panic!("written") };
    assert_eq!(error.extended_code, rusqlite::ffi::SQLITE_READONLY_DBMOVED);
}
