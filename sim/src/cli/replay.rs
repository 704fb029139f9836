//! One item, played to be read.

use std::path::PathBuf;
use std::slice;

use serde_json::{Value, json};

use super::args::as_seed;
use super::item::{Item, Outcome};
use super::{FOUND, Failure, HELD, Place, files, say, tally};
use crate::explore;
use crate::play::{self, Finding, Played, Setting, Show};
use crate::scenario::Scenario;
use crate::world::Cannot;

/// The item that a word names: a seed or a file.
pub(crate) fn named(place: &Place, what: &str) -> Result<Item, Failure> {
    match as_seed(what) {
        Some(seed) => Ok(Item::Seed(seed?)),
        None => Ok(files::items(place, slice::from_ref(&PathBuf::from(what)))?.remove(0)),
    }
}

/// Prints what was drawn or written, the transcript, the findings and the hash chain; with `toml` only the file that
/// the item stands for. Answers with the exit code.
pub(crate) fn run(place: &Place, what: &str, toml: bool, json: bool) -> Result<u8, Failure> {
    let item = named(place, what)?;
    let mut scenario = item.scenario().map_err(Failure::Input)?;
    if toml {
        drop_inert(&mut scenario)?;
        say(&scenario.to_toml());
        return Ok(HELD);
    }
    let mut transcript = None;
    let outcome = item
        .play_with(&scenario, || {
            let mut played = shown(&item, &scenario, Show::Transcript)?;
            transcript = played.transcript.take();
            Ok(played)
        })
        .unwrap_or_else(|Cannot(reason)| {
            Outcome::crash(item.clone(), format!("it cannot be played: {reason}"))
        });
    let transcript = transcript.unwrap_or_default();
    if json {
        say(&format!("{}\n", document(&scenario, &outcome, &transcript)));
    } else {
        say(&text(&scenario, &outcome, &transcript));
    }
    Ok(if outcome.found.is_empty() { HELD } else { FOUND })
}

/// Takes out the faults that never take effect: in a file they are mistakes, and the run is the same without them.
fn drop_inert(scenario: &mut Scenario) -> Result<(), Failure> {
    let played = play::simulated(scenario, Setting::default());
    let played = played.map_err(|Cannot(reason)| Failure::Input(reason))?;
    scenario.faults.retain(|one| {
        !played.findings.iter().any(|finding| match finding {
            Finding::Inert { plugin, fault } => *plugin == one.plugin && fault == one.act.name(),
            _ => false,
        })
    });
    Ok(())
}

/// Prints every event of an item.
pub(crate) fn events(item: &Item) -> Result<u8, Failure> {
    let scenario = item.scenario().map_err(Failure::Input)?;
    let mut events = None;
    let outcome = item.play_with(&scenario, || {
        let mut played = shown(item, &scenario, Show::Events)?;
        events = played.transcript.take();
        Ok(played)
    });
    say(&events.unwrap_or_default());
    if let Ok(Outcome { found, chain: None, .. }) = outcome {
        found.iter().for_each(|found| say(&format!("{}\n", found.text)));
    }
    Ok(HELD)
}

fn shown(item: &Item, scenario: &Scenario, show: Show) -> Result<Played, Cannot> {
    play::simulated(scenario, Setting { show, drawn: matches!(item, Item::Seed(_)), ..Setting::default() })
}

fn text(scenario: &Scenario, outcome: &Outcome, transcript: &str) -> String {
    let mut text = String::new();
    if let Item::Seed(seed) = outcome.item {
        text += &format!("# swarm: {:?}\n", explore::swarm(seed));
    }
    text += &commented(scenario);
    text += "\n";
    text += transcript;
    text += "\n";
    if outcome.found.is_empty() {
        text += "all held\n";
    } else {
        text += &tally::failure(outcome);
    }
    let chain = outcome.chain.as_deref().unwrap_or("none");
    text + &format!("chain {chain}, {} events\n", outcome.events)
}

/// The file of a scenario, to stand above its transcript.
pub(crate) fn commented(scenario: &Scenario) -> String {
    scenario.to_toml().lines().map(|line| format!("{}\n", format!("# {line}").trim_end())).collect()
}

fn document(scenario: &Scenario, outcome: &Outcome, transcript: &str) -> Value {
    json!({
        "ok": outcome.found.is_empty(),
        "item": outcome.item.name(),
        "scenario": scenario,
        "transcript": transcript.lines().collect::<Vec<_>>(),
        "findings": tally::findings_json(outcome),
        "chain": outcome.chain,
        "events": outcome.events,
        "virtual_ms": outcome.virtual_ns / 1_000_000,
        "faults": outcome.fired,
    })
}
