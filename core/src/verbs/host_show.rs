//! `mu host show <host>`: what a host is registered with.

use crate::cli::failure::Failure;
use crate::cli::output::{Data, Output};
use crate::invocation::Invocation;
use crate::os::Os;
use crate::store::{Missing, Store, hosts};
use crate::verbs::name::HostName;

/// Shows one host; with `full`, uncut.
///
/// # Errors
/// Nobody has that name (exit 3), or those of the database.
pub async fn run<O: Os>(invocation: &Invocation<O>, name: &HostName, full: bool) -> Result<Output, Failure> {
    let store = Store::open(invocation, Missing::Empty).await?;
    let Some(host) = store.read(|tx| hosts::find(tx, name)).await? else {
        return Err(name.unknown(&store.read(hosts::names).await?));
    };
    let uncut = (!full).then(|| format!("mu host show {name} --full"));
    Ok(Output { uncut, ..Output::new(Data::Row(host.row())) })
}
