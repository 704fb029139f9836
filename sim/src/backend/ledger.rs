//! The ground truth: which keys one instance of a provider has accepted, which machines it has made of them, what became of
//! each. A state machine without IO.
//!
//! In: questions and deeds, each with the time. Out: answers, each with the time at which it leaves. What has happened stays
//! in the ledger for ever, with its time, so that whoever judges a run can read it; it says what *is*, which may be another
//! thing than what a plugin says.
//!
//! The life of an acquire: it arrives and is *accepted*; it lies where nobody sees it (`land_ms`); it is *visible* while its
//! machine is being made (`acquire_ms`); then the machine exists. A fence can bar it only before it is visible.

use std::collections::BTreeMap;

use mu_core::reached;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::table::{BackendAt, BackendDeed, Fact, HostFacts, Setup};

/// The backend's clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// Milliseconds that passed since the backend began.
    pub at_ms: u64,
    /// Milliseconds since the epoch, by its wall clock.
    pub wall_ms: i64,
}

/// What a plugin asks of its backend.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Question {
    /// A host is to be made, or the one that this key made already.
    Acquire {
        /// The key by which a repeat is recognised.
        key: String,
        /// mu's name for the host.
        host: String,
        /// What it is to be like.
        params: BTreeMap<String, String>,
    },
    /// What became of the acquire with this key?
    Lookup {
        /// The key.
        key: String,
        /// Whether the key is to be barred when nothing has come of it.
        fence: bool,
    },
    /// How is this machine?
    Status {
        /// Its handle.
        handle: String,
    },
    /// A machine is to end.
    Release {
        /// The key of this release.
        key: String,
        /// The machine's handle.
        handle: String,
    },
    /// Can something be run on this machine?
    Reach {
        /// Its handle.
        handle: String,
    },
}

/// What the backend answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Answer {
    /// The result, as the protocol has it.
    Result(Value),
    /// It was refused, and nothing has happened.
    Refused {
        /// The kind of the error.
        kind: Refusal,
        /// Why, in one line.
        message: String,
        /// What a person has to do, when one has to.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        remedy: Option<String>,
    },
}

/// How definite a refusal is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Refusal {
    /// It may work later.
    Retryable,
    /// It never will.
    Permanent,
    /// A person has to act first.
    Human,
}

impl Answer {
    fn refused(kind: Refusal, message: impl Into<String>) -> Answer {
        Answer::Refused { kind, message: message.into(), remedy: None }
    }
}

/// An answer that leaves at its time, by [`Ledger::answer`].
#[derive(Clone, Debug, PartialEq)]
pub struct Promise {
    /// When, in milliseconds since the backend began.
    pub due_ms: u64,
    what: Promised,
}

#[derive(Clone, Debug, PartialEq)]
enum Promised {
    /// This.
    Ready(Answer),
    /// What comes of the acquire at this place.
    Acquired(usize),
    /// That a release is over.
    Released,
}

/// An acquire that was accepted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Accepted {
    /// Its key. After the window the same key may be accepted again.
    pub key: String,
    /// mu's name for the host.
    pub host: String,
    /// What it is to be like.
    pub params: BTreeMap<String, String>,
    /// When it arrived.
    pub at_ms: u64,
    /// From when on lookups see it.
    pub visible_ms: u64,
    /// When its machine exists.
    pub effect_ms: u64,
    /// When it arrived again and was recognised.
    pub repeats: Vec<u64>,
    /// What has come of it.
    pub outcome: Outcome,
}

/// What has come of an acquire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Nothing yet.
    Coming,
    /// The machine at this place of [`Ledger::machines`].
    Made(usize),
    /// Nothing, ever: a fence came first.
    Barred,
}

/// A machine that was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// The key of its acquire.
    pub key: String,
    /// mu's name for it.
    pub host: String,
    /// Its handles, and from when on each held. The last is the one it has.
    pub handles: Vec<(u64, String)>,
    /// When it began to exist.
    pub made_ms: u64,
    /// When it ceased to exist, and how.
    pub gone: Option<(u64, Gone)>,
    /// How it was, and from when on.
    pub health: Vec<(u64, Health)>,
    /// What was said of it when it was made.
    pub facts: BTreeMap<Fact, i64>,
    /// What was said otherwise later; `None`: that it does not hold any more.
    pub changes: Vec<(u64, Fact, Option<i64>)>,
}

/// How a machine ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Gone {
    /// By the release with this key.
    Released(String),
    /// By itself.
    Lost,
}

/// How a living machine is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Health {
    /// Usable.
    Well,
    /// Only after a person has acted.
    NeedsHuman,
    /// Nobody can tell.
    Unsure,
}

/// A release that was accepted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Release {
    /// Its own key.
    pub key: String,
    /// The machine, by its place.
    pub machine: usize,
    /// When it arrived.
    pub at_ms: u64,
    /// When the machine ends.
    pub effect_ms: u64,
}

/// A lookup that was told that nothing has come of a key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToldNone {
    /// The key.
    pub key: String,
    /// When.
    pub at_ms: u64,
    /// Whether it had asked for a fence.
    pub fence: bool,
}

/// The books of one instance. Everything that ever happened, in its order; see the top of this file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ledger {
    /// Every acquire that was accepted.
    pub accepted: Vec<Accepted>,
    /// Every machine that was ever made.
    pub machines: Vec<Machine>,
    /// Every release that was accepted.
    pub releases: Vec<Release>,
    /// The keys that are barred, and since when.
    pub fenced: BTreeMap<String, u64>,
    /// Every answer that nothing has come of a key.
    pub told_none: Vec<ToldNone>,
    /// What has taken place since somebody asked for it last, for a reader.
    #[serde(skip)]
    news: Vec<String>,
}

/// What needs a person says this.
const REMEDY: &str = "log in to the console of the machine";

impl Machine {
    /// Whether it exists.
    pub fn lives(&self) -> bool {
        self.gone.is_none()
    }

    /// The handle that it has.
    pub fn handle(&self) -> &str {
        &self.handles.last().expect("a machine is made with a handle").1
    }

    /// The handle that it was made with.
    pub fn first_handle(&self) -> &str {
        &self.handles[0].1
    }

    fn is_called(&self, handle: &str) -> bool {
        self.handles.iter().any(|(_, its)| its == handle)
    }

    fn handle_at(&self, ms: u64) -> &str {
        let its = self.handles.iter().rev().find(|(since, _)| *since <= ms);
        its.map_or(self.first_handle(), |(_, handle)| handle)
    }

    fn health_at(&self, ms: u64) -> Health {
        self.health.iter().rev().find(|(since, _)| *since <= ms).map_or(Health::Well, |(_, health)| *health)
    }

    fn gone_at(&self, ms: u64) -> Option<&Gone> {
        self.gone.as_ref().filter(|(at, _)| *at <= ms).map(|(_, how)| how)
    }

    /// The last change of each fact.
    fn changes_at(&self, ms: u64) -> BTreeMap<Fact, Option<i64>> {
        let past = self.changes.iter().filter(|(at, ..)| *at <= ms);
        past.map(|(_, fact, value)| (*fact, *value)).collect()
    }

    /// The result of its acquire, as of then.
    fn found(&self, ms: u64) -> Value {
        let mut facts = self.facts.clone();
        for (fact, value) in self.changes_at(ms) {
            match value {
                Some(value) => drop(facts.insert(fact, value)),
                None => drop(facts.remove(&fact)),
            }
        }
        acquired(self.handle_at(ms), &facts)
    }

    fn status(&self, ms: u64) -> Value {
        match (self.gone_at(ms), self.health_at(ms)) {
            (Some(Gone::Released(_)), _) => json!({ "state": "gone", "reason": "the machine was released" }),
            (Some(Gone::Lost), _) => json!({ "state": "gone", "reason": "the machine was destroyed" }),
            (None, Health::NeedsHuman) => json!({ "state": "needs-human", "remedy": REMEDY }),
            (None, Health::Unsure) => unknown("the machine does not answer"),
            (None, Health::Well) => {
                let mut up = json!({ "state": "up", "handle": self.handle_at(ms) });
                let members = up.as_object_mut().expect("it was made as one");
                members.extend(
                    self.changes_at(ms).into_iter().map(|(fact, value)| {
                        (fact.name().to_owned(), value.map_or(Value::Null, Value::from))
                    }),
                );
                up
            }
        }
    }
}

fn unknown(reason: &str) -> Value {
    json!({ "state": "unknown", "reason": reason })
}

fn acquired(handle: &str, facts: &BTreeMap<Fact, i64>) -> Value {
    let mut members = Map::from_iter([("handle".to_owned(), Value::from(handle))]);
    members.extend(facts.iter().map(|(fact, value)| (fact.name().to_owned(), Value::from(*value))));
    Value::Object(members)
}

impl HostFacts {
    /// By their names on the wire, as of this wall clock.
    fn at(&self, wall_ms: i64) -> BTreeMap<Fact, i64> {
        let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        let deadline = self.deadline_ms.map(|ms| (Fact::DeadlineAt, wall_ms.saturating_add(ms)));
        let idle = self.idle_reclaim_ms.map(|ms| (Fact::IdleReclaimMs, number(ms)));
        let jobs = self.max_jobs.map(|jobs| (Fact::MaxJobs, number(jobs)));
        deadline.into_iter().chain(idle).chain(jobs).collect()
    }
}

impl Ledger {
    /// Takes a question. What it asks for may take place later, whether anybody fetches the answer or not.
    pub fn ask(&mut self, now: Now, setup: &Setup, question: &Question) -> Promise {
        self.settle(now, setup);
        let ready = |answer| Promise { due_ms: now.at_ms, what: Promised::Ready(answer) };
        match question {
            Question::Acquire { key, host, params } => self.acquire(now, setup, key, host, params),
            Question::Lookup { key, fence } => ready(Answer::Result(self.lookup(now, setup, key, *fence))),
            Question::Status { handle } => {
                let then = now.at_ms.saturating_sub(setup.lookup_lag_ms);
                let seen = self.called(handle).map(|index| &self.machines[index]);
                let seen = seen.filter(|machine| machine.made_ms <= then);
                ready(Answer::Result(match seen {
                    Some(machine) => machine.status(then),
                    // That nobody knows it is no proof of anything (HOST-11).
                    None => unknown("no machine of that handle is known"),
                }))
            }
            Question::Reach { handle } => ready(self.reach(handle)),
            Question::Release { key, handle } => match self.called(handle) {
                None => ready(Answer::refused(
                    Refusal::Permanent,
                    format!("there never was a machine `{handle}`"),
                )),
                Some(machine) => {
                    let effect_ms = now.at_ms.saturating_add(setup.release_ms);
                    let release = Release { key: key.clone(), machine, at_ms: now.at_ms, effect_ms };
                    self.releases.push(release);
                    self.settle(now, setup);
                    Promise { due_ms: effect_ms, what: Promised::Released }
                }
            },
        }
    }

    /// What the answer is, now that it is due.
    pub fn answer(&mut self, now: Now, setup: &Setup, promise: &Promise) -> Answer {
        self.settle(now, setup);
        match &promise.what {
            Promised::Ready(answer) => answer.clone(),
            Promised::Released => Answer::Result(Value::Null),
            Promised::Acquired(index) => match self.accepted[*index].outcome {
                Outcome::Made(machine) => {
                    let machine = &self.machines[machine];
                    Answer::Result(acquired(machine.first_handle(), &machine.facts))
                }
                Outcome::Barred => barred(&self.accepted[*index].key),
                Outcome::Coming => unreachable!("the answer is due when the effect is"),
            },
        }
    }

    /// Lets everything take place whose time has come.
    pub fn settle(&mut self, now: Now, setup: &Setup) {
        loop {
            let coming = self.accepted.iter().enumerate();
            let coming = coming
                .filter(|(_, one)| one.outcome == Outcome::Coming && one.effect_ms <= now.at_ms)
                .map(|(index, one)| (one.effect_ms, index))
                .min();
            let ending = self.releases.iter().enumerate();
            let ending = ending
                .filter(|(_, one)| one.effect_ms <= now.at_ms && self.machines[one.machine].lives())
                .map(|(index, one)| (one.effect_ms, index))
                .min();
            match (coming, ending) {
                (Some((at, index)), end) if end.is_none_or(|(end, _)| at <= end) => {
                    self.make(index, now, setup);
                }
                (_, Some((at, index))) => {
                    let release = &self.releases[index];
                    let machine = &mut self.machines[release.machine];
                    machine.gone = Some((at, Gone::Released(release.key.clone())));
                    self.news.push(format!("{} is released", machine.handle()));
                }
                _ => return,
            }
        }
    }

    /// When the next thing takes place by itself.
    pub fn next_ms(&self) -> Option<u64> {
        let coming = self.accepted.iter().filter(|one| one.outcome == Outcome::Coming);
        let ending = self.releases.iter().filter(|one| self.machines[one.machine].lives());
        coming.map(|one| one.effect_ms).chain(ending.map(|one| one.effect_ms)).min()
    }

    /// What has taken place since this was asked last, a line each.
    pub fn news(&mut self) -> Vec<String> {
        std::mem::take(&mut self.news)
    }

    fn make(&mut self, index: usize, now: Now, setup: &Setup) {
        let one = &mut self.accepted[index];
        let at = one.effect_ms;
        let handle = format!("vm-{}", self.machines.len() + 1);
        let ago = i64::try_from(now.at_ms - at).unwrap_or(i64::MAX);
        self.news.push(format!("{handle} exists: {}, for key {}", one.host, one.key));
        one.outcome = Outcome::Made(self.machines.len());
        self.machines.push(Machine {
            key: one.key.clone(),
            host: one.host.clone(),
            handles: vec![(at, handle)],
            made_ms: at,
            gone: None,
            health: Vec::new(),
            facts: setup.facts.at(now.wall_ms.saturating_sub(ago)),
            changes: Vec::new(),
        });
    }

    fn acquire(
        &mut self,
        now: Now,
        setup: &Setup,
        key: &str,
        host: &str,
        params: &BTreeMap<String, String>,
    ) -> Promise {
        let ready = |answer| Promise { due_ms: now.at_ms, what: Promised::Ready(answer) };
        if self.fenced.contains_key(key) {
            return ready(barred(key));
        }
        let known = self.latest(key).filter(|index| {
            let since = self.accepted[*index].at_ms;
            now.at_ms - since < setup.window_ms
        });
        if let Some(index) = known {
            let one = &mut self.accepted[index];
            if one.host != host || one.params != *params {
                let message = format!("the key {key} was used for something else");
                return ready(Answer::refused(Refusal::Permanent, message));
            }
            reached!("world: a repeat is recognised");
            one.repeats.push(now.at_ms);
            let due_ms = now.at_ms.max(one.effect_ms);
            return Promise { due_ms, what: Promised::Acquired(index) };
        }
        let visible_ms = now.at_ms.saturating_add(setup.land_ms);
        let effect_ms = visible_ms.saturating_add(setup.acquire_ms);
        self.accepted.push(Accepted {
            key: key.to_owned(),
            host: host.to_owned(),
            params: params.clone(),
            at_ms: now.at_ms,
            visible_ms,
            effect_ms,
            repeats: Vec::new(),
            outcome: Outcome::Coming,
        });
        self.settle(now, setup);
        Promise { due_ms: effect_ms, what: Promised::Acquired(self.accepted.len() - 1) }
    }

    fn lookup(&mut self, now: Now, setup: &Setup, key: &str, fence: bool) -> Value {
        // A fence takes effect on what is true now, whatever else is shown late.
        let then = if fence { now.at_ms } else { now.at_ms.saturating_sub(setup.lookup_lag_ms) };
        let seen = self.latest_before(key, then).map(|index| &self.accepted[index]);
        match seen {
            Some(Accepted { outcome: Outcome::Made(machine), effect_ms, .. }) if *effect_ms <= then => {
                json!({ "found": self.machines[*machine].found(then) })
            }
            Some(one) if one.visible_ms <= then && one.outcome != Outcome::Barred => {
                json!({ "pending": true })
            }
            _ => {
                if let Some(Accepted { outcome: Outcome::Coming, .. }) =
                    self.latest(key).map(|at| &self.accepted[at])
                {
                    reached!("world: a none while the effect is on its way");
                }
                if fence && setup.fence {
                    self.bar(key, now.at_ms);
                }
                self.told_none.push(ToldNone { key: key.to_owned(), at_ms: now.at_ms, fence });
                json!({ "none": true })
            }
        }
    }

    fn bar(&mut self, key: &str, at_ms: u64) {
        if self.fenced.contains_key(key) {
            return;
        }
        self.fenced.insert(key.to_owned(), at_ms);
        self.news.push(format!("key {key} is barred"));
        for one in &mut self.accepted {
            if one.key == key && one.outcome == Outcome::Coming {
                reached!("world: a fence bars what is on its way");
                one.outcome = Outcome::Barred;
            }
        }
    }

    fn reach(&self, handle: &str) -> Answer {
        let machine = self.called(handle).map(|index| &self.machines[index]);
        match machine.filter(|machine| machine.lives()) {
            None => Answer::refused(Refusal::Permanent, format!("there is no machine `{handle}`")),
            Some(machine) => match machine.health_at(u64::MAX) {
                Health::Well => Answer::Result(Value::Null),
                Health::Unsure => Answer::refused(Refusal::Retryable, "the machine does not answer"),
                Health::NeedsHuman => Answer::Refused {
                    kind: Refusal::Human,
                    message: "the machine waits for a person".to_owned(),
                    remedy: Some(REMEDY.to_owned()),
                },
            },
        }
    }

    /// Lets something happen to a machine. `Err`: it cannot happen to it any more.
    pub fn deed(&mut self, now: Now, machine: usize, deed: &BackendAt) -> Result<(), String> {
        let number =
            self.machines.len() + self.machines.iter().map(|one| one.handles.len() - 1).sum::<usize>();
        let machine = &mut self.machines[machine];
        if !machine.lives() {
            return Err(format!("the machine of `{}` is gone already", deed.host));
        }
        let at = now.at_ms;
        match deed.deed {
            BackendDeed::Lose => {
                reached!("world: a machine is lost");
                machine.gone = Some((at, Gone::Lost));
            }
            BackendDeed::NeedsHuman => machine.health.push((at, Health::NeedsHuman)),
            BackendDeed::Unsure => machine.health.push((at, Health::Unsure)),
            BackendDeed::Well => machine.health.push((at, Health::Well)),
            BackendDeed::Rename => {
                machine.handles.push((at, format!("{}-{number}", machine.first_handle())));
            }
            BackendDeed::Clear => machine.changes.extend(deed.fact.map(|fact| (at, fact, None))),
            BackendDeed::Facts => {
                let facts = HostFacts {
                    deadline_ms: deed.deadline_ms,
                    idle_reclaim_ms: deed.idle_reclaim_ms,
                    max_jobs: deed.max_jobs,
                };
                let changes = facts.at(now.wall_ms).into_iter();
                machine.changes.extend(changes.map(|(fact, value)| (at, fact, Some(value))));
            }
        }
        Ok(())
    }

    /// The machine that bears or bore this handle.
    fn called(&self, handle: &str) -> Option<usize> {
        self.machines.iter().rposition(|machine| machine.is_called(handle))
    }

    fn latest(&self, key: &str) -> Option<usize> {
        self.accepted.iter().rposition(|one| one.key == key)
    }

    fn latest_before(&self, key: &str, ms: u64) -> Option<usize> {
        self.accepted.iter().rposition(|one| one.key == key && one.at_ms <= ms)
    }
}

fn barred(key: &str) -> Answer {
    Answer::refused(Refusal::Permanent, format!("the key {key} is barred"))
}
