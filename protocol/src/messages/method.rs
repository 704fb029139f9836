//! The calls: their names, and which parameters and result belong together.

use std::fmt;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::checks::Steps;
use super::lookup::Lookup;
use super::{channel, host, job, link};
use crate::objects::{Mismatch, from_checked, nullable};
use crate::strict::Checked;

/// The parameters of a call, without their [deadline](super::dated).
pub trait Call: Serialize + DeserializeOwned {
    /// The method that takes them.
    const METHOD: Method;
    /// What the method answers.
    type Result: Serialize + DeserializeOwned;
    /// The result as its own type; `None` when it is that of another method.
    fn result(any: AnyResult) -> Option<Self::Result>;
}

/// The parameters of a call that changes nothing outside: it is made without a journal.
pub trait Read: Call {}

/// A result that may be null.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct OrNull<T: DeserializeOwned>(#[serde(deserialize_with = "nullable")] pub Option<T>);

macro_rules! calls {
    ($($variant:ident $name:literal $kind:ident: $params:ty => $result:ty;)*) => {
        /// A method that mu calls with a target and a deadline.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Method {
            $(#[doc = concat!("`", $name, "`")] $variant,)*
        }

        impl Method {
            /// All of them, noun by noun.
            pub const ALL: &[Method] = &[$(Method::$variant,)*];

            /// The name on the wire.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Method::$variant => $name,)*
                }
            }

            /// The method of that name.
            pub fn parse(name: &str) -> Option<Self> {
                match name {
                    $($name => Some(Method::$variant),)*
                    _ => None,
                }
            }

            /// Whether the call only asks: it neither is an effect nor runs or moves anything on a host.
            pub fn changes_nothing(self) -> bool {
                !self.is_effect() && !matches!(self, Method::LinkExec | Method::LinkFetch | Method::LinkPush)
            }

            /// Whether the call is journalled before it is sent (EFF-01).
            pub fn is_effect(self) -> bool {
                match self {
                    $(Method::$variant => calls!(@ $kind),)*
                }
            }
        }

        /// The result of any method.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum AnyResult {
            $(#[doc = concat!("Of `", $name, "`.")] $variant($result),)*
        }

        impl AnyResult {
            /// The method that answered.
            pub fn method(&self) -> Method {
                match self {
                    $(AnyResult::$variant(_) => Method::$variant,)*
                }
            }
        }

        /// Parses the `result` of a reply to `method`.
        pub fn parse_result(method: Method, result: Checked<'_>) -> Result<AnyResult, Mismatch> {
            match method {
                $(Method::$variant => from_checked(result).map(AnyResult::$variant),)*
            }
        }

        $(calls!(@ $kind $params);)*

        $(impl Call for $params {
            const METHOD: Method = Method::$variant;
            type Result = $result;

            fn result(any: AnyResult) -> Option<$result> {
                match any {
                    AnyResult::$variant(result) => Some(result),
                    _ => None,
                }
            }
        })*
    };
    (@ effect) => { true };
    (@ read) => { false };
    (@ effect $params:ty) => {};
    (@ read $params:ty) => { impl Read for $params {} };
}

calls! {
    HostAcquire "host.acquire" effect: host::AcquireParams => host::Acquired;
    HostLookup "host.lookup" read: host::LookupParams => Lookup<host::Acquired>;
    HostStatus "host.status" read: host::StatusParams => host::HostState;
    HostRelease "host.release" effect: host::ReleaseParams => ();
    LinkExec "link.exec" read: link::ExecParams => link::Run;
    LinkFetch "link.fetch" read: link::FetchParams => link::Run;
    LinkPush "link.push" read: link::PushParams => link::Run;
    LinkCheckSteps "link.checkSteps" read: link::CheckStepsParams => Steps;
    JobStart "job.start" effect: job::StartParams => job::Started;
    JobLookup "job.lookup" read: job::LookupParams => Lookup<job::FoundJob>;
    JobStatus "job.status" read: job::StatusParams => job::JobState;
    JobStop "job.stop" effect: job::StopParams => ();
    JobAttach "job.attach" read: job::AttachParams => job::View;
    JobCheckSteps "job.checkSteps" read: job::CheckStepsParams => Steps;
    ChannelReadStates "channel.readStates" read: channel::ReadStatesParams => channel::Readings;
    ChannelBaseline "channel.baseline" read: channel::BaselineParams => OrNull<channel::Baseline>;
    ChannelReceipt "channel.receipt" read: channel::ReceiptParams => channel::Receipt;
    ChannelLastRun "channel.lastRun" read: channel::LastRunParams => OrNull<channel::Observation>;
    ChannelWatch "channel.watch" read: channel::WatchParams => channel::Watching;
    ChannelSend "channel.send" effect: channel::SendParams => channel::Sent;
    ChannelFresh "channel.fresh" effect: channel::FreshParams => channel::Sent;
    ChannelCommand "channel.command" effect: channel::CommandParams => channel::Sent;
    ChannelInterrupt "channel.interrupt" effect: channel::InterruptParams => channel::Interrupted;
    ChannelAbort "channel.abort" effect: channel::AbortParams => channel::Aborted;
    ChannelAnswer "channel.answer" effect: channel::AnswerParams => channel::Answered;
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
