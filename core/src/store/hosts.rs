//! The table `hosts`: one row for each host that a plugin provides (HOST), from the intent to acquire it on.

use std::collections::BTreeMap;

use mu_protocol::messages::host::{Acquired, HostState};
use mu_protocol::messages::target::HostRef;
use mu_protocol::messages::values::{Count, EpochMillis, Handle, Instance, Key, Millis};
use mu_protocol::objects::Patch;
use rusqlite::params;
use serde_json::json;

use crate::cli::output::Row;
use crate::os::EpochMs;
use crate::store::{Named, StoreError, Tx};
use crate::verbs::name::{HostName, PluginName};

/// What a provider was asked for: `--param` by `--param`.
pub type Params = BTreeMap<String, String>;

/// A host that a plugin provides.
#[derive(Clone, Debug, PartialEq)]
pub struct Host {
    /// Its name.
    pub name: HostName,
    /// Its provider.
    pub plugin: PluginName,
    /// The instance of the provider that it belongs to; no other is ever asked about it (EFF-24).
    pub instance: Instance,
    /// The key of its acquire, which tells it from any other host that has had the name.
    pub key: Key,
    /// Where it stands.
    pub state: State,
    /// What it was acquired with.
    pub params: Params,
    /// What its provider said of it.
    pub facts: Facts,
    /// When it came into this state.
    pub since: EpochMs,
}

/// Where a host stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// Its acquire has no definite answer.
    Acquiring,
    /// It is there.
    Ready(Handle),
    /// Its release has no definite answer.
    Releasing(Handle),
    /// It is proven to exist no longer (HOST-12).
    Lost {
        /// What its provider called it.
        handle: Handle,
        /// What the proof is.
        reason: String,
    },
}

impl State {
    /// The word in the column.
    pub fn word(&self) -> &'static str {
        match self {
            State::Acquiring => "acquiring",
            State::Ready(_) => "ready",
            State::Releasing(_) => "releasing",
            State::Lost { .. } => "lost",
        }
    }

    /// What the provider calls the host, once it has said so.
    pub fn handle(&self) -> Option<&Handle> {
        match self {
            State::Acquiring => None,
            State::Ready(handle) | State::Releasing(handle) | State::Lost { handle, .. } => Some(handle),
        }
    }
}

/// What a provider tells about a host (HOST-05, FACT-01). mu keeps it; nothing acts on it by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// When it will be taken away.
    pub deadline_at: Option<EpochMillis>,
    /// After how much idle time it may be taken away.
    pub idle_reclaim_ms: Option<Millis>,
    /// How many jobs it takes at once.
    pub max_jobs: Option<Count>,
}

impl Facts {
    /// Those of an acquire.
    pub fn of(acquired: &Acquired) -> Facts {
        let Acquired { deadline_at, idle_reclaim_ms, max_jobs, .. } = *acquired;
        Facts { deadline_at, idle_reclaim_ms, max_jobs }
    }

    /// Patched by a status: what it leaves out stays (HOST-09), what it clears goes (HOST-10). Only `up` tells any.
    pub fn patched(self, state: HostState) -> Facts {
        let HostState::Up { deadline_at, idle_reclaim_ms, max_jobs, .. } = state else { return self };
        fn patch<T>(patch: Patch<T>, before: Option<T>) -> Option<T> {
            patch.apply(before)
        }
        Facts {
            deadline_at: patch(deadline_at, self.deadline_at),
            idle_reclaim_ms: patch(idle_reclaim_ms, self.idle_reclaim_ms),
            max_jobs: patch(max_jobs, self.max_jobs),
        }
    }
}

impl Host {
    /// What goes into every target that names it (HOST-03).
    pub fn target(&self) -> HostRef {
        let handle = self.state.handle().cloned();
        let instance = handle.is_some().then(|| self.instance.clone());
        HostRef { name: self.name.wire(), handle, instance }
    }

    /// All columns, under their names (OUT-08).
    pub fn row(&self) -> Row {
        let reason = match &self.state {
            State::Lost { reason, .. } => Some(reason),
            _ => None,
        };
        Row::new([
            ("name", json!(self.name.as_str())),
            ("plugin", json!(self.plugin.as_str())),
            ("instance", json!(self.instance.as_str())),
            ("key", json!(self.key)),
            ("state", json!(self.state.word())),
            ("handle", json!(self.state.handle())),
            ("params", json!(self.params)),
            ("deadline_at", json!(self.facts.deadline_at)),
            ("idle_reclaim_ms", json!(self.facts.idle_reclaim_ms)),
            ("max_jobs", json!(self.facts.max_jobs)),
            ("reason", json!(reason)),
            ("since", json!(self.since.0)),
        ])
    }
}

const COLUMNS: &str = "name, plugin, instance, key, state, handle, params, deadline_at, idle_reclaim_ms, max_jobs, reason, since";

fn typed(tx: Tx<'_>, row: &rusqlite::Row<'_>) -> rusqlite::Result<(String, Result<Host, StoreError>)> {
    let name: String = row.get("name")?;
    let (plugin, instance): (String, String) = (row.get("plugin")?, row.get("instance")?);
    let key: String = row.get("key")?;
    let (word, handle): (String, Option<String>) = (row.get("state")?, row.get("handle")?);
    let (sent, reason): (String, Option<String>) = (row.get("params")?, row.get("reason")?);
    let number =
        |column: &str| row.get::<_, Option<i64>>(column).map(|number| number.map(i64::cast_unsigned));
    let (deadline, idle, jobs) = (number("deadline_at")?, number("idle_reclaim_ms")?, number("max_jobs")?);
    let since = EpochMs(row.get("since")?);
    let host = || {
        let bad = |column| tx.bad_row("hosts", &name, column);
        let handle = handle.map(Handle::new).transpose().map_err(|_| bad("handle"));
        let state = match (word.as_str(), handle?, reason) {
            ("acquiring", None, None) => State::Acquiring,
            ("ready", Some(handle), None) => State::Ready(handle),
            ("releasing", Some(handle), None) => State::Releasing(handle),
            ("lost", Some(handle), Some(reason)) => State::Lost { handle, reason },
            _ => return Err(bad("state")),
        };
        Ok(Host {
            name: name.parse().map_err(|_| bad("name"))?,
            plugin: plugin.parse().map_err(|_| bad("plugin"))?,
            instance: Instance::new(instance).map_err(|_| bad("instance"))?,
            key: Key::new(key).map_err(|_| bad("key"))?,
            state,
            params: serde_json::from_str(&sent).map_err(|_| bad("params"))?,
            facts: Facts {
                deadline_at: deadline.map(EpochMillis::new).transpose().map_err(|_| bad("deadline_at"))?,
                idle_reclaim_ms: idle.map(Millis::new).transpose().map_err(|_| bad("idle_reclaim_ms"))?,
                max_jobs: jobs.map(Count::new).transpose().map_err(|_| bad("max_jobs"))?,
            },
            since,
        })
    };
    let host = host();
    Ok((name, host))
}

/// All hosts with their names and in the order of these.
///
/// # Errors
/// What SQLite reports.
pub fn all(tx: Tx<'_>) -> Result<Named<Host>, StoreError> {
    let mut statement = tx.prepare(&format!("SELECT {COLUMNS} FROM hosts ORDER BY name"))?;
    tx.sql(statement.query_map([], |row| typed(tx, row)).and_then(Iterator::collect))
}

/// One host.
///
/// # Errors
/// [`StoreError::BadRow`] for a row that mu did not write, else what SQLite reports.
pub fn find(tx: Tx<'_>, name: &HostName) -> Result<Option<Host>, StoreError> {
    let sql = format!("SELECT {COLUMNS} FROM hosts WHERE name = ?1");
    let row = tx.first(&sql, [name.as_str()], |row| typed(tx, row))?;
    row.map(|(_, host)| host).transpose()
}

/// The host that `asked` was read as, as it is now; `None` when it is gone, whoever has its name by then.
///
/// # Errors
/// As [`find`].
pub fn again(tx: Tx<'_>, asked: &Host) -> Result<Option<Host>, StoreError> {
    Ok(find(tx, &asked.name)?.filter(|now| now.key == asked.key))
}

/// Whether a host has this name, be it a profile, and be its row one that mu can read or not.
///
/// # Errors
/// What SQLite reports.
pub fn is_known(tx: Tx<'_>, name: &HostName) -> Result<bool, StoreError> {
    let sql = "SELECT 1 FROM host_profiles WHERE name = ?1 UNION ALL SELECT 1 FROM hosts WHERE name = ?1";
    Ok(tx.first(sql, [name.as_str()], |_| Ok(()))?.is_some())
}

/// The names of all hosts, those of profiles among them, in order.
///
/// # Errors
/// What SQLite reports.
pub fn names(tx: Tx<'_>) -> Result<Vec<String>, StoreError> {
    let sql = "SELECT name FROM host_profiles UNION SELECT name FROM hosts ORDER BY name";
    let mut statement = tx.prepare(sql)?;
    tx.sql(statement.query_map([], |row| row.get(0)).and_then(Iterator::collect))
}

/// Stores a host, in place of what is stored under its name.
///
/// # Errors
/// What SQLite reports.
pub fn put(tx: Tx<'_>, host: &Host) -> Result<(), StoreError> {
    let sql = format!(
        "INSERT INTO hosts ({COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
        ON CONFLICT (name) DO UPDATE SET
            plugin = excluded.plugin, instance = excluded.instance, key = excluded.key, state = excluded.state,
            handle = excluded.handle,
            params = excluded.params, deadline_at = excluded.deadline_at,
            idle_reclaim_ms = excluded.idle_reclaim_ms, max_jobs = excluded.max_jobs, reason = excluded.reason,
            since = excluded.since"
    );
    let reason = match &host.state {
        State::Lost { reason, .. } => Some(reason),
        _ => None,
    };
    let Facts { deadline_at, idle_reclaim_ms, max_jobs } = host.facts;
    let row = params![
        host.name.as_str(),
        host.plugin.as_str(),
        host.instance.as_str(),
        host.key.as_str(),
        host.state.word(),
        host.state.handle().map(Handle::as_str),
        json!(host.params).to_string(),
        deadline_at.map(|number| number.value().cast_signed()),
        idle_reclaim_ms.map(|number| number.value().cast_signed()),
        max_jobs.map(|number| number.value().cast_signed()),
        reason,
        host.since.0,
    ];
    tx.execute(&sql, row).map(drop)
}

/// Removes a host.
///
/// # Errors
/// What SQLite reports.
pub fn remove(tx: Tx<'_>, name: &HostName) -> Result<(), StoreError> {
    tx.execute("DELETE FROM hosts WHERE name = ?1", [name.as_str()]).map(drop)
}

/// A row of a host in a list of both kinds: with its kind behind its name.
pub fn list_row(row: Row, kind: &'static str) -> Row {
    let mut listed = Row::default();
    for (column, value) in row.fields() {
        listed.push(column.clone(), value.clone());
        if column == "name" {
            listed.push("kind".into(), json!(kind));
        }
    }
    listed
}

#[cfg(test)]
mod tests;
