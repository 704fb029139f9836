//! What a power loss takes, and what a kill does not.

use std::path::Path;

use mu_sim::disk::{Database, Disk, Node, Owner};

use crate::{database, empty, open, prepared, rows, rows_of};

/// The machine loses its power under `db`.
fn cut_power(disk: &Disk, db: Database) {
    disk.power_loss();
    drop(db);
}

#[test]
fn a_commit_with_synchronous_full_survives_a_power_loss() {
    let disk = prepared();
    let db = open(&disk, 2);
    db.execute_batch("INSERT INTO t VALUES (3,'c')").expect("commits");
    cut_power(&disk, db);
    assert_eq!(rows_of(&disk, 3), "1a 2b 3c");
}

#[test]
fn commits_with_synchronous_normal_in_wal_mode_do_not() {
    let disk = prepared();
    let db = open(&disk, 2);
    db.execute_batch("PRAGMA synchronous=NORMAL; INSERT INTO t VALUES (3,'c')").expect("commits");
    db.execute_batch("INSERT INTO t VALUES (4,'d')").expect("commits");
    assert_eq!(rows(&db), "1a 2b 3c 4d");
    cut_power(&disk, db);
    assert_eq!(rows_of(&disk, 3), "1a 2b");
}

#[test]
fn a_commit_with_synchronous_normal_survives_a_kill() {
    let disk = prepared();
    let db = open(&disk, 2);
    db.execute_batch("PRAGMA synchronous=NORMAL; INSERT INTO t VALUES (3,'c')").expect("commits");
    disk.end(Owner(2));
    drop(db);
    assert_eq!(rows_of(&disk, 3), "1a 2b 3c");
}

#[test]
fn a_transaction_of_a_killed_process_is_undone_and_its_locks_are_free_before_its_destructors_ran() {
    let disk = prepared();
    let killed = open(&disk, 2);
    killed.execute_batch("BEGIN IMMEDIATE; INSERT INTO t VALUES (3,'c')").expect("writes");
    disk.end(Owner(2));
    let next = open(&disk, 3);
    next.execute_batch("INSERT INTO t VALUES (4,'d')").expect("not busy");
    let ops = disk.ops();
    drop(killed);
    assert_eq!(disk.ops(), ops, "the dead do nothing");
    assert_eq!(rows(&next), "1a 2b 4d");
    drop(next);
    assert_eq!(rows_of(&disk, 4), "1a 2b 4d");
}

#[test]
fn a_spilled_transaction_of_a_killed_process_does_not_reach_those_who_share_its_memory() {
    let disk = prepared();
    let (killed, other) = (open(&disk, 2), open(&disk, 3));
    assert_eq!(rows(&other), "1a 2b");
    // A tiny cache makes SQLite write frames, and index them in the shared memory, long before the commit.
    killed.execute_batch("PRAGMA cache_size=5; BEGIN IMMEDIATE").expect("begins");
    for key in 3..400 {
        killed.execute("INSERT INTO t VALUES (?1, ?2)", (key, "x".repeat(900))).expect("inserts");
    }
    disk.end(Owner(2));
    drop(killed);
    assert_eq!(rows(&other), "1a 2b");
    other.execute_batch("INSERT INTO t VALUES (3,'c')").expect("not busy");
    assert_eq!(rows_of(&disk, 4), "1a 2b 3c");
}

#[test]
fn an_unsynced_database_file_is_gone_with_its_directory_after_a_power_loss() {
    let disk = empty();
    let path = Path::new("/state/deep/er/x.db");
    disk.create_dir_all(path.parent().expect("a parent"), 1000, 0o700).expect("made");
    let db = disk.open_db(Owner(1), 1000, path).expect("opens");
    db.execute_batch("PRAGMA synchronous=OFF; CREATE TABLE t (k)").expect("written, not synced");
    cut_power(&disk, db);
    assert!(disk.facts(Path::new("/state/deep")).is_err());
    assert!(disk.facts(Path::new("/state")).is_ok());
}

#[test]
fn a_synced_database_file_keeps_its_directories() {
    let disk = empty();
    let path = Path::new("/state/deep/er/x.db");
    disk.create_dir_all(path.parent().expect("a parent"), 1000, 0o700).expect("made");
    let db = disk.open_db(Owner(1), 1000, path).expect("opens");
    db.execute_batch("PRAGMA synchronous=EXTRA; CREATE TABLE t (k, v); INSERT INTO t VALUES (1,'a')")
        .expect("synced");
    cut_power(&disk, db);
    assert_eq!(rows(&disk.open_db(Owner(2), 1000, path).expect("opens")), "1a");
}

#[test]
fn a_delete_that_was_not_synced_comes_back() {
    let disk = prepared();
    let journal = Path::new("/state/mu.db-journal");
    let db = disk.open_db(Owner(2), 1000, database()).expect("opens");
    db.execute_batch("PRAGMA journal_mode=DELETE; PRAGMA synchronous=FULL").expect("pragmas");
    db.execute_batch("INSERT INTO t VALUES (3,'c')").expect("commits");
    assert!(disk.bytes(journal).is_none(), "the commit deleted it");
    // In this mode the delete of the journal is the commit, and FULL does not sync it (EXTRA does).
    cut_power(&disk, db);
    assert!(disk.bytes(journal).is_some());
    assert_eq!(rows(&disk.open_db(Owner(3), 1000, database()).expect("opens")), "1a 2b");
}

#[test]
fn a_delete_that_was_synced_does_not() {
    let disk = prepared();
    let db = disk.open_db(Owner(2), 1000, database()).expect("opens");
    db.execute_batch("PRAGMA journal_mode=DELETE; PRAGMA synchronous=EXTRA").expect("pragmas");
    db.execute_batch("INSERT INTO t VALUES (3,'c')").expect("commits");
    cut_power(&disk, db);
    assert_eq!(rows_of(&disk, 3), "1a 2b 3c");
}

#[test]
fn what_the_world_puts_there_survives() {
    let disk = empty();
    disk.put(Path::new("/a/b"), 1000, 0o644, Node::Bytes);
    disk.write_bytes(Path::new("/a/b"), b"old");
    disk.rename(Path::new("/a/b"), Path::new("/a/c")).expect("renamed");
    disk.power_loss();
    assert_eq!(disk.bytes(Path::new("/a/c")).as_deref(), Some(&b"old"[..]));
    disk.remove(Path::new("/a/c")).expect("removed");
    disk.power_loss();
    assert!(disk.bytes(Path::new("/a/c")).is_none());
}

#[test]
fn a_process_that_has_ended_opens_nothing_more() {
    let disk = prepared();
    disk.end(Owner(2));
    assert!(disk.open_db(Owner(2), 1000, database()).is_err());
    disk.power_loss();
    assert!(disk.open_db(Owner(1), 1000, database()).is_err());
}
