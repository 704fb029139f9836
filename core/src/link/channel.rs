//! A channel of a host: taken before a call, held for all of it, given back after it (SEAM-04, A-37).

use std::time::Duration;

use crate::invocation::Invocation;
use crate::link::LinkError;
use crate::link::site::Site;
use crate::os::Os;
use crate::reached;
use crate::store::channels::{self, Held, Taken};
use crate::store::{Store, StoreError};

/// The first pause between two looks; each is twice as long as the one before …
const FIRST_PAUSE: Duration = Duration::from_millis(10);
/// … up to this one.
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// Takes a channel; while all are held by living processes, waits `budget` for one.
///
/// # Errors
/// [`LinkError::Busy`] after that time, a signal before, or those of the database.
pub(super) async fn take<O: Os>(
    invocation: &Invocation<O>,
    store: &Store<O>,
    host: &Site,
    budget: Duration,
) -> Result<Held, LinkError> {
    let os = invocation.os();
    let until = os.now() + budget;
    let mut pause = FIRST_PAUSE;
    loop {
        let taken = store.write(|tx| {
            host.still_there(tx)?;
            channels::take(tx, os, &host.name, host.max_sessions).map_err(LinkError::from)
        });
        let holders = match taken.await? {
            Taken::Yes(held) => return Ok(held),
            Taken::No(holders) => holders,
        };
        let now = os.now();
        if now >= until {
            reached!("SEAM-04 all channels stayed held");
            return Err(LinkError::Busy { budget, holders });
        }
        reached!("SEAM-04 waited for a channel");
        invocation.sleep_until((now + pause).min(until)).await.map_err(LinkError::Interrupted)?;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Gives a channel back.
pub(super) async fn free<O: Os>(store: &Store<O>, held: Held) {
    let freed: Result<(), StoreError> = store.write(|tx| channels::free(tx, &held)).await;
    // What cannot be given back now is taken back once this process is gone; the call itself is done.
    let _ = freed;
}
