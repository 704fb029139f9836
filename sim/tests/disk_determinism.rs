//! The same work gives the same operations and the same bytes.
//!
//! A single test in a process of its own: SQLite's generator belongs to the process, and other threads that use SQLite
//! at the same moment would draw from it.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use mu_core::os::EpochMs;
use mu_sim::disk::{Database, Disk, DiskOp, Node, Owner};

type Log = Rc<RefCell<Vec<DiskOp>>>;

/// A disk that writes down its operations.
fn disk(seed: u64) -> (Disk, Log) {
    let (disk, log) = (Disk::new(), Log::default());
    disk.set_seed(seed);
    disk.set_wall(EpochMs(1_700_000_000_000));
    disk.put(Path::new("/state"), 1000, 0o700, Node::Directory);
    let ops = log.clone();
    disk.set_observer(Box::new(move |op| ops.borrow_mut().push(op.clone())));
    (disk, log)
}

fn open(disk: &Disk, owner: u64) -> Database {
    disk.open_db(Owner(owner), 1000, Path::new("/state/mu.db")).expect("opens")
}

/// Work in steps, so that two disks can take turns. The last step kills a process and leaves its WAL.
fn step(disk: &Disk, kept: &mut Vec<Database>, number: u32) {
    match number {
        0 => {
            let db = open(disk, 1);
            db.execute_batch("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL").expect("pragmas");
            db.execute_batch("CREATE TABLE t (k INTEGER PRIMARY KEY, v, at)").expect("made");
            kept.push(db);
        }
        1 => kept.push(open(disk, 2)),
        2 => kept[0]
            .execute_batch("INSERT INTO t (v, at) VALUES (hex(randomblob(8)), datetime('now'))")
            .expect("commits"),
        3 => {
            kept[1]
                .execute_batch("PRAGMA wal_checkpoint(RESTART); INSERT INTO t (v) VALUES (random())")
                .expect("commits");
        }
        _ => {
            kept[1].execute_batch("BEGIN IMMEDIATE; UPDATE t SET v = 0").expect("writes");
            disk.end(Owner(2));
            disk.end(Owner(1));
            kept.clear();
        }
    }
}

const STEPS: u32 = 5;

type Outcome = (Vec<DiskOp>, Vec<(PathBuf, Vec<u8>)>);

fn alone(seed: u64) -> Outcome {
    let (disk, log) = disk(seed);
    let mut kept = Vec::new();
    (0..STEPS).for_each(|number| step(&disk, &mut kept, number));
    (log.take(), disk.files())
}

/// Two disks on one thread, step by step in turn.
fn in_turn(seeds: [u64; 2]) -> [Outcome; 2] {
    let worlds = seeds.map(disk);
    let mut kept = [Vec::new(), Vec::new()];
    for number in 0..STEPS {
        for ((disk, _), kept) in worlds.iter().zip(&mut kept) {
            step(disk, kept, number);
        }
    }
    worlds.map(|(disk, log)| (log.take(), disk.files()))
}

#[test]
fn the_same_work_gives_the_same_operations_and_bytes_whatever_other_disks_do() {
    let first = alone(7);
    assert!(first.0.len() > 50, "{} operations", first.0.len());
    assert_eq!(first.1.len(), 3, "the database, its WAL and its shared memory");
    assert!(first == alone(7), "the same again");
    let [left, right] = in_turn([7, 8]);
    assert!(left == first, "beside another disk");
    assert!(right == alone(8), "so is the other");
    assert!(right.1 != first.1, "another seed draws other bytes");
    assert_eq!(right.0, first.0, "and does the same operations");
}
