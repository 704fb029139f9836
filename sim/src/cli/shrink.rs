//! `cargo sim shrink`: the smallest scenario that fails as a seed or a file does, as a file with its transcript.
//!
//! Candidates are played in a process of their own, so that neither a crash nor a hang of one ends the search.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use super::item::{CRASH, EXPECTATION, Found, INERT, Item, Outcome};
use super::progress::Progress;
use super::worker::{self, Stage};
use super::{Failure, HELD, Place, files, replay, say};
use crate::explore::shrink::{Cost, Shrunk, Verdict, is_still_due, shrink};
use crate::play::{self, Finding, Setting, Show};
use crate::scenario::{Scenario, is_rule};
use crate::world::Cannot;

/// A candidate that takes longer than this hangs.
const PATIENCE: Duration = Duration::from_secs(20);
/// Characters of a title.
const TITLE: usize = 110;
/// The head of a transcript, as the test of all scenarios writes it.
const SNAPSHOT: &str = "---\nsource: sim/tests/scenarios.rs\n---\n";

/// What is shrunk.
pub(crate) struct Asked {
    /// A seed or a file.
    pub(crate) what: String,
    /// The file that is written.
    pub(crate) into: Option<PathBuf>,
    /// How many candidates are played at most.
    pub(crate) candidates: usize,
}

/// What a candidate has to fail with.
pub(crate) struct Target {
    pub(crate) found: Found,
    /// What of the words is the same whenever the same happens.
    kind: String,
    /// The scenario that failed.
    pub(crate) whole: Scenario,
}

/// Shrinks, writes the two files and prints them; answers with the exit code.
pub(crate) fn run(place: &Place, asked: &Asked, json: bool) -> Result<u8, Failure> {
    let item = replay::named(place, &asked.what)?;
    let into = asked.into.clone().unwrap_or_else(|| place.root.join("target/sim").join(file_name(&item)));
    let beside = into.with_extension("snap");
    if into.extension().is_none_or(|extension| extension != "toml") {
        return Err(Failure::Input(format!("{}: the file of a scenario ends in .toml", into.display())));
    }
    [&into, &beside].into_iter().try_for_each(|path| writable(path))?;
    let mut stage = Stage::of(worker::own_program()?);
    let (target, shrunk) = smallest(&mut stage, &item, asked.candidates, json)?;
    let shown = files::shown(&place.root, &into);
    write(&into, &shrunk.scenario.to_toml())?;
    let file = Item::File { path: into.clone(), shown: shown.clone() };
    let found = target.met(&mut stage, &file, &shrunk.scenario)?;
    let transcript = transcript(&file, &shrunk.scenario, &found);
    write(&beside, &format!("{SNAPSHOT}{transcript}"))?;
    let report = Report { item: &item, whole: &target.whole, shrunk: &shrunk, found, shown, transcript };
    say(&if json { format!("{}\n", report.json()) } else { report.text() });
    Ok(HELD)
}

/// The smallest scenario that was found to fail as an item does, with a title, and as what it fails.
///
/// # Errors
/// The item holds; or a process to play in cannot be started.
pub(crate) fn smallest(
    stage: &mut Stage,
    item: &Item,
    most: usize,
    quiet: bool,
) -> Result<(Target, Shrunk), Failure> {
    let whole = item.scenario().map_err(Failure::Input)?;
    let target = Target::of(&stage.play(item, worker::PATIENCE)?, whole)?;
    let shrunk = target.search(stage, most, quiet)?;
    let text = Item::Text(shrunk.scenario.to_toml());
    let found = target.met(stage, &text, &shrunk.scenario)?;
    let scenario = target.titled(item, &found, shrunk.scenario);
    Ok((target, Shrunk { scenario, ..shrunk }))
}

fn file_name(item: &Item) -> String {
    match item {
        Item::File { path, .. } => {
            format!("shrunk-{}.toml", path.file_stem().unwrap_or_default().to_string_lossy())
        }
        Item::Seed(seed) => format!("shrunk-{seed}.toml"),
        _ => "shrunk.toml".to_owned(),
    }
}

/// Whether the file can be written, which is known before anything is played. A new one is not left behind.
fn writable(path: &Path) -> Result<(), Failure> {
    let wrong = |error| Failure::Input(format!("{}: {error}", path.display()));
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(wrong)?;
    }
    let is_new = !path.exists();
    fs::OpenOptions::new().append(true).create(true).open(path).map_err(wrong)?;
    if is_new { fs::remove_file(path).map_err(wrong) } else { Ok(()) }
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    fs::write(path, text).map_err(|error| Failure::broken(&path.display().to_string(), error))
}

impl Target {
    /// What is at stake in a scenario that failed: an oracle rather than an expectation, which needs all that came before.
    fn of(outcome: &Outcome, whole: Scenario) -> Result<Target, Failure> {
        let name = outcome.item.name();
        let order = |found: &&Found| (found.by == INERT, found.by == EXPECTATION);
        let Some(found) = outcome.found.iter().min_by_key(order) else {
            return Err(Failure::Input(format!("{name} holds: there is nothing to shrink")));
        };
        if found.by == INERT {
            return Err(Failure::Input(format!(
                "{name} shows nothing, and so nothing fails: {}",
                found.text
            )));
        }
        Ok(Target { kind: kind(found), found: found.clone(), whole })
    }

    /// Whether this is the same, found in a scenario.
    fn is_met(&self, found: &Found, scenario: &Scenario) -> bool {
        let of_scenario = self.found.by == EXPECTATION || self.found.by == CRASH;
        let is_due = match (self.found.step, found.step) {
            (Some(whole), Some(step)) => {
                is_still_due((&self.whole, whole), (scenario, step), &self.found.text)
            }
            _ => true,
        };
        found.by == self.found.by
            && (of_scenario || found.rules == self.found.rules)
            && kind(found) == self.kind
            && is_due
    }

    fn search(&self, stage: &mut Stage, most: usize, quiet: bool) -> Result<Shrunk, Failure> {
        let mut progress = Progress::new("candidates", most, quiet);
        let mut broken = None;
        let shrunk = shrink(&drawn_as_written(&self.whole), most, &mut |candidate| {
            if broken.is_some() {
                return Verdict::Other;
            }
            progress.step(0);
            match stage.play(&Item::Text(candidate.to_toml()), PATIENCE) {
                Ok(outcome) => self.judge(&outcome, candidate),
                Err(failure) => {
                    broken = Some(failure);
                    Verdict::Other
                }
            }
        });
        progress.end();
        match (broken, shrunk) {
            (Some(failure), _) => Err(failure),
            (None, Some(shrunk)) => Ok(shrunk),
            (None, None) => Err(Failure::Broken(format!(
                "as a written scenario it does not fail alike: {}",
                self.found.text
            ))),
        }
    }

    fn judge(&self, outcome: &Outcome, candidate: &Scenario) -> Verdict {
        if !outcome.found.iter().any(|found| self.is_met(found, candidate)) {
            return Verdict::Other;
        }
        let idle: BTreeSet<&str> =
            outcome.found.iter().filter(|found| found.by == INERT).map(|found| found.text.as_str()).collect();
        let sentence = |fault: &crate::fake::Fault| {
            Finding::Inert { plugin: fault.plugin.clone(), fault: fault.act.name().to_owned() }.sentence()
        };
        let faults: Vec<String> = candidate.faults.iter().map(sentence).collect();
        let missed = idle.iter().any(|text| !faults.iter().any(|fault| fault == text));
        let inert = faults.iter().enumerate().filter(|(_, fault)| idle.contains(fault.as_str()));
        Verdict::Same { inert: inert.map(|(index, _)| index).collect(), missed }
    }

    /// What the scenario of an item fails with, which must be the same.
    fn met(&self, stage: &mut Stage, item: &Item, scenario: &Scenario) -> Result<Found, Failure> {
        let outcome = stage.play(item, worker::PATIENCE)?;
        let found = outcome.found.into_iter().find(|found| self.is_met(found, scenario));
        found.ok_or_else(|| {
            Failure::Broken(format!("what was written does not fail alike: {}", self.found.text))
        })
    }

    /// With the words for readers.
    fn titled(&self, item: &Item, found: &Found, scenario: Scenario) -> Scenario {
        let who = match found.by.as_str() {
            EXPECTATION => "An expectation fails".to_owned(),
            CRASH if found.rules.is_empty() => "The simulator fails".to_owned(),
            CRASH => "A run does not end".to_owned(),
            oracle => format!("Oracle {oracle} fails"),
        };
        let is_known = !found.rules.is_empty() && found.rules.iter().all(|rule| is_rule(rule));
        let from = format!("It is what `cargo sim shrink` has left of {}.", item.name());
        Scenario {
            title: shortened(&format!("{who}: {}", found.text), TITLE),
            why: Some(scenario.why.as_ref().map_or(from.clone(), |why| format!("{why} {from}"))),
            rules: if is_known { found.rules.clone() } else { scenario.rules.clone() },
            ..scenario
        }
    }
}

/// The scenario as a file that a person could have written: one that runs on real processes if nothing speaks against it.
fn drawn_as_written(whole: &Scenario) -> Scenario {
    let why_not_real = "it was found on the simulated machine, whose clock, disk and calls can be told";
    let why_not_real = whole.why_not_real.clone().or(Some(why_not_real.to_owned())).filter(|_| !whole.real);
    Scenario { why_not_real, ..whole.clone() }
}

/// What of a finding is the same whenever the same happens: the place of a panic; else its words without numbers. An oracle
/// is told by its rule alone.
fn kind(found: &Found) -> String {
    let (is_crash, is_expectation) = (found.by == CRASH, found.by == EXPECTATION);
    let place = found.text.split_whitespace().map(|word| word.trim_matches(['"', ',', '.', ';', ')', '(']));
    let place = place.into_iter().find(|word| word.contains(".rs:")).filter(|_| is_crash);
    match place {
        Some(place) => place.to_owned(),
        None if is_crash || is_expectation => {
            let text = match found.text.strip_prefix("step ").and_then(|text| text.split_once(": ")) {
                Some((_, text)) => text,
                None => &found.text,
            };
            // What got stuck, and the first who waits.
            let end = text.match_indices(';').nth(1).map_or(text.len(), |(at, _)| at);
            without_numbers(if is_crash { &text[..end] } else { text })
        }
        None => String::new(),
    }
}

/// Words in which there is a digit, keys among them, are all the same.
fn without_numbers(text: &str) -> String {
    let is_of_a_word = |c: char| c.is_alphanumeric() || c == '-' || c == '.';
    let words = text.split_inclusive(|c| !is_of_a_word(c));
    let one = |word: &str| match word.contains(|c: char| c.is_ascii_digit()) {
        true => format!("#{}", word.trim_start_matches(is_of_a_word)),
        false => word.to_owned(),
    };
    words.map(one).collect()
}

/// In one line, and not too long for one.
fn shortened(text: &str, most: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= most {
        return line;
    }
    format!("{}…", line.chars().take(most - 1).collect::<String>().trim_end())
}

/// The transcript; for a crash, which leaves none, what is known of it.
fn transcript(file: &Item, scenario: &Scenario, found: &Found) -> String {
    let mut transcript = None;
    if found.by != CRASH {
        let setting = Setting { show: Show::Transcript, ..Setting::default() };
        let _: Result<Outcome, Cannot> = file.play_with(scenario, || {
            let mut played = play::simulated(scenario, setting)?;
            transcript = played.transcript.take();
            Ok(played)
        });
    }
    transcript.unwrap_or_else(|| format!("{}\n", found.text))
}

struct Report<'a> {
    item: &'a Item,
    whole: &'a Scenario,
    shrunk: &'a Shrunk,
    found: Found,
    /// The file, as people name it.
    shown: String,
    transcript: String,
}

impl Report<'_> {
    fn text(&self) -> String {
        let Report { item, shrunk, found, shown, transcript, .. } = self;
        let rules =
            if found.rules.is_empty() { String::new() } else { format!(" {}", found.rules.join(", ")) };
        let more = if shrunk.spent { "; a larger number of --candidates may find a smaller one" } else { "" };
        let (before, after) = (size(self.whole), size(&shrunk.scenario));
        format!(
            "{}\n{transcript}\nshrunk {}\n  [{}{rules}] {}\n  from {before}\n  to   {after}, in {} candidates{more}\n\
             written: {shown}, with the transcript {}\nnext:\n{}",
            replay::commented(&shrunk.scenario),
            item.name(),
            found.by,
            found.text,
            shrunk.tried,
            Path::new(shown).with_extension("snap").display(),
            self.next().iter().map(|line| format!("  {line}\n")).collect::<String>(),
        )
    }

    /// What a maintainer does with it: until the bug is gone it fails, and then its transcript is another one.
    fn next(&self) -> Vec<String> {
        let stem = self.shown.trim_end_matches(".toml");
        let mut next = vec![format!("cargo sim replay {}", self.shown)];
        if !self.shown.starts_with("scenarios/") {
            next.push(format!("for end in toml snap; do mv {stem}.$end scenarios/NAME.$end; done"));
        }
        next.push(
            "INSTA_UPDATE=always cargo test -p mu-sim --test scenarios    # once it is fixed".to_owned(),
        );
        next
    }

    fn json(&self) -> Value {
        let size = |scenario: &Scenario| {
            let cost = Cost::of(scenario);
            json!({ "plugins": cost.plugins, "steps": cost.steps, "faults": cost.faults })
        };
        json!({
            "ok": true,
            "item": self.item.name(),
            "by": self.found.by,
            "rules": self.found.rules,
            "text": self.found.text,
            "before": size(self.whole),
            "after": size(&self.shrunk.scenario),
            "candidates": self.shrunk.tried,
            "spent": self.shrunk.spent,
            "file": self.shown,
            "scenario": self.shrunk.scenario,
            "transcript": self.transcript.lines().collect::<Vec<_>>(),
            "next": self.next(),
        })
    }
}

/// How large a scenario is, for people.
fn size(scenario: &Scenario) -> String {
    let cost = Cost::of(scenario);
    let counted = |count: usize, one: &str| format!("{count} {one}{}", if count == 1 { "" } else { "s" });
    let (steps, faults) = (counted(cost.steps, "step"), counted(cost.faults, "fault"));
    format!("{steps}, {faults}, {}", counted(cost.plugins, "plugin"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(by: &str, text: &str) -> Found {
        Found { by: by.into(), rules: Vec::new(), text: text.into(), at: None, step: None, replay: None }
    }

    #[test]
    fn a_panic_is_told_by_its_place() {
        let panic = |text: &str, line: u32| {
            kind(&found(CRASH, &format!("the simulator panicked: {text}, at sim/src/net.rs:{line}:5")))
        };
        assert_eq!(panic("index 3", 7), panic("index 12", 7));
        assert_ne!(panic("index 3", 7), panic("index 3", 8));
        let mu =
            |line: u32| kind(&found(CRASH, &format!("process 5 panicked: no, at core/src/lib.rs:{line}:1")));
        assert_ne!(mu(1), mu(2));
    }

    #[test]
    fn an_expectation_is_told_by_its_words_without_numbers_and_keys() {
        let of = |text: &str| kind(&found(EXPECTATION, text));
        let open = "the host.acquire of cave, key 01a230d6-b96e-7d1f-9470-e17ccdb821be, is still open";
        let other = "the host.acquire of cave, key 01b230d6-b96e-7d1f-9470-f17ccdb821be, is still open";
        assert_eq!(of(&format!("step 12: {open}")), of(&format!("step 3: {other}")));
        assert_ne!(of(open), of("the host.release of cave, key 01a2, is still open"));
    }

    #[test]
    fn runs_that_do_not_end_are_told_apart_by_why() {
        let of = |text: &str| kind(&found(CRASH, text));
        let stuck =
            |at: &str, rest: &str| of(&format!("step 4: deadlock at {at} s: nobody is ready; {rest}"));
        assert_eq!(stuck("1.000000000", "mu[7] waits"), stuck("20.5", "mu[12] waits; box[13] waits"));
        assert_ne!(stuck("1.0", "mu[7] waits"), stuck("1.0", "mu[7] is stopped"));
        assert_ne!(of("step 1: deadlock at 1.0 s: nobody"), of("step 1: still busy after 9 polls, at 3 ns"));
        assert_ne!(of("it ended the process: it died of SIGABRT"), of("it still ran after 20 s"));
    }

    #[test]
    fn a_title_is_one_line_of_bounded_length() {
        assert_eq!(shortened("a\n b", 10), "a b");
        assert_eq!(shortened("abcd efgh", 6), "abcd…");
    }
}
