//! What one run of mu shares among its parts: the plugins that run, the calls on them, the first signal that came.
//!
//! A verb is a future that asks this for plugins. [`Invocation::run`] polls it together with every plugin, in a fixed
//! order, and ends with the stop sequence for whatever still runs.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use futures_util::FutureExt;
use mu_protocol::declaration::Declaration;
use mu_protocol::load::{self, Registration, Seam};
use mu_protocol::messages::dated::{undated_json, with_deadline};
use mu_protocol::messages::error::{ErrorKind, ReplyError};
use mu_protocol::messages::method::{AnyResult, Method, Read};
use mu_protocol::messages::values::EpochMillis;
use mu_protocol::outgoing;
use mu_protocol::schema::SCHEMA_DIGEST;

pub use self::effect::{EffectError, Sending};
use crate::call_error::{CallError, Unanswered};
use crate::os::{Env, Exec, Mono, Os, Signal};
use crate::reached;
use crate::session::{Answer, Cause, Ending, Expected, NotSent, Process, Request, Session, Status};
use crate::start_error::Failure;
pub use crate::start_error::StartError;
use crate::trust;

mod effect;

/// Variables that mean something to mu on this machine only and never reach a plugin (PRC-04, A-15).
pub const LOCAL_ONLY: [&str; 9] = [
    "MU_DB_PATH",
    "MU_STATE_DIR",
    "MU_SYNC_DIR",
    "MU_AGENT_NAME",
    "MU_WORKSTREAM",
    "MU_MANAGED_AGENT",
    "MU_ORCHESTRATOR",
    "MU_REMOTE",
    "MU_CTL_SOCK",
];

/// Pauses between tries while the executable is being written to (`ETXTBSY`); about one second in all.
const BUSY_PAUSES_MS: [u64; 7] = [10, 20, 50, 100, 200, 300, 300];

/// Pauses before the repeats of a call that was answered with `retryable`; there are no more than these (ERR-01, A-28).
const RETRY_PAUSES_MS: [u64; 3] = [200, 500, 1000];

/// Which plugin to start and what it must be.
#[derive(Clone, Debug)]
pub struct Start {
    /// The registered name.
    pub name: String,
    /// The registered argv.
    pub argv: Vec<String>,
    /// What `plugin add` recorded; `None` at `add`'s own start (LOAD-19).
    pub recorded: Option<Declaration>,
    /// Seams that the verb needs (LOAD-08).
    pub needs: Vec<Seam>,
}

/// How a stop ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// The group was empty within the grace.
    Clean,
    /// The group outlived the grace and was killed (PRC-07).
    Killed,
}

/// One run of mu. Clones share it.
pub struct Invocation<O: Os> {
    os: O,
    inner: Rc<RefCell<Inner<O>>>,
}

impl<O: Os> Clone for Invocation<O> {
    fn clone(&self) -> Self {
        Invocation { os: self.os.clone(), inner: Rc::clone(&self.inner) }
    }
}

struct Inner<O: Os> {
    plugins: BTreeMap<String, Plugin<O>>,
    /// Request ids never repeat within an invocation, restarts included.
    next_id: u64,
    signal: Option<Signal>,
    /// Calls that have ended and whose makers have not looked yet.
    ended: BTreeMap<u64, Ended>,
    /// A verb gave the driver work since it was last polled.
    touched: bool,
    waiting: Vec<Waker>,
}

/// How a call ended.
enum Ended {
    Answer(Answer),
    Unanswered(Box<Ending>),
}

struct Plugin<O: Os> {
    process: Option<Process<O>>,
    /// Somebody is starting it.
    starting: bool,
    /// How often it was started.
    starts: u64,
    /// How the latest of its processes to end ended.
    ended: Option<Ending>,
    /// Why it may not be started again in this invocation (TRN-20, A-71).
    refused: Option<StartError>,
}

impl<O: Os> Inner<O> {
    /// A request id that no request had.
    fn fresh_id(&mut self) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        id
    }

    /// Wakes whatever part of the verb waits for a change.
    fn wake(&mut self) {
        self.waiting.drain(..).for_each(Waker::wake);
    }

    fn wait(&mut self, waker: &Waker) {
        if !self.waiting.iter().any(|waiting| waiting.will_wake(waker)) {
            self.waiting.push(waker.clone());
        }
    }
}

impl<O: Os> Default for Plugin<O> {
    fn default() -> Self {
        Plugin { process: None, starting: false, starts: 0, ended: None, refused: None }
    }
}

impl<O: Os> Invocation<O> {
    /// A run with no plugin started.
    pub fn new(os: O) -> Self {
        let inner = Inner {
            plugins: BTreeMap::new(),
            next_id: 1,
            signal: None,
            ended: BTreeMap::new(),
            touched: false,
            waiting: Vec::new(),
        };
        Invocation { os, inner: Rc::new(RefCell::new(inner)) }
    }

    /// The operating system it runs on.
    pub fn os(&self) -> &O {
        &self.os
    }

    /// The first terminating signal seen (PRC-09).
    pub fn signal(&self) -> Option<Signal> {
        self.inner.borrow().signal
    }

    /// Whether a terminating signal has come by now: for work that keeps the driver from its turns.
    pub fn is_signalled(&self) -> bool {
        self.look_for_signals().now_or_never() != Some(Ok(()))
    }

    /// Drives the plugins and `verb` together. Once `verb` is done, stops every plugin that still runs and returns
    /// when all groups are empty.
    pub async fn run<T>(&self, verb: impl Future<Output = T>) -> T {
        let mut verb = pin!(verb);
        let mut output = None;
        poll_fn(|cx| {
            loop {
                let mut moved = self.drive(cx);
                if output.is_none()
                    && let Poll::Ready(value) = verb.as_mut().poll(cx)
                {
                    output = Some(value);
                    self.stop_all(Cause::Done);
                    moved = true;
                }
                let mut inner = self.inner.borrow_mut();
                moved |= std::mem::take(&mut inner.touched);
                if output.is_some() && inner.plugins.values().all(|plugin| plugin.process.is_none()) {
                    return Poll::Ready(());
                }
                if !moved {
                    return Poll::Pending;
                }
            }
        })
        .await;
        output.expect("the loop ends only after the verb")
    }

    /// Starts a plugin: trust checks, exec, handshake, load rules (HSK-09). One that runs already is taken as it is, when
    /// it declares what is needed; one that is being started or stopped is waited for.
    ///
    /// # Errors
    /// Says why there is no plugin to talk to. Its process, if there was one, is stopped and its group empty.
    pub async fn start(&self, start: Start) -> Result<Declaration, StartError> {
        let _turn = self.turn(&start.name).await;
        if let Some(answer) = self.with(&start.name, |plugin| plugin.known(&start)) {
            return answer;
        }
        if let Err(error) = self.exec(&start).await {
            if let StartError::Untrusted(_) = error {
                self.with(&start.name, |plugin| plugin.refused = Some(error.clone()));
            }
            return Err(error);
        }
        let ended = self
            .until(|inner| {
                let plugin = inner.plugins.get_mut(&start.name).expect("it was started");
                match plugin.process.as_mut().map(|process| process.session().status()) {
                    Some(Status::Ready(declaration)) => Some(Ok(declaration.clone())),
                    Some(_) => None,
                    None => Some(Err(plugin.ended.clone().expect("a process that is gone has ended"))),
                }
            })
            .await;
        match ended {
            Ok(declaration) => Ok(declaration),
            // A valid answer given before the leader's exit is an answer.
            Err(Ending {
                cause: Cause::LeaderExited | Cause::StdoutClosed,
                declaration: Some(declaration),
                ..
            }) => {
                reached!("A-04 a declaration given right before the exit");
                Ok(declaration)
            }
            Err(ending) => Err(StartError::from_ending(&ending)),
        }
    }

    /// Asks a plugin something that is no effect; it is started when it does not run (HSK-09, TMO-10), and waits for the end of the call. An answer of
    /// kind `retryable` is followed by the same parameters again, at most three times (ERR-01, CALL-03). A call whose
    /// future is dropped is cancelled (TMO-04, TMO-08).
    ///
    /// # Errors
    /// Says why there is no result, and whether what was asked for may have happened all the same. A call that has no
    /// answer `budget` after it was made stops the plugin; the group of that process is empty when this returns.
    pub async fn call<C: Read>(
        &self,
        start: &Start,
        call: &C,
        budget: Duration,
    ) -> Result<C::Result, CallError> {
        let params = undated_json(call);
        // What cannot fit with the shortest of ids needs no plugin.
        self.line(1, C::METHOD, &params, budget)?;
        let mut pauses = RETRY_PAUSES_MS.iter();
        loop {
            self.start(start.clone()).await?;
            let id = self.inner.borrow_mut().fresh_id();
            let line = self.line(id, C::METHOD, &params, budget)?;
            let request = Request { method: C::METHOD, line, deadline: self.os.now() + budget };
            let error = match self.ask(&start.name, id, request, budget).await? {
                Ok(result) => return Ok(C::result(result).expect("it was read by its method")),
                Err(error) => error,
            };
            let pause = if error.kind == ErrorKind::Retryable { pauses.next() } else { None };
            let Some(pause) = pause else { return Err(CallError::Refused(C::METHOD, error)) };
            reached!("ERR-01 a call is repeated");
            if self.sleep_until(self.os.now() + Duration::from_millis(*pause)).await.is_err() {
                return Err(CallError::Refused(C::METHOD, error));
            }
        }
    }

    /// The ordinary stop sequence (PRC-07). Returns when the group is empty; a plugin that does not run is `Clean`.
    pub async fn stop(&self, name: &str) -> Stopped {
        let now = self.os.now();
        let which = self.with(name, |plugin| {
            if let Some(process) = &mut plugin.process {
                process.session().stop(now, Cause::Done);
            }
            plugin.starts
        });
        self.until(|inner| {
            let plugin = inner.plugins.get(name).expect("it was just looked up");
            if plugin.process.is_some() && plugin.starts == which {
                return None;
            }
            let killed = plugin.ended.as_ref().is_some_and(|ending| ending.grace_over);
            Some(if killed { Stopped::Killed } else { Stopped::Clean })
        })
        .await
    }

    /// Waits until the clock shows `at`.
    ///
    /// # Errors
    /// The terminating signal that has come before.
    pub async fn sleep_until(&self, at: Mono) -> Result<(), Signal> {
        let mut sleep = self.os.sleep_until(at);
        poll_fn(|cx| {
            if let Some(signal) = self.signal() {
                return Poll::Ready(Err(signal));
            }
            self.inner.borrow_mut().wait(cx.waker());
            Pin::new(&mut sleep).poll(cx).map(Ok)
        })
        .await
    }

    /// SIGKILL to every group at once: mu has crashed (PRC-13).
    pub fn kill_all(&self) {
        // The crash may have happened under a borrow; what cannot be reached dies of the end of its stdin.
        if let Ok(mut inner) = self.inner.try_borrow_mut() {
            for plugin in inner.plugins.values_mut() {
                if let Some(process) = &mut plugin.process {
                    process.kill();
                }
            }
        }
    }

    /// Waits until nobody is starting or stopping the plugin. Nobody else is until the result is dropped.
    async fn turn<'a>(&'a self, name: &'a str) -> Turn<'a, O> {
        self.until(|inner| {
            let plugin = inner.plugins.entry(name.to_owned()).or_default();
            let changes = match plugin.process.as_mut().map(|process| process.session().status()) {
                None | Some(Status::Ready(_)) => false,
                Some(_) => true,
            };
            if plugin.starting || changes {
                return None;
            }
            plugin.starting = true;
            Some(())
        })
        .await;
        Turn { invocation: self, name }
    }

    async fn exec(&self, start: &Start) -> Result<(), StartError> {
        let exec = Exec {
            argv: start.argv.iter().map(OsString::from).collect(),
            env: plugin_environment(self.os.env()),
        };
        let argv0 = start.argv.first().map_or("", String::as_str);
        let mut pauses = BUSY_PAUSES_MS.iter();
        loop {
            trust::check(&self.os, &start.name, argv0)?; // REG-08
            self.look_for_signals().await.map_err(StartError::Interrupted)?;
            let now = self.os.now();
            let error = match self.os.spawn(&exec) {
                // No call to the system comes between: a process that nobody knows could not be killed (PRC-13).
                Ok(child) => {
                    self.adopt(child, now, start);
                    return Ok(());
                }
                Err(error) => error,
            };
            match pauses.next() {
                Some(pause) if error.kind() == io::ErrorKind::ExecutableFileBusy => {
                    reached!("REG-08 an exec is tried again: its file is being written");
                    let until = now + Duration::from_millis(*pause);
                    self.sleep_until(until).await.map_err(StartError::Interrupted)?;
                }
                _ => {
                    return Err(StartError::Failed(Failure::exec(argv0, &error)));
                }
            }
        }
    }

    fn adopt(&self, child: O::Child, now: Mono, start: &Start) {
        let expected = Expected {
            name: start.name.clone(),
            needs: start.needs.clone(),
            schema_digest: SCHEMA_DIGEST,
            recorded: start.recorded.clone(),
        };
        let mut inner = self.inner.borrow_mut();
        let session = Session::start(now, inner.fresh_id(), expected);
        let plugin = inner.plugins.entry(start.name.clone()).or_default();
        debug_assert!(plugin.process.is_none(), "one process of a plugin at a time");
        plugin.process = Some(Process::new(child, session));
        plugin.starts += 1;
        inner.touched = true;
    }

    /// What is `budget` from now on the wall clock, as it goes on the wire (CALL-01).
    fn deadline(&self, budget: Duration) -> EpochMillis {
        let wall = u64::try_from(self.os.wall().0).unwrap_or(0);
        let budget = u64::try_from(budget.as_millis()).unwrap_or(u64::MAX);
        EpochMillis::new(wall.saturating_add(budget)).unwrap_or(EpochMillis::MAX)
    }

    /// The request line, with a deadline that counts from now.
    fn line(&self, id: u64, method: Method, params: &str, budget: Duration) -> Result<Vec<u8>, CallError> {
        outgoing::request(id, method.as_str(), &with_deadline(params, self.deadline(budget)))
            .map_err(|error| CallError::TooLong(method, error))
    }

    /// Hands a request to a plugin that was ready a moment ago, and waits for the end of the call.
    async fn ask(
        &self,
        name: &str,
        id: u64,
        request: Request,
        budget: Duration,
    ) -> Result<Result<AnyResult, ReplyError>, CallError> {
        let method = request.method;
        self.with(name, |plugin| match &mut plugin.process {
            Some(process) => {
                process.session().call(id, request);
                Ok(())
            }
            None => Err(CallError::NotSent(method, NotSent::Gone)),
        })?;
        let _cancel = CancelOnDrop { invocation: self, name, id };
        match self.until(|inner| inner.ended.remove(&id)).await {
            Ended::Answer(Answer::Result(result)) => Ok(Ok(result)),
            Ended::Answer(Answer::Error(error)) => Ok(Err(error)),
            Ended::Answer(Answer::NotSent(why)) => Err(CallError::NotSent(method, why)),
            Ended::Unanswered(ending) => {
                let unanswered = Unanswered { id, method, budget, ending: *ending };
                Err(CallError::Unanswered(Box::new(unanswered)))
            }
        }
    }

    fn stop_all(&self, cause: Cause) {
        let now = self.os.now();
        for plugin in self.inner.borrow_mut().plugins.values_mut() {
            if let Some(process) = &mut plugin.process {
                process.session().stop(now, cause.clone());
            }
        }
    }

    /// Takes the signals that have arrived by now. The first begins the stop of every plugin (PRC-09), later ones are
    /// absorbed (PRC-11).
    fn poll_signals(&self, cx: &mut Context<'_>) -> bool {
        let mut moved = false;
        while let Poll::Ready(signal) = self.os.poll_signal(cx) {
            moved = true;
            if self.signal().is_none() {
                reached!("PRC-09 a signal stops every plugin");
                self.inner.borrow_mut().signal = Some(signal);
                self.stop_all(Cause::Signal(signal));
            }
        }
        moved
    }

    /// Whether a signal has come, as of this moment and not of the driver's last turn: whatever the verb did since may
    /// have taken long.
    pub(crate) async fn look_for_signals(&self) -> Result<(), Signal> {
        poll_fn(|cx| {
            let moved = self.poll_signals(cx);
            let mut inner = self.inner.borrow_mut();
            // The driver must look again itself, to be woken by the next one.
            inner.touched = true;
            if moved {
                inner.wake();
            }
            Poll::Ready(inner.signal.map_or(Ok(()), Err))
        })
        .await
    }

    /// One turn of everything that can move without the verb: bytes and exits, then signals, then what mu has to say,
    /// then timers. Each plugin takes in no more than its pipes can hold, so that none keeps the others, the timers or
    /// the verb from their turn.
    fn drive(&self, cx: &mut Context<'_>) -> bool {
        let mut moved = self.each(|process| process.poll_events(&self.os, cx));
        moved |= self.poll_signals(cx);
        moved |= self.each(|process| process.send(&self.os, cx));
        moved |= self.each(|process| process.poll_timer(&self.os, cx));
        if moved {
            let mut inner = self.inner.borrow_mut();
            let Inner { plugins, ended, .. } = &mut *inner;
            plugins.values_mut().for_each(|plugin| plugin.note_ends(ended));
            inner.wake();
        }
        moved
    }

    fn each(&self, mut f: impl FnMut(&mut Process<O>) -> bool) -> bool {
        let mut inner = self.inner.borrow_mut();
        let processes = inner.plugins.values_mut().filter_map(|plugin| plugin.process.as_mut());
        processes.fold(false, |moved, process| f(process) | moved)
    }

    fn with<T>(&self, name: &str, f: impl FnOnce(&mut Plugin<O>) -> T) -> T {
        let mut inner = self.inner.borrow_mut();
        inner.touched = true;
        f(inner.plugins.entry(name.to_owned()).or_default())
    }

    /// Waits until `f` has something to say about the state of the plugins.
    async fn until<T>(&self, mut f: impl FnMut(&mut Inner<O>) -> Option<T>) -> T {
        poll_fn(|cx| {
            let mut inner = self.inner.borrow_mut();
            match f(&mut inner) {
                Some(value) => Poll::Ready(value),
                None => {
                    inner.wait(cx.waker());
                    Poll::Pending
                }
            }
        })
        .await
    }
}

impl<O: Os> Plugin<O> {
    /// What is to be said to a start without starting anything.
    fn known(&mut self, start: &Start) -> Option<Result<Declaration, StartError>> {
        if let Some(refused) = &self.refused {
            reached!("TRN-20 not started again in this run");
            return Some(Err(refused.clone()));
        }
        let Some(Status::Ready(declaration)) =
            self.process.as_mut().map(|process| process.session().status())
        else {
            return None;
        };
        let registration = Registration { name: &start.name, needs: &start.needs };
        // Another mu may have recorded another declaration since this process was started (LOAD-19).
        let recorded =
            start.recorded.as_ref().map_or(Ok(()), |recorded| load::is_recorded(declaration, recorded));
        let ruling = recorded.and_then(|()| load::lacks_nothing(declaration, &registration));
        Some(ruling.map(|()| declaration.clone()).map_err(StartError::Refused))
    }

    /// Takes in the calls that have ended, and takes leave of a process that has. One that broke, or that a load rule
    /// refused, was the last of this invocation (TRN-20, A-71).
    fn note_ends(&mut self, ended: &mut BTreeMap<u64, Ended>) {
        let Some(process) = &mut self.process else { return };
        ended.extend(process.session().answers().map(|(id, answer)| (id, Ended::Answer(answer))));
        let Some(ending) = process.ending() else { return };
        self.process = None;
        if matches!(ending.cause, Cause::Refused(_) | Cause::Broken(_)) {
            self.refused = Some(StartError::from_ending(&ending));
        }
        let unanswered =
            ending.unanswered.iter().map(|id| (*id, Ended::Unanswered(Box::new(ending.clone()))));
        ended.extend(unanswered);
        self.ended = Some(ending);
    }
}

/// Gives a call up when whoever made it is gone.
struct CancelOnDrop<'a, O: Os> {
    invocation: &'a Invocation<O>,
    name: &'a str,
    id: u64,
}

impl<O: Os> Drop for CancelOnDrop<'_, O> {
    fn drop(&mut self) {
        let now = self.invocation.os.now();
        self.invocation.with(self.name, |plugin| {
            if let Some(process) = &mut plugin.process {
                process.session().cancel(now, self.id);
            }
        });
    }
}

/// The right to start one plugin.
struct Turn<'a, O: Os> {
    invocation: &'a Invocation<O>,
    name: &'a str,
}

impl<O: Os> Drop for Turn<'_, O> {
    fn drop(&mut self) {
        self.invocation.with(self.name, |plugin| plugin.starting = false);
        self.invocation.inner.borrow_mut().wake();
    }
}

/// mu's environment without what is local to mu (PRC-04, PRC-05).
fn plugin_environment(env: &Env) -> Vec<(OsString, OsString)> {
    let local = |name: &OsStr| LOCAL_ONLY.iter().any(|only| name == *only);
    env.vars.iter().filter(|(name, _)| !local(name)).cloned().collect()
}

#[cfg(test)]
mod tests;
