//! `mu effect resolve <key>`: brings an effect without a definite answer to its end, by the rules or by the operator's word.

use mu_protocol::messages::method::Method;
use mu_protocol::messages::values::Handle;
use serde_json::json;

use crate::cli::failure::{Failure, Kind};
use crate::cli::output::{Data, Output, Row};
use crate::deadlines;
use crate::invocation::Invocation;
use crate::journal::failure::{self, Concern};
use crate::journal::proof::ProvenDead;
use crate::journal::{Ended, Journal, Outcome, Refusal, Resolution, rows};
use crate::os::{EpochMs, Os};
use crate::reached;
use crate::store::effects::{self, Effect, Verdict};
use crate::store::hosts::{self, Facts};
use crate::store::{Missing, Store, Tx, plugins};
use crate::verbs::effect_show::unknown;

/// Resolves one effect. Data: `{key, method, host, outcome}`, the outcome being `done` or `undone`.
///
/// # Errors
/// No open effect has that key (exit 3); it may not be touched (exit 4); the plugin cannot be asked or refuses (exit 4 or
/// 5); it stays open (exit 1). With the operator's word: somebody lives who may still bring it about (exit 4); an acquire
/// that is done without its handle (exit 2).
pub async fn run<O: Os>(
    invocation: &Invocation<O>,
    key: &str,
    word: Option<(Verdict, String)>,
) -> Result<Output, Failure> {
    let store = Store::open(invocation, Missing::Empty).await?;
    match word {
        None => by_rule(invocation, &store, key).await,
        Some((verdict, because)) => by_word(invocation, &store, key, &verdict, &because).await,
    }
}

async fn by_rule<O: Os>(invocation: &Invocation<O>, store: &Store<O>, key: &str) -> Result<Output, Failure> {
    let os = invocation.os();
    let Some(effect) = store.read(|tx| effects::find(tx, key)).await? else { return Err(unknown(key)) };
    deadlines::check(os.env())?;
    let journal = Journal::new(invocation, store);
    let settle =
        |tx: Tx<'_>, effect: &Effect, outcome: &Outcome| rows::follow(tx, effect, outcome, os.wall());
    match journal.resolve(&effect.key, false, settle).await? {
        Resolution::Gone => Err(unknown(key)),
        Resolution::Refused(effect, refusal) => Err(failure::refused(&effect, &refusal, Concern::Own)),
        Resolution::Ended(effect, ended) => match &ended.outcome {
            Outcome::Done(_) => Ok(resolved(&effect, "done", &ended)),
            Outcome::Undone => Ok(resolved(&effect, "undone", &ended)),
            Outcome::Open(_) => {
                let plugin = store.read(|tx| plugins::find(tx, effect.plugin.as_str())).await?;
                let plugin = plugin.ok_or_else(|| effect.plugin.unknown(&[]))?;
                Err(failure::ended(&effect, &plugin, &ended, Concern::Own))
            }
        },
    }
}

fn resolved(effect: &Effect, outcome: &str, ended: &Ended) -> Output {
    let notes = ended.unkept.iter().map(|error| crate::provider::unkept(effect, error)).collect();
    Output { notes, ..said(effect, outcome) }
}

fn said(effect: &Effect, outcome: &str) -> Output {
    let row = Row::new([
        ("key", json!(effect.key)),
        ("method", json!(effect.method.as_str())),
        ("host", json!(effect.host.as_str())),
        ("outcome", json!(outcome)),
    ]);
    let how = if outcome == "done" { "took place" } else { "did not take place, and never will" };
    let summary = format!("host {}: {} {} {how}", effect.host, effect.method, effect.key);
    Output { summary: Some(summary), ..Output::new(Data::Row(row)) }
}

/// The operator's last word: recorded, and refused while anybody lives who could gainsay.
async fn by_word<O: Os>(
    invocation: &Invocation<O>,
    store: &Store<O>,
    key: &str,
    verdict: &Verdict,
    because: &str,
) -> Result<Output, Failure> {
    let (os, now) = (invocation.os(), invocation.os().wall());
    store
        .write(|tx| {
            let Some(effect) = effects::find(tx, key)? else { return Err(unknown(key)) };
            let me = os.identify(os.env().pid).expect("mu itself lives");
            let dead = ProvenDead::look(os, &effect.parties(), &me)
                .map_err(|living| failure::refused(&effect, &Refusal::Lives(living), Concern::Own))?;
            reached!("EFF-11 closed by the operator's word");
            let outcome = match verdict {
                Verdict::Done(handle) => {
                    done(tx, &effect, handle.as_ref(), now)?;
                    "done"
                }
                Verdict::Undone => {
                    rows::follow(tx, &effect, &Outcome::Undone, now)?;
                    "undone"
                }
            };
            effects::judge(tx, &effect, verdict, because, now, &dead)?;
            Ok(said(&effect, outcome))
        })
        .await
}

/// What follows from an effect that took place, by the operator's word.
fn done(tx: Tx<'_>, effect: &Effect, handle: Option<&Handle>, now: EpochMs) -> Result<(), Failure> {
    let usage = |what: &str| Failure::new(Kind::Usage, what).or_else(["mu effect resolve --help"]);
    match (effect.method, handle) {
        (Method::HostAcquire, None) => Err(usage(
            "an acquire that took place has made a host: say with --handle what its plugin calls it",
        )),
        (Method::HostAcquire, Some(handle)) => {
            Ok(rows::made(tx, effect, handle.clone(), Facts::default(), now)?)
        }
        (_, Some(_)) => Err(usage("--handle is for an acquire: this effect makes no host")),
        (Method::HostRelease, None) => Ok(hosts::remove(tx, &effect.host)?),
        (_, None) => Ok(()),
    }
}
