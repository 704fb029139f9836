//! Every way the database can fail. Each is one line: which file, what, and what to do.

use std::path::{Path, PathBuf};

use rusqlite::{ErrorCode, ffi};

use crate::cli::text;
use crate::os::Signal;

/// Why the database did not do what was asked. Nothing was changed in any of these cases.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// No variable says where it is.
    #[error("nothing says where the database is: set MU_DB_PATH, XDG_STATE_HOME or HOME")]
    NoPath,
    /// Its tables are those of a later mu.
    #[error(
        "database {} has schema {found}, and this mu knows {known} at most; use the newer mu, or another MU_DB_PATH",
        shown(.path)
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its `user_version`.
        found: i64,
        /// The newest that this mu knows.
        known: i64,
    },
    /// A directory, a pipe or the like is in its place.
    #[error("database {} is not a regular file; set MU_DB_PATH to a file", shown(.path))]
    NotAFile {
        /// The path.
        path: PathBuf,
    },
    /// The path cannot be looked at.
    #[error("database {} cannot be reached: {reason}; check the directories above it", shown(.path))]
    Unreachable {
        /// The path.
        path: PathBuf,
        /// What the system said.
        reason: String,
    },
    /// Its directory could not be made.
    #[error("directory {} cannot be created: {reason}; create it, or set MU_DB_PATH", shown(.path))]
    NoDirectory {
        /// The directory.
        path: PathBuf,
        /// What the system said.
        reason: String,
    },
    /// It cannot be opened.
    #[error("database {} cannot be opened: {reason}; check its owner and mode", shown(.path))]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What SQLite said.
        reason: String,
    },
    /// It cannot be written, or what SQLite keeps beside it cannot. Such a file is not read either: that would leave more
    /// of it.
    #[error(
        "database {} is read-only; make the file, -wal and -shm beside it and the directory writable for you",
        shown(.path)
    )]
    ReadOnly {
        /// The file.
        path: PathBuf,
    },
    /// A write did not go through: the disk, a quota or the limit of a process is exhausted.
    #[error(
        "no room for database {}: its disk, a quota or the file size limit is full; free some and run this again",
        shown(.path)
    )]
    Full {
        /// The file.
        path: PathBuf,
    },
    /// The bytes are not those of SQLite.
    #[error("{} is not an SQLite database; move it away, or set MU_DB_PATH", shown(.path))]
    NotADatabase {
        /// The file.
        path: PathBuf,
    },
    /// It is SQLite's, and another program's.
    #[error("{} is a database of another program; set MU_DB_PATH to one of mu's", shown(.path))]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// SQLite found it damaged.
    #[error("database {} is damaged: {reason}; restore it from a copy", shown(.path))]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What SQLite said.
        reason: String,
    },
    /// A row holds what no verb of mu writes.
    #[error(
        "database {} holds a row of {table} that mu did not write: {column} of {row}; remove the row and add it again",
        shown(.path)
    )]
    BadRow {
        /// The file.
        path: PathBuf,
        /// The table.
        table: &'static str,
        /// Which row, by its name.
        row: String,
        /// The first column that is wrong.
        column: &'static str,
    },
    /// Another process held the lock all the time.
    #[error(
        "database {} stayed locked for {} s by another process; see who holds it, and run this again",
        shown(.path), crate::store::BUSY_LIMIT.as_secs()
    )]
    Busy {
        /// The file.
        path: PathBuf,
    },
    /// SQLite does not accept a statement, or the data that it would make. Mu's own are accepted by the tables that mu
    /// made, so of them this says that somebody changed the tables.
    #[error("database {} does not have the tables that mu made: {reason}; restore it from a copy", shown(.path))]
    Rejected {
        /// The file.
        path: PathBuf,
        /// What SQLite said.
        reason: String,
    },
    /// A statement took more steps than it may.
    #[error("the statement was given up after {} million steps; narrow it", crate::store::confine::STEPS / 1_000_000)]
    TooLong,
    /// Reading or writing failed below SQLite.
    #[error("database {} failed: {reason}; check its disk and run this again", shown(.path))]
    Failed {
        /// The file.
        path: PathBuf,
        /// What SQLite said.
        reason: String,
    },
    /// A terminating signal came while a lock was waited for, or while a statement of a person ran.
    #[error("ended by {} before the database had done its work", .0.name())]
    Interrupted(Signal),
}

impl StoreError {
    /// Sorts an error of SQLite into its kind.
    pub fn sqlite(path: &Path, error: rusqlite::Error) -> StoreError {
        let path = path.to_owned();
        let reason = reason(&error);
        let Some(code) = error.sqlite_error_code() else {
            return StoreError::Rejected { path, reason };
        };
        // Of a write that fails SQLite calls only ENOSPC a full disk; the others are EDQUOT, EFBIG and, seldom, EIO.
        let unwritten = [ffi::SQLITE_IOERR_WRITE, ffi::SQLITE_IOERR_SHMSIZE];
        if error.sqlite_error().is_some_and(|error| unwritten.contains(&error.extended_code)) {
            return StoreError::Full { path };
        }
        match code {
            ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => StoreError::Busy { path },
            ErrorCode::CannotOpen | ErrorCode::PermissionDenied => StoreError::Unreadable { path, reason },
            ErrorCode::ReadOnly => StoreError::ReadOnly { path },
            ErrorCode::DiskFull => StoreError::Full { path },
            ErrorCode::NotADatabase => StoreError::NotADatabase { path },
            ErrorCode::DatabaseCorrupt => StoreError::Damaged { path, reason },
            ErrorCode::OperationInterrupted => StoreError::TooLong,
            ErrorCode::Unknown
            | ErrorCode::ConstraintViolation
            | ErrorCode::TypeMismatch
            | ErrorCode::TooBig
            | ErrorCode::AuthorizationForStatementDenied
            | ErrorCode::ParameterOutOfRange => StoreError::Rejected { path, reason },
            _ => StoreError::Failed { path, reason },
        }
    }

    /// Whether the database was locked, and the same may work later.
    pub fn is_busy(&self) -> bool {
        matches!(self, StoreError::Busy { .. })
    }
}

fn shown(path: &Path) -> String {
    text::path(&path.to_string_lossy())
}

/// What SQLite said, without the statement that it was said of.
fn reason(error: &rusqlite::Error) -> String {
    match error {
        rusqlite::Error::SqlInputError { msg, offset, .. } if *offset >= 0 => {
            format!("{msg} (at byte {offset})")
        }
        rusqlite::Error::SqlInputError { msg, .. } => msg.clone(),
        rusqlite::Error::SqliteFailure(_, Some(message)) => message.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(code: i32) -> StoreError {
        StoreError::sqlite(Path::new("/x"), rusqlite::Error::SqliteFailure(ffi::Error::new(code), None))
    }

    #[test]
    fn extended_codes_sort_like_their_primary_code() {
        assert!(of(ffi::SQLITE_BUSY_SNAPSHOT).is_busy() && of(ffi::SQLITE_LOCKED_SHAREDCACHE).is_busy());
        assert!(matches!(of(ffi::SQLITE_READONLY_DIRECTORY), StoreError::ReadOnly { .. }));
        assert!(matches!(of(ffi::SQLITE_CANTOPEN_ISDIR), StoreError::Unreadable { .. }));
        for full in [ffi::SQLITE_FULL, ffi::SQLITE_IOERR_WRITE, ffi::SQLITE_IOERR_SHMSIZE] {
            assert!(matches!(of(full), StoreError::Full { .. }));
        }
        assert!(matches!(of(ffi::SQLITE_IOERR_FSYNC), StoreError::Failed { .. }));
        assert!(matches!(of(ffi::SQLITE_CORRUPT_INDEX), StoreError::Damaged { .. }));
        assert!(matches!(of(ffi::SQLITE_CONSTRAINT_UNIQUE), StoreError::Rejected { .. }));
    }
}
