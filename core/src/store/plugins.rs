//! The table `plugins`: one row for each registered plugin, typed on the way in and out (SEC-01).

use mu_protocol::declaration::Declaration;
use rusqlite::params;
use serde_json::{Value, json};

use crate::cli::output::Row;
use crate::os::EpochMs;
use crate::store::{Named, StoreError, Tx};

/// A registered plugin.
#[derive(Clone, Debug, PartialEq)]
pub struct Plugin {
    /// The registered name.
    pub name: String,
    /// Program and arguments, verbatim (REG-01).
    pub argv: Vec<String>,
    /// What the last successful `add` was told (REG-09).
    pub declaration: Declaration,
    /// When it was first added.
    pub added_at: EpochMs,
    /// When `add` stored this declaration.
    pub declared_at: EpochMs,
}

impl Plugin {
    /// The names of the declared seams, in the order of the protocol page.
    pub fn seams(&self) -> Vec<&'static str> {
        let seams = &self.declaration.seams;
        [
            ("link", seams.link.is_some()),
            ("job", seams.job.is_some()),
            ("host", seams.host.is_some()),
            ("channel", seams.channel.is_some()),
        ]
        .into_iter()
        .filter_map(|(name, declared)| declared.then_some(name))
        .collect()
    }

    /// The declared channel name (REG-14).
    pub fn channel(&self) -> Option<&str> {
        self.declaration.seams.channel.as_ref().map(|channel| channel.name.as_str())
    }

    /// What a list shows of it, under the names of the columns (OUT-08).
    pub fn list_row(&self) -> Row {
        Row::new([
            ("name", json!(self.name)),
            ("version", json!(self.declaration.plugin.version)),
            ("instance", json!(self.declaration.instance)),
            ("seams", json!(self.seams())),
            ("channel", json!(self.channel())),
            ("argv", json!(self.argv)),
        ])
    }

    /// All columns.
    pub fn row(&self) -> Row {
        let mut row = self.list_row();
        let declaration = serde_json::from_str(&self.declaration.to_json()).unwrap_or(Value::Null);
        for (column, value) in [
            ("schema_digest", json!(self.declaration.schema)),
            ("added_at", json!(self.added_at.0)),
            ("declared_at", json!(self.declared_at.0)),
            ("declaration", declaration),
        ] {
            row.push(column.into(), value);
        }
        row
    }
}

const COLUMNS: &str = "name, argv, declaration, added_at, declared_at";

/// A row as SQLite has it.
type Raw = (String, String, String, i64, i64);

fn raw(row: &rusqlite::Row<'_>) -> rusqlite::Result<Raw> {
    Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?))
}

fn typed(tx: Tx<'_>, (name, argv, declaration, added_at, declared_at): Raw) -> Result<Plugin, StoreError> {
    let bad = |column| tx.bad_row("plugins", &name, column);
    let argv: Vec<String> = serde_json::from_str(&argv).map_err(|_| bad("argv"))?;
    if argv.is_empty() {
        return Err(bad("argv"));
    }
    let declaration = Declaration::from_recorded(&declaration).map_err(|_| bad("declaration"))?;
    Ok(Plugin { name, argv, declaration, added_at: EpochMs(added_at), declared_at: EpochMs(declared_at) })
}

/// All plugins with their names and in the order of these.
///
/// # Errors
/// What SQLite reports.
pub fn all(tx: Tx<'_>) -> Result<Named<Plugin>, StoreError> {
    let mut statement = tx.prepare(&format!("SELECT {COLUMNS} FROM plugins ORDER BY name"))?;
    let rows: Vec<Raw> = tx.sql(statement.query_map([], raw).and_then(Iterator::collect))?;
    Ok(rows.into_iter().map(|row| (row.0.clone(), typed(tx, row))).collect())
}

/// The names of all plugins, in order.
///
/// # Errors
/// What SQLite reports.
pub fn names(tx: Tx<'_>) -> Result<Vec<String>, StoreError> {
    let mut statement = tx.prepare("SELECT name FROM plugins ORDER BY name")?;
    tx.sql(statement.query_map([], |row| row.get(0)).and_then(Iterator::collect))
}

/// One plugin.
///
/// # Errors
/// [`StoreError::BadRow`] for a row that mu did not write, else what SQLite reports.
pub fn find(tx: Tx<'_>, name: &str) -> Result<Option<Plugin>, StoreError> {
    look(tx, name)?.transpose()
}

/// One plugin as [`all`] has it: of a row that mu did not write it is known that it is there.
///
/// # Errors
/// What SQLite reports.
pub fn look(tx: Tx<'_>, name: &str) -> Result<Option<Result<Plugin, StoreError>>, StoreError> {
    let sql = format!("SELECT {COLUMNS} FROM plugins WHERE name = ?1");
    let row = tx.first(&sql, [name], raw)?;
    Ok(row.map(|row| typed(tx, row)))
}

/// The plugin other than `name` that holds a channel name (REG-14).
///
/// # Errors
/// What SQLite reports.
pub fn channel_holder(tx: Tx<'_>, channel: &str, name: &str) -> Result<Option<String>, StoreError> {
    let sql = "SELECT name FROM plugins WHERE channel = ?1 AND name <> ?2";
    tx.first(sql, [channel, name], |row| row.get(0))
}

/// Inserts a plugin, or replaces what is stored under its name; `added_at` of a row that is there stays (REG-10).
///
/// # Errors
/// What SQLite reports.
pub fn put(tx: Tx<'_>, plugin: &Plugin) -> Result<(), StoreError> {
    let sql = "INSERT INTO plugins
            (name, argv, version, instance, seams, channel, schema_digest, declaration, added_at, declared_at)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
        ON CONFLICT (name) DO UPDATE SET
            argv = excluded.argv, version = excluded.version, instance = excluded.instance, seams = excluded.seams,
            channel = excluded.channel, schema_digest = excluded.schema_digest,
            declaration = excluded.declaration, declared_at = excluded.declared_at";
    let declaration = &plugin.declaration;
    let row = params![
        plugin.name,
        json!(plugin.argv).to_string(),
        declaration.plugin.version,
        declaration.instance,
        json!(plugin.seams()).to_string(),
        plugin.channel(),
        declaration.schema,
        declaration.to_json(),
        plugin.added_at.0,
        plugin.declared_at.0,
    ];
    tx.execute(sql, row).map(drop)
}

/// Removes a plugin; whether there was one.
///
/// # Errors
/// What SQLite reports.
pub fn remove(tx: Tx<'_>, name: &str) -> Result<bool, StoreError> {
    tx.execute("DELETE FROM plugins WHERE name = ?1", [name]).map(|count| count > 0)
}

/// Where rows of other tables name a plugin (REG-12): what such a row is, and a query for the names of those that name
/// the plugin `?1`. A table that gains such a column is listed here.
pub(crate) type References = &'static [(&'static str, &'static str)];

/// The tables that do.
pub(crate) const REFERENCES: References = &[
    ("host", "SELECT name FROM host_profiles WHERE plugin = ?1 ORDER BY name"),
    ("host", "SELECT name FROM hosts WHERE plugin = ?1 ORDER BY name"),
    ("effect", "SELECT key FROM effects WHERE plugin = ?1 ORDER BY id"),
];

/// What still names the plugin: `host box`, one for each row.
///
/// # Errors
/// What SQLite reports.
pub(crate) fn references(tx: Tx<'_>, name: &str, tables: References) -> Result<Vec<String>, StoreError> {
    let mut found = Vec::new();
    for (what, sql) in tables {
        let mut statement = tx.prepare(sql)?;
        let rows = statement.query_map([name], |row| row.get::<_, String>(0)).and_then(Iterator::collect);
        let rows: Vec<String> = tx.sql(rows)?;
        found.extend(rows.into_iter().map(|row| format!("{what} {row}")));
    }
    Ok(found)
}
