//! What a statement typed by a person may do: one statement, bounded work, values of a bounded size, this database and no
//! other file. A terminating signal ends it.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rusqlite::Statement;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::limits::Limit;

use crate::os::Os;
use crate::store::{Store, StoreError, Tx};

/// How many steps of SQLite's machine a statement may take: seconds of work, so that a query without an end does not
/// become a process without one.
pub const STEPS: u32 = 200_000_000;
/// Steps between two looks at the count, and at the signals.
const LOOK: u32 = 10_000;
/// How large a value or a row may get, in bytes: more than mu stores, and little enough that the work of one step, which
/// nothing interrupts, stays short.
pub const VALUE_BYTES: i32 = 4 << 20;

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

/// Says whether a signal has come.
type Look = Rc<dyn Fn() -> bool>;

thread_local! {
    /// How the statement that runs learns of signals: SQLite's handler has to be `Send`, which a run of mu is not.
    static LOOKED_FOR: RefCell<Option<Look>> = const { RefCell::new(None) };
}

/// While it exists, signals interrupt what SQLite does on this thread.
pub struct Interruptible(());

impl Drop for Interruptible {
    fn drop(&mut self) {
        LOOKED_FOR.take();
    }
}

/// A connection set up for one statement of a person.
pub struct Confined {
    /// On while the person's statement is compiled; mu's own `BEGIN` and `COMMIT` are not judged.
    judging: Arc<AtomicBool>,
    signalled: Look,
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

    /// Until the result is dropped, a terminating signal interrupts the statement, which then fails with
    /// [`StoreError::TooLong`]; the run of mu knows the signal.
    pub fn interruptible(&self) -> Interruptible {
        LOOKED_FOR.set(Some(self.signalled.clone()));
        Interruptible(())
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
        sql(db.set_limit(Limit::SQLITE_LIMIT_LENGTH, VALUE_BYTES).map(drop))?;
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
            looks == 0 || LOOKED_FOR.with_borrow(|look| look.as_ref().is_some_and(|look| look()))
        };
        sql(db.progress_handler(LOOK as i32, Some(tired)))?;
        let invocation = self.invocation.clone();
        Ok(Confined { judging, signalled: Rc::new(move || invocation.is_signalled()) })
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
