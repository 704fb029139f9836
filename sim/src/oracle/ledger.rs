//! What truly happened at the backend (oracle 1): never two live machines for one key, nor for one host beyond what mu
//! released; none whose key mu did not hold durably; none after a proven `none`; and none lost from sight.

use std::collections::BTreeSet;

use crate::backend;

use super::rows::Rows;
use super::{Excuses, Observed, Violation};

const ORACLE: &str = "ledger";

/// The books of the backend.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Books {
    /// Every machine that was ever made.
    pub machines: Vec<Machine>,
    /// Every acquire that was accepted.
    pub accepted: Vec<Accepted>,
    /// Keys that are barred, with their instance and since when.
    pub barred: Vec<(String, String, u64)>,
}

/// A machine. Times are in milliseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// The instance that made it.
    pub instance: String,
    /// For which key.
    pub key: String,
    /// mu's name for it.
    pub host: String,
    /// Every handle that it had; the last is the present one.
    pub handles: Vec<String>,
    /// When it began to exist.
    pub made_ms: u64,
    /// When it ceased to.
    pub gone_ms: Option<u64>,
}

/// An acquire that was accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// The instance that did.
    pub instance: String,
    /// Its key.
    pub key: String,
    /// mu's name for the host.
    pub host: String,
    /// It has no machine yet, and will have one.
    pub coming: bool,
}

impl Books {
    /// What of the backend's books counts here.
    pub fn of(books: &backend::Books) -> Books {
        let mut all = Books::default();
        for (instance, ledger) in &books.ledgers {
            all.machines.extend(ledger.machines.iter().map(|one| Machine {
                instance: instance.clone(),
                key: one.key.clone(),
                host: one.host.clone(),
                handles: one.handles.iter().map(|(_, handle)| handle.clone()).collect(),
                made_ms: one.made_ms,
                gone_ms: one.gone.as_ref().map(|(at, _)| *at),
            }));
            all.accepted.extend(ledger.accepted.iter().map(|one| Accepted {
                instance: instance.clone(),
                key: one.key.clone(),
                host: one.host.clone(),
                coming: one.outcome == backend::Outcome::Coming,
            }));
            let barred = ledger.fenced.iter().map(|(key, since)| (instance.clone(), key.clone(), *since));
            all.barred.extend(barred);
        }
        all
    }
}

impl Machine {
    fn name(&self) -> String {
        let handle = self.handles.last().map_or("?", String::as_str);
        format!("{handle} of {} ({}, key {})", self.instance, self.host, self.key)
    }

    fn lives(&self) -> bool {
        self.gone_ms.is_none()
    }

    fn overlaps(&self, other: &Machine) -> bool {
        let end = |one: &Machine| one.gone_ms.unwrap_or(u64::MAX);
        self.made_ms < end(other) && other.made_ms < end(self)
    }
}

pub(super) fn check(observed: &Observed<'_>, found: &mut Vec<Violation>) {
    let mut say = |rule, text: String| found.push(Violation { oracle: ORACLE, rule, at: None, text });
    let (books, excuses) = (observed.books, observed.excuses);
    let durable: BTreeSet<&str> = (observed.images.iter())
        .flat_map(|image| image.rows.effects.iter().map(|row| row.key.as_str()))
        .collect();
    for one in &books.accepted {
        if !durable.contains(one.key.as_str()) {
            let Accepted { key, host, .. } = one;
            say("EFF-02", format!("an acquire of {host} was accepted whose key {key} was never durable"));
        }
    }
    for (index, one) in books.machines.iter().enumerate() {
        let before = &books.machines[..index];
        if let Some(other) =
            before.iter().find(|other| (&other.instance, &other.key) == (&one.instance, &one.key))
        {
            say("EFF-10", format!("{} and {} have one key", other.name(), one.name()));
        } else if let Some(other) = before.iter().find(|other| other.host == one.host && other.overlaps(one))
            && !excuses.cover(observed.rows, &one.host)
        {
            say("EFF-04", format!("{} was made while {} existed", one.name(), other.name()));
        }
        let barred =
            |(instance, key, _): &&(String, String, u64)| (instance, key) == (&one.instance, &one.key);
        if books.barred.iter().filter(barred).any(|(.., since)| *since < one.made_ms) && !excuses.lies {
            say("EFF-15", format!("{} was made after its key had been barred", one.name()));
        }
    }
    lost(books, observed.rows, excuses, &mut say);
}

/// What exists, or is going to, and mu does not know of: at the end of every run, converged or not.
fn lost(books: &Books, rows: &Rows, excuses: Excuses, say: &mut dyn FnMut(&'static str, String)) {
    let is_open = |key: &str| rows.effects.iter().any(|row| row.key == key);
    let is_due = |host: &str| !excuses.cover(rows, host);
    for one in books.machines.iter().filter(|one| one.lives() && is_due(&one.host)) {
        let is_its = |row: &&super::rows::HostRow| {
            row.name == one.host
                && row.instance == one.instance
                && row.handle.as_ref().is_some_and(|handle| one.handles.contains(handle))
        };
        match rows.hosts.iter().find(is_its) {
            Some(row) if row.state == "lost" => {
                say("HOST-16", format!("{} exists, and mu has it down as lost", one.name()));
            }
            Some(_) => {}
            None if is_open(&one.key) => {}
            None => say("EFF-04", format!("{} exists, and mu knows nothing of it", one.name())),
        }
    }
    let coming = books.accepted.iter().filter(|one| one.coming && is_due(&one.host));
    for one in coming.filter(|one| !is_open(&one.key)) {
        let Accepted { key, host, .. } = one;
        say(
            "EFF-13",
            format!("a machine of {host} is going to be made, and mu knows nothing of its key {key}"),
        );
    }
}
