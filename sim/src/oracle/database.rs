//! The database is sound: no page of it is damaged, and no row refers to one that is not there.

use rusqlite::Connection;

/// Adds one sentence for each thing that is wrong with a database.
///
/// # Errors
/// SQLite's, when it cannot be read at all.
pub fn check(db: &Connection, found: &mut Vec<String>) -> rusqlite::Result<()> {
    let mut integrity = db.prepare_cached("PRAGMA integrity_check")?;
    for line in integrity.query_map([], |row| row.get::<_, String>(0))? {
        let line = line?;
        if line != "ok" {
            found.push(format!("the database is damaged: {line}"));
        }
    }
    let mut keys = db.prepare_cached("PRAGMA foreign_key_check")?;
    for row in keys.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(2)?)))? {
        let (table, parent) = row?;
        found.push(format!("a row of {table} refers to one of {parent} that is not there"));
    }
    Ok(())
}
