//! Two connections on one thread are two processes.

use std::path::Path;

use mu_sim::disk::{Disk, Node, Owner};
use rusqlite::{Connection, ErrorCode};

use crate::{database, empty, failure, open, prepared, rows, rows_of};

#[test]
fn a_second_writer_is_told_busy_at_once_and_readers_see_the_old_rows() {
    let disk = prepared();
    let (first, second, reader) = (open(&disk, 2), open(&disk, 3), open(&disk, 4));
    first.execute_batch("BEGIN IMMEDIATE; INSERT INTO t VALUES (3,'c')").expect("writes");
    assert_eq!(failure(second.execute_batch("BEGIN IMMEDIATE")), ErrorCode::DatabaseBusy);
    assert_eq!(rows(&reader), "1a 2b");
    first.execute_batch("COMMIT").expect("commits");
    assert_eq!(rows(&reader), "1a 2b 3c");
    second.execute_batch("BEGIN IMMEDIATE; COMMIT").expect("free again");
}

#[test]
fn a_reader_keeps_its_snapshot_while_others_commit() {
    let disk = prepared();
    let (writer, reader) = (open(&disk, 2), open(&disk, 3));
    reader.execute_batch("BEGIN").expect("begins");
    assert_eq!(rows(&reader), "1a 2b");
    writer.execute_batch("DELETE FROM t").expect("deletes");
    assert_eq!(rows(&reader), "1a 2b");
    reader.execute_batch("COMMIT").expect("ends");
    assert_eq!(rows(&reader), "");
}

#[test]
fn in_rollback_mode_a_reader_blocks_the_commit_and_a_waiting_commit_blocks_new_readers() {
    let disk = prepared();
    let connect = |owner| disk.open_db(Owner(owner), 1000, database()).expect("opens");
    let mode: String =
        connect(2).query_row("PRAGMA journal_mode=DELETE", [], |row| row.get(0)).expect("a mode");
    assert_eq!(mode, "delete");
    let (writer, reader, late) = (connect(3), connect(4), connect(5));
    reader.execute_batch("BEGIN").expect("begins");
    assert_eq!(rows(&reader), "1a 2b");
    writer.execute_batch("BEGIN IMMEDIATE; DELETE FROM t").expect("writes in memory");
    assert_eq!(failure(writer.execute_batch("COMMIT")), ErrorCode::DatabaseBusy);
    assert_eq!(failure(crate::try_rows(&late)), ErrorCode::DatabaseBusy);
    reader.execute_batch("COMMIT").expect("ends");
    writer.execute_batch("COMMIT").expect("commits now");
    assert_eq!(rows(&late), "");
}

#[test]
fn two_disks_with_the_same_path_share_nothing() {
    let (one, two) = (prepared(), prepared());
    let (left, right) = (open(&one, 2), open(&two, 2));
    left.execute_batch("BEGIN IMMEDIATE; INSERT INTO t VALUES (3,'left')").expect("writes");
    right.execute_batch("BEGIN IMMEDIATE; INSERT INTO t VALUES (3,'right')").expect("not busy");
    left.execute_batch("COMMIT").expect("commits");
    right.execute_batch("COMMIT").expect("commits");
    assert_eq!((rows(&left), rows(&right)), ("1a 2b 3left".to_owned(), "1a 2b 3right".to_owned()));
}

#[test]
fn a_fork_is_another_disk_with_the_same_files() {
    let disk = prepared();
    let fork = disk.fork();
    open(&fork, 2).execute_batch("DELETE FROM t").expect("deletes");
    assert_eq!(rows_of(&disk, 3), "1a 2b");
    assert_eq!(rows_of(&fork, 3), "");
}

#[test]
fn attach_reaches_the_same_disk_and_no_other() {
    let disk = prepared();
    disk.put(Path::new("/state/other"), 1000, 0o700, Node::Directory);
    let db = open(&disk, 2);
    db.execute_batch("ATTACH '/state/other/x.db' AS x; CREATE TABLE x.y (z)").expect("attaches");
    db.execute_batch("BEGIN; INSERT INTO x.y VALUES (1); INSERT INTO t VALUES (3,'c'); COMMIT")
        .expect("commits to both");
    assert!(disk.bytes(Path::new("/state/other/x.db")).is_some());
    assert!(!Path::new("/state/other/x.db").exists());
}

#[test]
fn the_last_close_checkpoints_and_leaves_the_database_alone() {
    let disk = prepared();
    let names: Vec<_> = disk.files().into_iter().map(|(path, _)| path).collect();
    assert_eq!(names, [database()]);
}

#[test]
fn a_hundred_and_twenty_openings_leave_no_handle_behind() {
    let disk = prepared();
    for round in 0..120 {
        let (one, two) = (open(&disk, 2 * round), open(&disk, 2 * round + 1));
        one.execute("INSERT INTO t (v) VALUES ('x')", []).expect("inserts");
        assert!(disk.open_files() >= 4, "two databases and two WALs");
        if round % 3 == 0 {
            two.execute_batch("BEGIN IMMEDIATE").expect("begins");
            disk.end(Owner(2 * round + 1));
        }
        drop((one, two));
        assert_eq!(disk.open_files(), 0);
    }
    let count: i64 =
        open(&disk, 1000).query_row("SELECT count(*) FROM t", [], |row| row.get(0)).expect("a count");
    assert_eq!(count, 122);
}

#[test]
fn a_failed_opening_leaves_no_handle_behind() {
    let disk = Disk::new();
    assert_eq!(failure(disk.open_db(Owner(1), 1000, Path::new("/x/y.db"))), ErrorCode::CannotOpen);
    assert_eq!(disk.open_files(), 0);
}

#[test]
fn a_connection_may_outlive_all_disks_that_name_it() {
    let db = open(&prepared(), 2);
    assert_eq!(rows(&db), "1a 2b");
}

#[test]
fn a_connection_that_is_sent_to_another_thread_is_refused_there() {
    let disk = prepared();
    let mut db = open(&disk, 2);
    let other = Connection::open_in_memory().expect("opens");
    let db = std::mem::replace(&mut *db, other);
    let used_elsewhere = std::thread::scope(|threads| {
        threads.spawn(move || db.execute("DELETE FROM t", []).is_ok()).join().expect("no panic")
    });
    assert!(!used_elsewhere);
    assert_eq!(rows_of(&disk, 3), "1a 2b");
}

#[test]
fn sql_sees_the_clock_of_the_disk() {
    let disk = empty();
    disk.set_wall(mu_core::os::EpochMs(1_234_567_890_123));
    let db = open(&disk, 1);
    let now: String =
        db.query_row("SELECT strftime('%Y-%m-%dT%H:%M:%f', 'now')", [], |row| row.get(0)).expect("a time");
    assert_eq!(now, "2009-02-13T23:31:30.123");
}
