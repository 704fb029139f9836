//! `mu host acquire <host> --provider <plugin>`: has a plugin make a host (HOST).

use std::cell::Cell;

use mu_protocol::messages::dated::undated_json;
use mu_protocol::messages::host::AcquireParams;
use mu_protocol::messages::method::{AnyResult, Method};
use mu_protocol::messages::target::{HostRef, HostTarget};

use crate::cli::failure::{Failure, Kind};
use crate::cli::output::{Data, Output};
use crate::invocation::Invocation;
use crate::journal::failure::{self, Concern};
use crate::journal::{Journal, New, Outcome, rows};
use crate::os::Os;
use crate::provider::{self, Settled};
use crate::reached;
use crate::store::effects::Effect;
use crate::store::hosts::{self, Facts, Host, Params, State};
use crate::store::plugins;
use crate::store::{Missing, Store, StoreError, Tx, profiles};
use crate::verbs::name::{HostName, PluginName};

/// Acquires a host and returns its row. An acquire of that name that has no answer yet is resolved first (EFF-04); one that
/// is found to have made just this host is what was asked for.
///
/// # Errors
/// The name is taken, an effect on it may not be touched, the plugin provides no hosts (exit 4); nobody has the plugin's
/// name (exit 3); it was not made (exit 5); whether it was is not known (exit 1).
pub async fn run<O: Os>(
    invocation: &Invocation<O>,
    name: &HostName,
    provider: &PluginName,
    params: &Params,
) -> Result<Output, Failure> {
    let os = invocation.os();
    let store = Store::open(invocation, Missing::Empty).await?;
    if let Settled::Just(effect, outcome, unkept) =
        provider::settle(invocation, &store, name, Some(Method::HostAcquire)).await?
    {
        let resolved = made(rows::asked_for(&effect, os.wall()), &outcome);
        let stored = store.read(|tx| hosts::find(tx, name)).await?.filter(|host| host.key == effect.key);
        let resolved = resolved.map(|host| stored.unwrap_or(host));
        match (resolved, unkept) {
            (Some(host), unkept) if host.plugin == *provider && host.params == *params => {
                reached!("EFF-04 an acquire finds what it asked for");
                return Ok(acquired(&host, &effect, unkept));
            }
            (_, Some(error)) => return Err(error.into()),
            _ => {}
        }
    }
    let Some(plugin) = store.read(|tx| plugins::find(tx, provider.as_str())).await? else {
        return Err(provider.unknown(&store.read(plugins::names).await?));
    };
    let start = provider::start(name, &plugin)?;
    // Told before a plugin is started; what counts is the look in the transaction of the intent.
    store.write(|tx| free(tx, name)).await?;
    let journal = Journal::new(invocation, &store);
    let key = journal.fresh_key();
    let target = HostTarget { host: HostRef { name: name.wire(), handle: None, instance: None } };
    let call = AcquireParams { target, key: key.clone(), params: params.clone() };
    let new = New { key, method: Method::HostAcquire, host: name.clone(), params: undated_json(&call) };
    let open = |tx: Tx<'_>, effect: &Effect| {
        free(tx, name)?;
        hosts::put(tx, &rows::asked_for(effect, os.wall())).map_err(Failure::from)
    };
    let since = Cell::new(os.wall());
    let settle = |tx: Tx<'_>, effect: &Effect, outcome: &Outcome| {
        since.set(os.wall());
        rows::follow(tx, effect, outcome, since.get())
    };
    let (effect, ended) = journal.perform(&new, &plugin, &start, open, settle).await?;
    match made(rows::asked_for(&effect, since.get()), &ended.outcome) {
        Some(host) => Ok(acquired(&host, &effect, ended.unkept)),
        None => Err(failure::ended(&effect, &plugin, &ended, Concern::Own)),
    }
}

/// The host as the provider made it; `None` for any other end.
fn made(asked_for: Host, outcome: &Outcome) -> Option<Host> {
    let Outcome::Done(result) = outcome else { return None };
    let AnyResult::HostAcquire(acquired) = result.as_ref() else { return None };
    let state = State::Ready(acquired.handle.clone());
    Some(Host { state, facts: Facts::of(acquired), ..asked_for })
}

fn acquired(host: &Host, effect: &Effect, unkept: Option<StoreError>) -> Output {
    let Host { name, plugin, .. } = host;
    let handle = host.state.handle().map(ToString::to_string).unwrap_or_default();
    let summary = format!("host {name} is ready: {handle} of plugin {plugin} ({})", host.instance);
    let notes = unkept.iter().map(|error| provider::unkept(effect, error)).collect();
    let uncut = Some(format!("mu host show {name} --full"));
    Output { summary: Some(summary), notes, uncut, ..Output::new(Data::Row(host.row())) }
}

/// Refuses a name that a profile or another host has.
fn free(tx: Tx<'_>, name: &HostName) -> Result<(), Failure> {
    if profiles::find(tx, name)?.is_some() {
        let what = format!("host {name} is registered with `mu host add`; choose another name, or remove it");
        return Err(Failure::new(Kind::HostTaken, what).then([format!("mu host rm {name}")]));
    }
    match hosts::find(tx, name)? {
        None => Ok(()),
        Some(host) => match &host.state {
            State::Ready(handle) => {
                let what = format!(
                    "host {name} is acquired already: {handle} of plugin {}; its name is free once it is released",
                    host.plugin
                );
                let next = [format!("mu host status {name}"), format!("mu host release {name}")];
                Err(Failure::new(Kind::HostTaken, what).or_else(next))
            }
            _ => provider::usable(&host),
        },
    }
}
