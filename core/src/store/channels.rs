//! The table `host_channels`: one row for each link call that holds a channel of a host (SEAM-04). A holder is a process,
//! known by pid, start time and boot; the rows of one that no longer lives count for nothing and are removed.

use rusqlite::params;

use crate::os::{Os, Pid, ProcessId};
use crate::reached;
use crate::store::{StoreError, Tx};
use crate::verbs::name::HostName;

/// A channel that is held, by the id of its row.
#[derive(Debug, PartialEq, Eq)]
pub struct Held(i64);

/// What came of an attempt to take a channel.
#[derive(Debug, PartialEq, Eq)]
pub enum Taken {
    /// This process has it now.
    Yes(Held),
    /// None is free: these processes have them, one entry for each channel.
    No(Vec<Pid>),
}

/// Takes a channel of a host for this process, unless living holders have `max` already.
///
/// # Errors
/// What SQLite reports.
pub fn take<O: Os>(tx: Tx<'_>, os: &O, host: &HostName, max: u32) -> Result<Taken, StoreError> {
    let holders = reclaim(tx, os, host)?;
    if holders.len() >= max as usize {
        return Ok(Taken::No(holders));
    }
    let ProcessId { pid, started, boot } = os.identify(os.env().pid).expect("mu itself lives");
    let sql = "INSERT INTO host_channels (host, pid, started, boot, since) VALUES (?1, ?2, ?3, ?4, ?5)";
    let row = params![host.as_str(), pid.0, started.cast_signed(), boot, os.wall().0];
    tx.execute(sql, row)?;
    Ok(Taken::Yes(Held(tx.db.last_insert_rowid())))
}

/// Gives a channel back.
///
/// # Errors
/// What SQLite reports.
pub fn free(tx: Tx<'_>, held: &Held) -> Result<(), StoreError> {
    tx.execute("DELETE FROM host_channels WHERE id = ?1", [held.0]).map(drop)
}

/// Takes the channels of a host away from holders that no longer live. Returns the pids of those that do, one for each
/// channel they hold.
///
/// # Errors
/// What SQLite reports.
pub fn reclaim<O: Os>(tx: Tx<'_>, os: &O, host: &HostName) -> Result<Vec<Pid>, StoreError> {
    let sql = "SELECT id, pid, started, boot FROM host_channels WHERE host = ?1 ORDER BY id";
    let mut statement = tx.prepare(sql)?;
    let holder = |row: &rusqlite::Row<'_>| {
        let started = row.get::<_, i64>(2)?.cast_unsigned();
        Ok((Held(row.get(0)?), ProcessId { pid: Pid(row.get(1)?), started, boot: row.get(3)? }))
    };
    let rows = statement.query_map([host.as_str()], holder).and_then(Iterator::collect);
    let rows: Vec<(Held, ProcessId)> = tx.sql(rows)?;
    let mut living = Vec::new();
    for (held, holder) in rows {
        if os.identify(holder.pid).as_ref() == Some(&holder) {
            living.push(holder.pid);
        } else {
            reached!("A-37 a channel is taken back from the dead");
            free(tx, &held)?;
        }
    }
    Ok(living)
}

#[cfg(test)]
mod tests;
