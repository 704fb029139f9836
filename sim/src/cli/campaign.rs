//! Many items on the simulated machine, and the report on them.

use std::ops::ControlFlow;
use std::time::Instant;

use super::item::{Item, Outcome};
use super::keep::Keeper;
use super::marks::Count;
use super::progress::Progress;
use super::tally::{self, Tally};
use super::{Failure, Place, say, worker};

/// Failures that are printed in full; more are only counted, and listed with `--json`.
const SHOWN: usize = 20;

/// How it is reported.
#[derive(Clone, Copy)]
pub(crate) struct Style {
    /// A line for each item, and not only for those that failed.
    pub(crate) each: bool,
    /// One JSON document at the end and nothing else.
    pub(crate) json: bool,
    /// All scenarios are among the items.
    pub(crate) whole: bool,
}

/// Plays all items in `jobs` processes; answers with the exit code. Seeds among them must reach what they are promised to.
pub(crate) fn run(place: &Place, items: &[Item], jobs: usize, style: Style) -> Result<u8, Failure> {
    let begun = Instant::now();
    let mut report = Report::new(items.len(), style);
    if items.iter().any(|item| matches!(item, Item::Seed(_))) {
        report.tally.marks = Some(Count::new(&place.root, style.whole)?);
    }
    let mut keeper = Keeper::new(place);
    worker::play_all(&worker::own_program()?, items, jobs, |mut outcome| {
        if !outcome.found.is_empty() {
            keeper.keep(&mut outcome);
        }
        report.add(outcome);
        ControlFlow::Continue(())
    })?;
    Ok(report.end(begun))
}

/// Collects outcomes and prints them as they come.
pub(crate) struct Report {
    pub(crate) tally: Tally,
    progress: Progress,
    style: Style,
    shown: usize,
}

impl Report {
    /// For so many items.
    pub(crate) fn new(items: usize, style: Style) -> Report {
        let progress = Progress::new("runs", items, style.json);
        Report { tally: Tally::default(), progress, style, shown: 0 }
    }

    /// One has come.
    pub(crate) fn add(&mut self, outcome: Outcome) {
        if outcome.found.is_empty() {
            if self.style.each {
                self.progress.say(&format!("ok {}\n", outcome.item.name()));
            }
        } else {
            self.shown += 1;
            if self.style.each || self.shown <= SHOWN {
                self.progress.say(&tally::failure(&outcome));
            } else if self.shown == SHOWN + 1 {
                self.progress.say("more failures are counted only; --json lists them all\n");
            }
        }
        self.progress.step(outcome.found.len());
        self.tally.add(outcome);
    }

    /// One is not played here.
    pub(crate) fn skip(&mut self, item: Item, reason: String) {
        self.progress.say(&format!("-- {}: {reason}\n", item.name()));
        self.progress.step(0);
        self.tally.skip(item, reason);
    }

    /// The table or the document; the exit code.
    pub(crate) fn end(self, begun: Instant) -> u8 {
        self.progress.end();
        let took = begun.elapsed();
        if self.style.json {
            say(&format!("{}\n", self.tally.json(took)));
        } else {
            say(&self.tally.table(took));
            let broken = self.tally.broken();
            say(&broken.iter().map(|what| format!("FAILED {what}\n")).collect::<String>());
        }
        self.tally.exit()
    }
}
