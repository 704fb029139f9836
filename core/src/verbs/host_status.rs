//! `mu host status <host>`: asks the provider of a host about it, and keeps what it says (HOST-07, HOST-09 to HOST-16).

use std::time::Duration;

use mu_protocol::messages::host::{HostState, StatusParams};
use mu_protocol::messages::method::{Call, Method};
use mu_protocol::messages::target::HostTarget;
use mu_protocol::messages::values::Handle;

use crate::cli::failure::{Failure, Kind};
use crate::cli::output::{Data, Output};
use crate::deadlines;
use crate::invocation::Invocation;
use crate::journal::proof::{ProvenDead, Warrant};
use crate::os::Os;
use crate::provider;
use crate::reached;
use crate::store::hosts::{self, Host, State};
use crate::store::{Missing, Store, StoreError, Tx, effects};
use crate::verbs::name::HostName;

/// Returns the row of a host that is up, with the facts it has now.
///
/// # Errors
/// There is no such host (exit 3); it is lost, not ready, or another instance's (exit 4); a person has to act first, or the
/// plugin failed (exit 5); the plugin cannot tell, or answers for another handle (exit 1): then nothing changes (HOST-16).
pub async fn run<O: Os>(invocation: &Invocation<O>, name: &HostName, full: bool) -> Result<Output, Failure> {
    let os = invocation.os();
    let margin = deadlines::host_margin(os.env())?;
    let store = Store::open(invocation, Missing::Empty).await?;
    let settled = provider::settle(invocation, &store, name, None).await;
    let (host, plugin) = provider::known(&store, name).await?;
    match (&settled, &host.state) {
        (_, State::Lost { reason, .. }) => return Err(provider::lost(&host, reason)),
        // A release that stays open is no reason not to ask whether the host is gone.
        (Err(failure), State::Releasing(_)) if failure.kind == Kind::HostNotReady => {}
        (Err(failure), _) => return Err(failure.clone()),
        (Ok(_), _) => provider::usable(&host)?,
    }
    provider::same_instance(&host, &plugin)?;
    let start = provider::start(name, &plugin)?;
    let budget = deadlines::budget(os.env(), Method::HostStatus, deadlines::TIMEOUT)?;
    let call = StatusParams { target: HostTarget { host: host.target() } };
    let answer = invocation.call(&start, &call, budget).await;
    let state =
        answer.map_err(|error| Failure::call(&format!("host {name}"), &plugin.name, &plugin.argv, &error))?;
    match state {
        HostState::Up { ref handle, .. } if host.state.handle() != Some(handle) => Err(other(&host, handle)),
        HostState::Up { .. } => {
            settled?;
            let Some(now) = store.write(|tx| patch(tx, &host, state)).await? else {
                return Err(provider::another(&host));
            };
            let notes = drains(os, &now, margin).into_iter().collect();
            let uncut = (!full).then(|| format!("mu host status {name} --full"));
            Ok(Output { notes, uncut, ..Output::new(Data::Row(now.row())) })
        }
        HostState::Gone { reason } => {
            reached!("HOST-12 gone");
            let reason = reason.as_str();
            Err(match store.write(|tx| lose(tx, os, &host, reason)).await? {
                true => provider::lost(&host, reason),
                false => provider::another(&host),
            })
        }
        HostState::NeedsHuman { remedy } => {
            reached!("HOST-16 a person has to act");
            let what = format!("host {name} needs a person: {remedy}");
            Err(Failure::new(Kind::NeedsHuman, what).or_else([format!("mu host status {name}")]))
        }
        HostState::Unknown { reason } => {
            reached!("HOST-16 the plugin cannot tell");
            let what =
                format!("host {name}: {} cannot tell: {reason}; nothing recorded has changed", plugin.name);
            Err(Failure::new(Kind::OutcomeUnknown, what).or_else([format!("mu host status {name}")]))
        }
    }
}

///
fn other(host: &Host, handle: &Handle) -> Failure {
    reached!("A-56 an answer about another handle");
    let what = format!(
        "host {}: {} answers {} for handle {handle}, which is not the one recorded; nothing recorded has changed",
        host.name,
        host.plugin,
        StatusParams::METHOD
    );
    Failure::new(Kind::OutcomeUnknown, what).or_else([format!("mu host show {}", host.name)])
}

/// Patches the facts of the host; `None` when it is another one by now, or no longer ready.
fn patch(tx: Tx<'_>, asked: &Host, state: HostState) -> Result<Option<Host>, StoreError> {
    let Some(now) = hosts::again(tx, asked)?.filter(|now| now.state == asked.state) else { return Ok(None) };
    let facts = now.facts.patched(state);
    let now = Host { facts, ..now };
    hosts::put(tx, &now)?;
    Ok(Some(now))
}

/// Records the host lost, and closes a release that has no living writer (HOST-12, A-80). `false`: nothing is recorded, since
/// it is another host by now, or somebody is about to release it.
fn lose<O: Os>(tx: Tx<'_>, os: &O, asked: &Host, reason: &str) -> Result<bool, StoreError> {
    let Some(now) = hosts::again(tx, asked)? else { return Ok(false) };
    if let State::Lost { .. } = now.state {
        return Ok(true);
    }
    if let Some(effect) = effects::of_host(tx, &asked.name)? {
        let me = os.identify(os.env().pid).expect("mu itself lives");
        match ProvenDead::look(os, &effect.parties(), &me) {
            Ok(dead) => {
                reached!("A-80 a release is closed: its host is gone");
                effects::close(tx, &effect.key, Warrant::host_gone(&dead))?;
            }
            Err(_) => return Ok(false),
        }
    }
    let Some(handle) = now.state.handle().cloned() else { return Ok(false) };
    let state = State::Lost { handle, reason: reason.to_owned() };
    hosts::put(tx, &Host { state, since: os.wall(), ..now }).map(|()| true)
}

/// What is to be said of a host that will be taken away soon (FACT-02).
fn drains<O: Os>(os: &O, host: &Host, margin: Duration) -> Option<String> {
    let at = host.facts.deadline_at?.value();
    let now = u64::try_from(os.wall().0).unwrap_or(0);
    let left = at.saturating_sub(now);
    (u128::from(left) <= margin.as_millis()).then(|| {
        let seconds = left / 1000;
        format!("host {} will be taken away in {seconds} s: it drains", host.name)
    })
}
