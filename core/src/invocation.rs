//! One run of mu: the plugins it has started, its signals, its terminating state.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::future::{Future, poll_fn};
use std::rc::Rc;
use std::task::Poll;

use mu_protocol::declaration::{Declaration, Seam};
use mu_protocol::load::LoadRefusal;

use crate::os::{Os, Signal};
use crate::trust;

/// One run of mu.
pub struct Invocation<O: Os> {
    os: O,
    signal: Rc<RefCell<Option<Signal>>>,
}

impl<O: Os> Clone for Invocation<O> {
    fn clone(&self) -> Self {
        Invocation { os: self.os.clone(), signal: self.signal.clone() }
    }
}

/// What to start.
pub struct Start {
    /// Registered name.
    pub name: String,
    /// Command line.
    pub argv: Vec<String>,
    /// What `add` recorded.
    pub recorded: Option<Declaration>,
    /// Seams that must be there.
    pub needs: Vec<Seam>,
}

/// Why a start failed.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The file is not to be trusted.
    #[error(transparent)]
    Untrusted(#[from] trust::Untrusted),
    /// A load rule.
    #[error(transparent)]
    Refused(#[from] LoadRefusal),
    /// The process failed.
    #[error("{0}")]
    Failed(String),
    /// A signal came first.
    #[error("interrupted by {}", .0.name())]
    Interrupted(Signal),
}

impl StartError {
    /// 4 or 5.
    pub fn exit_code(&self) -> u8 {
        match self {
            StartError::Untrusted(_) | StartError::Refused(_) => 4,
            StartError::Failed(_) | StartError::Interrupted(_) => 5,
        }
    }
}

/// How a plugin ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// By itself.
    Clean,
    /// Killed after the grace.
    Killed,
}

/// What the stand-in answers for a plugin.
pub(crate) type Scripted = Rc<dyn Fn(&Start) -> (Result<Declaration, StartError>, Stopped)>;

thread_local! {
    /// Stand-in answers by name.
    pub(crate) static SCRIPT: RefCell<BTreeMap<String, Scripted>> = const { RefCell::new(BTreeMap::new()) };
    static STOPS: RefCell<BTreeMap<String, Stopped>> = const { RefCell::new(BTreeMap::new()) };
}

impl<O: Os> Invocation<O> {
    /// A run without plugins yet.
    pub fn new(os: O) -> Self {
        Invocation { os, signal: Rc::default() }
    }

    /// The machine.
    pub fn os(&self) -> &O {
        &self.os
    }

    /// Drives `verb`.
    pub async fn run<T>(&self, verb: impl Future<Output = T>) -> T {
        let mut verb = std::pin::pin!(verb);
        poll_fn(|cx| {
            if let Poll::Ready(signal) = self.os.poll_signal(cx) {
                self.signal.borrow_mut().get_or_insert(signal);
            }
            verb.as_mut().poll(cx)
        })
        .await
    }

    /// Starts a plugin.
    pub async fn start(&self, start: Start) -> Result<Declaration, StartError> {
        trust::check(&self.os, &start.name, &start.argv[0])?;
        if let Some(signal) = self.signal() {
            return Err(StartError::Interrupted(signal));
        }
        let scripted = SCRIPT.with_borrow(|script| script.get(&start.name).cloned());
        let Some(scripted) = scripted else { return Err(StartError::Failed("no such stand-in".into())) };
        let (answer, stopped) = scripted(&start);
        STOPS.with_borrow_mut(|stops| stops.insert(start.name.clone(), stopped));
        answer
    }

    /// Stops a plugin.
    pub async fn stop(&self, plugin: &str) -> Stopped {
        STOPS.with_borrow(|stops| stops.get(plugin).copied().unwrap_or(Stopped::Clean))
    }

    /// The first terminating signal.
    pub fn signal(&self) -> Option<Signal> {
        *self.signal.borrow()
    }

    /// Kills every group.
    pub fn kill_all(&self) {}
}

impl<O: Os> fmt::Debug for Invocation<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Invocation").finish_non_exhaustive()
    }
}
