//! `mu host list`: the hosts, those that were added and those that were acquired, by name. Starts no plugin (PRC-01), and
//! creates no database. Of a row that mu cannot read it shows the name, and says on standard error why and what to do.

use serde_json::json;

use crate::cli::failure::Failure;
use crate::cli::output::{Data, Output, Row};
use crate::invocation::Invocation;
use crate::os::Os;
use crate::store::hosts::list_row;
use crate::store::{Missing, Store, hosts, profiles};

/// Lists all hosts; with `full`, uncut.
///
/// # Errors
/// Those of the database.
pub async fn run<O: Os>(invocation: &Invocation<O>, full: bool) -> Result<Output, Failure> {
    let store = Store::open(invocation, Missing::Empty).await?;
    let (profiles, hosts) = store.read(|tx| Ok((profiles::all(tx)?, hosts::all(tx)?))).await?;
    let profiles =
        profiles.into_iter().map(|(name, row)| (name, row.map(|row| list_row(row.row(), "profile"))));
    let hosts = hosts.into_iter().map(|(name, row)| (name, row.map(|row| list_row(row.row(), "provider"))));
    let mut all: Vec<_> = profiles.chain(hosts).collect();
    all.sort_by(|(one, _), (other, _)| one.cmp(other));
    let (mut rows, mut notes) = (Vec::new(), Vec::new());
    for (name, row) in all {
        rows.push(row.unwrap_or_else(|error| {
            notes.push(Failure::from(error).message);
            Row::new([("name", json!(name))])
        }));
    }
    let data = Data::List { table: "hosts", rows, more: 0, cut: false };
    Ok(Output { notes, uncut: (!full).then(|| "mu host list --full".into()), ..Output::new(data) })
}
