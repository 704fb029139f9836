//! Every way the database can fail. Each is one line: which file, what, and what to do.

use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;

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
        .path.display()
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
    #[error("database {} is not a regular file; set MU_DB_PATH to a file", .path.display())]
    NotAFile {
        /// The path.
        path: PathBuf,
    },
    /// The path cannot be looked at.
    #[error("database {} cannot be reached: {reason}; check the directories above it", .path.display())]
    Unreachable {
        /// The path.
        path: PathBuf,
        /// What the system said.
        reason: String,
    },
    /// Its directory could not be made.
    #[error("directory {} cannot be created: {reason}; create it, or set MU_DB_PATH", .path.display())]
    NoDirectory {
        /// The directory.
        path: PathBuf,
        /// What the system said.
        reason: String,
    },
    /// It cannot be opened.
    #[error("database {} cannot be opened: {reason}; check its owner and mode", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What SQLite said.
        reason: String,
    },
    /// It cannot be written.
    #[error("database {} is read-only; make the file and its directory writable for you", .path.display())]
    ReadOnly {
        /// The file.
        path: PathBuf,
    },
    /// The disk has no room.
    #[error("no room on the disk of database {}; free some and run this again", .path.display())]
    Full {
        /// The file.
        path: PathBuf,
    },
    /// The bytes are not those of SQLite.
    #[error("{} is not an SQLite database; move it away, or set MU_DB_PATH", .path.display())]
    NotADatabase {
        /// The file.
        path: PathBuf,
    },
    /// It is SQLite's, and another program's.
    #[error("{} is a database of another program; set MU_DB_PATH to one of mu's", .path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// SQLite found it damaged.
    #[error("database {} is damaged: {reason}; restore it from a copy", .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What SQLite said.
        reason: String,
    },
    /// A row holds what no verb of mu writes.
    #[error(
        "database {} holds a row of {table} that mu did not write: {column} of {row}; remove the row and add it again",
        .path.display()
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
        .path.display(), crate::store::BUSY_LIMIT.as_secs()
    )]
    Busy {
        /// The file.
        path: PathBuf,
    },
    /// SQLite does not accept the statement, or the data that it would make.
    #[error("SQLite rejects the statement: {reason}")]
    Rejected {
        /// What SQLite said.
        reason: String,
    },
    /// A statement took more steps than it may.
    #[error("the statement was given up after {} million steps; narrow it", crate::store::confine::STEPS / 1_000_000)]
    TooLong,
    /// Reading or writing failed below SQLite.
    #[error("database {} failed: {reason}; check its disk and run this again", .path.display())]
    Failed {
        /// The file.
        path: PathBuf,
        /// What SQLite said.
        reason: String,
    },
    /// A terminating signal came while a lock was waited for.
    #[error("ended by {} while the database was locked", .0.name())]
    Interrupted(Signal),
}

impl StoreError {
    /// Sorts an error of SQLite into its kind.
    pub fn sqlite(path: &Path, error: rusqlite::Error) -> StoreError {
        let path = path.to_owned();
        let reason = reason(&error);
        let Some(code) = error.sqlite_error_code() else {
            return StoreError::Rejected { reason };
        };
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
            | ErrorCode::ParameterOutOfRange => StoreError::Rejected { reason },
            _ => StoreError::Failed { path, reason },
        }
    }

    /// Whether the database was locked, and the same may work later.
    pub fn is_busy(&self) -> bool {
        matches!(self, StoreError::Busy { .. })
    }
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
    use rusqlite::ffi;

    fn of(code: i32) -> StoreError {
        StoreError::sqlite(Path::new("/x"), rusqlite::Error::SqliteFailure(ffi::Error::new(code), None))
    }

    #[test]
    fn extended_codes_sort_like_their_primary_code() {
        assert!(of(ffi::SQLITE_BUSY_SNAPSHOT).is_busy() && of(ffi::SQLITE_LOCKED_SHAREDCACHE).is_busy());
        assert!(matches!(of(ffi::SQLITE_READONLY_DIRECTORY), StoreError::ReadOnly { .. }));
        assert!(matches!(of(ffi::SQLITE_CANTOPEN_ISDIR), StoreError::Unreadable { .. }));
        assert!(matches!(of(ffi::SQLITE_FULL), StoreError::Full { .. }));
        assert!(matches!(of(ffi::SQLITE_IOERR_FSYNC), StoreError::Failed { .. }));
        assert!(matches!(of(ffi::SQLITE_CORRUPT_INDEX), StoreError::Damaged { .. }));
        assert!(matches!(of(ffi::SQLITE_CONSTRAINT_UNIQUE), StoreError::Rejected { .. }));
    }
}
