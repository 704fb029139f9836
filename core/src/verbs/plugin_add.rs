//! `mu plugin add <name> -- <argv>`: checks the file, shakes hands once and stores what the plugin declares.
//!
//! Nothing is stored before the plugin has declared itself, and what is stored is judged again inside the transaction that
//! stores it: another mu may have registered something meanwhile. A failure leaves the row that was there (REG-10).

use mu_protocol::declaration::Declaration;

use crate::cli::failure::{Failure, Kind, add_command};
use crate::cli::output::{Data, Output};
use crate::invocation::{Invocation, Start, Stopped};
use crate::os::{EpochMs, Os};
use crate::store::plugins::{self, Plugin};
use crate::store::{Missing, Store, Tx, profiles};
use crate::trust;
use crate::verbs::name::PluginName;

/// Registers a plugin, or renews its declaration, and returns its row.
///
/// # Errors
/// The file is not trusted, the name has another command line, the declaration breaks a load rule, its channel is taken
/// (exit 4); the plugin did not get as far as a declaration (exit 5); those of the database.
pub async fn run<O: Os>(
    invocation: &Invocation<O>,
    name: &PluginName,
    argv: Vec<String>,
) -> Result<Output, Failure> {
    let os = invocation.os();
    // `start` checks again (REG-08); a refusal here leaves not even an empty database behind.
    let argv0 = argv.first().map_or("", String::as_str);
    trust::check(os, name.as_str(), argv0)
        .map_err(|error| Failure::start(name.as_str(), &argv, &error.into()))?;
    let store = Store::open(invocation, Missing::Create).await?;
    store.read(|tx| plugins::find(tx, name.as_str())).await?.map_or(Ok(()), |old| same_argv(&old, &argv))?;

    let start = Start { name: name.to_string(), argv: argv.clone(), recorded: None, needs: Vec::new() };
    let declared = invocation.start(start).await;
    let declaration = declared.map_err(|error| Failure::start(name.as_str(), &argv, &error))?;
    let now = os.wall();
    let plugin = store.write(|tx| record(tx, name, argv, declaration, now)).await?;

    let mut notes = Vec::new();
    if invocation.stop(name.as_str()).await == Stopped::Killed {
        let what = "did not end within 5 s of being asked to, and was killed";
        notes.push(format!("plugin {name} is registered, but {what}: it should exit when its stdin closes"));
    }
    let seams = plugin.seams().join(", ");
    let Declaration { plugin: identity, instance, .. } = &plugin.declaration;
    let summary = format!("plugin {name} {} is registered: {seams} (instance {instance})", identity.version);
    let uncut = Some(format!("mu plugin show {name} --full"));
    Ok(Output { summary: Some(summary), uncut, notes, ..Output::new(Data::Row(plugin.row())) })
}

/// REG-11: a name keeps its command line.
fn same_argv(old: &Plugin, argv: &[String]) -> Result<(), Failure> {
    if old.argv == argv {
        return Ok(());
    }
    let name = &old.name;
    let shown = crate::cli::text::command(&old.argv);
    let message = format!("plugin {name} is registered with another command line: {shown}; remove it first");
    let commands = [format!("mu plugin rm {name}"), add_command(name, argv)];
    Err(Failure::new(Kind::ArgvDiffers, message).then(commands))
}

/// Judges the declaration against the other rows, and stores it.
fn record(
    tx: Tx<'_>,
    name: &PluginName,
    argv: Vec<String>,
    declaration: Declaration,
    now: EpochMs,
) -> Result<Plugin, Failure> {
    let old = plugins::find(tx, name.as_str())?;
    if let Some(old) = &old {
        same_argv(old, &argv)?;
    }
    let added_at = old.map_or(now, |old| old.added_at);
    let plugin = Plugin { name: name.to_string(), argv, declaration, added_at, declared_at: now };
    if let Some(channel) = plugin.channel()
        && let Some(holder) = plugins::channel_holder(tx, channel, name.as_str())?
    {
        // REG-14
        let message = format!(
            "plugin {name} declares channel {channel:?}, which plugin {holder} holds; remove {holder} or rename the channel"
        );
        return Err(Failure::new(Kind::ChannelTaken, message).or_else([format!("mu plugin show {holder}")]));
    }
    plugins::put(tx, &plugin)?;
    profiles::follow(tx, name, &plugin.declaration)?;
    Ok(plugin)
}

#[cfg(test)]
mod tests;
