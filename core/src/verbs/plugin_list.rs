//! `mu plugin list`: the registered plugins, by name. Starts none (PRC-01), and creates no database. Of a row that mu cannot
//! read it shows the name, and says on standard error why and what to do.

use serde_json::json;

use crate::cli::failure::Failure;
use crate::cli::output::{Data, Output, Row};
use crate::invocation::Invocation;
use crate::os::Os;
use crate::store::plugins;
use crate::store::{Missing, Store};

/// Lists all plugins; with `full`, uncut.
///
/// # Errors
/// Those of the database.
pub async fn run<O: Os>(invocation: &Invocation<O>, full: bool) -> Result<Output, Failure> {
    let store = Store::open(invocation, Missing::Empty).await?;
    let plugins = store.read(plugins::all).await?;
    let (mut rows, mut notes) = (Vec::new(), Vec::new());
    for (name, plugin) in plugins {
        match plugin {
            Ok(plugin) => rows.push(plugin.list_row()),
            Err(error) => {
                rows.push(Row::new([("name", json!(name))]));
                notes.push(Failure::from(error).message);
            }
        }
    }
    let data = Data::List { table: "plugins", rows, more: 0, cut: false };
    Ok(Output { notes, uncut: (!full).then(|| "mu plugin list --full".into()), ..Output::new(data) })
}
