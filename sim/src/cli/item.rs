//! One thing that is played, and what came of it.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::panic::{self, AssertUnwindSafe};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{files, sweep};
use crate::explore;
use crate::explore::sweep::Point;
use crate::play::{self, Finding, Played, Setting};
use crate::scenario::{Scenario, is_rule};
use crate::world::Cannot;

/// Who says that an item, or a step of it, did not come to its end.
pub(crate) const CRASH: &str = "crash";
/// Who says that a step did not do what it was expected to.
pub(crate) const EXPECTATION: &str = "expectation";
/// Who says that something of a file never took place.
pub(crate) const INERT: &str = "inert";

/// A scenario file or a seed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Item {
    /// A file.
    File {
        /// Where it is.
        path: PathBuf,
        /// Its name for people.
        shown: String,
    },
    /// A random seed.
    Seed(u64),
    /// A file that is ended at each of these points in turn.
    Points {
        /// Where it is.
        path: PathBuf,
        /// Its name for people.
        shown: String,
        /// The points.
        points: Vec<Point>,
        /// Where a file is written for what is found.
        into: PathBuf,
    },
    /// A scenario in its text, that no file holds.
    Text(String),
    /// Everything that is played on real processes, as a whole.
    Real,
}

/// Something that did not hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Found {
    /// Who says so: `expectation`, `inert`, `crash`, or the name of an oracle.
    pub(crate) by: String,
    /// The rules at stake.
    pub(crate) rules: Vec<String>,
    /// What was violated, in one line.
    pub(crate) text: String,
    /// When, in virtual nanoseconds, if it has a moment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) at: Option<u64>,
    /// The step that it is about, from 1, if it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) step: Option<usize>,
    /// The command that plays it again, if it is not that of the item.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) replay: Option<String>,
}

/// What came of an item.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Outcome {
    pub(crate) item: Item,
    pub(crate) found: Vec<Found>,
    /// The hash chain in hexadecimal digits; none on real processes and after a crash.
    pub(crate) chain: Option<String>,
    pub(crate) events: u64,
    pub(crate) virtual_ns: u64,
    /// How often each fault took effect.
    pub(crate) fired: BTreeMap<String, u64>,
    /// The marks that were reached, by number.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) reached: Vec<u16>,
    /// Files that were written for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) kept: Vec<String>,
    /// Points that were not played, since they are the same world as the one before them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) same: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Item {
    /// As one word, for [`Item::read`].
    pub(crate) fn word(&self) -> String {
        serde_json::to_string(self).expect("an item has string keys alone")
    }

    /// What [`Item::word`] wrote.
    pub(crate) fn read(word: &str) -> Option<Item> {
        serde_json::from_str(word).ok()
    }

    /// The name for people.
    pub(crate) fn name(&self) -> String {
        match self {
            Item::File { shown, .. } | Item::Points { shown, .. } => shown.clone(),
            Item::Seed(seed) => format!("seed {seed}"),
            Item::Text(_) => "a scenario".to_owned(),
            Item::Real => "the run on real processes".to_owned(),
        }
    }

    /// The one command that plays it again and shows all of it.
    pub(crate) fn replay(&self) -> String {
        match self {
            Item::File { shown, .. } => format!("cargo sim replay {shown}"),
            Item::Points { shown, .. } => format!("cargo sim sweep {shown}"),
            Item::Seed(seed) => format!("cargo sim replay {seed}"),
            Item::Text(_) => "cargo sim replay FILE".to_owned(),
            Item::Real => "cargo sim run --real".to_owned(),
        }
    }

    /// The scenario that it stands for.
    ///
    /// # Errors
    /// One line: the file is gone or changed for the worse.
    pub(crate) fn scenario(&self) -> Result<Scenario, String> {
        match self {
            Item::File { path, shown } | Item::Points { path, shown, .. } => files::read(path, shown),
            Item::Seed(seed) => Ok(explore::draw(*seed)),
            Item::Text(text) => {
                Scenario::parse(&self.name(), text, &is_rule).map_err(|error| error.to_string())
            }
            Item::Real => Err("a whole run is no scenario".to_owned()),
        }
    }

    /// Its points, if it has any.
    pub(crate) fn points(&self) -> &[Point] {
        match self {
            Item::Points { points, .. } => points,
            _ => &[],
        }
    }

    /// The same with each of its points alone.
    pub(crate) fn each(&self) -> Vec<Item> {
        let alone = |point: &Point| match self.clone() {
            Item::Points { path, shown, into, .. } => {
                Item::Points { path, shown, points: vec![point.clone()], into }
            }
            other => other,
        };
        self.points().iter().map(alone).collect()
    }

    /// Plays it on the simulated machine. Whatever happens, a panic of the simulator included, is an outcome.
    pub(crate) fn play(&self) -> Outcome {
        if let Item::Points { .. } = self {
            return sweep::play_points(self);
        }
        let setting = Setting { drawn: matches!(self, Item::Seed(_)), ..Setting::default() };
        let scenario = match caught(|| self.scenario()) {
            Ok(Ok(scenario)) => scenario,
            Ok(Err(reason)) => return Outcome::crash(self.clone(), reason),
            Err(panic) => return Outcome::crash(self.clone(), panic),
        };
        self.play_with(&scenario, || play::simulated(&scenario, setting)).unwrap_or_else(|Cannot(reason)| {
            Outcome::crash(self.clone(), format!("it cannot be played: {reason}"))
        })
    }

    /// The outcome of playing its scenario by calling `play`.
    ///
    /// # Errors
    /// Those of `play`.
    pub(crate) fn play_with(
        &self,
        scenario: &Scenario,
        play: impl FnOnce() -> Result<Played, Cannot>,
    ) -> Result<Outcome, Cannot> {
        match caught(play) {
            Ok(played) => Ok(Outcome::new(self.clone(), scenario, played?)),
            Err(panic) => Ok(Outcome::crash(self.clone(), panic)),
        }
    }
}

impl Outcome {
    fn new(item: Item, scenario: &Scenario, played: Played) -> Outcome {
        Outcome {
            item,
            found: played.findings.iter().map(|finding| Found::new(finding, scenario)).collect(),
            chain: played.chain.map(|chain| chain.to_string()),
            events: played.events,
            virtual_ns: u64::try_from(played.virtual_time.as_nanos()).unwrap_or(u64::MAX),
            fired: played.fired,
            reached: Vec::new(),
            kept: Vec::new(),
            same: 0,
        }
    }

    /// The outcome of an item that did not come to its end.
    pub(crate) fn crash(item: Item, text: String) -> Outcome {
        let found = Found { by: CRASH.into(), rules: Vec::new(), text, at: None, step: None, replay: None };
        let found = vec![found];
        let (fired, reached, kept) = Default::default();
        Outcome { item, found, chain: None, events: 0, virtual_ns: 0, fired, reached, kept, same: 0 }
    }

    /// Whether it is one.
    pub(crate) fn is_crash(&self) -> bool {
        self.found.iter().any(|found| found.by == CRASH) && self.events == 0
    }
}

impl Found {
    fn new(finding: &Finding, scenario: &Scenario) -> Found {
        let (by, rules) = match finding {
            Finding::Expectation { .. } => (EXPECTATION, scenario.rules.clone()),
            Finding::Violation(violation) => (violation.oracle, vec![violation.rule.to_owned()]),
            Finding::Stuck { .. } => (CRASH, scenario.rules.clone()),
            Finding::Inert { .. } | Finding::Missed { .. } => (INERT, scenario.rules.clone()),
        };
        let (at, step) = match finding {
            Finding::Violation(violation) => (violation.at, None),
            Finding::Expectation { step, .. }
            | Finding::Missed { step, .. }
            | Finding::Stuck { step, .. } => (None, Some(*step)),
            Finding::Inert { .. } => (None, None),
        };
        Found { by: by.to_owned(), rules, text: finding.sentence(), at, step, replay: None }
    }
}

thread_local! {
    /// Whether a panic of this thread is going to be caught.
    static CATCHING: Cell<bool> = const { Cell::new(false) };
    /// Where and why the last panic happened that is going to be caught.
    static PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Calls `body`; a panic is an `Err` of one line, and prints nothing.
fn caught<R>(body: impl FnOnce() -> R) -> Result<R, String> {
    static HOOK: std::sync::Once = std::sync::Once::new();
    HOOK.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !CATCHING.get() {
                return usual(info);
            }
            let text = info.payload().downcast_ref::<&str>().copied();
            let text = text.or_else(|| info.payload().downcast_ref::<String>().map(String::as_str));
            let message = text.unwrap_or("a value that is no text");
            let place = info.location().map_or_else(|| "an unknown place".to_owned(), ToString::to_string);
            PANIC.set(Some(format!("{message}, at {place}").replace('\n', "; ")));
        }));
    });
    let outer = CATCHING.replace(true);
    let done = panic::catch_unwind(AssertUnwindSafe(body));
    CATCHING.set(outer);
    done.map_err(|_| PANIC.take().unwrap_or_else(|| "for no known reason".to_owned()))
        .map_err(|panic| format!("the simulator panicked: {panic}"))
}
