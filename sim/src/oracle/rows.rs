//! What mu has written down about hosts and effects, read from its database by SQL alone: an image of the disk is opened as
//! any program would open it, and none of mu's code takes part.

use std::path::PathBuf;

use rusqlite::Connection;
use serde_json::Value;

/// The rows of a database, or of several.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rows {
    /// Registered plugins.
    pub plugins: Vec<PluginRow>,
    /// Hosts that plugins provide.
    pub hosts: Vec<HostRow>,
    /// Effects without a definite answer.
    pub effects: Vec<EffectRow>,
    /// What operators said of effects.
    pub verdicts: Vec<VerdictRow>,
}

/// A registered plugin.
#[derive(Clone, Debug, PartialEq)]
pub struct PluginRow {
    /// Its name.
    pub name: String,
    /// The instance that it declared.
    pub instance: String,
    /// All that it declared.
    pub declaration: Value,
}

/// A host that a plugin provides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostRow {
    /// Its name.
    pub name: String,
    /// Its provider.
    pub plugin: String,
    /// The instance of that.
    pub instance: String,
    /// `acquiring`, `ready`, `releasing` or `lost`.
    pub state: String,
    /// What its provider calls it.
    pub handle: Option<String>,
}

/// An effect without a definite answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EffectRow {
    /// mu's name for it.
    pub key: String,
    /// What was to be done.
    pub method: String,
    /// By which plugin.
    pub plugin: String,
    /// The instance of that.
    pub instance: String,
    /// To which host.
    pub host: String,
    /// Its parameters without the deadline.
    pub params: String,
    /// The digest of these.
    pub sha256: String,
    /// Each time that it was sent: the id of the request, its deadline and the group that was to get it.
    pub sends: Vec<(u64, u64, i32)>,
}

/// An operator's last word about an effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerdictRow {
    /// The key of the effect.
    pub key: String,
    /// The host that it was about.
    pub host: String,
}

impl Rows {
    /// Adds other ones.
    pub fn add(&mut self, other: Rows) {
        self.plugins.extend(other.plugins);
        self.hosts.extend(other.hosts);
        self.effects.extend(other.effects);
        self.verdicts.extend(other.verdicts);
    }

    /// Adds those of one database. One without mu's tables adds nothing.
    ///
    /// # Errors
    /// SQLite's.
    pub fn read(&mut self, db: &Connection) -> rusqlite::Result<()> {
        let tables = tables(db)?;
        let has = |table: &str| tables.iter().any(|one| one == table);
        if has("plugins") {
            let mut all =
                db.prepare_cached("SELECT name, instance, declaration FROM plugins ORDER BY name")?;
            let row = |row: &rusqlite::Row<'_>| {
                let declaration: String = row.get(2)?;
                let declaration = serde_json::from_str(&declaration).unwrap_or_default();
                Ok(PluginRow { name: row.get(0)?, instance: row.get(1)?, declaration })
            };
            for one in all.query_map([], row)? {
                self.plugins.push(one?);
            }
        }
        if has("hosts") {
            let mut all =
                db.prepare_cached("SELECT name, plugin, instance, state, handle FROM hosts ORDER BY name")?;
            let row = |row: &rusqlite::Row<'_>| {
                Ok(HostRow {
                    name: row.get(0)?,
                    plugin: row.get(1)?,
                    instance: row.get(2)?,
                    state: row.get(3)?,
                    handle: row.get(4)?,
                })
            };
            for one in all.query_map([], row)? {
                self.hosts.push(one?);
            }
        }
        if has("effects") {
            self.read_effects(db)?;
        }
        if has("effect_verdicts") {
            let mut all = db.prepare_cached("SELECT key, host FROM effect_verdicts ORDER BY id")?;
            for one in all.query_map([], |row| Ok(VerdictRow { key: row.get(0)?, host: row.get(1)? }))? {
                self.verdicts.push(one?);
            }
        }
        Ok(())
    }

    fn read_effects(&mut self, db: &Connection) -> rusqlite::Result<()> {
        let mut all = db.prepare_cached(
            "SELECT key, method, plugin, instance, host, params, params_sha256 FROM effects ORDER BY id",
        )?;
        let mut sends = db.prepare_cached(
            "SELECT request_id, deadline, pgid FROM effect_sends WHERE effect = ?1 ORDER BY rowid",
        )?;
        let row = |row: &rusqlite::Row<'_>| {
            Ok(EffectRow {
                key: row.get(0)?,
                method: row.get(1)?,
                plugin: row.get(2)?,
                instance: row.get(3)?,
                host: row.get(4)?,
                params: row.get(5)?,
                sha256: row.get(6)?,
                sends: Vec::new(),
            })
        };
        for one in all.query_map([], row)? {
            let mut one = one?;
            let send = |row: &rusqlite::Row<'_>| {
                let (id, deadline): (i64, i64) = (row.get(0)?, row.get(1)?);
                Ok((id.unsigned_abs(), deadline.unsigned_abs(), row.get(2)?))
            };
            one.sends = sends.query_map([&one.key], send)?.collect::<Result<_, _>>()?;
            self.effects.push(one);
        }
        Ok(())
    }
}

fn tables(db: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut all = db.prepare_cached("SELECT name FROM sqlite_schema WHERE type = 'table'")?;
    all.query_map([], |row| row.get(0))?.collect()
}

/// How a database begins.
const MAGIC: &[u8] = b"SQLite format 3";
/// So many bytes of each file are enough to tell the databases.
pub const HEAD_OF_A_DATABASE: u64 = MAGIC.len() as u64;

/// The databases among these files: all that begin like one, and all that have a log to write ahead.
pub fn databases(files: &[(PathBuf, Vec<u8>)]) -> Vec<PathBuf> {
    let has_log = |path: &PathBuf| {
        let mut log = path.clone().into_os_string();
        log.push("-wal");
        files.iter().any(|(other, bytes)| other.as_os_str() == log && !bytes.is_empty())
    };
    let is_one = |(path, bytes): &&(PathBuf, Vec<u8>)| bytes.starts_with(MAGIC) || has_log(path);
    files.iter().filter(is_one).map(|(path, _)| path.clone()).collect()
}
