//! All that a backend keeps: its settings, and a [`Ledger`] for each instance. Still without IO.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::ledger::{Answer, Ledger, Now, Promise, Question};
use super::table::{BackendAt, BackendTable, Counts, Setup};

/// The books of a backend.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Books {
    /// How it behaves now.
    pub setup: Setup,
    /// What has happened, by instance.
    pub ledgers: BTreeMap<String, Ledger>,
    /// What happened for a scenario's sake and could not.
    pub missed: Vec<String>,
}

impl Books {
    /// Empty ones of a backend that behaves like this.
    pub fn new(table: &BackendTable) -> Books {
        let mut books = Books::default();
        books.setup.apply(table);
        books
    }

    /// Takes a question from a plugin of this instance.
    pub fn ask(&mut self, now: Now, instance: &str, question: &Question) -> Promise {
        self.ledgers.entry(instance.to_owned()).or_default().ask(now, &self.setup, question)
    }

    /// The answer, now that it is due.
    pub fn answer(&mut self, now: Now, instance: &str, promise: &Promise) -> Answer {
        self.ledgers.entry(instance.to_owned()).or_default().answer(now, &self.setup, promise)
    }

    /// Lets everything take place whose time has come, and tells of what has, a line each.
    pub fn settle(&mut self, now: Now) -> Vec<String> {
        let mut all = Vec::new();
        for (instance, ledger) in &mut self.ledgers {
            ledger.settle(now, &self.setup);
            all.extend(ledger.news().into_iter().map(|news| format!("{news} ({instance})")));
        }
        all
    }

    /// When the next thing takes place by itself.
    pub fn next_ms(&self) -> Option<u64> {
        self.ledgers.values().filter_map(Ledger::next_ms).min()
    }

    /// Lets something happen to a host. When it cannot, that is kept in `missed`.
    pub fn deed(&mut self, now: Now, deed: &BackendAt) {
        for ledger in self.ledgers.values_mut() {
            ledger.settle(now, &self.setup);
        }
        let all = self.ledgers.iter().flat_map(|(instance, ledger)| {
            ledger.machines.iter().enumerate().map(move |(index, machine)| (instance, index, machine))
        });
        let named = all.filter(|(.., machine)| machine.host == deed.host);
        let newest = named.max_by_key(|(_, index, machine)| (machine.lives(), machine.made_ms, *index));
        let done = match newest.map(|(instance, index, _)| (instance.clone(), index)) {
            None => Err(format!("there is no machine of `{}`", deed.host)),
            Some((instance, index)) => {
                self.ledgers.get_mut(&instance).expect("it was just seen").deed(now, index, deed)
            }
        };
        if let Err(reason) = done {
            self.missed.push(format!("{} of the backend: {reason}", deed.deed.name()));
        }
    }

    /// The machines that were made, of this instance or of all.
    fn of(&self, instance: Option<&str>) -> impl Iterator<Item = &Ledger> {
        let wanted = move |name: &str| instance.is_none_or(|wanted| wanted == name);
        self.ledgers.iter().filter(move |(name, _)| wanted(name)).map(|(_, ledger)| ledger)
    }

    /// Where the books differ from what is expected of them, a sentence each.
    pub fn mismatches(&self, expected: &Counts) -> Vec<String> {
        let of = || self.of(expected.instance.as_deref());
        let hosts = of().flat_map(|ledger| &ledger.machines).filter(|machine| machine.lives()).count();
        let ever = of().map(|ledger| ledger.machines.len()).sum();
        let keys = |ledger: &Ledger| {
            ledger.accepted.iter().map(|one| one.key.clone()).collect::<BTreeSet<_>>().len()
        };
        let keys = of().map(keys).sum();
        let fenced = of().map(|ledger| ledger.fenced.len()).sum();
        let counted: [(&str, usize, Option<usize>); 4] = [
            ("machines that live", hosts, expected.hosts),
            ("machines ever made", ever, expected.ever),
            ("keys accepted", keys, expected.keys),
            ("keys barred", fenced, expected.fenced),
        ];
        let whose = expected.instance.as_ref().map(|name| format!(" of instance {name}")).unwrap_or_default();
        let differing = counted.into_iter().filter_map(|(what, is, wanted)| {
            let wanted = wanted.filter(|wanted| *wanted != is)?;
            Some(format!("the backend has {is} {what}{whose}, not {wanted}"))
        });
        differing.collect()
    }
}
