//! Effects: what a call changes outside of mu, so that it must happen once and not be lost from sight (EFF).
//!
//! An effect is written down, durably, before it is sent, and stays written down until its plugin has answered
//! definitely. Whatever dies in between leaves an *open effect*: the next verb about its subject brings it to an end by the
//! rules of the protocol, or leaves it as it is and says why.
//!
//! - `rules`: what is to be done about an open effect, as a pure function
//! - `reading`: what an answer says about it, as another
//! - `proof`: what must be proven before either acts, as types that nothing else can make
//! - `moment`: time that outlives a run
//! - `rows`: what follows from the end of an effect in other tables
//! - `outlook`: what can be said of an open effect without asking anybody
//! - `failure`: how a verb tells of an effect that stays open
//!
//! This file joins them to the database and the plugins. `docs/effects.md` gives the table with its reasons.

pub mod failure;
pub mod moment;
pub mod outlook;
pub mod proof;
pub mod reading;
pub mod rows;
pub mod rules;

use std::time::Duration;

use mu_protocol::messages::host::{AcquireParams, LookupParams};
use mu_protocol::messages::method::{AnyResult, Method};
use mu_protocol::messages::values::{Instance, Key};
use mu_protocol::objects::from_json;
use uuid::Builder;

use crate::call_error::CallError;
use crate::cli::failure::{Failure, Kind};
use crate::deadlines;
use crate::invocation::{EffectError, Invocation, Sending, Start};
use crate::journal::moment::Moment;
use crate::journal::proof::{Living, ProvenDead};
use crate::journal::reading::{Asked, Expected, Question, Reading, Why};
use crate::journal::rules::{Left, Step, Ways};
use crate::os::{Mono, Os, ProcessId};
use crate::reached;
use crate::session::GRACE;
use crate::store::effects::{self, Effect, Sent};
use crate::store::plugins::{self, Plugin};
use crate::store::{Store, StoreError, Tx};
use crate::verbs::name::{HostName, PluginName};

/// The first pause between two looks at whether somebody still lives, and between two questions about an effect that is
/// still pending; each is twice as long as the one before …
const FIRST_PAUSE: Duration = Duration::from_millis(50);
/// … up to this one for looks …
const LONGEST_LOOK: Duration = Duration::from_millis(500);
/// … and this one for questions.
const LONGEST_QUESTION: Duration = Duration::from_secs(10);

/// An effect that is to be performed.
#[derive(Clone, Debug)]
pub struct New {
    /// mu's name for it.
    pub key: Key,
    /// What is to be done.
    pub method: Method,
    /// The host it is about.
    pub host: HostName,
    /// Its parameters without their deadline.
    pub params: String,
}

/// How an effect ended, as far as is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It took place; this is its result.
    Done(Box<AnyResult>),
    /// It has not taken place and never will.
    Undone,
    /// It may have taken place or not.
    Open(Why),
}

/// What came of performing or resolving an effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// How it ended.
    pub outcome: Outcome,
    /// Why there was no result, when the plugin gave none.
    pub error: Option<CallError>,
    /// Why a definite end could not be written down: the intent is still there, and the next verb will clear it.
    pub unkept: Option<StoreError>,
}

/// What became of an open effect that a verb set about resolving.
#[derive(Clone, Debug, PartialEq)]
pub enum Resolution {
    /// Somebody else has closed it meanwhile.
    Gone,
    /// Nothing was asked or sent, and nothing will be until something changes.
    Refused(Box<Effect>, Refusal),
    /// This came of it.
    Ended(Box<Effect>, Box<Ended>),
}

/// Why an open effect is not touched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Somebody lives (EFF-05, EFF-06, A-43).
    Lives(Living),
    /// The plugin that is registered now is another one than the one it was sent to (EFF-07): its instance.
    StopChanged(String),
    /// Nothing can be asked or sent (EFF-11).
    Left(Left),
}

/// What a definite end means for other tables; called in the transaction that deletes the intent.
pub trait Settle: Fn(Tx<'_>, &Effect, &Outcome) -> Result<(), StoreError> {}
impl<F: Fn(Tx<'_>, &Effect, &Outcome) -> Result<(), StoreError>> Settle for F {}

/// The journal of one run.
pub struct Journal<'a, O: Os> {
    invocation: &'a Invocation<O>,
    store: &'a Store<O>,
}

impl<'a, O: Os> Journal<'a, O> {
    /// Over this database.
    pub fn new(invocation: &'a Invocation<O>, store: &'a Store<O>) -> Journal<'a, O> {
        Journal { invocation, store }
    }

    /// A key that no effect had: a UUID of version 7.
    pub fn fresh_key(&self) -> Key {
        let os = self.invocation.os();
        let mut random = [0; 10];
        os.random(&mut random);
        let ms = u64::try_from(os.wall().0).unwrap_or(0);
        let uuid = Builder::from_unix_timestamp_millis(ms, &random).into_uuid();
        Key::new(uuid.to_string()).expect("it is not empty")
    }

    /// Performs an effect. `open` writes the rows that go with the intent, in its transaction, and may refuse; `settle`
    /// those that follow from a definite end, in the transaction that deletes it.
    ///
    /// # Errors
    /// Those of `open` and of the database before anything was sent. What the plugin did, or may have done, is no error.
    pub async fn perform(
        &self,
        new: &New,
        plugin: &Plugin,
        start: &Start,
        open: impl Fn(Tx<'_>, &Effect) -> Result<(), Failure>,
        settle: impl Settle,
    ) -> Result<(Effect, Ended), Failure> {
        let os = self.invocation.os();
        let me = self.me();
        let budget = deadlines::budget(os.env(), new.method, deadlines::TIMEOUT)?;
        let instance = Instance::new(plugin.declaration.instance.as_str());
        let ways = Ways::of(new.method, &plugin.declaration);
        let (window_ms, in_flight_ms) = ways.spans();
        let mut effect = Effect {
            key: new.key.clone(),
            method: new.method,
            plugin: plugin.name.parse()?,
            instance: instance.expect("a declaration's instance is one"),
            host: new.host.clone(),
            params: new.params.clone(),
            writer: me,
            resolver: None,
            begun: Moment::now(os),
            quiet: None,
            window_ms,
            in_flight_ms,
            superseded: false,
            note: None,
            sends: Vec::new(),
        };
        let sending =
            Sending { start, method: new.method, params: &new.params, budget, window: None, had: vec![] };
        let store = self.store;
        let sent = self.invocation.effect(sending, async |sent: Sent| {
            let first = effect.sends.is_empty();
            effect.sends.push(sent.clone());
            if !first {
                return store
                    .write(|tx| effects::add_send(tx, &effect.key, &sent))
                    .await
                    .map_err(Failure::from);
            }
            effect.begun = Moment::now(os);
            store
                .write(|tx| {
                    same_plugin(tx, plugin)?;
                    open(tx, &effect)?;
                    effects::open(tx, &effect).map_err(Failure::from)
                })
                .await
        });
        let answer = match sent.await {
            Ok(result) => Ok(result),
            Err(EffectError::Call(error)) => Err(error),
            // It was not written. What had been written before was answered with `retryable`: nothing happened.
            Err(EffectError::Record(failure)) => {
                if effect.sends.len() > 1 {
                    reached!("EFF-02 not sent again: its send could not be written down");
                    let reading = Reading::Undone(proof::Warrant::definite_reply());
                    self.settle(&effect, reading, None, &settle).await;
                }
                return Err(failure);
            }
        };
        let expected = Expected::of(new.method, &new.params, &plugin.declaration);
        let at = Moment::now(os);
        let asked = Asked { question: Question::First, ways, expected: &expected, quiet: None, at: &at };
        let reading = reading::read(asked, &answer);
        // An effect whose intent was never written has nothing to be settled.
        if effect.sends.is_empty() {
            let error = answer.err();
            return Ok((effect, Ended { outcome: Outcome::Undone, error, unkept: None }));
        }
        let ended = self.settle(&effect, reading, answer.err(), &settle).await;
        Ok((effect, ended))
    }

    /// Brings an open effect to an end, as the rules allow. `patient`: waits for one that is still pending, as long as its
    /// method may take.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn resolve(
        &self,
        key: &Key,
        patient: bool,
        settle: impl Settle,
    ) -> Result<Resolution, Failure> {
        let claimed = self.claim(key).await?;
        let (effect, plugin) = match claimed {
            Claimed::Gone => {
                reached!("EFF-06 gone: another mu resolved it");
                return Ok(Resolution::Gone);
            }
            Claimed::Refused(effect, refusal) => return Ok(Resolution::Refused(effect, refusal)),
            Claimed::Mine(effect, plugin) => (effect, plugin),
        };
        let (effect, dead) = self.proven_dead(*effect).await?;
        let declared = &plugin.declaration;
        let now = Moment::now(self.invocation.os());
        let step = rules::decide(&effect.open(), effect.ways(declared), &declared.instance, dead, &now);
        let refusal = match step {
            Step::Refuse(living) => Refusal::Lives(living),
            Step::StopChanged => Refusal::StopChanged(declared.instance.clone()),
            Step::Leave(left) => Refusal::Left(left),
            Step::Reissue(permit) => {
                let ended = self.send_again(effect.clone(), &plugin, permit, None, &settle).await?;
                return Ok(Resolution::Ended(Box::new(effect), Box::new(ended)));
            }
            Step::Resend { window, permit } => {
                let ended = self.send_again(effect.clone(), &plugin, permit, Some(window), &settle).await?;
                return Ok(Resolution::Ended(Box::new(effect), Box::new(ended)));
            }
            Step::LookUp { fenced, permit } => {
                let ended = self.look_up(&effect, &plugin, permit, fenced, patient, &settle).await?;
                return Ok(Resolution::Ended(Box::new(effect), Box::new(ended)));
            }
            // No verb delivers anything yet.
            Step::AskForReceipt(_) => Refusal::Left(Left::NoWay),
        };
        let note = failure::reason(&refusal, &effect);
        self.store.write(|tx| effects::leave(tx, &effect.key, &note)).await?;
        Ok(Resolution::Refused(Box::new(effect), refusal))
    }

    fn me(&self) -> ProcessId {
        let os = self.invocation.os();
        os.identify(os.env().pid).expect("mu itself lives")
    }

    /// Makes this process the one that resolves the effect, unless another mu lives that wrote or resolves it (EFF-05,
    /// EFF-06), or the plugin is another one (EFF-07).
    async fn claim(&self, key: &Key) -> Result<Claimed, StoreError> {
        let (os, me) = (self.invocation.os(), self.me());
        self.store
            .write(|tx| {
                let Some(effect) = effects::find(tx, key.as_str())? else { return Ok(Claimed::Gone) };
                let effect = Box::new(effect);
                if let Some(living) = effect.parties().living_mu(os, &me) {
                    match living {
                        Living::Writer(_) => reached!("EFF-05 not claimed: its writer lives"),
                        _ => reached!("EFF-06 not claimed: another mu resolves it"),
                    }
                    return Ok(Claimed::Refused(effect, Refusal::Lives(living)));
                }
                let Some(plugin) = plugins::find(tx, effect.plugin.as_str())? else {
                    return Err(tx.bad_row("effects", key.as_str(), "plugin"));
                };
                if plugin.declaration.instance != effect.instance.as_str() {
                    let refusal = Refusal::StopChanged(plugin.declaration.instance);
                    return Ok(Claimed::Refused(effect, refusal));
                }
                effects::claim(tx, key, &me)?;
                Ok(Claimed::Mine(effect, Box::new(plugin)))
            })
            .await
    }

    /// Looks at all who had to do with a claimed effect. A killed mu leaves its plugin a grace to end with its stdin; so
    /// long a group that still lives is waited for. From when all are gone is written down, once.
    async fn proven_dead(&self, mut effect: Effect) -> Result<(Effect, Result<ProvenDead, Living>), Failure> {
        let (os, me) = (self.invocation.os(), self.me());
        let until = os.now() + GRACE;
        let mut pause = FIRST_PAUSE;
        let dead = loop {
            match ProvenDead::look(os, &effect.parties(), &me) {
                Err(Living::Group(_)) if os.now() < until => {
                    reached!("EFF-12 waited for a group to end");
                    self.pause(&mut pause, LONGEST_LOOK, until).await?;
                }
                look => break look,
            }
        };
        if dead.is_ok() && effect.quiet.is_none() {
            reached!("A-42 quiet from now on");
            let quiet = Moment::now(os);
            self.store.write(|tx| effects::keep_quiet(tx, &effect.key, &quiet)).await?;
            effect.quiet = Some(quiet);
        }
        Ok((effect, dead))
    }

    /// Waits for `pause`, and at most until `until`; the next pause is longer.
    async fn pause(&self, pause: &mut Duration, longest: Duration, until: Mono) -> Result<(), StoreError> {
        let os = self.invocation.os();
        let at = (os.now() + *pause).min(until);
        *pause = (*pause * 2).min(longest);
        self.invocation.sleep_until(at).await.map_err(StoreError::Interrupted)
    }

    async fn send_again(
        &self,
        mut effect: Effect,
        plugin: &Plugin,
        _permit: proof::Permit,
        window: Option<moment::Window>,
        settle: &impl Settle,
    ) -> Result<Ended, Failure> {
        let os = self.invocation.os();
        let budget = deadlines::budget(os.env(), effect.method, deadlines::TIMEOUT)?;
        self.invocation.skip_ids(effect.sends.iter().map(|sent| sent.request_id).max().unwrap_or(0));
        let start = start_of(plugin);
        let (key, params) = (effect.key.clone(), effect.params.clone());
        let sending = Sending {
            start: &start,
            method: effect.method,
            params: &params,
            budget,
            window: window.as_ref(),
            had: effect.sends.iter().map(|sent| sent.deadline).collect(),
        };
        let store = self.store;
        let sent = self.invocation.effect(sending, async |sent: Sent| {
            effect.sends.push(sent.clone());
            effect.quiet = None;
            store.write(|tx| effects::add_send(tx, &key, &sent)).await
        });
        let answer = match sent.await {
            Ok(result) => Ok(result),
            Err(EffectError::Call(error)) => Err(error),
            Err(EffectError::Record(error)) => return Err(error.into()),
        };
        let expected = Expected::of(effect.method, &effect.params, &plugin.declaration);
        let ways = effect.ways(&plugin.declaration);
        let at = Moment::now(os);
        let asked = Asked { question: Question::Again, ways, expected: &expected, quiet: None, at: &at };
        let reading = reading::read(asked, &answer);
        Ok(self.settle(&effect, reading, answer.err(), settle).await)
    }

    async fn look_up(
        &self,
        effect: &Effect,
        plugin: &Plugin,
        permit: proof::Permit,
        fenced: Option<proof::Fenced>,
        patient: bool,
        settle: &impl Settle,
    ) -> Result<Ended, Failure> {
        let os = self.invocation.os();
        let expected = Expected::of(effect.method, &effect.params, &plugin.declaration);
        let ways = effect.ways(&plugin.declaration);
        let patience = if patient {
            deadlines::budget(os.env(), effect.method, deadlines::TIMEOUT)?
        } else {
            Duration::ZERO
        };
        let until = os.now() + patience;
        let mut pause = FIRST_PAUSE;
        // All that is waited out on the spot is short.
        let waited_until = os.now() + reading::WAITED_OUT;
        loop {
            let asked_at = os.now();
            let at = Moment::now(os);
            let answer = self.ask_about(effect, plugin, &permit, fenced.is_some()).await?;
            let question = Question::LookUp(fenced);
            let asked = Asked { question, ways, expected: &expected, quiet: effect.quiet.as_ref(), at: &at };
            let waited = match reading::read(asked, &answer) {
                Reading::AskAgain(rest) if asked_at + rest <= waited_until => {
                    let at = asked_at + rest;
                    self.invocation.sleep_until(at).await.map_err(StoreError::Interrupted)
                }
                Reading::Open(Why::Pending) if os.now() < until => {
                    reached!("EFF-12 asked again while it is pending");
                    self.pause(&mut pause, LONGEST_QUESTION, until).await
                }
                reading => {
                    return Ok(self.settle(effect, reading, answer.err(), settle).await);
                }
            };
            if let Err(error) = waited {
                let note = Reading::Open(Why::NotAsked);
                self.settle(effect, note, None, settle).await;
                return Err(error.into());
            }
        }
    }

    /// One question about the key of an acquire.
    async fn ask_about(
        &self,
        effect: &Effect,
        plugin: &Plugin,
        _: &proof::Permit,
        fence: bool,
    ) -> Result<Result<AnyResult, CallError>, Failure> {
        let acquire: AcquireParams = match from_json(&effect.params) {
            Ok(acquire) if effect.method == Method::HostAcquire => acquire,
            // No verb performs another effect whose key can be asked about.
            _ => return Ok(Err(CallError::NotSent(effect.method, crate::session::NotSent::Cancelled))),
        };
        let budget = deadlines::budget(self.invocation.os().env(), Method::HostLookup, deadlines::TIMEOUT)?;
        let params = LookupParams { target: acquire.target, key: acquire.key, fence };
        let asked = self.invocation.call(&start_of(plugin), &params, budget).await;
        Ok(asked.map(AnyResult::HostLookup))
    }

    /// Writes down what is known of an effect now: a definite end with all that follows from it, in one transaction
    /// else that it stays open, and since when everybody is gone.
    async fn settle(
        &self,
        effect: &Effect,
        reading: Reading,
        error: Option<CallError>,
        settle: &impl Settle,
    ) -> Ended {
        let (warrant, outcome) = match reading {
            Reading::Done(warrant, result) => (warrant, Outcome::Done(result)),
            Reading::Undone(warrant) => (warrant, Outcome::Undone),
            Reading::AskAgain(rest) => return self.leave(effect, Why::NoneTooEarly(rest), error).await,
            Reading::Open(why) => return self.leave(effect, why, error).await,
        };
        let closed: Result<(), StoreError> = self
            .store
            .write_anyway(|tx| {
                effects::close(tx, &effect.key, warrant)?;
                settle(tx, effect, &outcome)
            })
            .await;
        if closed.is_err() {
            reached!("A-85 its end could not be written down");
        }
        Ended { outcome, error, unkept: closed.err() }
    }

    async fn leave(&self, effect: &Effect, why: Why, error: Option<CallError>) -> Ended {
        let os = self.invocation.os();
        // The process that may have it must be gone before its time on the way begins to count.
        self.invocation.stop(effect.plugin.as_str()).await;
        let quiet = Moment::now(os);
        let note = failure::note(&why, error.as_ref());
        let left: Result<(), StoreError> = self
            .store
            .write(|tx| {
                effects::keep_quiet(tx, &effect.key, &quiet)?;
                effects::leave(tx, &effect.key, &note)
            })
            .await;
        // Whoever comes next finds this process gone, and can tell as much.
        let _ = left;
        Ended { outcome: Outcome::Open(why), error, unkept: None }
    }
}

enum Claimed {
    Gone,
    Refused(Box<Effect>, Refusal),
    Mine(Box<Effect>, Box<Plugin>),
}

/// Refuses to send to a plugin that is registered otherwise by now, or not at all: the intent would name another one than
/// the process that is about to receive it.
fn same_plugin(tx: Tx<'_>, started: &Plugin) -> Result<(), Failure> {
    let name: PluginName = started.name.parse()?;
    let Some(now) = plugins::find(tx, name.as_str())? else { return Err(name.unknown(&plugins::names(tx)?)) };
    if now.argv == started.argv && now.declaration == started.declaration {
        return Ok(());
    }
    reached!("EFF-24 nothing sent: its plugin was registered anew");
    let what = format!("plugin {name} was registered anew while this ran; nothing was sent; run it again");
    Err(Failure::new(Kind::LoadRefused, what).or_else([format!("mu plugin show {name}")]))
}

/// How the plugin is started for an effect that it was sent before.
fn start_of(plugin: &Plugin) -> Start {
    Start {
        name: plugin.name.clone(),
        argv: plugin.argv.clone(),
        recorded: Some(plugin.declaration.clone()),
        needs: Vec::new(),
    }
}
