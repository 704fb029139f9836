//! The closed vocabularies of a declaration. Each enum is one list of words; their spelling stands here and nowhere else.

use serde::{Serialize, Serializer};

pub use crate::messages::checks::Phase;
pub use crate::messages::job::Role;

/// A closed vocabulary: an enum whose values are words on the wire.
pub trait Vocabulary: Copy + 'static {
    /// Every value, in the order of the schema.
    const ALL: &'static [Self];

    /// The word on the wire.
    fn name(self) -> &'static str;
}

macro_rules! words {
    ($(
        $(#[$doc:meta])+
        $vocabulary:ident { $($(#[$word_doc:meta])+ $word:ident = $name:literal,)+ }
    )+) => {$(
        $(#[$doc])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $vocabulary {
            $($(#[$word_doc])+ $word,)+
        }

        impl Vocabulary for $vocabulary {
            const ALL: &'static [Self] = &[$($vocabulary::$word),+];

            fn name(self) -> &'static str {
                match self {
                    $($vocabulary::$word => $name,)+
                }
            }
        }

        impl Serialize for $vocabulary {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.name())
            }
        }
    )+};
}

words! {
    /// A part of mu that a plugin can take over.
    Seam {
        /// Runs scripts on a host and moves commits.
        Link = "link",
        /// Runs agents.
        Job = "job",
        /// Provides hosts.
        Host = "host",
        /// Carries the turns of agents.
        Channel = "channel",
    }

    /// Who keeps link calls from crowding a host (SEAM-04, SEAM-05).
    Slots {
        /// mu: each call holds one of the host's channels.
        Mu = "mu",
        /// The plugin, which takes overlapping calls.
        Plugin = "self",
    }

    /// What a link call that timed out leaves running (SEAM-06).
    RemoteOnTimeout {
        /// Nothing, from its answer on.
        Stopped = "stopped",
        /// Nothing, from one grace after its answer on.
        Stopping = "stopping",
        /// Possibly something.
        Unknown = "unknown",
    }

    /// Whether it can be proved that nothing of a stopped job still writes (SEAM-07).
    Quiescence {
        /// It can.
        Provable = "provable",
        /// It cannot.
        Unprovable = "unprovable",
    }

    /// What a job's view is to the job (SEAM-09).
    View {
        /// The job ends with its view.
        Bound = "bound",
        /// The job outlives its view.
        Detached = "detached",
    }

    /// Where a job's handle comes from (SEAM-09).
    HandleSource {
        /// The pane.
        Pane = "pane",
        /// A file.
        File = "file",
        /// The reply to `job.start`.
        Reply = "reply",
    }

    /// When a job's first turn begins (SEAM-10).
    FirstTurn {
        /// With a delivery of its own.
        OnSend = "on-send",
        /// With `job.start`, which carries the prompt.
        AtStart = "at-start",
    }

    /// To what a delivery can be fenced (LOAD-15).
    Fence {
        /// Nothing.
        None = "none",
        /// One incarnation of the channel; no plugin channel loads with it.
        Incarnation = "incarnation",
    }

    /// What a channel can tell about a delivery afterwards (SEAM-13).
    ReceiptKind {
        /// Nothing.
        None = "none",
        /// Whether exactly this message was accepted.
        Exact = "exact",
    }

    /// Whether a delivery can join the running turn (SEAM-13).
    Steer {
        /// It cannot.
        None = "none",
        /// It can.
        Native = "native",
    }

    /// Whether a running turn can be interrupted or aborted (SEAM-13).
    Interrupt {
        /// It cannot.
        None = "none",
        /// It can.
        Native = "native",
    }

    /// What a fresh start does to the session (SEAM-13).
    Fresh {
        /// It is not served.
        None = "none",
        /// Empties it in place.
        InPlace = "in-place",
        /// Replaces it with a new one.
        Restart = "restart",
    }

    /// How mu learns that a turn has settled (LOAD-13).
    Watch {
        /// By a notification.
        Stream = "stream",
        /// By asking again; no plugin channel loads with it.
        Poll = "poll",
        /// Not at all; no plugin channel loads with it.
        None = "none",
    }

    /// How much of a settled turn's text an observation holds (LOAD-14).
    SettleText {
        /// Nothing; no plugin channel loads with it.
        None = "none",
        /// Its end.
        Tail = "tail",
        /// All of it.
        Full = "full",
    }
}

// These two are words of calls as well and have their types there.
impl Vocabulary for Phase {
    const ALL: &'static [Self] = &[Phase::Template, Phase::Reach, Phase::Agent];

    fn name(self) -> &'static str {
        match self {
            Phase::Template => "template",
            Phase::Reach => "reach",
            Phase::Agent => "agent",
        }
    }
}

impl Vocabulary for Role {
    const ALL: &'static [Self] = &[Role::FullAccess, Role::ReadOnly];

    fn name(self) -> &'static str {
        match self {
            Role::FullAccess => "full-access",
            Role::ReadOnly => "read-only",
        }
    }
}
