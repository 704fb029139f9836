//! A host as its link sees it, whether it was added or acquired.

use mu_protocol::messages::target::HostRef;

use crate::link::LinkError;
use crate::provider;
use crate::store::Tx;
use crate::store::hosts::{self, Host};
use crate::store::profiles::Profile;
use crate::verbs::name::{HostName, PluginName};

/// How many link calls a provider host takes at once, when mu keeps count.
const SESSIONS: u32 = 1;

/// What a link needs to know of its host.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Site {
    /// Its name.
    pub(super) name: HostName,
    /// The plugin that is its link.
    pub(super) plugin: PluginName,
    /// The shell command that fetches from it; only one that was added has one.
    pub(super) fetch_template: Option<String>,
    /// The repository on it that worktrees are made from.
    pub(super) repo: Option<String>,
    /// How many link calls it takes at once.
    pub(super) max_sessions: u32,
    /// What goes into every target (HOST-03).
    pub(super) target: HostRef,
    /// The record of one that was acquired.
    record: Option<Host>,
}

impl Site {
    /// Whether another mu may take it away: one that was acquired.
    pub(super) fn may_change(&self) -> bool {
        self.record.is_some()
    }

    /// Refuses a host that has changed since it was looked up: another mu may be about to release it, or has.
    pub(super) fn still_there(&self, tx: Tx<'_>) -> Result<(), LinkError> {
        let Some(record) = &self.record else { return Ok(()) };
        let refusal = match hosts::again(tx, record)? {
            Some(now) if now.state == record.state => return Ok(()),
            Some(now) => provider::usable(&now).err(),
            None => None,
        };
        Err(LinkError::Host(Box::new(refusal.unwrap_or_else(|| provider::another(record)))))
    }
}

impl From<Profile> for Site {
    fn from(profile: Profile) -> Site {
        let Profile { name, plugin, fetch_template, repo, max_sessions, .. } = profile;
        let target = HostRef { name: name.wire(), handle: None, instance: None };
        Site { name, plugin, fetch_template, repo, max_sessions, target, record: None }
    }
}

impl From<Host> for Site {
    fn from(host: Host) -> Site {
        Site {
            name: host.name.clone(),
            plugin: host.plugin.clone(),
            fetch_template: None,
            repo: None,
            max_sessions: SESSIONS,
            target: host.target(),
            record: Some(host),
        }
    }
}
