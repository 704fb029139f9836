//! The sum of many outcomes, as a table and as JSON; and the text of a failure.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use serde_json::{Value, json};

use super::item::{Item, Outcome};
use super::marks::Count;
use super::{FOUND, HELD};

/// Everything that a campaign has seen.
#[derive(Default)]
pub(crate) struct Tally {
    scenarios: u64,
    seeds: u64,
    events: u64,
    virtual_ns: u128,
    fired: BTreeMap<String, u64>,
    failures: Vec<Outcome>,
    /// What seeds have reached; `None` where there are none.
    pub(crate) marks: Option<Count>,
    /// Scenarios that could not be played here, and why.
    skipped: Vec<(Item, String)>,
}

impl Tally {
    /// Adds what came of one item.
    pub(crate) fn add(&mut self, outcome: Outcome) {
        if let Some(marks) = &mut self.marks {
            marks.add(&outcome);
        }
        match outcome.item {
            Item::File { .. } => self.scenarios += 1,
            Item::Seed(_) => self.seeds += 1,
            Item::Points { .. } | Item::Text(_) | Item::Real => {}
        }
        self.events += outcome.events;
        self.virtual_ns += u128::from(outcome.virtual_ns);
        for (name, times) in &outcome.fired {
            *self.fired.entry(name.clone()).or_default() += times;
        }
        if !outcome.found.is_empty() {
            self.failures.push(outcome);
        }
    }

    /// Notes one that was not played.
    pub(crate) fn skip(&mut self, item: Item, reason: String) {
        self.skipped.push((item, reason));
    }

    fn findings(&self) -> usize {
        self.failures.iter().map(|outcome| outcome.found.len()).sum()
    }

    /// What the seeds did not reach and had to, each in one line.
    pub(crate) fn broken(&self) -> Vec<String> {
        self.marks.as_ref().map_or_else(Vec::new, Count::broken)
    }

    /// The exit code.
    pub(crate) fn exit(&self) -> u8 {
        if self.failures.is_empty() && self.broken().is_empty() { HELD } else { FOUND }
    }

    /// The table at the end. `took` is real time.
    pub(crate) fn table(&self, took: Duration) -> String {
        let runs = self.scenarios + self.seeds;
        let seconds = took.as_secs_f64();
        let mut rows = vec![
            ("scenarios", grouped(self.scenarios)),
            ("random seeds", grouped(self.seeds)),
            ("events", grouped(self.events)),
            ("virtual time", span(self.virtual_ns)),
            ("wall time", format!("{seconds:.1} s, {:.0} runs a second", runs as f64 / seconds.max(0.001))),
            ("faults that fired", grouped(self.fired.values().sum())),
            ("findings", grouped(self.findings() as u64)),
        ];
        if let Some(marks) = &self.marks {
            let (all, reached) = marks.sum();
            rows.insert(rows.len() - 1, ("marks reached", format!("{reached} of {all}, by seeds")));
        }
        if self.events == 0 {
            rows.retain(|(name, _)| !matches!(*name, "events" | "virtual time"));
        }
        if !self.skipped.is_empty() {
            rows.insert(1, ("not played here", grouped(self.skipped.len() as u64)));
        }
        let mut text = String::from("\n");
        for (name, value) in rows {
            let _ = writeln!(text, "{name:<18} {value}");
        }
        let _ = write!(text, "{}", columns(&self.fired));
        text.extend(self.marks.as_ref().map(Count::table));
        text
    }

    /// The same as JSON, with every finding.
    pub(crate) fn json(&self, took: Duration) -> Value {
        let findings: Vec<Value> = self.failures.iter().flat_map(findings_json).collect();
        let skipped: Vec<Value> = (self.skipped.iter())
            .map(|(item, reason)| json!({ "item": item.name(), "reason": reason }))
            .collect();
        json!({
            "ok": self.exit() == HELD,
            "scenarios": self.scenarios,
            "seeds": self.seeds,
            "events": self.events,
            "virtual_ms": u64::try_from(self.virtual_ns / 1_000_000).unwrap_or(u64::MAX),
            "wall_ms": took.as_millis() as u64,
            "faults": self.fired,
            "findings": findings,
            "skipped": skipped,
            "marks": self.marks.as_ref().map(Count::json),
        })
    }
}

/// The findings of one outcome as JSON.
pub(crate) fn findings_json(outcome: &Outcome) -> Vec<Value> {
    let of = |found: &super::item::Found| {
        json!({
            "item": outcome.item.name(),
            "by": found.by,
            "rules": found.rules,
            "text": found.text,
            "at_ns": found.at,
            "step": found.step,
            "replay": outcome.item.replay(),
            "kept": outcome.kept,
        })
    };
    outcome.found.iter().map(of).collect()
}

/// What is printed about an item that did not hold: what was violated, the rules, and the command that replays it.
pub(crate) fn failure(outcome: &Outcome) -> String {
    let mut text = format!("FAILED {}\n", outcome.item.name());
    for found in &outcome.found {
        let rules =
            if found.rules.is_empty() { String::new() } else { format!(" {}", found.rules.join(", ")) };
        let _ = writeln!(text, "  [{}{rules}] {}", found.by, found.text);
    }
    let _ = writeln!(text, "  replay: {}", outcome.item.replay());
    if !outcome.kept.is_empty() {
        let _ = writeln!(text, "  kept: {}", outcome.kept.join(", "));
    }
    text
}

/// `1 234 567`
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let head = digits.len() % 3;
    let mut groups: Vec<&str> = if head > 0 { vec![&digits[..head]] } else { Vec::new() };
    groups
        .extend(digits.as_bytes()[head..].chunks(3).map(|group| std::str::from_utf8(group).expect("digits")));
    groups.join(" ")
}

/// Virtual time as people say it.
pub(crate) fn span(ns: u128) -> String {
    let seconds = ns / 1_000_000_000;
    match (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60) {
        (0, 0, 0, s) => format!("{s} s"),
        (0, 0, m, s) => format!("{m} min {s} s"),
        (0, h, m, _) => format!("{h} h {m} min"),
        (d, h, _, _) => format!("{d} days {h} h"),
    }
}

/// Names and numbers, as many side by side as a line has room for.
fn columns(counts: &BTreeMap<String, u64>) -> String {
    const WIDTH: usize = 110;
    let name = counts.keys().map(String::len).max().unwrap_or(0);
    let number = counts.values().map(|count| grouped(*count).len()).max().unwrap_or(0);
    let side_by_side = (WIDTH / (name + number + 5)).max(1);
    let cells: Vec<String> = (counts.iter())
        .map(|(what, count)| format!("  {what:<name$} {:>number$}", grouped(*count)))
        .collect();
    cells.chunks(side_by_side).map(|row| format!("{}\n", row.join("  "))).collect()
}
