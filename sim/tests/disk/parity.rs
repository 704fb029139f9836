//! The same SQL gives the same answers on the simulated disk and on a real filesystem.

use std::ops::Deref;
use std::path::Path;

use mu_sim::disk::Owner;
use rusqlite::types::Value;
use rusqlite::{Connection, Error, OpenFlags};

use crate::{USER, empty};

/// Several processes at one database: which of them, and what it runs.
const WORKLOAD: &[(usize, &str)] = &[
    (0, "PRAGMA journal_mode=WAL"),
    (0, "PRAGMA synchronous=FULL"),
    (0, "CREATE TABLE t (k INTEGER PRIMARY KEY, v TEXT NOT NULL, n INTEGER) STRICT"),
    (0, "CREATE INDEX t_v ON t (v)"),
    (1, "INSERT INTO t VALUES (1, 'one', 1), (2, 'two', 2)"),
    (1, "BEGIN IMMEDIATE"),
    (2, "BEGIN IMMEDIATE"),
    (2, "INSERT INTO t VALUES (9, 'nine', 9)"),
    (1, "UPDATE t SET n = n * 10"),
    (2, "SELECT * FROM t ORDER BY k"),
    (1, "COMMIT"),
    (2, "SELECT * FROM t ORDER BY k"),
    (0, "BEGIN"),
    (0, "SELECT count(*) FROM t"),
    (1, "DELETE FROM t WHERE k = 1"),
    (0, "SELECT count(*) FROM t"),
    (0, "INSERT INTO t VALUES (3, 'stale', 0)"),
    (0, "ROLLBACK"),
    (0, "PRAGMA wal_checkpoint(TRUNCATE)"),
    (
        1,
        "WITH RECURSIVE c(i) AS (SELECT 10 UNION ALL SELECT i+1 FROM c WHERE i < 3000)
         INSERT INTO t SELECT i, 'row ' || i || printf('%0200d', i), i FROM c",
    ),
    (2, "SELECT count(*), sum(n), sum(length(v)) FROM t"),
    (2, "PRAGMA wal_checkpoint(PASSIVE)"),
    (0, "DELETE FROM t WHERE k % 3 = 0"),
    (0, "VACUUM"),
    (1, "INSERT INTO t VALUES (2, 'again', 0)"),
    (1, "INSERT INTO t VALUES (5000, NULL, 0)"),
    (1, "SAVEPOINT s"),
    (1, "UPDATE t SET v = 'x'"),
    (1, "ROLLBACK TO s"),
    (1, "RELEASE s"),
    (2, "SELECT count(DISTINCT v), max(v), min(v) FROM t"),
    (2, "PRAGMA journal_mode"),
    (2, "PRAGMA page_count"),
    (2, "PRAGMA freelist_count"),
    (0, "PRAGMA integrity_check"),
    (0, "PRAGMA journal_mode=DELETE"),
];

/// One process after the other with a rollback journal.
const ALONE: &[(usize, &str)] = &[
    (0, "PRAGMA journal_mode=DELETE"),
    (0, "SELECT count(*), sum(n) FROM t"),
    (0, "BEGIN"),
    (0, "UPDATE t SET n = n + 1"),
    (0, "ROLLBACK"),
    (0, "UPDATE t SET n = n + 1 WHERE k > 1000"),
    (0, "PRAGMA journal_mode=PERSIST"),
    (0, "UPDATE t SET n = n + 1 WHERE k > 1000"),
    (0, "PRAGMA journal_mode=TRUNCATE"),
    (0, "UPDATE t SET n = n + 1 WHERE k > 1000"),
    (0, "SELECT count(*), sum(n) FROM t"),
    (0, "PRAGMA auto_vacuum=FULL"),
    (0, "VACUUM"),
    (0, "DELETE FROM t"),
    (0, "PRAGMA page_count"),
    (0, "PRAGMA integrity_check"),
];

/// Runs one statement: its rows, or SQLite's extended error code.
fn run(db: &Connection, sql: &str) -> String {
    let answer = (|| {
        let mut statement = db.prepare(sql)?;
        let columns = statement.column_count();
        let rows: rusqlite::Result<Vec<Vec<Value>>> =
            statement.query_map([], |row| (0..columns).map(|column| row.get(column)).collect())?.collect();
        rows
    })();
    match answer {
        Ok(rows) => format!("{sql}: {rows:?}"),
        Err(Error::SqliteFailure(error, _)) => format!("{sql}: code {}", error.extended_code),
        Err(other) => format!("{sql}: {other}"),
    }
}

/// The answers to everything, with fresh connections for the second part.
fn answers<D: Deref<Target = Connection>>(connect: impl Fn() -> D) -> Vec<String> {
    let mut answers = Vec::new();
    for part in [WORKLOAD, ALONE] {
        let processes = [connect(), connect(), connect()];
        let processes = if part.as_ptr() == ALONE.as_ptr() { &processes[..1] } else { &processes[..] };
        answers.extend(part.iter().map(|(process, sql)| run(&processes[*process], sql)));
    }
    answers
}

fn real(path: &Path) -> Box<Connection> {
    let flags =
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = Connection::open_with_flags(path, flags).expect("opens");
    db.busy_timeout(std::time::Duration::ZERO).expect("set");
    Box::new(db)
}

#[test]
fn the_same_sql_gives_the_same_answers_on_a_real_filesystem() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("mu.db");
    let on_real = answers(|| real(&path));

    for pooled in [false, true] {
        let disk = empty();
        disk.set_pooled(pooled);
        let serial = std::cell::Cell::new(0);
        let on_disk = answers(|| {
            serial.set(serial.get() + 1);
            disk.open_db(Owner(serial.get()), USER, crate::database()).expect("opens")
        });
        assert_eq!(on_disk, on_real, "pooled: {pooled}");
        let busy = format!("BEGIN IMMEDIATE: code {}", rusqlite::ffi::SQLITE_BUSY);
        assert!(on_disk.contains(&busy), "the workload has a conflict");
    }
}

#[test]
fn the_same_database_file_is_read_on_both() {
    let disk = crate::prepared();
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("mu.db");
    std::fs::write(&path, disk.bytes(crate::database()).expect("there")).expect("written");
    let db = real(&path);
    assert_eq!(crate::rows(&db), "1a 2b");
    db.execute_batch("INSERT INTO t VALUES (3,'c')").expect("commits");
    drop(db);
    disk.write_bytes(crate::database(), &std::fs::read(&path).expect("read"));
    assert_eq!(crate::rows_of(&disk, 2), "1a 2b 3c");
}
