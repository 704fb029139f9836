//! From an empty file to the tables of this mu. `user_version` counts the steps taken; a file with more steps than this
//! mu knows is refused untouched.

use std::path::Path;

use rusqlite::Connection;
use rusqlite::config::DbConfig;

use crate::store::{StoreError, Tx};

/// The steps, oldest first. A step that was released is never edited: the next one changes what it made.
const STEPS: &[&str] = &[
    // 1: registered plugins. Typed fields of the declaration next to its own text (SEC-01).
    "CREATE TABLE plugins (
        name          TEXT    NOT NULL PRIMARY KEY
                              CHECK (length(name) BETWEEN 1 AND 32 AND name GLOB '[a-z]*'
                                     AND NOT name GLOB '*[^a-z0-9_-]*'),
        argv          TEXT    NOT NULL CHECK (json_type(argv) = 'array' AND json_array_length(argv) > 0),
        version       TEXT    NOT NULL,
        instance      TEXT    NOT NULL CHECK (length(instance) BETWEEN 1 AND 128),
        seams         TEXT    NOT NULL CHECK (json_type(seams) = 'array'),
        channel       TEXT    UNIQUE,
        schema_digest TEXT    NOT NULL CHECK (schema_digest GLOB 'sha256:*'),
        declaration   TEXT    NOT NULL CHECK (json_type(declaration) = 'object'),
        added_at      INTEGER NOT NULL,
        declared_at   INTEGER NOT NULL
    ) STRICT;",
    // 2: hosts that plugins reach (REG-16, HSK-05), and who holds their channels (SEAM-04). A channel names its host
    // without a foreign key: more than one table will have hosts.
    "CREATE TABLE host_profiles (
        name           TEXT    NOT NULL PRIMARY KEY
                               CHECK (length(name) BETWEEN 1 AND 32 AND name GLOB '[a-z]*'
                                      AND NOT name GLOB '*[^a-z0-9_-]*'),
        plugin         TEXT    NOT NULL REFERENCES plugins (name),
        identity       TEXT    NOT NULL CHECK (identity GLOB 'plugin:' || plugin || ':?*'),
        fetch_template TEXT    CHECK (length(fetch_template) > 0),
        repo           TEXT    CHECK (length(repo) > 0),
        max_sessions   INTEGER NOT NULL CHECK (max_sessions > 0),
        added_at       INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX host_profiles_by_plugin ON host_profiles (plugin);
    CREATE TABLE host_channels (
        id      INTEGER NOT NULL PRIMARY KEY,
        host    TEXT    NOT NULL,
        pid     INTEGER NOT NULL CHECK (pid > 0),
        started INTEGER NOT NULL CHECK (started >= 0),
        boot    TEXT    NOT NULL CHECK (length(boot) > 0),
        since   INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX host_channels_by_host ON host_channels (host);",
];

/// Marks the file as mu's (`PRAGMA application_id`): the bytes "mu" and a number.
const APPLICATION_ID: i64 = 0x6d75_0001;

/// The newest schema that this mu knows.
pub const KNOWN: i64 = STEPS.len() as i64;

/// Sets up a connection and brings the file up to date, in one transaction.
///
/// # Errors
/// [`StoreError::Newer`] for a file of a later mu, [`StoreError::Foreign`] for one of another program; neither is touched.
/// Otherwise what SQLite reports.
pub fn run(db: &Connection, path: &Path) -> Result<(), StoreError> {
    let tx = Tx { db, path };
    let version = check(tx)?;
    tx.sql(db.execute_batch("PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON;"))?;
    if version < KNOWN {
        // Outside of a transaction, or SQLite ignores it. Memory has no log to write ahead.
        tx.sql(db.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(())))?;
        tx.sql(db.execute_batch("BEGIN IMMEDIATE"))?;
        let migrated = migrate(tx);
        let end = if migrated.is_ok() { "COMMIT" } else { "ROLLBACK" };
        let ended = tx.sql(db.execute_batch(end));
        migrated.and(ended)?;
    }
    Ok(())
}

/// Takes the steps that are missing; another process may have taken them since the first look.
fn migrate(tx: Tx<'_>) -> Result<(), StoreError> {
    let version = check(tx)?;
    for (step, sql) in (1..).zip(STEPS).skip_while(|(step, _)| *step <= version) {
        tx.sql(tx.db.execute_batch(sql))?;
        tx.sql(tx.db.pragma_update(None, "user_version", step))?;
    }
    tx.sql(tx.db.pragma_update(None, "application_id", APPLICATION_ID))
}

/// How many steps the file has seen, when it is one that this mu may use.
fn check(tx: Tx<'_>) -> Result<i64, StoreError> {
    let number = |sql| tx.sql(tx.db.query_row(sql, [], |row| row.get::<_, i64>(0)));
    let version = number("PRAGMA user_version")?;
    if version > KNOWN {
        // What the newer mu left in its log stays there.
        tx.sql(tx.db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true))?;
        return Err(StoreError::Newer { path: tx.path.to_owned(), found: version, known: KNOWN });
    }
    let empty = version == 0 && number("SELECT count(*) FROM sqlite_schema")? == 0;
    if !empty && number("PRAGMA application_id")? != APPLICATION_ID {
        return Err(StoreError::Foreign { path: tx.path.to_owned() });
    }
    Ok(version)
}
