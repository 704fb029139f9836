//! `mu effect show <key>`: all that is known of an effect without a definite answer. Starts no plugin.

use serde_json::{Value, json};

use crate::cli::failure::{Failure, Kind};
use crate::cli::output::{Data, Output};
use crate::cli::text::quote;
use crate::invocation::Invocation;
use crate::journal::outlook;
use crate::os::Os;
use crate::store::{Missing, Store, effects, plugins};

/// Shows one; with `full`, uncut.
///
/// # Errors
/// No open effect has that key (exit 3), or those of the database.
pub async fn run<O: Os>(invocation: &Invocation<O>, key: &str, full: bool) -> Result<Output, Failure> {
    let store = Store::open(invocation, Missing::Empty).await?;
    let Some(effect) = store.read(|tx| effects::find(tx, key)).await? else { return Err(unknown(key)) };
    let plugin = store.read(|tx| plugins::find(tx, effect.plugin.as_str())).await?;
    let outlook = outlook::of(invocation.os(), &effect, plugin.as_ref());
    let mut row = effect.row();
    row.push("why".into(), json!(outlook.why));
    row.push("resolved_by".into(), json!(outlook.resolved_by));
    let groups: Vec<i32> = effect.parties().groups.iter().map(|group| group.pid.0).collect();
    row.push("groups".into(), json!(groups));
    row.push("params".into(), serde_json::from_str(&effect.params).unwrap_or(Value::Null));
    let uncut = (!full).then(|| format!("mu effect show {key} --full"));
    Ok(Output { uncut, ..Output::new(Data::Row(row)) })
}

/// A key that no open effect has.
pub(crate) fn unknown(key: &str) -> Failure {
    let key = quote(key);
    let what = format!("no open effect has the key {key}: one that has its answer is no longer kept");
    Failure::new(Kind::UnknownEffect, what).or_else(["mu effect list"])
}
