//! Connections that are used again: nobody can tell them from fresh ones, and no world hears of another.

use std::path::Path;

use mu_sim::disk::{Database, Disk, Kind, Owner, Verdict};
use rusqlite::ErrorCode;
use rusqlite::config::DbConfig;
use rusqlite::hooks::{AuthContext, Authorization};

use crate::{USER, database, failure, open, prepared, rows, rows_of};

/// A disk with a closed database in WAL mode that has the rows 1 and 2, whose connections come from the pool.
fn pooled() -> Disk {
    let disk = prepared();
    disk.set_pooled(true);
    disk
}

fn again(disk: &Disk, owner: u64) -> Database {
    disk.open_db(Owner(owner), USER, database()).expect("opens")
}

fn insert(db: &Database, row: i64) {
    db.prepare_cached("INSERT INTO t VALUES (?1, 'x')").expect("compiles").execute([row]).expect("writes");
}

fn names(disk: &Disk) -> Vec<String> {
    disk.files().into_iter().map(|(path, _)| path.display().to_string()).collect()
}

#[test]
fn what_one_process_writes_the_next_one_reads_and_so_does_a_fresh_connection() {
    let disk = pooled();
    for owner in 2..20 {
        let db = again(&disk, owner);
        insert(&db, owner as i64 + 1);
        assert_eq!(rows(&db).split(' ').count(), owner as usize + 1);
        drop(db);
        assert_eq!(names(&disk), ["/state/mu.db"]);
        assert_eq!(disk.open_files(), 0);
    }
    disk.set_pooled(false);
    assert_eq!(rows_of(&disk, 30).split(' ').count(), 20);
    assert_eq!(rows_of(&disk.durable(), 31).split(' ').count(), 20);
}

#[test]
fn the_rows_of_one_world_are_not_seen_in_another() {
    let (one, other) = (pooled(), pooled());
    for owner in 2..10 {
        let db = again(&one, owner);
        insert(&db, owner as i64 + 1);
        drop(db);
        assert_eq!(rows(&again(&other, owner)), "1a 2b");
    }
    assert_eq!(rows(&again(&one, 20)).split(' ').count(), 10);
}

#[test]
fn a_schema_with_the_same_number_is_another_one_all_the_same() {
    let with = |table: &str| {
        let disk = crate::empty();
        let db = open(&disk, 1);
        db.execute_batch(&format!("CREATE TABLE {table}; INSERT INTO u VALUES ('{table}')")).expect("made");
        drop(db);
        disk.set_pooled(true);
        disk
    };
    let (one, other) = (with("u (a)"), with("u (b)"));
    for owner in 2..5 {
        let column = |disk: &Disk, name: &str| -> String {
            let sql = format!("SELECT {name} FROM u");
            again(disk, owner).query_row(&sql, [], |row| row.get(0)).expect("a row")
        };
        assert_eq!((column(&one, "a"), column(&other, "b")), ("u (a)".into(), "u (b)".into()));
    }
}

#[test]
fn whether_the_pool_has_one_does_not_show() {
    let ops = |disk: &Disk| {
        let db = again(disk, 2);
        insert(&db, 3);
        assert_eq!(rows(&db), "1a 2b 3x");
        drop(db);
        (disk.ops(), disk.bytes(database()).expect("there"))
    };
    let cold = ops(&pooled());
    assert!(cold.0 > 0);
    for _ in 0..5 {
        assert_eq!(ops(&pooled()), cold);
    }
}

#[test]
fn a_second_connection_sees_what_the_first_commits_whoever_leaves_first() {
    for first_leaves_first in [true, false] {
        let disk = pooled();
        let (first, second) = (again(&disk, 2), again(&disk, 3));
        insert(&first, 3);
        assert_eq!(rows(&second), "1a 2b 3x");
        first.execute_batch("BEGIN IMMEDIATE").expect("begins");
        assert_eq!(failure(second.execute_batch("BEGIN IMMEDIATE")), ErrorCode::DatabaseBusy);
        first.execute_batch("COMMIT").expect("ends");
        insert(&second, 4);
        assert_eq!(rows(&first), "1a 2b 3x 4x");
        let (gone, stays) = if first_leaves_first { (first, second) } else { (second, first) };
        drop(gone);
        insert(&stays, 5);
        drop(stays);
        assert_eq!(names(&disk), ["/state/mu.db"]);
        assert_eq!(rows(&again(&disk, 4)), "1a 2b 3x 4x 5x");
        assert_eq!(rows(&again(&pooled(), 5)), "1a 2b");
    }
}

#[test]
fn a_process_that_dies_at_any_operation_leaves_a_database_and_a_pool_in_order() {
    for at in 1.. {
        let disk = pooled();
        let first = disk.ops();
        disk.set_fault(Box::new(move |op| match op.number == first + at {
            true => Verdict::RefuseFromHere,
            false => Verdict::Go,
        }));
        let db = disk.open_db(Owner(2), USER, database());
        let wrote = db.as_ref().is_ok_and(|db| {
            db.execute_batch(
                "BEGIN IMMEDIATE; INSERT INTO t VALUES (3, 'x'); INSERT INTO t VALUES (4, 'x'); COMMIT",
            )
            .is_ok()
        });
        // The process is over before its connection is dropped.
        disk.end(Owner(2));
        drop(db);
        disk.clear_fault();
        let found = rows(&again(&disk, 3));
        assert!(found == "1a 2b 3x 4x" || !wrote && found == "1a 2b", "operation {at}: {found}");
        assert_eq!(rows(&again(&disk.durable(), 4)), if wrote { "1a 2b 3x 4x" } else { &found });
        for owner in 5..8 {
            let db = again(&disk, owner);
            insert(&db, 10 + owner as i64);
            assert_eq!(rows_of(&disk, 20 + owner), rows(&db));
        }
        assert_eq!(rows(&again(&pooled(), 9)), "1a 2b");
        if disk.ops() > 0 && wrote && at > 60 {
            return;
        }
    }
}

#[test]
fn an_open_transaction_ends_with_its_process() {
    let disk = pooled();
    let db = again(&disk, 2);
    db.execute_batch("BEGIN IMMEDIATE; INSERT INTO t VALUES (3, 'x')").expect("writes");
    disk.end(Owner(2));
    drop(db);
    let next = again(&disk, 3);
    assert_eq!(rows(&next), "1a 2b");
    insert(&next, 4);
    assert_eq!(rows(&next), "1a 2b 4x");
}

#[test]
fn one_that_is_dropped_within_a_transaction_undoes_it() {
    let disk = pooled();
    let db = again(&disk, 2);
    db.execute_batch("BEGIN IMMEDIATE; INSERT INTO t VALUES (3, 'x')").expect("writes");
    drop(db);
    assert_eq!(rows(&again(&disk, 3)), "1a 2b");
    assert_eq!(disk.open_files(), 0);
}

#[test]
fn a_hook_is_not_inherited() {
    let deny = |_: AuthContext<'_>| Authorization::Deny;
    let disk = pooled();
    let mut db = again(&disk, 2);
    db.authorizer(Some(deny)).expect("set");
    assert_eq!(failure(crate::try_rows(&db)), ErrorCode::AuthorizationForStatementDenied);
    drop(db);
    for owner in 3..6 {
        assert_eq!(rows(&again(&disk, owner)), "1a 2b");
    }
}

#[test]
fn who_leaves_the_log_alone_leaves_it_and_nobody_after_it() {
    let disk = pooled();
    let db = again(&disk, 2);
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).expect("set");
    insert(&db, 3);
    drop(db);
    assert_eq!(names(&disk), ["/state/mu.db", "/state/mu.db-shm", "/state/mu.db-wal"]);
    for owner in 3..6 {
        insert(&again(&disk, owner), owner as i64 + 1);
        assert_eq!(names(&disk), ["/state/mu.db"]);
    }
    assert_eq!(rows(&again(&disk, 9)), "1a 2b 3x 4x 5x 6x");
}

#[test]
fn a_full_disk_meets_it_as_a_fresh_one() {
    let disk = pooled();
    drop(again(&disk, 2));
    disk.set_fault(Box::new(|op| match op.kind {
        Kind::Write | Kind::Open => Verdict::Errno(mu_sim::disk::Errno::ENOSPC),
        _ => Verdict::Go,
    }));
    assert_eq!(failure(disk.open_db(Owner(3), USER, database())), ErrorCode::CannotOpen);
    disk.clear_fault();
    assert_eq!(rows(&again(&disk, 4)), "1a 2b");
}

#[test]
fn a_name_that_leads_elsewhere_is_opened_afresh() {
    let disk = pooled();
    disk.rename(database(), Path::new("/state/other.db")).expect("renamed");
    disk.put(database(), USER, 0o777, mu_sim::disk::Node::Link("/state/other.db".into()));
    assert_eq!(rows(&again(&disk, 2)), "1a 2b");
}
