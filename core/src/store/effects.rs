//! The tables `effects`, `effect_sends` and `effect_verdicts`: effects that were sent, or were about to be, and have no
//! definite answer yet (EFF-02, EFF-03). What becomes of them is decided in [`crate::journal`].

use std::time::Duration;

use mu_protocol::declaration::Declaration;
use mu_protocol::messages::method::Method;
use mu_protocol::messages::values::{EpochMillis, Handle, Instance, Key};
use rusqlite::params;
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::cli::output::Row;
use crate::journal::moment::Moment;
use crate::journal::proof::{Parties, ProvenDead, Warrant};
use crate::journal::rules::{Open, Ways};
use crate::os::{BootTime, EpochMs, Pid, ProcessId};
use crate::store::{Named, StoreError, Tx};
use crate::verbs::name::{HostName, PluginName};

/// An effect without a definite answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Effect {
    /// mu's name for it, which goes with every send.
    pub key: Key,
    /// What was to be done.
    pub method: Method,
    /// The plugin it was sent to.
    pub plugin: PluginName,
    /// The instance of the plugin.
    pub instance: Instance,
    /// The host it is about.
    pub host: HostName,
    /// Its parameters without their deadline, byte for byte as they were sent.
    pub params: String,
    /// The mu that wrote the intent.
    pub writer: ProcessId,
    /// The mu that last set about resolving it.
    pub resolver: Option<ProcessId>,
    /// When the intent was written, before the first send.
    pub begun: Moment,
    /// Since when all who had to do with it are known to be gone.
    pub quiet: Option<Moment>,
    /// How long, in milliseconds, its plugin declared to recognise a repeat when it was sent.
    pub window_ms: Option<u64>,
    /// How long, in milliseconds, its plugin declared that it may be on its way when it was sent.
    pub in_flight_ms: Option<u64>,
    /// A later delivery to the same agent was written.
    pub superseded: bool,
    /// What is known of it, in one line.
    pub note: Option<String>,
    /// Every time it was written to a plugin, in order.
    pub sends: Vec<Sent>,
}

/// One time that an effect was written to a plugin, or was about to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    /// The id of the request.
    pub request_id: u64,
    /// Its deadline.
    pub deadline: EpochMillis,
    /// The leader of the plugin's process group.
    pub group: ProcessId,
    /// When.
    pub at: EpochMs,
}

impl Effect {
    /// All who ever had to do with it.
    pub fn parties(&self) -> Parties {
        let mut groups: Vec<ProcessId> = Vec::new();
        for sent in &self.sends {
            if !groups.contains(&sent.group) {
                groups.push(sent.group.clone());
            }
        }
        Parties { writer: self.writer.clone(), resolver: self.resolver.clone(), groups }
    }

    /// What the rules look at.
    pub fn open(&self) -> Open<'_> {
        let Effect { method, instance, begun, superseded, .. } = self;
        Open { method: *method, instance: instance.as_str(), begun, superseded: *superseded }
    }

    /// What its plugin's declaration offers for it now, held to what it declared when it was sent.
    pub fn ways(&self, declared: &Declaration) -> Ways {
        Ways::of(self.method, declared).held_to((self.window_ms, self.in_flight_ms))
    }

    /// All columns but the parameters' text, under their names (OUT-08).
    pub fn row(&self) -> Row {
        let time = |moment: &Moment| json!(moment.wall.0);
        Row::new([
            ("key", json!(self.key.as_str())),
            ("method", json!(self.method.as_str())),
            ("host", json!(self.host.as_str())),
            ("plugin", json!(self.plugin.as_str())),
            ("instance", json!(self.instance.as_str())),
            ("begun_at", time(&self.begun)),
            ("quiet_at", json!(self.quiet.as_ref().map(|quiet| quiet.wall.0))),
            ("writer_pid", json!(self.writer.pid.0)),
            ("resolver_pid", json!(self.resolver.as_ref().map(|resolver| resolver.pid.0))),
            ("sends", json!(self.sends.len())),
            ("params_sha256", json!(digest(&self.params))),
            ("note", json!(self.note)),
        ])
    }
}

/// The lower-case hex SHA-256 of a text.
fn digest(text: &str) -> String {
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

const COLUMNS: &str = "key, method, plugin, instance, host, params, params_sha256, writer_pid, writer_started, writer_boot,
    resolver_pid, resolver_started, resolver_boot, begun_at, begun_boot, begun_boottime_ms, quiet_at, quiet_boot,
    quiet_boottime_ms, window_ms, in_flight_ms, superseded, note";

fn process(row: &rusqlite::Row<'_>, prefix: &str) -> rusqlite::Result<Option<ProcessId>> {
    let column = |name: &str| format!("{prefix}{name}");
    let Some(pid) = row.get::<_, Option<i32>>(column("pid").as_str())? else { return Ok(None) };
    let started = row.get::<_, i64>(column("started").as_str())?.cast_unsigned();
    Ok(Some(ProcessId { pid: Pid(pid), started, boot: row.get(column("boot").as_str())? }))
}

fn moment(row: &rusqlite::Row<'_>, prefix: &str) -> rusqlite::Result<Option<Moment>> {
    let column = |name: &str| format!("{prefix}{name}");
    let Some(wall) = row.get::<_, Option<i64>>(column("at").as_str())? else { return Ok(None) };
    let ms = row.get::<_, i64>(column("boottime_ms").as_str())?.cast_unsigned();
    let boot = BootTime { boot: row.get(column("boot").as_str())?, since: Duration::from_millis(ms) };
    Ok(Some(Moment { wall: EpochMs(wall), boot }))
}

fn typed(tx: Tx<'_>, row: &rusqlite::Row<'_>) -> rusqlite::Result<(String, Result<Effect, StoreError>)> {
    let key: String = row.get("key")?;
    let (method, plugin): (String, String) = (row.get("method")?, row.get("plugin")?);
    let (instance, host): (String, String) = (row.get("instance")?, row.get("host")?);
    let (sent, sha256): (String, String) = (row.get("params")?, row.get("params_sha256")?);
    let (writer, resolver) = (process(row, "writer_")?, process(row, "resolver_")?);
    let (begun, quiet) = (moment(row, "begun_")?, moment(row, "quiet_")?);
    let span = |column: &str| row.get::<_, Option<i64>>(column).map(|span| span.map(i64::cast_unsigned));
    let (window_ms, in_flight_ms) = (span("window_ms")?, span("in_flight_ms")?);
    let (superseded, note) = (row.get("superseded")?, row.get("note")?);
    let effect = || {
        let bad = |column| tx.bad_row("effects", &key, column);
        if digest(&sent) != sha256 {
            return Err(bad("params"));
        }
        Ok(Effect {
            key: Key::new(key.as_str()).map_err(|_| bad("key"))?,
            method: Method::parse(&method)
                .filter(|method| method.is_effect())
                .ok_or_else(|| bad("method"))?,
            plugin: plugin.parse().map_err(|_| bad("plugin"))?,
            instance: Instance::new(instance).map_err(|_| bad("instance"))?,
            host: host.parse().map_err(|_| bad("host"))?,
            params: sent,
            writer: writer.ok_or_else(|| bad("writer_pid"))?,
            resolver,
            begun: begun.ok_or_else(|| bad("begun_at"))?,
            quiet,
            window_ms,
            in_flight_ms,
            superseded,
            note,
            sends: Vec::new(),
        })
    };
    let effect = effect();
    Ok((key, effect))
}

fn sends(tx: Tx<'_>, key: &str) -> Result<Vec<Sent>, StoreError> {
    let sql = "SELECT request_id, deadline, pgid AS pid, started, boot, at FROM effect_sends WHERE effect = ?1 ORDER BY rowid";
    let mut statement = tx.prepare(sql)?;
    let sent = |row: &rusqlite::Row<'_>| {
        let (id, deadline): (i64, i64) = (row.get("request_id")?, row.get("deadline")?);
        let (group, at) = (process(row, "")?, EpochMs(row.get("at")?));
        Ok((id, deadline, group, at))
    };
    let rows = statement.query_map([key], sent).and_then(Iterator::collect);
    let rows: Vec<(i64, i64, Option<ProcessId>, EpochMs)> = tx.sql(rows)?;
    let bad = |column| tx.bad_row("effect_sends", key, column);
    let typed = |(id, deadline, group, at): (i64, i64, Option<ProcessId>, EpochMs)| {
        Ok(Sent {
            request_id: id.cast_unsigned(),
            deadline: EpochMillis::new(deadline.cast_unsigned()).map_err(|_| bad("deadline"))?,
            group: group.ok_or_else(|| bad("pgid"))?,
            at,
        })
    };
    rows.into_iter().map(typed).collect()
}

fn select(tx: Tx<'_>, condition: &str, of: impl rusqlite::Params) -> Result<Named<Effect>, StoreError> {
    let sql = format!("SELECT {COLUMNS} FROM effects {condition} ORDER BY id");
    let mut statement = tx.prepare(&sql)?;
    let rows = statement.query_map(of, |row| typed(tx, row)).and_then(Iterator::collect);
    let rows: Named<Effect> = tx.sql(rows)?;
    let with_sends = |(key, effect): (String, Result<Effect, StoreError>)| {
        let effect = effect.and_then(|effect| Ok(Effect { sends: sends(tx, &key)?, ..effect }));
        (key, effect)
    };
    Ok(rows.into_iter().map(with_sends).collect())
}

/// All of them with their keys, oldest first.
///
/// # Errors
/// What SQLite reports.
pub fn all(tx: Tx<'_>) -> Result<Named<Effect>, StoreError> {
    select(tx, "", [])
}

/// One of them.
///
/// # Errors
/// [`StoreError::BadRow`] for a row that mu did not write, else what SQLite reports.
pub fn find(tx: Tx<'_>, key: &str) -> Result<Option<Effect>, StoreError> {
    select(tx, "WHERE key = ?1", [key])?.pop().map(|(_, effect)| effect).transpose()
}

/// The acquire or the release of a host.
///
/// # Errors
/// As [`find`].
pub fn of_host(tx: Tx<'_>, host: &HostName) -> Result<Option<Effect>, StoreError> {
    let condition = "WHERE host = ?1 AND method IN ('host.acquire', 'host.release')";
    select(tx, condition, [host.as_str()])?.pop().map(|(_, effect)| effect).transpose()
}

/// Writes an intent with its first send. To be committed before anything of the request is written (EFF-02).
///
/// # Errors
/// What SQLite reports.
pub fn open(tx: Tx<'_>, effect: &Effect) -> Result<(), StoreError> {
    let sql = "INSERT INTO effects (key, method, plugin, instance, host, params, params_sha256, writer_pid, writer_started,
            writer_boot, begun_at, begun_boot, begun_boottime_ms, window_ms, in_flight_ms)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)";
    let Effect { writer, begun, .. } = effect;
    let row = params![
        effect.key.as_str(),
        effect.method.as_str(),
        effect.plugin.as_str(),
        effect.instance.as_str(),
        effect.host.as_str(),
        effect.params,
        digest(&effect.params),
        writer.pid.0,
        writer.started.cast_signed(),
        writer.boot,
        begun.wall.0,
        begun.boot.boot,
        // Down: no more of a window may seem to be left than is.
        floor_ms(begun.boot.since),
        effect.window_ms.map(u64::cast_signed),
        effect.in_flight_ms.map(u64::cast_signed),
    ];
    tx.execute(sql, row)?;
    effect.sends.iter().try_for_each(|sent| add_send(tx, &effect.key, sent))
}

/// Adds a send. To be committed before anything of the request is written; nobody is quiet any more.
///
/// # Errors
/// What SQLite reports.
pub fn add_send(tx: Tx<'_>, key: &Key, sent: &Sent) -> Result<(), StoreError> {
    let sql = "INSERT INTO effect_sends (effect, request_id, deadline, pgid, started, boot, at)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    let Sent { request_id, deadline, group, at } = sent;
    let row = params![
        key.as_str(),
        request_id.cast_signed(),
        deadline.value().cast_signed(),
        group.pid.0,
        group.started.cast_signed(),
        group.boot,
        at.0,
    ];
    tx.execute(sql, row)?;
    let quiet =
        "UPDATE effects SET quiet_at = NULL, quiet_boot = NULL, quiet_boottime_ms = NULL WHERE key = ?1";
    tx.execute(quiet, [key.as_str()]).map(drop)
}

/// Makes this process the one that resolves it.
///
/// # Errors
/// What SQLite reports.
pub fn claim(tx: Tx<'_>, key: &Key, resolver: &ProcessId) -> Result<(), StoreError> {
    let sql =
        "UPDATE effects SET resolver_pid = ?2, resolver_started = ?3, resolver_boot = ?4 WHERE key = ?1";
    let row = params![key.as_str(), resolver.pid.0, resolver.started.cast_signed(), resolver.boot];
    tx.execute(sql, row).map(drop)
}

/// Leaves it to whoever comes next, with what is known of it.
///
/// # Errors
/// What SQLite reports.
pub fn leave(tx: Tx<'_>, key: &Key, note: &str) -> Result<(), StoreError> {
    let sql = "UPDATE effects SET resolver_pid = NULL, resolver_started = NULL, resolver_boot = NULL, note = ?2 WHERE key = ?1";
    tx.execute(sql, [key.as_str(), note]).map(drop)
}

/// Keeps since when all who had to do with it are gone, unless that is known.
///
/// # Errors
/// What SQLite reports.
pub fn keep_quiet(tx: Tx<'_>, key: &Key, quiet: &Moment) -> Result<(), StoreError> {
    let sql = "UPDATE effects SET quiet_at = ?2, quiet_boot = ?3, quiet_boottime_ms = ?4 WHERE key = ?1 AND quiet_at IS NULL";
    // Up: no more time may seem to have passed than has.
    let since = floor_ms(quiet.boot.since + Duration::from_nanos(999_999));
    let row = params![key.as_str(), quiet.wall.0, quiet.boot.boot, since];
    tx.execute(sql, row).map(drop)
}

fn floor_ms(span: Duration) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX)
}

/// Deletes an intent. In the same transaction, the rows become what follows from the answer.
///
/// # Errors
/// What SQLite reports.
pub fn close(tx: Tx<'_>, key: &Key, _: Warrant) -> Result<(), StoreError> {
    tx.execute("DELETE FROM effects WHERE key = ?1", [key.as_str()]).map(drop)
}

/// What an operator says of an effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It took place; of an acquire the host's handle is known.
    Done(Option<Handle>),
    /// It did not, and never will.
    Undone,
}

/// Records an operator's last word and deletes the intent.
///
/// # Errors
/// What SQLite reports.
pub fn judge(
    tx: Tx<'_>,
    effect: &Effect,
    verdict: &Verdict,
    because: &str,
    at: EpochMs,
    dead: &ProvenDead,
) -> Result<(), StoreError> {
    let sql = "INSERT INTO effect_verdicts (key, method, plugin, instance, host, verdict, because, at)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
    let word = match verdict {
        Verdict::Done(_) => "done",
        Verdict::Undone => "undone",
    };
    let row = params![
        effect.key.as_str(),
        effect.method.as_str(),
        effect.plugin.as_str(),
        effect.instance.as_str(),
        effect.host.as_str(),
        word,
        because,
        at.0,
    ];
    tx.execute(sql, row)?;
    close(tx, &effect.key, Warrant::operators_word(dead))
}

#[cfg(test)]
mod tests;
