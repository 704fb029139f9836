//! What the intent and the end of an effect mean for the table of hosts.

use mu_protocol::messages::host::AcquireParams;
use mu_protocol::messages::method::{AnyResult, Method};
use mu_protocol::messages::values::Handle;
use mu_protocol::objects::from_json;

use super::Outcome;
use crate::os::EpochMs;
use crate::store::effects::Effect;
use crate::store::hosts::{self, Facts, Host, Params, State};
use crate::store::{StoreError, Tx};

/// The host that an acquire is about, before it has an answer.
pub fn asked_for(effect: &Effect, now: EpochMs) -> Host {
    let params = from_json(&effect.params).ok();
    Host {
        name: effect.host.clone(),
        plugin: effect.plugin.clone(),
        instance: effect.instance.clone(),
        key: effect.key.clone(),
        state: State::Acquiring,
        params: params.map_or_else(Params::new, |acquire: AcquireParams| acquire.params),
        facts: Facts::default(),
        since: now,
    }
}

/// Stores the host that an acquire has made, whatever became of the row that went with its intent: what is there must be
/// in sight. A name that another host has by then is an error, and the effect stays.
///
/// # Errors
/// [`StoreError::BadRow`] for such a row, else what SQLite reports.
pub fn made(
    tx: Tx<'_>,
    effect: &Effect,
    handle: Handle,
    facts: Facts,
    now: EpochMs,
) -> Result<(), StoreError> {
    let host = hosts::find(tx, &effect.host)?.unwrap_or_else(|| asked_for(effect, now));
    if host.key != effect.key {
        return Err(tx.bad_row("hosts", effect.host.as_str(), "key"));
    }
    hosts::put(tx, &Host { state: State::Ready(handle), facts, since: now, ..host })
}

/// Makes the host's row what follows from the end of its acquire or release. To be called in the transaction that deletes
/// the intent.
///
/// # Errors
/// As [`made`].
pub fn follow(tx: Tx<'_>, effect: &Effect, outcome: &Outcome, now: EpochMs) -> Result<(), StoreError> {
    match (effect.method, outcome) {
        (Method::HostAcquire, Outcome::Done(result)) => match result.as_ref() {
            AnyResult::HostAcquire(acquired) => {
                made(tx, effect, acquired.handle.clone(), Facts::of(acquired), now)
            }
            _ => Ok(()),
        },
        (Method::HostAcquire, Outcome::Undone) => match hosts::find(tx, &effect.host)? {
            Some(host) if host.key == effect.key => hosts::remove(tx, &effect.host),
            _ => Ok(()),
        },
        (Method::HostRelease, Outcome::Done(_) | Outcome::Undone) => {
            // While a release is open nobody else changes the row of its host.
            let Some(host) = hosts::find(tx, &effect.host)? else { return Ok(()) };
            match (outcome, host.state.clone()) {
                (Outcome::Done(_), State::Releasing(_)) => hosts::remove(tx, &effect.host),
                (_, State::Releasing(handle)) => {
                    hosts::put(tx, &Host { state: State::Ready(handle), since: now, ..host })
                }
                _ => Ok(()),
            }
        }
        _ => Ok(()),
    }
}
