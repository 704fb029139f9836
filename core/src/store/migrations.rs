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
    // 3: hosts that plugins provide, and the effects without a definite answer (EFF-02). A name is a profile's or a
    // host's, which the verbs see to.
    //
    // effect_sends has a row for each time that an effect was written to a plugin: with what id and deadline (CALL-04), and
    // to which process group (EFF-12). effect_verdicts keeps what operators said of effects (their last word).
    "CREATE TABLE hosts (
        name            TEXT    NOT NULL PRIMARY KEY
                                CHECK (length(name) BETWEEN 1 AND 32 AND name GLOB '[a-z]*'
                                       AND NOT name GLOB '*[^a-z0-9_-]*'),
        plugin          TEXT    NOT NULL REFERENCES plugins (name),
        instance        TEXT    NOT NULL CHECK (length(instance) BETWEEN 1 AND 128),
        key             TEXT    NOT NULL UNIQUE CHECK (length(key) > 0),
        state           TEXT    NOT NULL CHECK (state IN ('acquiring', 'ready', 'releasing', 'lost')),
        handle          TEXT    CHECK (length(handle) > 0),
        params          TEXT    NOT NULL CHECK (json_type(params) = 'object'),
        deadline_at     INTEGER CHECK (deadline_at >= 0),
        idle_reclaim_ms INTEGER CHECK (idle_reclaim_ms >= 0),
        max_jobs        INTEGER CHECK (max_jobs >= 0),
        reason          TEXT    CHECK (length(reason) > 0),
        since           INTEGER NOT NULL,
        CHECK ((state = 'acquiring') = (handle IS NULL)),
        CHECK ((state = 'lost') = (reason IS NOT NULL))
    ) STRICT;
    CREATE INDEX hosts_by_plugin ON hosts (plugin);
    CREATE TABLE effects (
        id                INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
        key               TEXT    NOT NULL UNIQUE CHECK (length(key) > 0),
        method            TEXT    NOT NULL CHECK (method IN (
                              'host.acquire', 'host.release', 'job.start', 'job.stop', 'channel.send', 'channel.fresh',
                              'channel.command', 'channel.interrupt', 'channel.abort', 'channel.answer')),
        plugin            TEXT    NOT NULL REFERENCES plugins (name),
        instance          TEXT    NOT NULL CHECK (length(instance) BETWEEN 1 AND 128),
        host              TEXT    NOT NULL CHECK (length(host) > 0),
        agent             TEXT    CHECK (length(agent) > 0),
        job               TEXT    CHECK (length(job) > 0),
        msg_id            TEXT    CHECK (length(msg_id) > 0),
        params            TEXT    NOT NULL CHECK (json_type(params) = 'object'),
        params_sha256     TEXT    NOT NULL CHECK (length(params_sha256) = 64),
        writer_pid        INTEGER NOT NULL CHECK (writer_pid > 0),
        writer_started    INTEGER NOT NULL CHECK (writer_started >= 0),
        writer_boot       TEXT    NOT NULL CHECK (length(writer_boot) > 0),
        resolver_pid      INTEGER CHECK (resolver_pid > 0),
        resolver_started  INTEGER CHECK (resolver_started >= 0),
        resolver_boot     TEXT    CHECK (length(resolver_boot) > 0),
        begun_at          INTEGER NOT NULL,
        begun_boot        TEXT    NOT NULL CHECK (length(begun_boot) > 0),
        begun_boottime_ms INTEGER NOT NULL CHECK (begun_boottime_ms >= 0),
        quiet_at          INTEGER,
        quiet_boot        TEXT    CHECK (length(quiet_boot) > 0),
        quiet_boottime_ms INTEGER CHECK (quiet_boottime_ms >= 0),
        window_ms         INTEGER CHECK (window_ms >= 0),
        in_flight_ms      INTEGER CHECK (in_flight_ms >= 0),
        superseded        INTEGER NOT NULL DEFAULT 0 CHECK (superseded IN (0, 1)),
        note              TEXT,
        CHECK ((resolver_pid IS NULL) = (resolver_started IS NULL) AND (resolver_pid IS NULL) = (resolver_boot IS NULL)),
        CHECK ((quiet_at IS NULL) = (quiet_boot IS NULL) AND (quiet_at IS NULL) = (quiet_boottime_ms IS NULL))
    ) STRICT;
    CREATE UNIQUE INDEX effects_of_a_host ON effects (host) WHERE method IN ('host.acquire', 'host.release');
    CREATE INDEX effects_by_plugin ON effects (plugin);
    CREATE INDEX effects_by_host ON effects (host);
    CREATE TABLE effect_sends (
        effect     TEXT    NOT NULL REFERENCES effects (key) ON DELETE CASCADE,
        request_id INTEGER NOT NULL CHECK (request_id > 0),
        deadline   INTEGER NOT NULL CHECK (deadline >= 0),
        pgid       INTEGER NOT NULL CHECK (pgid > 0),
        started    INTEGER NOT NULL CHECK (started >= 0),
        boot       TEXT    NOT NULL CHECK (length(boot) > 0),
        at         INTEGER NOT NULL,
        PRIMARY KEY (effect, request_id)
    ) STRICT;
    CREATE TABLE effect_verdicts (
        id       INTEGER NOT NULL PRIMARY KEY,
        key      TEXT    NOT NULL,
        method   TEXT    NOT NULL,
        plugin   TEXT    NOT NULL,
        instance TEXT    NOT NULL,
        host     TEXT    NOT NULL,
        verdict  TEXT    NOT NULL CHECK (verdict IN ('done', 'undone')),
        because  TEXT    NOT NULL CHECK (length(because) > 0),
        at       INTEGER NOT NULL
    ) STRICT;",
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
    // EXTRA is FULL for a database with a log to write ahead. Without one it makes the end of a commit durable too, which is
    // the removal of a file.
    tx.sql(db.execute_batch("PRAGMA synchronous = EXTRA"))?;
    // Not as a pragma, which would have every statement compiled anew.
    tx.sql(db.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_FKEY, true))?;
    let mode = || tx.sql(db.pragma_query_value(None, "journal_mode", |row| row.get::<_, String>(0)));
    if !["wal", "memory"].contains(&mode()?.as_str()) {
        // Outside of a transaction, or SQLite ignores it. Where it cannot be now (a full disk, another reader), SQLite goes on
        // without a log and says so by no error; the next run tries again.
        tx.sql(db.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(())))?;
    }
    if version < KNOWN {
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
