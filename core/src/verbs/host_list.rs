//! `mu host list`: the registered hosts, by name. Starts no plugin (PRC-01), and creates no database.

use crate::cli::failure::Failure;
use crate::cli::output::{Data, Output};
use crate::invocation::Invocation;
use crate::os::Os;
use crate::store::hosts::{self, Host};
use crate::store::{Missing, Store};

/// Lists all hosts; with `full`, uncut.
///
/// # Errors
/// Those of the database.
pub async fn run<O: Os>(invocation: &Invocation<O>, full: bool) -> Result<Output, Failure> {
    let store = Store::open(invocation, Missing::Empty).await?;
    let hosts = store.read(hosts::all).await?;
    let data = Data::List {
        table: "host_profiles",
        rows: hosts.iter().map(Host::row).collect(),
        more: 0,
        cut: false,
    };
    Ok(Output { uncut: (!full).then(|| "mu host list --full".into()), ..Output::new(data) })
}
