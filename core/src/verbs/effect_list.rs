//! `mu effect list`: the effects without a definite answer, oldest first. Starts no plugin, and creates no database.

use std::collections::BTreeMap;

use serde_json::json;

use crate::cli::failure::Failure;
use crate::cli::output::{Data, Output, Row};
use crate::invocation::Invocation;
use crate::journal::outlook;
use crate::os::Os;
use crate::store::effects::{self, Effect};
use crate::store::plugins::{self, Plugin};
use crate::store::{Missing, Named, Store, StoreError, Tx};
use crate::verbs::name::PluginName;

/// Lists them all; with `full`, uncut.
///
/// # Errors
/// Those of the database.
pub async fn run<O: Os>(invocation: &Invocation<O>, full: bool) -> Result<Output, Failure> {
    let os = invocation.os();
    let store = Store::open(invocation, Missing::Empty).await?;
    let (effects, plugins) = store.read(read).await?;
    let (mut rows, mut notes) = (Vec::new(), Vec::new());
    for (key, effect) in effects {
        let effect = match effect {
            Ok(effect) => effect,
            Err(error) => {
                rows.push(Row::new([("key", json!(key))]));
                notes.push(Failure::from(error).message);
                continue;
            }
        };
        let plugin = plugins.get(&effect.plugin).and_then(Option::as_ref);
        let outlook = outlook::of(os, &effect, plugin);
        rows.push(Row::new([
            ("key", json!(effect.key)),
            ("method", json!(effect.method.as_str())),
            ("host", json!(effect.host.as_str())),
            ("plugin", json!(effect.plugin.as_str())),
            ("instance", json!(effect.instance.as_str())),
            ("begun_at", json!(effect.begun.wall.0)),
            ("why", json!(outlook.why)),
            ("resolved_by", json!(outlook.resolved_by)),
        ]));
    }
    let data = Data::List { table: "effects", rows, more: 0, cut: false };
    Ok(Output { notes, uncut: (!full).then(|| "mu effect list --full".into()), ..Output::new(data) })
}

/// The plugins that effects name; without a value, those whose row mu cannot read.
type Plugins = BTreeMap<PluginName, Option<Plugin>>;

fn read(tx: Tx<'_>) -> Result<(Named<Effect>, Plugins), StoreError> {
    let effects = effects::all(tx)?;
    let mut plugins = Plugins::new();
    for effect in effects.iter().filter_map(|(_, effect)| effect.as_ref().ok()) {
        if !plugins.contains_key(&effect.plugin) {
            let plugin = plugins::look(tx, effect.plugin.as_str())?.and_then(Result::ok);
            plugins.insert(effect.plugin.clone(), plugin);
        }
    }
    Ok((effects, plugins))
}
