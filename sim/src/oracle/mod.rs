//! One checker for each invariant, all of them on in every run, scripted or drawn.
//!
//! In: the [`History`] of the trace, what each mu printed, and the bytes on the disk. Out: [`Violation`]s. An oracle
//! knows the rules and the outside of mu; it knows nothing of mu's insides, nor why a fault was injected. What a rule
//! leaves open passes: a checker reports what is certainly wrong.
//!
//! | file | invariant |
//! |---|---|
//! | `start` | a plugin leads its group, is greeted first, has ten seconds, and is not started again once broken |
//! | `deadlines` | every call ends by its deadline and a grace, none before without a cause, and none is sent after it (oracle 7) |
//! | `resend` | a call is repeated after `retryable` alone, three times at most, with a new id and deadline (oracle 6) |
//! | `link` | nothing undeclared is asked of a link; its channels, and runs that are still stopping |
//! | `remote` | `mu host exec` and `mu host fetch` end as the last answer says (oracle 9) |
//! | `intent` | no effect is sent before its intent is durable, and none outlives a definite reply (oracle 2) |
//! | `ledger` | the backend never has two machines where there may be one, nor one that mu does not know of (oracle 1) |
//! | `converged` | once nothing goes wrong any more, mu's rows and the backend agree (oracle 3) |
//! | `instance` | nothing goes to another instance than the recorded one (oracle 8) |
//! | `parties` | nobody sends anything about an effect that somebody else may still bring about |
//! | `releasing` | nobody begins to use, or calls lost, a machine that a living mu is about to release |
//! | `leftover` | no process of a plugin outlives its mu (oracle 4) |
//! | `stopping` | a stop goes step by step and ends in time; a signal is followed by no start (oracle 5) |
//! | `ids` | request ids are never used twice (oracle 6) |
//! | `crash` | nobody panics who was not made to |
//! | `answers` | exit code, envelope and text agree (oracle 9) |
//! | `secrets` | the canary appears nowhere, stderr and repaired bytes are not stored (oracle 10) |
//! | `schema` | plugins get only what the schema allows (oracle 11) |
//!
//! That memory stays bounded (oracle 10 too) has no form here: simulated processes share the simulator's memory. The real
//! world ([`crate::world::Real`]) looks at the peak memory of each real mu.
//!
//! `database` looks whether a database is sound, `rows` reads one, `effects` finds what was asked about effects.
//!
//! `history` reads the trace, `speech` a plugin's stdout, `strict` a line of JSON, `calls` what was asked and answered, of
//! which `shape` tells whether it may be.

pub mod answers;
mod calls;
pub mod converged;
pub mod crash;
pub mod database;
pub mod deadlines;
pub mod effects;
mod excuses;
pub mod history;
pub mod ids;
pub mod instance;
pub mod intent;
pub mod ledger;
pub mod leftover;
pub mod link;
pub mod parties;
pub mod releasing;
pub mod remote;
pub mod resend;
pub mod rows;
pub mod schema;
pub mod secrets;
mod shape;
pub mod speech;
pub mod start;
pub mod stopping;
mod strict;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::path::PathBuf;

use mu_core::os::{Exit, Pid};

pub use excuses::Excuses;
pub use history::{History, Ns};

use crate::trace::Event;

/// One second of virtual time.
pub const SECOND: Ns = 1_000_000_000;
/// Virtual time that a step of mu may take when it only has to notice something.
const SLACK: Ns = SECOND / 100;

/// An invariant that did not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The checker's name.
    pub oracle: &'static str,
    /// The rule broken.
    pub rule: &'static str,
    /// When, if it has a moment.
    pub at: Option<Ns>,
    /// One line: what was seen and what was due.
    pub text: String,
}

/// One invocation of mu, from the outside.
#[derive(Clone, Debug)]
pub struct Ran {
    /// Its process.
    pub pid: Pid,
    /// Its arguments, `mu` first.
    pub argv: Vec<String>,
    /// What it printed on stdout.
    pub stdout: Vec<u8>,
    /// What it printed on stderr.
    pub stderr: Vec<u8>,
    /// How it ended; `None` if it still runs.
    pub exit: Option<Exit>,
    /// Whether it was made to panic.
    pub crash: bool,
    /// Whether somebody read all that it printed: a closed stdout is a quiet exit.
    pub heard: bool,
}

impl Ran {
    /// Whether it runs this verb on hosts.
    fn is_host(&self, verb: &str) -> bool {
        let words: Vec<&str> = self.options().filter(|word| !word.starts_with('-')).take(2).collect();
        words == ["host", verb]
    }

    /// Its arguments up to `--`.
    fn options(&self) -> impl Iterator<Item = &str> {
        self.argv.iter().skip(1).map(String::as_str).take_while(|word| *word != "--")
    }

    /// The value of an option.
    fn option(&self, name: &str) -> Option<&str> {
        let mut words = self.options().skip_while(|word| !word.starts_with(name));
        match words.next()?.strip_prefix(name)?.strip_prefix('=') {
            Some(value) => Some(value),
            None => words.next(),
        }
    }

    /// Whether its output is an envelope.
    fn is_json(&self) -> bool {
        self.options().any(|word| word == "--json")
    }
}

/// How far a script makes a plugin give away its environment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Leak {
    /// Not at all.
    #[default]
    Nothing,
    /// Into what mu may show and never stores: its stderr, the output of a run.
    Shown,
    /// Into what mu stores; then the canary proves nothing.
    Stored,
}

/// What the oracles look at.
pub struct Observed<'a> {
    /// All events.
    pub events: &'a [Event],
    /// Until when the machine was watched; events may have ended before.
    pub now: Ns,
    /// Every invocation of mu.
    pub ran: &'a [Ran],
    /// Every regular file at the end.
    pub files: &'a [(PathBuf, Vec<u8>)],
    /// The secret in the environment of every process.
    pub canary: &'a str,
    /// Plugins that a script makes outlive the end of their stdin.
    pub stubborn: &'a BTreeSet<String>,
    /// How far a script makes a plugin give away its environment.
    pub leak: Leak,
    /// What was durable when effects were sent, in their order.
    pub images: &'a [intent::Image],
    /// What mu has written down at the end.
    pub rows: &'a rows::Rows,
    /// What truly happened at the backend.
    pub books: &'a ledger::Books,
    /// Why not everything that is due can be asked for.
    pub excuses: Excuses,
}

/// Runs all of them.
pub fn check(observed: &Observed<'_>) -> Vec<Violation> {
    let mus: BTreeSet<Pid> = observed.ran.iter().map(|ran| ran.pid).collect();
    let history = History::read(observed.events, &mus, observed.now);
    let mut found = Vec::new();
    start::check(&history, &mut found);
    leftover::check(&history, observed, &mut found);
    stopping::check(&history, observed.ran, &mut found);
    deadlines::check(&history, observed.ran, &mut found);
    ids::check(&history, &mut found);
    resend::check(&history, observed, &mut found);
    link::check(&history, observed.ran, &mut found);
    remote::check(&history, observed, &mut found);
    intent::check(&history, observed, &mut found);
    instance::check(&history, observed.ran, &mut found);
    parties::check(&history, &mut found);
    releasing::check(&history, observed.ran, &mut found);
    ledger::check(observed, &mut found);
    crash::check(observed, &mut found);
    for ran in observed.ran {
        answers::check(ran, &mut found);
    }
    secrets::check(&history, observed, &mut found);
    schema::check(&history, &mut found);
    found
}
