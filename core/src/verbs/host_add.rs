//! `mu host add <host> --plugin <plugin>`: registers a host whose link is a plugin (REG-16). What the plugin declared when
//! it was added decides; it is not started.

use mu_protocol::load::{self, Registration, Seam};

use crate::cli::failure::{Failure, Kind};
use crate::cli::output::{Data, Output};
use crate::cli::text::command;
use crate::invocation::Invocation;
use crate::os::{EpochMs, Os};
use crate::store::profiles::{self, Profile};
use crate::store::{Missing, Store, Tx, hosts, plugins};
use crate::verbs::name::{HostName, PluginName};

/// What a host is registered with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setup {
    /// The plugin that is its link.
    pub plugin: PluginName,
    /// The shell command that fetches from it (REG-18).
    pub fetch_template: Option<String>,
    /// The repository on it that worktrees are made from.
    pub repo: Option<String>,
    /// How many link calls it takes at once; at least 1.
    pub max_sessions: u32,
}

/// Registers a host and returns its row. One that is registered with the same set-up stays as it is.
///
/// # Errors
/// Nobody has the plugin's name (exit 3); the name has another set-up, the plugin declares no link, or a link that does
/// not fetch and there is no template (exit 4); those of the database.
pub async fn run<O: Os>(
    invocation: &Invocation<O>,
    name: &HostName,
    setup: Setup,
) -> Result<Output, Failure> {
    // A database that is not there has no plugin: it is not made for nothing.
    let store = Store::open(invocation, Missing::Empty).await?;
    let now = invocation.os().wall();
    let recorded = store.write(|tx| record(tx, name, setup, now)).await?;
    let Recorded { host, fresh, idle_template } = recorded;
    let idle = "fetches by itself: the template is kept and not run";
    let notes =
        if idle_template { vec![format!("the link of plugin {} {idle}", host.plugin)] } else { vec![] };
    let summary = match fresh {
        true => format!("host {name} is registered: plugin {} ({})", host.plugin, host.identity),
        false => format!("host {name} is registered with exactly that already"),
    };
    Ok(Output { summary: Some(summary), notes, ..Output::new(Data::Row(host.row())) })
}

struct Recorded {
    host: Profile,
    /// It was not there before.
    fresh: bool,
    /// It has a template that is not run.
    idle_template: bool,
}

fn record(tx: Tx<'_>, name: &HostName, setup: Setup, now: EpochMs) -> Result<Recorded, Failure> {
    let Some(plugin) = plugins::find(tx, setup.plugin.as_str())? else {
        return Err(setup.plugin.unknown(&plugins::names(tx)?));
    };
    let declaration = &plugin.declaration;
    let needs = Registration { name: &plugin.name, needs: &[Seam::Link] };
    load::lacks_nothing(declaration, &needs).map_err(|refusal| {
        let message = format!("host {name}: plugin {}: {refusal}", plugin.name);
        Failure::new(Kind::LoadRefused, message).or_else([format!("mu plugin show {}", plugin.name)])
    })?; // LOAD-08
    let fetches = declaration.seams.link.as_ref().is_some_and(|link| link.fetch);
    if !fetches && setup.fetch_template.is_none() {
        return Err(no_template(name, &setup.plugin)); // REG-18
    }
    if let Some(held) = hosts::find(tx, name)? {
        let what = format!(
            "host {name} was acquired from plugin {}, and is {}; choose another name, or release it",
            held.plugin,
            held.state.word()
        );
        return Err(Failure::new(Kind::HostTaken, what).or_else([format!("mu host show {name}")]));
    }
    let old = profiles::find(tx, name)?;
    let host = Profile {
        name: name.clone(),
        identity: profiles::identity(&setup.plugin, declaration),
        plugin: setup.plugin,
        fetch_template: setup.fetch_template,
        repo: setup.repo,
        max_sessions: setup.max_sessions,
        added_at: old.as_ref().map_or(now, |old| old.added_at),
    };
    let idle_template = fetches && host.fetch_template.is_some();
    let fresh = old.is_none();
    match old {
        Some(old) if old != host => return Err(differs(&old, &host)),
        Some(_) => {}
        None => profiles::insert(tx, &host)?,
    }
    Ok(Recorded { host, fresh, idle_template })
}

/// A link that does not fetch, for a host that has no template (REG-18).
pub(crate) fn no_template(name: &HostName, plugin: &PluginName) -> Failure {
    let message = format!(
        "host {name}: the link of plugin {plugin} declares `fetch: false`, so the host needs a template that fetches: \
         --fetch with a shell command in which {{local}}, {{remote}} and {{host}} are put"
    );
    Failure::new(Kind::NoFetchTemplate, message).or_else([format!("mu plugin show {plugin}")])
}

/// A name keeps its set-up.
fn differs(old: &Profile, new: &Profile) -> Failure {
    let name = &old.name;
    let shown = add_command(old);
    let message = format!("host {name} is registered with another set-up: {shown}; remove it first");
    Failure::new(Kind::HostDiffers, message).then([format!("mu host rm {name}"), add_command(new)])
}

/// The command that registers the host.
fn add_command(host: &Profile) -> String {
    let mut words = vec!["mu", "host", "add", host.name.as_str(), "--plugin", host.plugin.as_str()];
    for (flag, value) in [("--fetch", &host.fetch_template), ("--repo", &host.repo)] {
        words.extend(value.iter().flat_map(|value| [flag, value.as_str()]));
    }
    let max_sessions = host.max_sessions.to_string();
    words.extend(["--max-sessions", &max_sessions]);
    command(words)
}
