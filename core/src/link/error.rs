//! Every way a link can fail, and the failure of a verb that follows.

use std::fmt;
use std::time::Duration;

use mu_protocol::messages::link::Run;

use crate::call_error::CallError;
use crate::cli::failure::{Failure, Kind};
use crate::deadlines::BadVariable;
use crate::link::RepositoryError;
use crate::link::site::Site;
use crate::os::{Pid, Signal};
use crate::store::StoreError;
use crate::store::plugins::Plugin;

/// Why a link did not do what was asked. `Display` is one line, without the host's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkError {
    /// The script is longer than the link takes; nothing was sent (LINK-20).
    ScriptTooLong {
        /// Its bytes.
        bytes: u64,
        /// How many the link takes.
        limit: u64,
    },
    /// Others held the host's channels all the time; nothing was sent, and no plugin started.
    Busy {
        /// How long they were waited for.
        budget: Duration,
        /// The holders, one entry for each channel.
        holders: Vec<Pid>,
    },
    /// The host has changed since it was looked up; nothing was sent.
    Host(Box<Failure>),
    /// The call has no result.
    Call(CallError),
    /// A variable that says how long a call may take says nonsense.
    Variable(BadVariable),
    /// The database failed.
    Store(StoreError),
    /// A terminating signal came before anything was sent, or while a template ran.
    Interrupted(Signal),
    /// The link serves no fetch, and the host has no template (REG-18).
    NoTemplate,
    /// The link serves no push (LINK-04).
    NoPush,
    /// The shell for the host's template could not be executed.
    Shell {
        /// What the system said.
        reason: String,
    },
    /// The fetch ended with another status than 0, or with none.
    FetchFailed(Run),
    /// The fetch ended well, and FETCH_HEAD names no commit (LINK-03).
    NoFetchHead,
    /// The repository here is none, or cannot be used.
    Repository(RepositoryError),
}

impl LinkError {
    /// The failure of a verb on that host.
    pub(super) fn failure(&self, host: &Site, plugin: &Plugin) -> Failure {
        let name = &host.name;
        let kind = match self {
            LinkError::Call(error) => {
                return Failure::call(&format!("host {name}"), &plugin.name, &plugin.argv, error);
            }
            LinkError::Store(error) => return error.clone().into(),
            LinkError::Host(failure) => return Failure::clone(failure),
            LinkError::NoTemplate => return crate::verbs::host_add::no_template(name, &host.plugin),
            LinkError::Repository(error) => return error.clone().into(),
            LinkError::ScriptTooLong { .. } => Kind::TooLong,
            LinkError::Busy { .. } => Kind::HostBusy,
            LinkError::Variable(_) => Kind::BadVariable,
            LinkError::Interrupted(_) => Kind::Interrupted,
            LinkError::NoPush => Kind::LoadRefused,
            LinkError::FetchFailed(Run { exit_code: None, .. }) => Kind::OutcomeUnknown,
            LinkError::Shell { .. } | LinkError::FetchFailed(_) | LinkError::NoFetchHead => Kind::FetchFailed,
        };
        Failure::new(kind, format!("host {name}: {self}"))
    }
}

impl fmt::Display for LinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LinkError::ScriptTooLong { bytes, limit } => write!(
                f,
                "the script has {bytes} bytes, and its link takes {limit} at most; nothing was sent: put it into a file there"
            ),
            LinkError::Busy { budget, holders } => {
                let pids: Vec<String> = holders.iter().map(Pid::to_string).collect();
                let (seconds, pids) = (budget.as_secs_f64(), pids.join(", "));
                write!(
                    f,
                    "no channel became free within {seconds} s, nothing was sent; held by process {pids}; wait for them, or \
                     give the host more with --max-sessions"
                )
            }
            LinkError::Host(failure) => f.write_str(&failure.message),
            LinkError::Call(error) => error.fmt(f),
            LinkError::Variable(error) => error.fmt(f),
            LinkError::Store(error) => error.fmt(f),
            LinkError::Interrupted(signal) => write!(f, "ended by {}", signal.name()),
            LinkError::NoTemplate => f.write_str("its link declares `fetch: false`, and it has no template"),
            LinkError::NoPush => f.write_str("its link does not declare `push`; nothing was sent"),
            LinkError::Shell { reason } => write!(f, "/bin/sh cannot be executed for its template: {reason}"),
            LinkError::FetchFailed(run) => {
                match run.exit_code {
                    Some(status) => write!(f, "the fetch ended with status {status}")?,
                    None => f.write_str("the fetch was cut off at its timeout; a longer --timeout may do")?,
                }
                match run.stderr.lines().find(|line| !line.trim().is_empty()) {
                    Some(line) => write!(f, "; its stderr begins: {line}"),
                    None => Ok(()),
                }
            }
            LinkError::NoFetchHead => {
                f.write_str("the fetch ended with status 0, and FETCH_HEAD names no commit afterwards")
            }
            LinkError::Repository(error) => error.fmt(f),
        }
    }
}

impl From<CallError> for LinkError {
    fn from(error: CallError) -> LinkError {
        LinkError::Call(error)
    }
}

impl From<StoreError> for LinkError {
    fn from(error: StoreError) -> LinkError {
        match error {
            StoreError::Interrupted(signal) => LinkError::Interrupted(signal),
            error => LinkError::Store(error),
        }
    }
}

impl From<BadVariable> for LinkError {
    fn from(error: BadVariable) -> LinkError {
        LinkError::Variable(error)
    }
}

impl From<BadVariable> for Failure {
    fn from(error: BadVariable) -> Failure {
        Failure::new(Kind::BadVariable, error.to_string())
    }
}

impl From<RepositoryError> for LinkError {
    fn from(error: RepositoryError) -> LinkError {
        LinkError::Repository(error)
    }
}

impl From<RepositoryError> for Failure {
    fn from(error: RepositoryError) -> Failure {
        let kind = match &error {
            RepositoryError::NoDirectory(_) | RepositoryError::NotFound(_) => Kind::NoRepository,
            RepositoryError::NotUtf8(_) => Kind::BadArgument,
            RepositoryError::BadGitFile(_) | RepositoryError::Unusable { .. } => Kind::RepositoryUnusable,
        };
        Failure::new(kind, error.to_string())
    }
}
