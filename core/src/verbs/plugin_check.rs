//! `mu plugin check [name…]`: starts registered plugins side by side, holds each to the declaration that `add` recorded
//! (LOAD-19, REG-08), and stops them. It changes nothing. A row that mu cannot read is the failure of that plugin alone.

use std::collections::BTreeMap;

use futures_util::future::join_all;
use serde_json::json;

use crate::cli::failure::Failure;
use crate::cli::output::{Data, Output, Row};
use crate::invocation::{Invocation, Start, Stopped};
use crate::os::Os;
use crate::store::plugins::{self, Plugin};
use crate::store::{Missing, Named, Store, StoreError};
use crate::verbs::name::PluginName;

/// Checks the named plugins, or all. A list of rows `{name, ok, error, message}` when all pass.
///
/// # Errors
/// Nobody has one of the names (exit 3, nothing is started). When plugins fail, the failure of the first by name, which
/// counts them; each is a line on standard error.
pub async fn run<O: Os>(
    invocation: &Invocation<O>,
    names: &[PluginName],
    full: bool,
) -> Result<Output, Failure> {
    let store = Store::open(invocation, Missing::Empty).await?;
    let plugins =
        if names.is_empty() { store.read(plugins::all).await? } else { named(&store, names).await? };
    drop(store);

    let checked = join_all(plugins.iter().map(|(_, plugin)| check(invocation, plugin))).await;
    let results: Vec<_> = plugins.iter().map(|(name, _)| name.as_str()).zip(checked).collect();
    match first_failure(&results) {
        Some(failure) => Err(failure),
        None => Ok(passed(&results, names, full)),
    }
}

/// Those of these names, each once and in the order of their names.
async fn named<O: Os>(store: &Store<O>, names: &[PluginName]) -> Result<Named<Plugin>, Failure> {
    let mut plugins = BTreeMap::new();
    for name in names {
        let Some(plugin) = store.read(|tx| plugins::look(tx, name.as_str())).await? else {
            return Err(name.unknown(&store.read(plugins::names).await?));
        };
        plugins.insert(name.to_string(), plugin);
    }
    Ok(plugins.into_iter().collect())
}

async fn check<O: Os>(
    invocation: &Invocation<O>,
    plugin: &Result<Plugin, StoreError>,
) -> Result<Stopped, Failure> {
    let plugin = plugin.as_ref().map_err(StoreError::clone)?;
    let start = Start {
        name: plugin.name.clone(),
        argv: plugin.argv.clone(),
        recorded: Some(plugin.declaration.clone()),
        needs: Vec::new(),
    };
    let started = invocation.start(start).await;
    started.map_err(|error| Failure::start(&plugin.name, &plugin.argv, &error))?;
    Ok(invocation.stop(&plugin.name).await)
}

/// The failure of the first plugin by name; with several, its message counts them and `notes` has a line for each.
fn first_failure(results: &[(&str, Result<Stopped, Failure>)]) -> Option<Failure> {
    let mut failures = results.iter().filter_map(|(_, result)| result.as_ref().err());
    let mut first = failures.next()?.clone();
    let others: Vec<&Failure> = failures.collect();
    if !others.is_empty() {
        first.notes = others.iter().map(|failure| failure.message.clone()).collect();
        let failed: Vec<&str> =
            results.iter().filter_map(|(name, result)| result.is_err().then_some(*name)).collect();
        let (count, all) = (failed.len(), results.len());
        let message = format!("{} ({count} of {all} plugins fail: {})", first.message, failed.join(", "));
        let commands = failed.iter().map(|name| format!("mu plugin check {name}"));
        first = Failure { notes: first.notes, ..Failure::new(first.kind, message).or_else(commands) };
    }
    Some(first)
}

fn passed(results: &[(&str, Result<Stopped, Failure>)], names: &[PluginName], full: bool) -> Output {
    let message = |stopped: &Stopped| match stopped {
        Stopped::Clean => None,
        Stopped::Killed => Some("had to be killed: it did not end within 5 s of being asked to"),
    };
    let row = |(name, result): &(&str, Result<Stopped, Failure>)| {
        Row::new([
            ("name", json!(name)),
            ("ok", json!(true)),
            ("error", json!(null)),
            ("message", json!(result.as_ref().ok().and_then(message))),
        ])
    };
    let data = Data::List { table: "plugins", rows: results.iter().map(row).collect(), more: 0, cut: false };
    let words = names.iter().map(PluginName::as_str);
    let uncut =
        crate::cli::text::command(["mu", "plugin", "check"].into_iter().chain(words).chain(["--full"]));
    Output { uncut: (!full).then_some(uncut), ..Output::new(data) }
}

#[cfg(test)]
mod tests;
