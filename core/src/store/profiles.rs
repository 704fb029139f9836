//! The table `host_profiles`: one row for each host that was added (REG-16).

use mu_protocol::declaration::Declaration;
use rusqlite::params;
use serde_json::json;

use crate::cli::output::Row;
use crate::os::EpochMs;
use crate::store::{Named, StoreError, Tx};
use crate::verbs::name::{HostName, PluginName};

/// A host whose link is a plugin.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// Its name.
    pub name: HostName,
    /// The plugin that is its link.
    pub plugin: PluginName,
    /// What it is, as far as mu can tell: see [`identity`].
    pub identity: String,
    /// The shell command that fetches from it, when the link does not (REG-18).
    pub fetch_template: Option<String>,
    /// The repository on it that worktrees are made from.
    pub repo: Option<String>,
    /// How many link calls it takes at once, when mu keeps count (SEAM-04); at least 1.
    pub max_sessions: u32,
    /// When it was added.
    pub added_at: EpochMs,
}

impl Profile {
    /// All columns, under their names (OUT-08).
    pub fn row(&self) -> Row {
        Row::new([
            ("name", json!(self.name.as_str())),
            ("plugin", json!(self.plugin.as_str())),
            ("identity", json!(self.identity)),
            ("fetch_template", json!(self.fetch_template)),
            ("repo", json!(self.repo)),
            ("max_sessions", json!(self.max_sessions)),
            ("added_at", json!(self.added_at.0)),
        ])
    }
}

/// The identity of a plugin's host: the same backend is the same host, whatever it is called here (HSK-05).
pub fn identity(plugin: &PluginName, declaration: &Declaration) -> String {
    format!("plugin:{plugin}:{}", declaration.instance)
}

const COLUMNS: &str = "name, plugin, identity, fetch_template, repo, max_sessions, added_at";

/// A row as SQLite has it.
type Raw = (String, String, String, Option<String>, Option<String>, i64, i64);

fn raw(row: &rusqlite::Row<'_>) -> rusqlite::Result<Raw> {
    Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?, row.get(5)?, row.get(6)?))
}

fn typed(tx: Tx<'_>, row: Raw) -> Result<Profile, StoreError> {
    let (name, plugin, identity, fetch_template, repo, max_sessions, added_at) = row;
    let bad = |column| tx.bad_row("host_profiles", &name, column);
    Ok(Profile {
        plugin: plugin.parse().map_err(|_| bad("plugin"))?,
        max_sessions: u32::try_from(max_sessions).map_err(|_| bad("max_sessions"))?,
        name: name.parse().map_err(|_| bad("name"))?,
        identity,
        fetch_template,
        repo,
        added_at: EpochMs(added_at),
    })
}

/// All hosts with their names and in the order of these.
///
/// # Errors
/// What SQLite reports.
pub fn all(tx: Tx<'_>) -> Result<Named<Profile>, StoreError> {
    let mut statement = tx.prepare(&format!("SELECT {COLUMNS} FROM host_profiles ORDER BY name"))?;
    let rows: Vec<Raw> = tx.sql(statement.query_map([], raw).and_then(Iterator::collect))?;
    Ok(rows.into_iter().map(|row| (row.0.clone(), typed(tx, row))).collect())
}

/// One host.
///
/// # Errors
/// [`StoreError::BadRow`] for a row that mu did not write, else what SQLite reports.
pub fn find(tx: Tx<'_>, name: &HostName) -> Result<Option<Profile>, StoreError> {
    let sql = format!("SELECT {COLUMNS} FROM host_profiles WHERE name = ?1");
    let row = tx.first(&sql, [name.as_str()], raw)?;
    row.map(|row| typed(tx, row)).transpose()
}

/// Inserts a host whose name is free.
///
/// # Errors
/// What SQLite reports.
pub fn insert(tx: Tx<'_>, host: &Profile) -> Result<(), StoreError> {
    let sql = "INSERT INTO host_profiles
            (name, plugin, identity, fetch_template, repo, max_sessions, added_at)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    let row = params![
        host.name.as_str(),
        host.plugin.as_str(),
        host.identity,
        host.fetch_template,
        host.repo,
        host.max_sessions,
        host.added_at.0,
    ];
    tx.execute(sql, row).map(drop)
}

/// Gives the hosts of a plugin the identity that follows from its new declaration (HSK-05, REG-10).
///
/// # Errors
/// What SQLite reports.
pub fn follow(tx: Tx<'_>, plugin: &PluginName, declaration: &Declaration) -> Result<(), StoreError> {
    let sql = "UPDATE host_profiles SET identity = ?2 WHERE plugin = ?1";
    tx.execute(sql, [plugin.as_str(), &identity(plugin, declaration)]).map(drop)
}

/// Removes a host.
///
/// # Errors
/// What SQLite reports.
pub fn remove(tx: Tx<'_>, name: &HostName) -> Result<(), StoreError> {
    tx.execute("DELETE FROM host_profiles WHERE name = ?1", [name.as_str()]).map(drop)
}

#[cfg(test)]
mod tests;
