//! One item, played to be read.

use std::path::PathBuf;
use std::slice;

use serde_json::{Value, json};

use super::args::as_seed;
use super::item::{Found, Item, Outcome};
use super::new_file::NewFile;
use super::page::Page;
use super::{FOUND, Failure, HELD, Place, files, say, tally};
use crate::explore;
use crate::play::{self, Finding, Setting, Show};
use crate::scenario::Scenario;
use crate::trace::Timeline;
use crate::trace::timeline::Entry;
use crate::world::Cannot;

/// The item that a word names: a seed or a file.
pub(crate) fn named(place: &Place, what: &str) -> Result<Item, Failure> {
    match as_seed(what) {
        Some(seed) => Ok(Item::Seed(seed?)),
        None => Ok(files::items(place, slice::from_ref(&PathBuf::from(what)))?.remove(0)),
    }
}

/// What is played, and in which form it is told.
pub(crate) struct Asked {
    pub(crate) what: String,
    /// The file that the item stands for, and nothing else.
    pub(crate) toml: bool,
    /// The page, written here.
    pub(crate) html: Option<PathBuf>,
    /// The diagram, and nothing else.
    pub(crate) mermaid: bool,
}

/// Prints what was drawn or written, the transcript, the findings and the hash chain, or what else was asked for. Answers
/// with the exit code.
pub(crate) fn run(place: &Place, asked: &Asked, json: bool) -> Result<u8, Failure> {
    let item = named(place, &asked.what)?;
    let mut scenario = item.scenario().map_err(Failure::Input)?;
    if asked.toml {
        let played = play::simulated(&scenario, Setting::default());
        let played = played.map_err(|Cannot(reason)| Failure::Input(reason))?;
        play::drop_inert(&mut scenario, &played.findings);
        say(&scenario.to_toml());
        return Ok(HELD);
    }
    let file = asked.html.as_deref().map(NewFile::at).transpose()?;
    let Run { outcome, timeline, played, .. } = play(&item, &scenario);
    let written = match file.filter(|_| played) {
        Some(file) => {
            file.write(&page(&scenario, &outcome, &timeline))?;
            asked.html.as_deref()
        }
        None => None,
    };
    if json {
        say(&format!("{}\n", document(&scenario, &outcome, &timeline)));
    } else if asked.mermaid {
        say(&timeline.mermaid(&placed(&outcome, &timeline)));
    } else if asked.html.is_some() {
        say(&ending(&outcome));
        let page = written.map_or("none: there was no run".to_owned(), |path| path.display().to_string());
        say(&format!("page {page}\n"));
    } else {
        say(&text(&scenario, &outcome, &timeline));
    }
    Ok(if outcome.found.is_empty() { HELD } else { FOUND })
}

/// A run for readers.
pub(crate) struct Run {
    pub(crate) outcome: Outcome,
    pub(crate) timeline: Timeline,
    /// All that was found, that of a drawn scenario which is no finding too.
    pub(crate) findings: Vec<Finding>,
    /// Whether the scenario can be played at all.
    played: bool,
}

/// Plays an item, and keeps what happened and what stood in mu's tables.
pub(crate) fn play(item: &Item, scenario: &Scenario) -> Run {
    let (mut timeline, mut findings) = Default::default();
    let outcome = item.play_with(scenario, || {
        let setting = Setting { show: Show::Timeline, journal: true, ..Setting::default() };
        let mut played = play::simulated(scenario, setting)?;
        timeline = played.timeline.take().unwrap_or_default();
        findings = played.findings.clone();
        if let Item::Seed(_) = item {
            played.findings.retain(Finding::counts_when_drawn);
        }
        Ok(played)
    });
    match outcome {
        Ok(outcome) => Run { outcome, timeline, findings, played: true },
        Err(Cannot(reason)) => {
            let outcome = Outcome::crash(item.clone(), format!("it cannot be played: {reason}"));
            Run { outcome, timeline, findings, played: false }
        }
    }
}

/// The page of a run.
pub(crate) fn page(scenario: &Scenario, outcome: &Outcome, timeline: &Timeline) -> String {
    Page { scenario, outcome, timeline }.html()
}

/// Prints every event of an item.
pub(crate) fn events(item: &Item) -> Result<u8, Failure> {
    let scenario = item.scenario().map_err(Failure::Input)?;
    let mut events = None;
    let outcome = item.play_with(&scenario, || {
        let drawn = matches!(item, Item::Seed(_));
        let setting = Setting { show: Show::Events, drawn, ..Setting::default() };
        let mut played = play::simulated(&scenario, setting)?;
        events = played.transcript.take();
        Ok(played)
    });
    say(&events.unwrap_or_default());
    if let Ok(Outcome { found, chain: None, .. }) = outcome {
        found.iter().for_each(|found| say(&format!("{}\n", found.text)));
    }
    Ok(HELD)
}

fn text(scenario: &Scenario, outcome: &Outcome, timeline: &Timeline) -> String {
    let mut text = String::new();
    if let Item::Seed(seed) = outcome.item {
        for options in explore::options(seed) {
            text += &format!("# {options}\n");
        }
    }
    text += &commented(scenario);
    text += "\n";
    text += &timeline.transcript();
    text += "\n";
    text + &ending(outcome)
}

/// The file of a scenario, to stand above its transcript.
pub(crate) fn commented(scenario: &Scenario) -> String {
    scenario.to_toml().lines().map(|line| format!("{}\n", format!("# {line}").trim_end())).collect()
}

/// What came of it, and the hash chain.
fn ending(outcome: &Outcome) -> String {
    let found = if outcome.found.is_empty() { "all held\n".to_owned() } else { tally::failure(outcome) };
    let chain = outcome.chain.as_deref().unwrap_or("none");
    format!("{found}chain {chain}, {} events\n", outcome.events)
}

/// The findings with the entry behind which each belongs: the last when it has no moment.
fn placed(outcome: &Outcome, timeline: &Timeline) -> Vec<(usize, String)> {
    let last = timeline.entries.len().saturating_sub(1);
    let place = |found: &Found| found.at.and_then(|at| timeline.place_of(at, &found.text)).unwrap_or(last);
    let text = |found: &Found| format!("{} {}", found.rules.join(" "), found.text);
    outcome.found.iter().map(|found| (place(found), text(found))).collect()
}

fn document(scenario: &Scenario, outcome: &Outcome, timeline: &Timeline) -> Value {
    let entry = |entry: &Entry| {
        json!({
            "at_ns": entry.at,
            "who": timeline.who(entry).name,
            "to": entry.to.map(|to| &timeline.lanes[to].name),
            "what": entry.sentence(),
            "kind": entry.kind.name(),
            "again": entry.again,
            "rows": entry.journal.as_ref().map(|moment| &moment.rows),
        })
    };
    json!({
        "ok": outcome.found.is_empty(),
        "item": outcome.item.name(),
        "scenario": scenario,
        "transcript": timeline.transcript().lines().collect::<Vec<_>>(),
        "timeline": timeline.entries.iter().map(entry).collect::<Vec<_>>(),
        "findings": tally::findings_json(outcome),
        "chain": outcome.chain,
        "events": outcome.events,
        "virtual_ms": outcome.virtual_ns / 1_000_000,
        "faults": outcome.fired,
    })
}
