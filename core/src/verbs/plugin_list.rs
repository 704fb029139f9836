//! `mu plugin list`: the registered plugins, by name. Starts none (PRC-01), and creates no database.

use crate::cli::failure::Failure;
use crate::cli::output::{Data, Output};
use crate::invocation::Invocation;
use crate::os::Os;
use crate::store::plugins::{self, Plugin};
use crate::store::{Missing, Store};

/// Lists all plugins; with `full`, uncut.
///
/// # Errors
/// Those of the database.
pub async fn run<O: Os>(invocation: &Invocation<O>, full: bool) -> Result<Output, Failure> {
    let store = Store::open(invocation, Missing::Empty).await?;
    let plugins = store.read(plugins::all).await?;
    let rows = plugins.iter().map(Plugin::list_row).collect();
    let data = Data::List { table: "plugins", rows, more: 0, cut: false };
    Ok(Output { uncut: (!full).then(|| "mu plugin list --full".into()), ..Output::new(data) })
}
