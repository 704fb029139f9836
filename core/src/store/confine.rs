//! What a statement typed by a person may do: one statement, bounded work, this database and no other file.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rusqlite::Statement;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};

use crate::os::Os;
use crate::store::{Store, StoreError, Tx};

/// How many steps of SQLite's machine a statement may take: seconds of work, so that a query without an end does not
/// become a process without one.
pub const STEPS: u32 = 200_000_000;
/// Steps between two looks at the count.
const LOOK: u32 = 10_000;

/// Pragmas that take an argument and only tell something.
const TELLING: &[&str] = &[
    "table_info",
    "table_xinfo",
    "table_list",
    "index_list",
    "index_info",
    "index_xinfo",
    "foreign_key_list",
    "foreign_key_check",
    "integrity_check",
    "quick_check",
];

/// A connection set up for one statement of a person.
pub struct Confined {
    /// On while the person's statement is compiled; mu's own `BEGIN` and `COMMIT` are not judged.
    judging: Arc<AtomicBool>,
}

impl Confined {
    /// Compiles the one statement.
    ///
    /// # Errors
    /// [`StoreError::Rejected`] when SQLite does not understand it, when there are none or several, or when it reaches
    /// beyond what it may: other files, mu's own transaction, settings.
    pub fn prepare<'a>(&self, tx: &Tx<'a>, sql: &str) -> Result<Statement<'a>, StoreError> {
        self.judging.store(true, Ordering::Relaxed);
        let prepared = tx.db.prepare(sql);
        self.judging.store(false, Ordering::Relaxed);
        tx.sql(prepared)
    }
}

impl<O: Os> Store<O> {
    /// Sets the connection up for one statement of a person, that may write only with `write` and take `steps` steps.
    ///
    /// # Errors
    /// What SQLite reports.
    pub async fn confine(&self, write: bool, steps: u32) -> Result<Confined, StoreError> {
        let mut db = self.db.lock().await;
        let sql =
            |result: rusqlite::Result<()>| result.map_err(|error| StoreError::sqlite(&self.path, error));
        if !write {
            sql(db.execute_batch("PRAGMA query_only = ON"))?;
        }
        let judging = Arc::new(AtomicBool::new(false));
        let on = judging.clone();
        let judge = move |context: AuthContext<'_>| {
            if on.load(Ordering::Relaxed) && !allowed(&context.action, write) {
                Authorization::Deny
            } else {
                Authorization::Allow
            }
        };
        sql(db.authorizer(Some(judge)))?;
        let mut looks = steps / LOOK;
        let tired = move || {
            looks = looks.saturating_sub(1);
            looks == 0
        };
        sql(db.progress_handler(LOOK as i32, Some(tired)))?;
        Ok(Confined { judging })
    }
}

fn allowed(action: &AuthAction<'_>, write: bool) -> bool {
    match action {
        AuthAction::Attach { .. } | AuthAction::Detach { .. } => false,
        AuthAction::Transaction { .. } | AuthAction::Savepoint { .. } => false,
        AuthAction::Pragma { pragma_name, pragma_value: Some(_) } => write || TELLING.contains(pragma_name),
        _ => true,
    }
}
