//! mu's tables, read by SQL.

use std::path::PathBuf;

use rusqlite::Connection;

use crate::oracle::rows::{Rows, VerdictRow, databases};

const TABLES: &str = "
    CREATE TABLE plugins (name TEXT, instance TEXT, declaration TEXT);
    INSERT INTO plugins VALUES ('box', 'i', '{\"instance\":\"i\"}');
    CREATE TABLE hosts (name TEXT, plugin TEXT, instance TEXT, state TEXT, handle TEXT);
    INSERT INTO hosts VALUES ('h', 'box', 'i', 'acquiring', NULL);
    CREATE TABLE effects (id INTEGER PRIMARY KEY, key TEXT, method TEXT, plugin TEXT, instance TEXT, host TEXT,
        params TEXT, params_sha256 TEXT);
    INSERT INTO effects VALUES (1, 'k', 'host.acquire', 'box', 'i', 'h', '{}', 'aa');
    CREATE TABLE effect_sends (effect TEXT, request_id INTEGER, deadline INTEGER, pgid INTEGER);
    INSERT INTO effect_sends VALUES ('k', 2, 1000, 101), ('l', 3, 1, 1), ('k', 4, 2000, 105);
    CREATE TABLE effect_verdicts (id INTEGER PRIMARY KEY, key TEXT, host TEXT);
    INSERT INTO effect_verdicts VALUES (1, 'm', 'h');";

#[test]
fn the_rows_of_a_database_are_read() {
    let db = Connection::open_in_memory().unwrap();
    let mut rows = Rows::default();
    rows.read(&db).unwrap();
    assert_eq!(rows, Rows::default());
    db.execute_batch(TABLES).unwrap();
    rows.read(&db).unwrap();
    assert_eq!((rows.plugins.len(), rows.hosts[0].handle.as_deref()), (1, None));
    assert_eq!(rows.effects[0].sends, [(2, 1000, 101), (4, 2000, 105)]);
    assert_eq!(rows.verdicts, [VerdictRow { key: "m".into(), host: "h".into() }]);
}

#[test]
fn a_database_is_known_by_its_first_bytes_or_by_its_log() {
    let file = |path: &str, bytes: &str| (PathBuf::from(path), bytes.as_bytes().to_vec());
    let files = [
        file("/a/mu.db", "SQLite format 3\0"),
        file("/b/mu.db", ""),
        file("/b/mu.db-wal", "log"),
        file("/c/mu.db", ""),
        file("/c/mu.db-wal", ""),
        file("/d/text", "SQLite"),
    ];
    assert_eq!(databases(&files), [PathBuf::from("/a/mu.db"), PathBuf::from("/b/mu.db")]);
}
