//! Scripted errors, and a stop at every single operation.

use std::cell::RefCell;
use std::rc::Rc;

use mu_sim::disk::{Disk, DiskOp, Errno, Kind, Owner, Verdict};
use rusqlite::ErrorCode;

use crate::{USER, database, empty, failure, open, prepared, rows, rows_of};

const BEFORE: &str = "1a 2b";
const AFTER: &str = "1A 2b 3c";
const CHANGE: &str = "BEGIN IMMEDIATE; UPDATE t SET v = 'A' WHERE k = 1; INSERT INTO t VALUES (3,'c')";

/// Fails the `nth` (from 1) operation of this kind that comes from here on.
fn fail(disk: &Disk, kind: Kind, nth: u32, verdict: Verdict) {
    let mut seen = 0;
    disk.set_fault(Box::new(move |op| {
        seen += u32::from(op.kind == kind);
        if op.kind == kind && seen == nth { verdict } else { Verdict::Go }
    }));
}

#[test]
fn a_disk_that_is_full_at_any_write_leaves_the_old_rows() {
    let mut writes = 0;
    for nth in 1.. {
        let disk = prepared();
        let db = open(&disk, 2);
        fail(&disk, Kind::Write, nth, Verdict::Errno(Errno::ENOSPC));
        let result = db.execute_batch(CHANGE).and_then(|()| db.execute_batch("COMMIT"));
        disk.clear_fault();
        if result.is_ok() {
            break;
        }
        writes = nth;
        assert_eq!(failure(result), ErrorCode::DiskFull);
        if !db.is_autocommit() {
            db.execute_batch("ROLLBACK").expect("rolls back");
        }
        assert_eq!(rows(&db), BEFORE);
        db.execute_batch(CHANGE).and_then(|()| db.execute_batch("COMMIT")).expect("there is room again");
        drop(db);
        assert_eq!(rows_of(&disk, 3), AFTER);
    }
    assert!(writes >= 3, "a WAL header and two frames at least, not {writes}");
}

#[test]
fn a_sync_that_fails_fails_the_commit() {
    let disk = prepared();
    let db = open(&disk, 2);
    db.execute_batch(CHANGE).expect("writes");
    fail(&disk, Kind::Sync, 1, Verdict::Errno(Errno::EIO));
    assert_eq!(failure(db.execute_batch("COMMIT")), ErrorCode::SystemIoFailure);
    disk.clear_fault();
    drop(db);
    assert_eq!(rows_of(&disk, 3), BEFORE);
}

#[test]
fn a_read_that_fails_is_reported() {
    let disk = prepared();
    let db = open(&disk, 2);
    fail(&disk, Kind::Read, 1, Verdict::Errno(Errno::ENOMEM));
    assert_eq!(failure(crate::try_rows(&db)), ErrorCode::SystemIoFailure);
    disk.clear_fault();
    assert_eq!(rows(&db), BEFORE);
}

/// How process 2 is stopped.
#[derive(Clone, Copy, PartialEq)]
enum Stop {
    /// The disk refuses from there on; the kill follows.
    Refuse,
    /// It dies there, and SQLite goes on inside it.
    Kill,
    /// The machine loses its power there.
    CutPower,
}

impl Stop {
    /// Arms the stop at operation `number` and all that would follow.
    fn arm(self, disk: &Disk, number: u64) {
        let world = disk.clone();
        disk.set_fault(Box::new(move |op| {
            match self {
                _ if op.number < number => {}
                Stop::Refuse => return Verdict::RefuseFromHere,
                Stop::Kill => world.end(Owner(2)),
                Stop::CutPower => world.power_loss(),
            }
            Verdict::Go
        }));
    }
}

/// Stops a commit at each of its operations; the next process finds all of it or nothing.
fn sweep_commit(pragmas: &str, stop: Stop, company: bool) {
    let base = prepared();
    let mut found = Vec::new();
    for n in 1.. {
        let disk = base.fork();
        let other = company.then(|| open(&disk, 9));
        if let Some(other) = &other {
            assert_eq!(rows(other), BEFORE);
        }
        let db = disk.open_db(Owner(2), USER, database()).expect("opens");
        db.execute_batch(pragmas).and_then(|()| db.execute_batch(CHANGE)).expect("writes");
        let last = disk.ops() + n;
        stop.arm(&disk, last);
        let reported = db.execute_batch("COMMIT").is_ok();
        drop(db);
        let reached = disk.ops() >= last;
        disk.clear_fault();
        disk.end(Owner(2));
        if let Some(other) = &other {
            let seen = rows(other);
            assert!(seen == BEFORE || seen == AFTER, "stopped at {n}, another process saw {seen}");
            other.execute_batch("BEGIN IMMEDIATE; ROLLBACK").expect("no lock is left");
        }
        drop(other);
        let left = rows_of(&disk, 3);
        assert!(left == BEFORE || left == AFTER, "stopped at {n}: {left}");
        assert!(!reported || left == AFTER, "stopped at {n}: a reported commit is gone");
        found.push(left);
        if !reached {
            assert!(reported, "nothing was in the way");
            break;
        }
    }
    assert!(found.len() > 6, "a commit and a close are more than {} operations", found.len());
    assert_eq!((found[0].as_str(), found[found.len() - 1].as_str()), (BEFORE, AFTER));
}

const WAL: &str = "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL";
const ROLLBACK: &str = "PRAGMA journal_mode=DELETE; PRAGMA synchronous=EXTRA";

#[test]
fn refused_at_any_operation_of_a_commit_the_database_is_wholly_before_or_after() {
    sweep_commit(WAL, Stop::Refuse, false);
}

#[test]
fn refused_at_any_operation_of_a_commit_beside_another_process() {
    sweep_commit(WAL, Stop::Refuse, true);
}

#[test]
fn killed_at_any_operation_of_a_commit() {
    sweep_commit(WAL, Stop::Kill, false);
}

#[test]
fn killed_at_any_operation_of_a_commit_beside_another_process() {
    sweep_commit(WAL, Stop::Kill, true);
}

#[test]
fn without_power_at_any_operation_of_a_commit() {
    sweep_commit(WAL, Stop::CutPower, false);
}

#[test]
fn refused_at_any_operation_of_a_commit_with_a_rollback_journal() {
    sweep_commit(ROLLBACK, Stop::Refuse, false);
}

#[test]
fn without_power_at_any_operation_of_a_commit_with_a_rollback_journal() {
    sweep_commit(ROLLBACK, Stop::CutPower, false);
}

#[test]
fn stopped_at_any_operation_of_its_whole_life_a_process_leaves_a_sound_database() {
    for stop in [Stop::Refuse, Stop::Kill, Stop::CutPower] {
        for n in 1.. {
            let disk = empty();
            stop.arm(&disk, n);
            let result: rusqlite::Result<()> = (|| {
                let db = disk.open_db(Owner(2), USER, database())?;
                db.execute_batch(WAL)?;
                db.execute_batch("CREATE TABLE t (k INTEGER PRIMARY KEY, v TEXT)")?;
                db.execute_batch("INSERT INTO t VALUES (1,'a')")
            })();
            let reached = disk.ops() >= n;
            disk.clear_fault();
            disk.end(Owner(2));
            let db = open(&disk, 3);
            let sound: String =
                db.query_row("PRAGMA integrity_check", [], |row| row.get(0)).expect("a check");
            assert_eq!(sound, "ok", "stopped at {n}");
            if !reached {
                result.expect("nothing was in the way");
                assert_eq!(rows(&db), "1a");
                break;
            }
        }
    }
}

#[test]
fn a_refused_process_keeps_its_locks_until_it_is_ended() {
    let disk = prepared();
    let (refused, other) = (open(&disk, 2), open(&disk, 3));
    refused.execute_batch(CHANGE).expect("writes");
    fail(&disk, Kind::Write, 1, Verdict::RefuseFromHere);
    assert!(refused.execute_batch("COMMIT").is_err());
    drop(refused);
    assert_eq!(failure(other.execute_batch("BEGIN IMMEDIATE")), ErrorCode::DatabaseBusy);
    disk.end(Owner(2));
    other.execute_batch("BEGIN IMMEDIATE; ROLLBACK").expect("free");
}

#[test]
fn operations_are_numbered_from_one_without_gaps_and_refused_ones_are_not_counted() {
    let disk = empty();
    let seen: Rc<RefCell<Vec<DiskOp>>> = Rc::default();
    let log = seen.clone();
    disk.set_observer(Box::new(move |op| log.borrow_mut().push(op.clone())));
    let db = open(&disk, 7);
    db.execute_batch("CREATE TABLE t (k)").expect("made");
    fail(&disk, Kind::Sync, 1, Verdict::RefuseFromHere);
    assert!(db.execute_batch("INSERT INTO t VALUES (1)").is_err());
    drop(db);
    let seen = seen.borrow();
    assert!(seen.iter().map(|op| op.number).eq(1..=disk.ops()));
    assert!(seen.iter().all(|op| op.owner == Owner(7)));
    assert_eq!(seen[0].kind, Kind::Open);
    assert_eq!(seen.last().map(|op| op.kind), Some(Kind::Sync));
}

#[test]
fn the_observer_may_read_the_disk() {
    let disk = prepared();
    let (world, sizes) = (disk.clone(), Rc::new(RefCell::new(Vec::new())));
    let log = sizes.clone();
    disk.set_observer(Box::new(move |op| {
        if op.kind == Kind::Sync {
            log.borrow_mut().push(world.files().len());
        }
    }));
    open(&disk, 2).execute_batch("INSERT INTO t VALUES (3,'c')").expect("commits");
    assert_eq!(sizes.borrow().first(), Some(&3), "the database, its WAL and its shared memory");
    let before = sizes.borrow().len();
    disk.clear_observer();
    open(&disk, 3).execute_batch("DELETE FROM t").expect("commits");
    assert_eq!(sizes.borrow().len(), before, "nobody watches any more");
}
