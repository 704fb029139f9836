//! `mu plugin show <name>`: what a plugin is registered with and what it declared.

use crate::cli::failure::Failure;
use crate::cli::output::{Data, Output};
use crate::invocation::Invocation;
use crate::os::Os;
use crate::store::{Missing, Store, plugins};
use crate::verbs::name::PluginName;

/// Shows one plugin; with `full`, uncut.
///
/// # Errors
/// Nobody has that name (exit 3), or those of the database.
pub async fn run<O: Os>(
    invocation: &Invocation<O>,
    name: &PluginName,
    full: bool,
) -> Result<Output, Failure> {
    let store = Store::open(invocation, Missing::Empty).await?;
    let Some(plugin) = store.read(|tx| plugins::find(tx, name.as_str())).await? else {
        return Err(name.unknown(&store.read(plugins::names).await?));
    };
    let uncut = (!full).then(|| format!("mu plugin show {name} --full"));
    Ok(Output { uncut, ..Output::new(Data::Row(plugin.row())) })
}
