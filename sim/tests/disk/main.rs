//! The simulated disk, from outside: SQLite on it, and its files.
//!
//! `sharing` several processes at one database · `durability` what a power loss and a kill leave · `faults` errors and
//! sweeps over every operation · `files` paths, owners, modes · `parity` the same SQL on a real filesystem · `pool`
//! connections that are used again.

mod durability;
mod faults;
mod files;
mod parity;
mod pool;
mod sharing;

use std::path::Path;

use mu_sim::disk::{Database, Disk, Node, Owner};
use rusqlite::{Connection, Error, ErrorCode};

/// The user of all processes here.
const USER: u32 = 1000;

fn database() -> &'static Path {
    Path::new("/state/mu.db")
}

/// A disk with an empty state directory of the user.
fn empty() -> Disk {
    let disk = Disk::new();
    disk.put(Path::new("/state"), USER, 0o700, Node::Directory);
    disk
}

/// A connection of process `owner` in WAL mode that syncs every commit.
fn open(disk: &Disk, owner: u64) -> Database {
    let db = disk.open_db(Owner(owner), USER, database()).expect("opens");
    db.execute_batch("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL").expect("pragmas");
    db
}

/// A disk with a closed database that has the rows 1 and 2.
fn prepared() -> Disk {
    let disk = empty();
    let db = open(&disk, 1);
    db.execute_batch(
        "CREATE TABLE t (k INTEGER PRIMARY KEY, v TEXT) STRICT; INSERT INTO t VALUES (1,'a'), (2,'b')",
    )
    .expect("set up");
    drop(db);
    disk
}

/// All rows, as `1a 2b`.
fn rows(db: &Connection) -> String {
    try_rows(db).expect("rows")
}

fn try_rows(db: &Connection) -> rusqlite::Result<String> {
    db.query_row("SELECT coalesce(group_concat(k || v, ' ' ORDER BY k), '') FROM t", [], |row| row.get(0))
}

/// The rows as process `owner` finds them, and that the database is sound.
fn rows_of(disk: &Disk, owner: u64) -> String {
    let db = open(disk, owner);
    let sound: String = db.query_row("PRAGMA integrity_check", [], |row| row.get(0)).expect("a check");
    assert_eq!(sound, "ok");
    rows(&db)
}

/// The code of a failure.
fn failure<T: std::fmt::Debug>(result: rusqlite::Result<T>) -> ErrorCode {
    match result {
        Err(Error::SqliteFailure(error, _)) => error.code,
        other => panic!("no failure of SQLite: {other:?}"),
    }
}
