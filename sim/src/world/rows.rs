//! What stands in mu's tables of hosts and effects, for a scenario's expectations. Read from a copy of the database, so that
//! looking changes nothing.

use std::collections::BTreeMap;

use rusqlite::Connection;

/// The rows that scenarios ask for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rows {
    /// The keys of the open effects.
    pub effects: Vec<String>,
    /// The states of the hosts that plugins provide, by name.
    pub records: BTreeMap<String, String>,
}

/// Reads them. A table that is not there has no rows.
pub(super) fn read(connection: &Connection) -> rusqlite::Result<Rows> {
    let has = |table: &str| {
        let sql = "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = ?1";
        connection.query_row(sql, [table], |row| row.get::<_, i64>(0)).map(|count| count > 0)
    };
    let mut rows = Rows::default();
    if has("effects")? {
        let mut all = connection.prepare_cached("SELECT key FROM effects ORDER BY key")?;
        rows.effects = all.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    }
    if has("hosts")? {
        let mut all = connection.prepare_cached("SELECT name, state FROM hosts")?;
        let all = all.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        rows.records = all.collect::<Result<_, _>>()?;
    }
    Ok(rows)
}
