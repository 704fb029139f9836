//! What must be proven before an open effect is touched. Each proof is a type that only this file makes, and whoever acts
//! on one has to hand it over.

use crate::os::{Os, Pid, ProcessId};

/// Somebody who may still send the request, or carry it out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Living {
    /// The mu that wrote the intent (EFF-05).
    Writer(Pid),
    /// Another mu that is resolving it (EFF-06).
    Resolver(Pid),
    /// The process group of a plugin that was sent the request, or may have been (EFF-12).
    Group(Pid),
}

impl Living {
    /// Its pid; that of a group is the pid of its leader.
    pub fn pid(self) -> Pid {
        let (Living::Writer(pid) | Living::Resolver(pid) | Living::Group(pid)) = self;
        pid
    }
}

impl std::fmt::Display for Living {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Living::Writer(pid) => write!(f, "process {pid}, which began it, lives"),
            Living::Resolver(pid) => write!(f, "process {pid} is resolving it"),
            Living::Group(pid) => write!(f, "a process of group {pid}, which may carry it out, lives"),
        }
    }
}

/// All who ever had to do with an effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parties {
    /// The mu that wrote the intent.
    pub writer: ProcessId,
    /// The mu that last set about resolving it.
    pub resolver: Option<ProcessId>,
    /// The founders of the groups of all processes that were sent the request.
    pub groups: Vec<ProcessId>,
}

impl Parties {
    /// The writer or another resolver, if it lives. A stopped process lives; a recycled pid does not. `me` is the
    /// process that asks; it does not stand in its own way as the resolver.
    pub fn living_mu<O: Os>(&self, os: &O, me: &ProcessId) -> Option<Living> {
        let lives = |process: &ProcessId| os.identify(process.pid).as_ref() == Some(process);
        if lives(&self.writer) {
            return Some(Living::Writer(self.writer.pid));
        }
        let resolver = self.resolver.as_ref().filter(|resolver| *resolver != me && lives(resolver));
        resolver.map(|resolver| Living::Resolver(resolver.pid))
    }

    /// The first group that lives.
    pub fn living_group<O: Os>(&self, os: &O) -> Option<Living> {
        self.groups.iter().find(|founder| os.group_alive(founder)).map(|founder| Living::Group(founder.pid))
    }
}

/// Proof that writer, resolvers and every group that was sent the request are gone: nothing that anybody here sent is
/// still on its way from this machine.
#[derive(Debug, PartialEq, Eq)]
pub struct ProvenDead(());

impl ProvenDead {
    /// Looks at all of them.
    ///
    /// # Errors
    /// The first that lives.
    pub fn look<O: Os>(os: &O, parties: &Parties, me: &ProcessId) -> Result<ProvenDead, Living> {
        match parties.living_mu(os, me).or_else(|| parties.living_group(os)) {
            Some(living) => Err(living),
            None => Ok(ProvenDead(())),
        }
    }
}

/// That all are dead and the plugin is the one that the effect was sent to. Nothing is asked or sent about an open effect
/// without one.
#[derive(Debug, PartialEq, Eq)]
pub struct Permit(ProvenDead);

impl Permit {
    /// For the instance that the effect was sent to and the one that the plugin has now; `None` when they differ (EFF-07).
    pub(super) fn new(dead: ProvenDead, sent_to: &str, now: &str) -> Option<Permit> {
        (sent_to == now).then_some(Permit(dead))
    }
}

/// That a lookup bars its key: a `none` which answers it is final (EFF-13, EFF-15).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fenced(());

impl Fenced {
    /// For a plugin that declares it can. Whoever asks with it must hold a permit: fencing forecloses an effect that is
    /// still on its way.
    pub(super) fn by(_: &Permit, fence_key: bool) -> Option<Fenced> {
        fence_key.then_some(Fenced(()))
    }
}

/// Why an intent may be deleted. There is no other way to.
#[derive(Debug, PartialEq, Eq)]
pub struct Warrant(());

impl Warrant {
    /// The plugin has answered definitely (EFF-03): [`super::reading`] judges that.
    pub(super) fn definite_reply() -> Warrant {
        Warrant(())
    }

    /// The operator says how it ended, and nobody lives who could gainsay.
    pub fn operators_word(_: &ProvenDead) -> Warrant {
        Warrant(())
    }

    /// Its host is proven to be gone, and nobody lives who could act on it.
    pub fn host_gone(_: &ProvenDead) -> Warrant {
        Warrant(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{FakeOs, process};

    fn parties() -> Parties {
        Parties {
            writer: process(10, 1),
            resolver: Some(process(20, 2)),
            groups: vec![process(30, 3), process(40, 4)],
        }
    }

    /// EFF-05, EFF-06, EFF-12
    #[test]
    fn whoever_lives_is_named() {
        let me = process(500, 7);
        let look = |os: &FakeOs| ProvenDead::look(os, &parties(), &me);
        let os = FakeOs::new();
        assert!(look(&os).is_ok());
        os.group_lives(process(40, 4), true);
        assert_eq!(look(&os), Err(Living::Group(Pid(40))));
        os.lives(process(20, 2));
        assert_eq!(look(&os), Err(Living::Resolver(Pid(20))));
        os.lives(process(10, 1));
        assert_eq!(look(&os), Err(Living::Writer(Pid(10))));
        // the numbers were given away.
        os.lives(process(20, 9));
        os.lives(process(10, 9));
        os.group_lives(process(40, 4), false);
        os.group_lives(process(40, 9), true);
        assert!(look(&os).is_ok());
    }

    /// EFF-06
    #[test]
    fn a_resolver_does_not_stand_in_its_own_way_and_a_writer_does() {
        let os = FakeOs::new();
        os.lives(process(20, 2));
        assert!(ProvenDead::look(&os, &parties(), &process(20, 2)).is_ok());
        os.lives(process(10, 1));
        assert_eq!(ProvenDead::look(&os, &parties(), &process(10, 1)), Err(Living::Writer(Pid(10))));
    }
}
