//! `mu db query <SQL>`, `mu sql`: one statement on mu's database, in this process (SUR-01). It may only read unless
//! `--write` is given, takes a bounded number of steps, ends when a signal comes, and reaches no other file. A database
//! that is not there is queried as an empty one.

use std::fmt::Write as _;

use rusqlite::types::ValueRef;
use serde_json::{Number, Value, json};

use crate::cli::cut;
use crate::cli::failure::{Failure, Kind};
use crate::cli::output::{Data, Output, Row, json_line};
use crate::cli::text::command;
use crate::invocation::Invocation;
use crate::os::{Os, Signal};
use crate::store::confine::{Confined, STEPS};
use crate::store::{Missing, Store, StoreError, Tx};

/// Runs the statement. Data: `{"rows":[…],"more":N}`, or `{"changes":N}` for one that returns no rows.
///
/// # Errors
/// SQLite rejects the statement, or it writes without `write` (exit 2); it takes too many steps, or the database fails
/// (exit 5).
pub async fn run<O: Os>(
    invocation: &Invocation<O>,
    sql: &str,
    write: bool,
    full: bool,
) -> Result<Output, Failure> {
    let store = Store::open(invocation, if write { Missing::Create } else { Missing::Empty }).await?;
    let confined = store.confine(write, STEPS).await?;
    let failed = |error| failure(error, invocation.signal());
    let data = if write {
        // A statement that wrote is not to be run again for the rest of its answer: that is never cut.
        store.write(|tx| query(tx, &confined, sql, true)).await.map_err(failed)?
    } else {
        let read = |tx: Tx<'_>| {
            let only_reads = confined.prepare(&tx, sql)?.readonly();
            if only_reads { query(tx, &confined, sql, full).map(Some) } else { Ok(None) }
        };
        store.read(read).await.map_err(failed)?.ok_or_else(|| {
            let message = "the statement writes, and `mu db query` only reads unless --write is given";
            Failure::new(Kind::NeedsWrite, message).or_else([command(["mu", "db", "query", "--write", sql])])
        })?
    };
    let uncut = (!full && !write).then(|| command(["mu", "db", "query", "--full", sql]));
    Ok(Output { uncut, ..Output::new(data) })
}

/// Of the statement of a person, rejection is the person's to mend, and a signal is a reason to give it up.
fn failure(error: StoreError, signal: Option<Signal>) -> Failure {
    match (error, signal) {
        (StoreError::Rejected { reason, .. }, _) => {
            Failure::new(Kind::BadSql, format!("SQLite rejects the statement: {reason}"))
        }
        (StoreError::TooLong, Some(signal)) => StoreError::Interrupted(signal).into(),
        (error, _) => error.into(),
    }
}

fn query(tx: Tx<'_>, confined: &Confined, sql: &str, full: bool) -> Result<Data, StoreError> {
    let _interruptible = confined.interruptible();
    let mut statement = confined.prepare(&tx, sql)?;
    let columns: Vec<String> = statement.column_names().map(str::to_owned).collect();
    if columns.is_empty() {
        let changes = tx.sql(statement.execute([]))?;
        return Ok(Data::Row(Row::new([("changes", json!(changes))])));
    }
    let (mut shown, mut size, mut more, mut cut) = (Vec::new(), 0, 0, false);
    let mut rows = tx.sql(statement.query([]))?;
    while let Some(row) = tx.sql(rows.next())? {
        if size > cut::RESULT_BYTES && !full {
            more += 1; // Only counted: a large answer must not fill the memory.
            continue;
        }
        let mut missing = 0;
        let value = |(at, column): (usize, &String)| {
            let (value, left_out) =
                value(row.get_ref(at)?, if full { usize::MAX } else { cut::RECORD_CHARS });
            missing += left_out;
            Ok((column.clone(), value))
        };
        let fields: rusqlite::Result<Vec<_>> = columns.iter().enumerate().map(value).collect();
        let mut row = Row::new(tx.sql(fields)?);
        if !full {
            cut |= cut::record(&mut row, missing);
        }
        size += json_line(&row).len();
        shown.push(row);
    }
    Ok(Data::List { table: "rows", rows: shown, more, cut })
}

/// A value of SQLite as JSON, and how many characters of that were left out: of text and of blobs, all but about the first
/// `most`. What JSON has no number or text for is written as SQL would: `x'00ff'`, `Inf`.
fn value(value: ValueRef<'_>, most: usize) -> (Value, usize) {
    match value {
        ValueRef::Null => (Value::Null, 0),
        ValueRef::Integer(number) => (json!(number), 0),
        ValueRef::Real(number) => {
            (Number::from_f64(number).map_or_else(|| json!(number.to_string()), Value::Number), 0)
        }
        ValueRef::Text(bytes) => {
            std::str::from_utf8(bytes).map_or_else(|_| blob(bytes, most), |all| text(all, most))
        }
        ValueRef::Blob(bytes) => blob(bytes, most),
    }
}

fn text(all: &str, most: usize) -> (Value, usize) {
    let kept = all.char_indices().nth(most).map_or(all, |(at, _)| &all[..at]);
    let left_out = json_line(&&all[kept.len()..]).chars().count() - "\"\"".len();
    (json!(kept), left_out)
}

fn blob(bytes: &[u8], most: usize) -> (Value, usize) {
    let kept = &bytes[..bytes.len().min(most)];
    let mut digits = String::with_capacity(2 * kept.len() + "x''".len());
    digits.push_str("x'");
    for byte in kept {
        write!(digits, "{byte:02x}").expect("a String takes everything");
    }
    digits.push('\'');
    (Value::String(digits), 2 * (bytes.len() - kept.len()))
}

#[cfg(test)]
mod tests;
