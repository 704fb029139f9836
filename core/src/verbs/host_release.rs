//! `mu host release <host>`: has the provider of a host take it away (HOST-08).

use mu_protocol::messages::dated::undated_json;
use mu_protocol::messages::host::ReleaseParams;
use mu_protocol::messages::method::Method;
use mu_protocol::messages::target::HostTarget;

use crate::cli::failure::{Failure, Kind};
use crate::cli::output::{Data, Output};
use crate::invocation::Invocation;
use crate::journal::failure::{self, Concern};
use crate::journal::{Journal, New, Outcome, rows};
use crate::os::Os;
use crate::provider::{self, Settled};
use crate::reached;
use crate::store::effects::Effect;
use crate::store::hosts::{self, Host, State};
use crate::store::{Missing, Store, StoreError, Tx, channels};
use crate::verbs::name::HostName;

/// Releases a host and returns the row it had. A release that has no answer yet is sent again (EFF-08); of a lost host the
/// record alone is removed, for there is nothing to release.
///
/// # Errors
/// There is no such host (exit 3); it is not ready, in use, or another instance's, or an effect on it may not be touched
/// (exit 4); it was not released (exit 5); whether it was is not known (exit 1).
pub async fn run<O: Os>(invocation: &Invocation<O>, name: &HostName) -> Result<Output, Failure> {
    let os = invocation.os();
    let store = Store::open(invocation, Missing::Empty).await?;
    let before = provider::known(&store, name).await?.0;
    if let Settled::Just(effect, Outcome::Done(_), unkept) =
        provider::settle(invocation, &store, name, Some(Method::HostRelease)).await?
        && effect.method == Method::HostRelease
    {
        return Ok(released(&before, Some(&effect), unkept));
    }
    let (host, plugin) = provider::known(&store, name).await?;
    if let State::Lost { .. } = host.state {
        store.write(|tx| forget(tx, &host)).await?;
        return Ok(released(&host, None, None));
    }
    provider::usable(&host)?;
    provider::same_instance(&host, &plugin)?;
    let start = provider::start(name, &plugin)?;
    let journal = Journal::new(invocation, &store);
    let key = journal.fresh_key();
    let call = ReleaseParams { target: HostTarget { host: host.target() }, key: key.clone() };
    let new = New { key, method: Method::HostRelease, host: name.clone(), params: undated_json(&call) };
    let open = |tx: Tx<'_>, _: &Effect| release(tx, os, &host);
    let settle =
        |tx: Tx<'_>, effect: &Effect, outcome: &Outcome| rows::follow(tx, effect, outcome, os.wall());
    let (effect, ended) = journal.perform(&new, &plugin, &start, open, settle).await?;
    match &ended.outcome {
        Outcome::Done(_) => Ok(released(&host, Some(&effect), ended.unkept)),
        _ => Err(failure::ended(&effect, &plugin, &ended, Concern::Own)),
    }
}

/// Removes the record of a lost host, unless its name means another one by now.
fn forget(tx: Tx<'_>, asked: &Host) -> Result<(), Failure> {
    match hosts::again(tx, asked)? {
        Some(Host { state: State::Lost { .. }, .. }) => Ok(hosts::remove(tx, &asked.name)?),
        _ => Err(provider::another(asked)),
    }
}

/// Makes the host one that is being released, unless it has changed since, or somebody uses it.
fn release<O: Os>(tx: Tx<'_>, os: &O, asked: &Host) -> Result<(), Failure> {
    let name = &asked.name;
    let Some(now) = hosts::again(tx, asked)? else { return Err(provider::another(asked)) };
    let State::Ready(handle) = &now.state else { return provider::usable(&now) };
    let holders = channels::reclaim(tx, os, name)?;
    if !holders.is_empty() {
        reached!("HOST-08 not released: it is in use");
        let pids: Vec<String> = holders.iter().map(|pid| format!("process {pid}")).collect();
        let what = format!("host {name} is in use by {}; try again once it is done", pids.join(", "));
        return Err(Failure::new(Kind::StillReferenced, what).or_else([format!("mu host release {name}")]));
    }
    let state = State::Releasing(handle.clone());
    Ok(hosts::put(tx, &Host { state, since: os.wall(), ..now })?)
}

fn released(host: &Host, effect: Option<&Effect>, unkept: Option<StoreError>) -> Output {
    let summary = match (&host.state, effect) {
        (State::Lost { .. }, _) => format!("host {} is lost: its record is removed", host.name),
        _ => format!("host {} is released", host.name),
    };
    let notes = unkept.iter().zip(effect).map(|(error, effect)| provider::unkept(effect, error)).collect();
    Output { summary: Some(summary), notes, ..Output::new(Data::Row(host.row())) }
}
