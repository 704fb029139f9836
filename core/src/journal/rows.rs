//! What the end of an effect means for the table of hosts.

use mu_protocol::messages::method::{AnyResult, Method};

use super::Outcome;
use crate::os::EpochMs;
use crate::store::effects::Effect;
use crate::store::hosts::{self, Facts, Host, State};
use crate::store::{StoreError, Tx};

/// Makes the host's row what follows from the end of its acquire or release. To be called in the transaction that deletes
/// the intent.
///
/// # Errors
/// What SQLite reports.
pub fn follow(tx: Tx<'_>, effect: &Effect, outcome: &Outcome, now: EpochMs) -> Result<(), StoreError> {
    let Some(host) = hosts::find(tx, &effect.host)? else { return Ok(()) };
    match (effect.method, outcome, host.state.clone()) {
        (Method::HostAcquire, Outcome::Done(result), _) => match result.as_ref() {
            AnyResult::HostAcquire(acquired) => {
                let state = State::Ready(acquired.handle.clone());
                hosts::put(tx, &Host { state, facts: Facts::of(acquired), since: now, ..host })
            }
            _ => Ok(()),
        },
        (Method::HostAcquire, Outcome::Undone, _) => hosts::remove(tx, &effect.host),
        (Method::HostRelease, Outcome::Done(_), _) => hosts::remove(tx, &effect.host),
        (Method::HostRelease, Outcome::Undone, State::Releasing(handle)) => {
            hosts::put(tx, &Host { state: State::Ready(handle), since: now, ..host })
        }
        _ => Ok(()),
    }
}
