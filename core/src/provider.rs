//! A provider host as verbs need it: with no open effect, of the instance it was acquired from, in a state that can be
//! used.

use mu_protocol::load::{self, Registration, Seam};
use mu_protocol::messages::method::Method;

use crate::cli::failure::{Failure, Kind};
use crate::deadlines;
use crate::invocation::{Invocation, Start};
use crate::journal::failure::{self, Concern};
use crate::journal::{Ended, Journal, Outcome, Resolution, rows};
use crate::os::Os;
use crate::reached;
use crate::store::effects::{self, Effect};
use crate::store::hosts::{self, Host, State};
use crate::store::plugins::{self, Plugin};
use crate::store::{Store, StoreError};
use crate::verbs::name::HostName;

/// What became of the effect that was open on a host, if one was.
#[derive(Debug)]
pub enum Settled {
    /// None is open now.
    Nothing,
    /// One came to this end just now.
    Just(Box<Effect>, Outcome, Option<StoreError>),
}

/// Brings the open effect of a host to its end (EFF-04). `own` is the effect that the verb performs itself, if it does.
///
/// # Errors
/// It stays open, or may not be touched; the plugin cannot be asked; those of the database.
pub async fn settle<O: Os>(
    invocation: &Invocation<O>,
    store: &Store<O>,
    name: &HostName,
    own: Option<Method>,
) -> Result<Settled, Failure> {
    let Some(open) = store.read(|tx| effects::of_host(tx, name)).await? else { return Ok(Settled::Nothing) };
    // A variable that says nonsense is told before anything is sent.
    deadlines::check(invocation.os().env())?;
    let is_own = own == Some(open.method);
    let patient = is_own && open.method == Method::HostAcquire;
    let concern = if is_own { Concern::Own } else { Concern::Host };
    let journal = Journal::new(invocation, store);
    let os = invocation.os();
    let settle = |tx: crate::store::Tx<'_>, effect: &Effect, outcome: &Outcome| {
        rows::follow(tx, effect, outcome, os.wall())
    };
    match journal.resolve(&open.key, patient, settle).await? {
        Resolution::Gone => Ok(Settled::Nothing),
        Resolution::Refused(effect, refusal) => Err(failure::refused(&effect, &refusal, concern)),
        Resolution::Ended(effect, ended) => {
            let Ended { outcome, error, unkept } = *ended;
            let failed = match (&outcome, &error) {
                (Outcome::Open(_), _) => true,
                // What the plugin said is the answer to this verb's own effect; to another verb it is in the way no more.
                (Outcome::Undone, Some(_)) => is_own,
                _ => false,
            };
            if failed {
                let plugin = store.read(|tx| plugins::find(tx, effect.plugin.as_str())).await?;
                let plugin = plugin.ok_or_else(|| effect.plugin.unknown(&[]))?;
                let ended = Ended { outcome, error, unkept };
                return Err(failure::ended(&effect, &plugin, &ended, concern));
            }
            reached!("EFF-04 resolved before the verb goes on");
            Ok(Settled::Just(effect, outcome, unkept))
        }
    }
}

/// A host and its provider, when no effect is open on it, it is there, and the provider is the instance that has it
/// (EFF-24).
///
/// # Errors
/// As [`settle`]; the host is not ready, lost (exit 4) or not there (exit 3), or belongs to another instance (exit 4).
pub async fn ready<O: Os>(
    invocation: &Invocation<O>,
    store: &Store<O>,
    name: &HostName,
) -> Result<(Host, Plugin), Failure> {
    settle(invocation, store, name, None).await?;
    let (host, plugin) = known(store, name).await?;
    usable(&host)?;
    same_instance(&host, &plugin)?;
    Ok((host, plugin))
}

/// A host and its provider, whatever state it is in.
///
/// # Errors
/// There is no such host (exit 3), or those of the database.
pub async fn known<O: Os>(store: &Store<O>, name: &HostName) -> Result<(Host, Plugin), Failure> {
    let found = store.read(|tx| {
        let Some(host) = hosts::find(tx, name)? else { return Ok(None) };
        Ok(plugins::find(tx, host.plugin.as_str())?.map(|plugin| (host, plugin)))
    });
    match found.await? {
        Some(found) => Ok(found),
        None => Err(name.unknown(&store.read(hosts::names).await?)),
    }
}

/// Refuses a host that nothing can be done on.
pub fn usable(host: &Host) -> Result<(), Failure> {
    match &host.state {
        State::Ready(_) => Ok(()),
        State::Lost { reason, .. } => {
            reached!("HOST-12 refused: the host is lost");
            Err(lost(host, reason))
        }
        State::Acquiring | State::Releasing(_) => {
            let what = format!(
                "host {} is {}; it can be used, or its name is free, once that has ended",
                host.name,
                host.state.word()
            );
            Err(Failure::new(Kind::HostNotReady, what).or_else([format!("mu host show {}", host.name)]))
        }
    }
}

/// A host that was changed by another run of mu while this one looked at it, or has gone; its name may mean another one.
pub fn another(asked: &Host) -> Failure {
    reached!("A-78 the host became another one meanwhile");
    let what = format!("host {} was changed by another mu meanwhile; look again", asked.name);
    Failure::new(Kind::HostNotReady, what).or_else([format!("mu host show {}", asked.name)])
}

/// A host that is proven to be gone (HOST-12).
pub fn lost(host: &Host, reason: &str) -> Failure {
    let what = format!("host {} is lost: {reason}; remove it, and acquire another", host.name);
    let next = ["rm", "release"].map(|verb| format!("mu host {verb} {}", host.name));
    Failure::new(Kind::HostLost, what).or_else(next)
}

/// Refuses to ask another instance than the one that has the host (EFF-24).
pub fn same_instance(host: &Host, plugin: &Plugin) -> Result<(), Failure> {
    let now = &plugin.declaration.instance;
    if host.instance.as_str() == now {
        return Ok(());
    }
    reached!("EFF-24 refused: the host is another instance's");
    let what = format!(
        "host {}: stop-changed: it belongs to instance {} of plugin {}, which is {now} now; nothing was sent; register the \
         plugin that has it",
        host.name, host.instance, plugin.name
    );
    Err(Failure::new(Kind::StopChanged, what)
        .or_else([format!("mu plugin show {}", plugin.name), format!("mu host show {}", host.name)]))
}

/// How a provider is started for a call about its hosts. It must declare what a provider needs (HOST-01, LOAD-10).
///
/// # Errors
/// It does not (exit 4).
pub fn start(host: &HostName, plugin: &Plugin) -> Result<Start, Failure> {
    let needs = [Seam::Host, Seam::Link];
    let registration = Registration { name: &plugin.name, needs: &needs };
    load::lacks_nothing(&plugin.declaration, &registration).map_err(|refusal| {
        let message = format!("host {host}: plugin {}: {refusal}", plugin.name);
        Failure::new(Kind::LoadRefused, message).or_else([format!("mu plugin show {}", plugin.name)])
    })?;
    Ok(Start {
        name: plugin.name.clone(),
        argv: plugin.argv.clone(),
        recorded: Some(plugin.declaration.clone()),
        needs: needs.to_vec(),
    })
}

/// What is said of an end that could not be written down.
pub fn unkept(effect: &Effect, error: &StoreError) -> String {
    let Effect { method, key, host, .. } = effect;
    format!(
        "the end of {method} {key} could not be written down: {error}; the next verb on host {host} clears it"
    )
}
