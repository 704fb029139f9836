//! One run of mu: the plugins it has started, its signals, its terminating state.
//!
//! A verb is a future that asks this for plugins. [`Invocation::run`] polls it together with every plugin, in a fixed
//! order, and ends with the stop sequence for whatever still runs.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::future::{Future, poll_fn};
use std::io;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use mu_protocol::declaration::Declaration;
use mu_protocol::load::Seam;
use mu_protocol::schema::SCHEMA_DIGEST;

use crate::os::{Env, Exec, Os, Signal};
use crate::session::{Cause, Ending, Expected, Process, Session, Status};
use crate::start_error::Failure;
pub use crate::start_error::StartError;
use crate::trust;

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
    /// A verb gave the driver work since it was last polled.
    touched: bool,
    waiting: Vec<Waker>,
}

struct Plugin<O: Os> {
    process: Option<Process<O>>,
    /// How its latest process ended.
    ended: Option<Ending>,
    /// Why it may not be started again in this invocation (TRN-20, A-71).
    refused: Option<StartError>,
}

impl<O: Os> Default for Plugin<O> {
    fn default() -> Self {
        Plugin { process: None, ended: None, refused: None }
    }
}

impl<O: Os> Invocation<O> {
    /// A run with no plugin started.
    pub fn new(os: O) -> Self {
        let inner =
            Inner { plugins: BTreeMap::new(), next_id: 1, signal: None, touched: false, waiting: Vec::new() };
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

    /// Starts a plugin: trust checks, exec, handshake, load rules (HSK-09).
    ///
    /// # Errors
    /// Says why there is no plugin to talk to. Its process, if there was one, is stopped and its group empty.
    pub async fn start(&self, start: Start) -> Result<Declaration, StartError> {
        if let Some(refused) = self.with(&start.name, |plugin| plugin.refused.clone()) {
            return Err(refused);
        }
        let child = match self.exec(&start).await {
            Ok(child) => child,
            Err(error) => {
                if let StartError::Untrusted(_) = error {
                    self.with(&start.name, |plugin| plugin.refused = Some(error.clone()));
                }
                return Err(error);
            }
        };
        let expected = Expected {
            name: start.name.clone(),
            needs: start.needs.clone(),
            schema_digest: SCHEMA_DIGEST,
            recorded: start.recorded.clone(),
        };
        {
            let mut inner = self.inner.borrow_mut();
            let id = inner.next_id;
            inner.next_id += 1;
            let session = Session::start(self.os.now(), id, expected);
            let plugin = inner.plugins.entry(start.name.clone()).or_default();
            debug_assert!(plugin.process.is_none(), "one process of a plugin at a time");
            plugin.process = Some(Process::new(child, session));
            plugin.ended = None;
            inner.touched = true;
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
        let ending = match ended {
            Ok(declaration) => return Ok(declaration),
            Err(ending) => ending,
        };
        // A valid answer given before the leader's exit is an answer.
        if let (Cause::LeaderExited | Cause::StdoutClosed, Some(declaration)) =
            (&ending.cause, &ending.declaration)
        {
            return Ok(declaration.clone());
        }
        let error = StartError::from_ending(&ending);
        if matches!(ending.cause, Cause::Refused(_) | Cause::Broken(_)) {
            self.with(&start.name, |plugin| plugin.refused = Some(error.clone()));
        }
        Err(error)
    }

    /// The ordinary stop sequence (PRC-07). Returns when the group is empty; a plugin that does not run is `Clean`.
    pub async fn stop(&self, name: &str) -> Stopped {
        let now = self.os.now();
        self.with(name, |plugin| {
            if let Some(process) = &mut plugin.process {
                process.session().stop(now, Cause::Done);
            }
        });
        self.until(|inner| {
            let plugin = inner.plugins.get(name).expect("it was just looked up");
            match (&plugin.process, &plugin.ended) {
                (Some(_), _) => None,
                (None, Some(ending)) if ending.grace_over => Some(Stopped::Killed),
                (None, _) => Some(Stopped::Clean),
            }
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

    async fn exec(&self, start: &Start) -> Result<O::Child, StartError> {
        let exec = Exec {
            argv: start.argv.iter().map(OsString::from).collect(),
            env: plugin_environment(self.os.env()),
        };
        let argv0 = start.argv.first().map_or("", String::as_str);
        let mut pauses = BUSY_PAUSES_MS.iter();
        loop {
            if let Some(signal) = self.signal() {
                return Err(StartError::Interrupted(signal));
            }
            trust::check(&self.os, &start.name, argv0)?; // REG-08
            let error = match self.os.spawn(&exec) {
                Ok(child) => return Ok(child),
                Err(error) => error,
            };
            match pauses.next() {
                Some(pause) if error.kind() == io::ErrorKind::ExecutableFileBusy => {
                    self.os.sleep_until(self.os.now() + Duration::from_millis(*pause)).await;
                }
                _ => {
                    return Err(StartError::Failed(Failure::exec(argv0, &error)));
                }
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

    /// Everything that can move without the verb: bytes and exits first, then signals, then timers.
    fn drive(&self, cx: &mut Context<'_>) -> bool {
        let mut any = false;
        loop {
            let mut moved = false;
            {
                let mut inner = self.inner.borrow_mut();
                for plugin in inner.plugins.values_mut() {
                    if let Some(process) = &mut plugin.process {
                        moved |= process.poll(&self.os, cx);
                    }
                }
            }
            while let Poll::Ready(signal) = self.os.poll_signal(cx) {
                moved = true;
                if self.signal().is_none() {
                    self.inner.borrow_mut().signal = Some(signal);
                    self.stop_all(Cause::Signal(signal)); // PRC-09
                } // later ones are absorbed (PRC-11)
            }
            let mut inner = self.inner.borrow_mut();
            if !moved {
                for plugin in inner.plugins.values_mut() {
                    if let Some(process) = &mut plugin.process {
                        moved |= process.poll_timer(&self.os, cx);
                    }
                }
            }
            for plugin in inner.plugins.values_mut() {
                if plugin.process.as_ref().is_some_and(Process::has_ended) {
                    plugin.ended = plugin.process.take().and_then(|process| process.ending());
                }
            }
            if !moved {
                return any;
            }
            any = true;
            for waker in inner.waiting.drain(..) {
                waker.wake();
            }
        }
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
                    inner.waiting.push(cx.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await
    }
}

/// mu's environment without what is local to mu (PRC-04, PRC-05).
fn plugin_environment(env: &Env) -> Vec<(OsString, OsString)> {
    let local = |name: &OsStr| LOCAL_ONLY.iter().any(|only| name == *only);
    env.vars.iter().filter(|(name, _)| !local(name)).cloned().collect()
}
