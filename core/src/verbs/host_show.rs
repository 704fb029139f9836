//! `mu host show <host>`: what a host is registered with, or what is recorded of one that was acquired, with the effect that
//! is open on it. Starts no plugin.

use serde_json::json;

use crate::cli::failure::Failure;
use crate::cli::output::{Data, Output};
use crate::invocation::Invocation;
use crate::os::Os;
use crate::store::{Missing, Store, Tx, effects, hosts, profiles};
use crate::verbs::name::HostName;

/// Shows one host; with `full`, uncut.
///
/// # Errors
/// Nobody has that name (exit 3), or those of the database.
pub async fn run<O: Os>(invocation: &Invocation<O>, name: &HostName, full: bool) -> Result<Output, Failure> {
    let store = Store::open(invocation, Missing::Empty).await?;
    let find = |tx: Tx<'_>| {
        if let Some(profile) = profiles::find(tx, name)? {
            return Ok(Some(profile.row()));
        }
        let Some(host) = hosts::find(tx, name)? else { return Ok(None) };
        let effect = effects::of_host(tx, name)?;
        let mut row = host.row();
        row.push("effect".into(), json!(effect.map(|effect| effect.key)));
        Ok(Some(row))
    };
    let Some(row) = store.read(find).await? else {
        return Err(name.unknown(&store.read(hosts::names).await?));
    };
    let uncut = (!full).then(|| format!("mu host show {name} --full"));
    Ok(Output { uncut, ..Output::new(Data::Row(row)) })
}
