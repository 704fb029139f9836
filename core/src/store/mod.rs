//! mu's one database file.
//!
//! - `path`: where it lies
//! - `error`: every way it can fail, one line each
//! - `migrations`: from an empty file to the tables of this mu; a newer file is refused
//! - `confine`: what a statement typed by a person may do
//! - `plugins`: rows of the table `plugins`
//! - `profiles`: rows of the table `host_profiles`
//! - `hosts`: rows of the table `hosts`
//! - `effects`: rows of the tables `effects`, `effect_sends`, `effect_verdicts`
//! - `channels`: rows of the table `host_channels`
//!
//! In: closures that read or write rows. Out: what they return, committed when they wrote. A locked database is waited
//! for on the machine's timer, never inside SQLite, which would stop the whole world with it.

pub mod channels;
pub mod confine;
pub mod effects;
pub mod error;
pub mod hosts;
pub mod migrations;
pub mod path;
pub mod plugins;
pub mod profiles;

use std::io;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures_util::lock::Mutex;
use rusqlite::{CachedStatement, Connection, MAIN_DB, OptionalExtension, Params, Row};

pub use error::StoreError;

use crate::invocation::Invocation;
use crate::os::{FileKind, Mono, Os};
use crate::reached;

/// How long a locked database is waited for before a verb gives up.
pub const BUSY_LIMIT: Duration = Duration::from_secs(10);
/// The first pause between two tries; each is twice as long as the one before …
const FIRST_PAUSE: Duration = Duration::from_millis(1);
/// … up to this one.
const LONGEST_PAUSE: Duration = Duration::from_millis(250);

/// The rows of a table with their names; [`StoreError::BadRow`] stands for one that mu did not write.
pub type Named<T> = Vec<(String, Result<T, StoreError>)>;

/// What to do about a database that is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// Create it, with its directory.
    Create,
    /// Leave it so: the verb sees an empty database in memory, and changes nothing on disk.
    Empty,
}

/// The open database. One per invocation of mu; its parts never wait inside a transaction except for its `COMMIT`.
pub struct Store<O: Os> {
    invocation: Invocation<O>,
    path: PathBuf,
    db: Mutex<O::Db>,
}

/// Access to the tables inside [`Store::read`] or [`Store::write`].
#[derive(Clone, Copy)]
pub struct Tx<'a> {
    /// The connection.
    pub db: &'a Connection,
    path: &'a Path,
}

impl Tx<'_> {
    /// Gives an error of SQLite its typed form.
    ///
    /// # Errors
    /// As [`StoreError::sqlite`].
    pub fn sql<T>(&self, result: rusqlite::Result<T>) -> Result<T, StoreError> {
        result.map_err(|error| StoreError::sqlite(self.path, error))
    }

    /// Compiles a statement; one that the connection has compiled before is used again.
    ///
    /// # Errors
    /// As [`StoreError::sqlite`].
    pub(crate) fn prepare(&self, sql: &str) -> Result<CachedStatement<'_>, StoreError> {
        self.sql(self.db.prepare_cached(sql))
    }

    /// Runs a statement that has no rows; returns how many it changed.
    ///
    /// # Errors
    /// As [`StoreError::sqlite`].
    pub(crate) fn execute(&self, sql: &str, values: impl Params) -> Result<usize, StoreError> {
        self.sql(self.prepare(sql)?.execute(values))
    }

    /// The first row, if there is any.
    ///
    /// # Errors
    /// Those of `row`, and as [`StoreError::sqlite`].
    pub(crate) fn first<T>(
        &self,
        sql: &str,
        values: impl Params,
        row: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Option<T>, StoreError> {
        self.sql(self.prepare(sql)?.query_row(values, row).optional())
    }

    /// A row that no verb of mu can have written.
    pub(crate) fn bad_row(&self, table: &'static str, row: &str, column: &'static str) -> StoreError {
        StoreError::BadRow { path: self.path.to_owned(), table, row: row.to_owned(), column }
    }
}

impl<O: Os> Store<O> {
    /// Opens the database of this run and brings its tables up to date.
    ///
    /// # Errors
    /// No variable says where it is; it cannot be created, opened, read, written; a newer mu wrote it; it stayed locked;
    /// a signal ended the wait.
    pub async fn open(invocation: &Invocation<O>, missing: Missing) -> Result<Store<O>, StoreError> {
        let os = invocation.os();
        let path = path::database(os.env())?;
        let mut wait = Wait::new(invocation);
        let db = match (os.facts(&path), missing) {
            (Ok(facts), _) if facts.kind == FileKind::Regular => wait.opened(&path).await?,
            // Opening a pipe would block, opening a directory says nothing useful.
            (Ok(_), _) => return Err(StoreError::NotAFile { path }),
            (Err(error), Missing::Create) if error.kind() == io::ErrorKind::NotFound => {
                create_directory(os, &path)?;
                wait.opened(&path).await?
            }
            (Err(error), Missing::Empty) if error.kind() == io::ErrorKind::NotFound => {
                let db = Connection::open_in_memory().map_err(|error| StoreError::sqlite(&path, error))?;
                migrations::run(&db, &path)?;
                O::Db::from(db)
            }
            (Err(error), _) => return Err(StoreError::Unreachable { path, reason: error.to_string() }),
        };
        Ok(Store { invocation: invocation.clone(), path, db: Mutex::new(db) })
    }

    /// Runs `f` outside of any transaction: one statement of it sees one state. Tried again while the database is locked.
    ///
    /// # Errors
    /// Those of `f`, and as [`Store::open`] for a database that stays locked.
    pub async fn read<T>(&self, mut f: impl FnMut(Tx<'_>) -> Result<T, StoreError>) -> Result<T, StoreError> {
        let db = self.db.lock().await;
        let mut wait = Wait::new(&self.invocation);
        loop {
            match f(Tx { db: &db, path: &self.path }) {
                Err(error) if error.is_busy() => wait.pause(&self.path).await?,
                result => return result,
            }
        }
    }

    /// Runs `f` in one IMMEDIATE transaction and commits what it did; an error of `f` undoes it.
    ///
    /// # Errors
    /// Those of `f`, and as [`Store::open`] for a database that stays locked, is full, or cannot be written. Nothing is
    /// changed then.
    pub async fn write<T, E>(&self, f: impl FnOnce(Tx<'_>) -> Result<T, E>) -> Result<T, E>
    where
        E: From<StoreError>,
    {
        self.transaction(f, Wait::new(&self.invocation)).await
    }

    /// As [`Store::write`], and no signal ends the wait for a lock: what has happened elsewhere is to be written down.
    ///
    /// # Errors
    /// As [`Store::write`], without signals.
    pub async fn write_anyway<T, E>(&self, f: impl FnOnce(Tx<'_>) -> Result<T, E>) -> Result<T, E>
    where
        E: From<StoreError>,
    {
        self.transaction(f, Wait { deaf: true, ..Wait::new(&self.invocation) }).await
    }

    async fn transaction<T, E>(
        &self,
        f: impl FnOnce(Tx<'_>) -> Result<T, E>,
        mut wait: Wait<'_, O>,
    ) -> Result<T, E>
    where
        E: From<StoreError>,
    {
        let db = self.db.lock().await;
        let tx = Tx { db: &db, path: &self.path };
        wait.for_lock(tx, "BEGIN IMMEDIATE").await?;
        let open = Open(&db);
        let value = f(tx)?;
        wait.for_lock(tx, "COMMIT").await?;
        drop(open);
        Ok(value)
    }
}

/// Rolls back on every way out of a transaction that has not committed: an error, a panic, a future that is dropped.
struct Open<'a>(&'a Connection);

impl Drop for Open<'_> {
    fn drop(&mut self) {
        if !self.0.is_autocommit() {
            reached!("A-85 a transaction is undone");
            // SQLite undoes the transaction anyway when the connection closes.
            let _ = self.0.execute_batch("ROLLBACK");
        }
    }
}

/// A read of a file that may not be written leaves `-wal` and `-shm` of the same mode beside it, and once the file may be
/// written again these still may not: every write would fail from then on. Nothing has been read of it yet.
fn writable<D: Deref<Target = Connection>>(db: D, path: &Path) -> Result<D, StoreError> {
    match db.is_readonly(MAIN_DB) {
        Ok(false) => Ok(db),
        Ok(true) => Err(StoreError::ReadOnly { path: path.to_owned() }),
        Err(error) => Err(StoreError::sqlite(path, error)),
    }
}

fn create_directory<O: Os>(os: &O, path: &Path) -> Result<(), StoreError> {
    let Some(directory) = path.parent() else { return Ok(()) };
    if os.facts(directory).is_ok() {
        return Ok(());
    }
    os.create_dir_all(directory)
        .map_err(|error| StoreError::NoDirectory { path: directory.to_owned(), reason: error.to_string() })
}

/// Waits for a lock in growing pauses, up to [`BUSY_LIMIT`] in total.
struct Wait<'a, O: Os> {
    invocation: &'a Invocation<O>,
    until: Mono,
    pause: Duration,
    /// A signal does not end it.
    deaf: bool,
}

impl<'a, O: Os> Wait<'a, O> {
    fn new(invocation: &'a Invocation<O>) -> Self {
        Wait { invocation, until: invocation.os().now() + BUSY_LIMIT, pause: FIRST_PAUSE, deaf: false }
    }

    async fn pause(&mut self, path: &Path) -> Result<(), StoreError> {
        let now = self.invocation.os().now();
        if now >= self.until {
            reached!("A-24 the database stayed locked");
            return Err(StoreError::Busy { path: path.to_owned() });
        }
        let until = (now + self.pause).min(self.until);
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        if self.deaf {
            reached!("A-24 waited for the database, whatever signal comes");
            self.invocation.os().sleep_until(until).await;
            return Ok(());
        }
        reached!("A-24 waited for the database");
        self.invocation.sleep_until(until).await.map_err(StoreError::Interrupted)
    }

    /// Opens and migrates. Each try has a fresh connection: one that failed half-way is in no known state.
    async fn opened(&mut self, path: &Path) -> Result<O::Db, StoreError> {
        loop {
            let open = self.invocation.os().open_db(path).map_err(|error| StoreError::sqlite(path, error));
            let open = open.and_then(|db| writable(db, path));
            match open.and_then(|db| migrations::run(&db, path).map(|()| db)) {
                Err(error) if error.is_busy() => self.pause(path).await?,
                result => return result,
            }
        }
    }

    async fn for_lock(&mut self, tx: Tx<'_>, statement: &str) -> Result<(), StoreError> {
        loop {
            match tx.execute(statement, []).map(drop) {
                Err(error) if error.is_busy() => self.pause(tx.path).await?,
                result => return result,
            }
        }
    }
}

#[cfg(test)]
mod tests;
