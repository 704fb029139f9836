//! `mu host rm <host>`: forgets a host that was added, unless a living process has a call on it, or one that is lost. Starts
//! no plugin, and works for a row that mu cannot read any more.

use serde_json::json;

use crate::cli::failure::{Failure, Kind};
use crate::cli::output::{Data, Output, Row};
use crate::invocation::Invocation;
use crate::os::Os;
use crate::store::hosts::{self, State};
use crate::store::profiles::{self, Profile};
use crate::store::{Missing, Store, StoreError, Tx, channels};
use crate::verbs::name::HostName;

/// Removes one host and returns the row it had.
///
/// # Errors
/// Nobody has that name (exit 3); a living process holds one of its channels, or it was acquired and not released (exit 4);
/// those of the database.
pub async fn run<O: Os>(invocation: &Invocation<O>, name: &HostName) -> Result<Output, Failure> {
    let store = Store::open(invocation, Missing::Empty).await?;
    let row = store.write(|tx| remove(tx, invocation.os(), name)).await?;
    let summary = Some(format!("host {name} is no longer registered"));
    Ok(Output { summary, ..Output::new(Data::Row(row)) })
}

fn remove<O: Os>(tx: Tx<'_>, os: &O, name: &HostName) -> Result<Row, Failure> {
    let profile = match profiles::find(tx, name) {
        Ok(profile) => profile.as_ref().map(Profile::row),
        Err(StoreError::BadRow { .. }) => Some(Row::new([("name", json!(name.as_str()))])),
        Err(error) => return Err(error.into()),
    };
    let Some(row) = profile else { return remove_lost(tx, name) };
    let holders = channels::reclaim(tx, os, name)?;
    if !holders.is_empty() {
        let pids: Vec<String> = holders.iter().map(|pid| format!("process {pid}")).collect();
        let message = format!("host {name} is in use by {}; try again once it is done", pids.join(", "));
        return Err(Failure::new(Kind::StillReferenced, message).or_else([format!("mu host rm {name}")]));
    }
    profiles::remove(tx, name)?;
    Ok(row)
}

/// A host that was acquired is forgotten once it is proven to be gone; before that it would be lost from sight.
fn remove_lost(tx: Tx<'_>, name: &HostName) -> Result<Row, Failure> {
    let Some(host) = hosts::find(tx, name)? else { return Err(name.unknown(&hosts::names(tx)?)) };
    if let State::Lost { .. } = host.state {
        hosts::remove(tx, name)?;
        return Ok(host.row());
    }
    let what = format!(
        "host {name} is {} and was acquired from plugin {}: it would be lost from sight; release it",
        host.state.word(),
        host.plugin
    );
    Err(Failure::new(Kind::StillReferenced, what).then([format!("mu host release {name}")]))
}
