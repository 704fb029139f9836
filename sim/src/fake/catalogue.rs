//! Every fault there is, as one table: name, what it does, when it can happen, to which methods, example values.
//!
//! The table makes the type [`Act`], its TOML and JSON form (`do = "bom"`, `do = { exit = 3 }`) and [`catalogue`], so
//! that a fault cannot exist in one of them alone. To add one, add a line here, and its bytes in `lines` or its deed in
//! `behaviour`; the compiler and the tests name what is missing.

use serde::{Deserialize, Serialize};

use super::faults::METHODS;
use super::sys::{Background, Fd, Group, Sig, Until};

/// The moment at which a fault happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum When {
    /// The process has started; nothing has been read.
    OnStart,
    /// Bytes of the request wait in the pipe; none has been read.
    BeforeRead,
    /// The request has been read; the reply follows the fault.
    BeforeReply,
    /// The request of a host has been read, and the backend has not been asked. An answer that is given here is the only
    /// one, and the backend never is asked.
    BeforeEffect,
    /// The backend has answered, and nothing of that has been passed on. An answer that is given here is the only one.
    AfterEffect,
    /// In place of the reply.
    Instead,
    /// One half of the reply's bytes has been written, the other half follows.
    MidReply,
    /// The reply has been written. Bytes of a fault go out in the same write as the reply.
    AfterReply,
    /// A `$/cancel` of the request has been read, whether it had been answered or not.
    OnCancel,
    /// `shutdown` has been read.
    OnShutdown,
    /// Standard input has ended.
    OnEof,
}

impl When {
    /// All of them, in the order in which a plugin's life passes them.
    pub const ALL: [When; 11] = [
        When::OnStart,
        When::BeforeRead,
        When::BeforeReply,
        When::BeforeEffect,
        When::AfterEffect,
        When::Instead,
        When::MidReply,
        When::AfterReply,
        When::OnCancel,
        When::OnShutdown,
        When::OnEof,
    ];

    /// Its name in a scenario.
    pub fn name(self) -> &'static str {
        match self {
            When::OnStart => "on-start",
            When::BeforeRead => "before-read",
            When::BeforeReply => "before-reply",
            When::BeforeEffect => "before-effect",
            When::AfterEffect => "after-effect",
            When::Instead => "instead",
            When::MidReply => "mid-reply",
            When::AfterReply => "after-reply",
            When::OnCancel => "on-cancel",
            When::OnShutdown => "on-shutdown",
            When::OnEof => "on-eof",
        }
    }

    /// Whether it lies around the question to the backend, so that only a request of a host passes it.
    pub fn is_of_an_effect(self) -> bool {
        matches!(self, When::BeforeEffect | When::AfterEffect)
    }

    /// Whether it belongs to a request (then a fault names the method), and not to the process.
    pub fn is_of_a_request(self) -> bool {
        !matches!(self, When::OnStart | When::OnShutdown | When::OnEof)
    }
}

/// What a fault is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Topic {
    /// Bytes on standard output that are not what the protocol wants.
    Bytes,
    /// A sound reply that is delivered in an unusual way.
    Delivery,
    /// An error reply.
    Error,
    /// A reply that is wrong in what it says.
    Answer,
    /// Standard streams that are closed or not read.
    Streams,
    /// Standard error.
    Stderr,
    /// The life of the process and of those it leaves behind.
    Process,
    /// Time.
    Time,
    /// Signals that mu itself gets.
    Mu,
    /// Secrets.
    Secret,
}

/// One line of the catalogue.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The name that `do` takes.
    pub name: &'static str,
    /// What it does, in one line.
    pub doc: &'static str,
    /// What it is about.
    pub topic: Topic,
    /// When it can happen; the first is what a fault without `when` means.
    pub moments: &'static [When],
    /// The methods whose requests can be met with it.
    pub methods: &'static [&'static str],
    /// Values worth trying: one for a fault without a parameter.
    pub examples: Vec<Act>,
}

/// Bytes can come at any point; as the reply is the natural one.
const BYTES: &[When] = &[
    When::Instead,
    When::OnStart,
    When::BeforeReply,
    When::AfterReply,
    When::OnCancel,
    When::OnShutdown,
    When::OnEof,
];
/// An answer of its own can come at any point, and around the question to the backend too.
const ERROR: &[When] = &[
    When::Instead,
    When::OnStart,
    When::BeforeReply,
    When::BeforeEffect,
    When::AfterEffect,
    When::AfterReply,
    When::OnCancel,
    When::OnShutdown,
    When::OnEof,
];
/// No answer, whatever has been done.
const SILENCE: &[When] = &[When::Instead, When::BeforeEffect, When::AfterEffect];
/// The reply itself is changed.
const REPLY: &[When] = &[When::Instead];
/// A process can end anywhere.
const END: &[When] = &[
    When::Instead,
    When::OnStart,
    When::BeforeRead,
    When::BeforeReply,
    When::BeforeEffect,
    When::AfterEffect,
    When::MidReply,
    When::AfterReply,
    When::OnCancel,
    When::OnShutdown,
    When::OnEof,
];
/// A side effect beside a reply that is sent all the same; before the reply is the natural one.
const SIDE: &[When] = &[
    When::BeforeReply,
    When::BeforeEffect,
    When::AfterEffect,
    When::OnStart,
    When::BeforeRead,
    When::MidReply,
    When::AfterReply,
    When::OnCancel,
    When::OnShutdown,
    When::OnEof,
];
/// A property of the process from its start on, or from a later moment.
const SETTING: &[When] = &[When::OnStart, When::BeforeRead, When::BeforeReply, When::AfterReply];
/// The end of the process is what is changed.
const STOP: &[When] = &[When::OnEof, When::OnShutdown];
/// The time before a reply or between its halves, around the question to the backend, or before the process reads or
/// ends.
const PAUSE: &[When] = &[
    When::BeforeReply,
    When::OnStart,
    When::BeforeEffect,
    When::AfterEffect,
    When::MidReply,
    When::OnCancel,
    When::OnShutdown,
    When::OnEof,
];
/// Only the time before the reply.
const BEFORE: &[When] = &[When::BeforeReply];
/// A reply once more.
const MORE: &[When] = &[When::AfterReply, When::OnCancel, When::OnShutdown, When::OnEof];
/// Only an announcement of the end.
const SHUTDOWN: &[When] = &[When::OnShutdown];

/// Everything but the handshake.
const CALLS: &[&str] = METHODS.split_at(1).1;
/// Those that take a `timeoutMs` and are answered by a run.
const RUNS: &[&str] = &["link.exec", "link.fetch", "link.push"];
/// Those that are answered by steps.
const STEPS: &[&str] = &["link.checkSteps"];
/// Those that leave a FETCH_HEAD.
const FETCHES: &[&str] = &["link.fetch"];
/// The one that makes a host.
const ACQUIRES: &[&str] = &["host.acquire"];
/// The one that asks what became of a key.
const LOOKUPS: &[&str] = &["host.lookup"];
/// The one that asks how a host is.
const STATUSES: &[&str] = &["host.status"];

impl Act {
    /// Whether a fetch whose reply it replaces has done its work.
    pub(super) fn fetches(&self) -> bool {
        match self {
            Act::ExitCode(code) => *code == 0,
            act => act.topic() != Topic::Error && *act != Act::NoFetchHead,
        }
    }

    /// Whether it is an answer of the plugin's own, for which the backend is not asked.
    pub(super) fn asks_nobody(&self) -> bool {
        let invented =
            matches!(self, Act::LookupPending | Act::LookupNone | Act::LookupUnknown | Act::StatusGone);
        invented || self.topic() == Topic::Error
    }

    /// Whether what it says is made of the sound reply.
    pub(super) fn spoils_the_reply(&self) -> bool {
        let is_made = matches!(self.topic(), Topic::Bytes | Topic::Delivery | Topic::Answer);
        is_made && *self != Act::NoReply && !self.asks_nobody()
    }

    /// Whether it takes the place of the reply, so that none follows it.
    pub(super) fn is_an_answer(&self) -> bool {
        *self == Act::NoReply || self.topic() == Topic::Error
    }
}

macro_rules! examples {
    ($variant:ident) => { vec![Act::$variant] };
    ($variant:ident $($value:expr),+) => { vec![$(Act::$variant($value)),+] };
}

macro_rules! methods {
    () => {
        METHODS
    };
    ($methods:ident) => {
        $methods
    };
}

macro_rules! catalogue {
    ($( $topic:ident { $(
        #[doc = $doc:literal]
        $name:literal $variant:ident $( ($field:ty: $($example:expr),+) )? at $moments:ident $( of $methods:ident )?;
    )* } )*) => {
        /// What a fault does: `do` in a scenario.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        pub enum Act { $($(
            #[doc = $doc]
            #[serde(rename = $name)]
            $variant $( ($field) )?,
        )*)* }

        impl Act {
            /// Its line in the catalogue.
            pub fn entry(&self) -> Entry {
                match self { $($(
                    Act::$variant { .. } => Entry {
                        name: self.name(),
                        doc: $doc.trim_ascii(),
                        topic: self.topic(),
                        moments: self.moments(),
                        methods: self.methods(),
                        examples: examples!($variant $($($example),+)?),
                    },
                )*)* }
            }

            /// Its name.
            pub fn name(&self) -> &'static str {
                match self { $($( Act::$variant { .. } => $name, )*)* }
            }

            /// What it is about.
            pub fn topic(&self) -> Topic {
                match self { $($( Act::$variant { .. } => Topic::$topic, )*)* }
            }

            /// When it can happen; the first is the natural moment.
            pub fn moments(&self) -> &'static [When] {
                match self { $($( Act::$variant { .. } => $moments, )*)* }
            }

            /// The methods whose requests can be met with it.
            pub fn methods(&self) -> &'static [&'static str] {
                match self { $($( Act::$variant { .. } => methods!($($methods)?), )*)* }
            }
        }

        /// Every fault, in the order of the table.
        pub fn catalogue() -> Vec<Entry> {
            let acts: Vec<Vec<Act>> = vec![ $($( examples!($variant $($($example),+)?), )*)* ];
            acts.into_iter().map(|examples| examples[0].entry()).collect()
        }
    };
}

catalogue! {
    Bytes {
        /// The byte 0xFF stands before the object.
        "invalid-utf8-start" InvalidUtf8Start at BYTES;
        /// The byte 0xFF stands inside a string of the reply.
        "invalid-utf8-middle" InvalidUtf8Middle at BYTES;
        /// The byte 0xFF stands between the object and its newline.
        "invalid-utf8-end" InvalidUtf8End at BYTES;
        /// A string of the reply holds a three-byte character without its last byte.
        "invalid-utf8-cut" InvalidUtf8Cut at BYTES;
        /// A string of the reply holds a surrogate in UTF-8 form (ED A0 80).
        "invalid-utf8-surrogate" InvalidUtf8Surrogate at BYTES;
        /// A string of the reply holds an overlong slash (C0 AF).
        "invalid-utf8-overlong" InvalidUtf8Overlong at BYTES;
        /// A line of words.
        "not-json" NotJson at BYTES;
        /// The reply breaks off in the middle of the object, and a newline follows.
        "cut-json" CutJson at BYTES;
        /// A byte order mark stands before the object.
        "bom" Bom at BYTES;
        /// The line ends in CR LF; that is legal, CR is JSON whitespace.
        "crlf" Crlf at BYTES;
        /// An empty line.
        "blank-line" BlankLine at BYTES;
        /// A line of spaces.
        "space-line" SpaceLine at BYTES;
        /// The same object twice on one line.
        "two-objects" TwoObjects at BYTES;
        /// The reply inside an array: a batch.
        "batch" Batch at BYTES;
        /// The reply as an array of its members' values.
        "array" Array at BYTES;
        /// The reply printed over several lines.
        "pretty" Pretty at BYTES;
        /// An unknown member beside `result`.
        "unknown-field-envelope" UnknownFieldEnvelope at BYTES;
        /// An unknown member in the result.
        "unknown-field-result" UnknownFieldResult at BYTES;
        /// An unknown member in an object inside the result.
        "unknown-field-nested" UnknownFieldNested at BYTES;
        /// `id` stands twice in the envelope.
        "duplicate-key-top" DuplicateKeyTop at BYTES;
        /// A member stands twice in an object inside the result.
        "duplicate-key-nested" DuplicateKeyNested at BYTES;
        /// `id` stands twice, once spelled with a \u escape.
        "duplicate-key-escaped" DuplicateKeyEscaped at BYTES;
        /// A nested member stands twice, once spelled with a \u escape.
        "duplicate-key-nested-escaped" DuplicateKeyNestedEscaped at BYTES;
        /// Neither `result` nor `error`.
        "neither" Neither at BYTES;
        /// Both `result` and `error`.
        "both" Both at BYTES;
        /// `result` is null.
        "result-null" ResultNull at BYTES;
        /// `jsonrpc` is missing.
        "no-jsonrpc" NoJsonrpc at BYTES;
        /// `jsonrpc` says 1.0.
        "jsonrpc-1" Jsonrpc1 at BYTES;
        /// The id of a request that mu never sent.
        "id-wrong" IdWrong at BYTES;
        /// The reply twice, as two lines in one write.
        "id-repeated" IdRepeated at BYTES;
        /// The id as a string.
        "id-string" IdString at BYTES;
        /// The id is null.
        "id-null" IdNull at BYTES;
        /// The id as a number with a fraction part of zero.
        "id-float" IdFloat at BYTES;
        /// No id at all.
        "id-missing" IdMissing at BYTES;
        /// The id is 2^64 more than the right one.
        "id-huge" IdHuge at BYTES;
        /// A notification whose method does not exist.
        "unknown-notification" UnknownNotification at BYTES;
        /// A notification of the protocol for a watch that does not exist.
        "stray-notification" StrayNotification at BYTES;
        /// A request to mu.
        "request-to-mu" RequestToMu at BYTES;
        /// The reply, blown up with spaces to exactly 1,048,576 bytes without the newline; that is legal.
        "line-1mib" Line1Mib at BYTES;
        /// The reply, blown up with spaces to 1,048,577 bytes without the newline.
        "line-1mib-and-1" Line1MibAnd1 at BYTES;
        /// This many bytes and no newline.
        "endless-line" EndlessLine(u64: 4 << 20) at BYTES;
        /// The whole reply without its newline; the process lives on.
        "unterminated" Unterminated at BYTES;
        /// The whole reply without its newline, then the process exits with status 0.
        "unterminated-exit" UnterminatedExit at BYTES;
        /// The whole reply without its newline, then stdout is closed; the process lives on.
        "unterminated-close" UnterminatedClose at BYTES;
        /// The reply, an unknown notification and a line of words, in one write.
        "several-lines" SeveralLines at BYTES;
        /// A raw NUL byte inside a string of the reply.
        "nul" Nul at BYTES;
        /// An escaped NUL character inside a string of the reply.
        "nul-escaped" NulEscaped at BYTES;
        /// A string of the reply holds an escaped surrogate without its partner.
        "lone-surrogate" LoneSurrogate at BYTES;
        /// An unknown member in the result nests arrays until the whole line is this deep; the envelope counts as one.
        "nesting" Nesting(u64: 64, 65, 100_000) at BYTES;
        /// The reply behind a Content-Length header.
        "content-length" ContentLength at BYTES;
        /// A line as a logger prints it.
        "log-banner" LogBanner at BYTES;
        /// These words as one line.
        "line" Line(String: "ready".to_owned(), "{}".to_owned()) at BYTES;
        /// The sound reply, beside whatever else is sent.
        "reply" Reply at MORE;
        /// A reply to `shutdown`, which is no request: id and result are null.
        "answer-shutdown" AnswerShutdown at SHUTDOWN;
    }
    Delivery {
        /// The reply, one byte a write.
        "byte-by-byte" ByteByByte at REPLY;
        /// The reply, one byte a write, with this many milliseconds between two of them.
        "dribble-ms" DribbleMs(u64: 10, 200) at REPLY;
        /// A string of the reply gains an é, and the reply goes out in two writes that part inside it; that is legal.
        "split-char" SplitChar at REPLY;
        /// The reply is kept in a buffer and written only once stdin has ended, as without a flush.
        "hold-until-eof" HoldUntilEof at REPLY;
        /// No reply at all.
        "no-reply" NoReply at SILENCE;
        /// The first half of the reply's bytes, and nothing more.
        "half-reply" HalfReply at REPLY;
        /// The first string of the result grows by this many characters.
        "padded-string" PaddedString(u32: 204_800) at REPLY;
        /// The reply waits until a later request has been answered; a cancel or the end of stdin drops it.
        "behind-next" BehindNext at BEFORE of CALLS;
    }
    Error {
        /// An error without `data`.
        "error-without-data" ErrorWithoutData at ERROR;
        /// An error whose `data` has no `kind`.
        "error-without-kind" ErrorWithoutKind at ERROR;
        /// An error with a kind that does not exist.
        "error-unknown-kind" ErrorUnknownKind at ERROR;
        /// An unknown member in the error.
        "error-unknown-field" ErrorUnknownField at ERROR;
        /// The error kind `retryable`.
        "error-retryable" ErrorRetryable at ERROR;
        /// The error kind `permanent`.
        "error-permanent" ErrorPermanent at ERROR;
        /// The error kind `human`, with its remedy.
        "error-human" ErrorHuman at ERROR;
        /// The error kind `human` without its remedy.
        "error-human-without-remedy" ErrorHumanWithoutRemedy at ERROR;
        /// The error kind `unknown-outcome`.
        "error-unknown-outcome" ErrorUnknownOutcome at ERROR;
    }
    Answer {
        /// The result is one of another method.
        "wrong-shape" WrongShape at REPLY;
        /// The result has this `exitCode`, whatever the run did.
        "exit-code" ExitCode(i64: 124, 256, -1) at REPLY of RUNS;
        /// The first step has an `ok` that does not exist.
        "step-ok-unknown" StepOkUnknown at REPLY of STEPS;
        /// A sound reply to a fetch that has written no FETCH_HEAD.
        "no-fetch-head" NoFetchHead at REPLY of FETCHES;
        /// The host has no handle.
        "acquire-without-handle" AcquireWithoutHandle at REPLY of ACQUIRES;
        /// The key is pending, by an answer for which the backend is not asked.
        "lookup-pending" LookupPending at REPLY of LOOKUPS;
        /// Nothing has come of the key, by an answer for which the backend is not asked: a lie, and no fence.
        "lookup-none" LookupNone at REPLY of LOOKUPS;
        /// Nobody can tell what came of the key, by an answer for which the backend is not asked.
        "lookup-unknown" LookupUnknown at REPLY of LOOKUPS;
        /// The key made a host, by an answer that names another handle than the backend, whatever that says.
        "found-other-handle" FoundOtherHandle at REPLY of LOOKUPS;
        /// The host exists no longer, by an answer for which the backend is not asked: a lie.
        "status-gone" StatusGone at REPLY of STATUSES;
        /// The host is up, by an answer that names another handle than the backend, whatever that says.
        "status-other-handle" StatusOtherHandle at REPLY of STATUSES;
    }
    Streams {
        /// From this moment on stdin is not read; the process stays until it is killed.
        "stdin-unread" StdinUnread at SETTING;
        /// stdin is closed; the process stays until it is killed.
        "stdin-closed" StdinClosed at SETTING;
        /// stdout is closed; the process goes on reading.
        "stdout-closed" StdoutClosed at SETTING;
        /// stderr is closed.
        "stderr-closed" StderrClosed at SETTING;
    }
    Stderr {
        /// This many bytes on stderr, in lines of 100.
        "stderr-flood" StderrFlood(u64: 10 << 20) at SIDE;
        /// This many bytes on stderr without a newline.
        "stderr-no-newline" StderrNoNewline(u64: 1 << 20, 401) at SIDE;
        /// Bytes on stderr that are not UTF-8, with control characters between them.
        "stderr-invalid-utf8" StderrInvalidUtf8 at SIDE;
        /// These words and a newline on stderr.
        "stderr-text" StderrText(String: "cannot reach the backend".to_owned()) at SIDE;
    }
    Process {
        /// The process exits with this status.
        "exit" Exit(u8: 0, 3) at END;
        /// The process dies of this signal.
        "die-of" DieOf(Sig: Sig::Kill, Sig::Segv, Sig::Term) at END;
        /// The process exits with this status and leaves a child in its group that holds stdout open.
        "exit-leaving-stdout-held" ExitLeavingStdoutHeld(u8: 0) at END;
        /// The process exits with this status and leaves a child in a session of its own that holds stdout open.
        "exit-leaving-escaped" ExitLeavingEscaped(u8: 0) at END;
        /// A child is started and left behind.
        "leave-child" LeaveChild(Background:
            Background::default(),
            Background { until: Until::Ms(2_000), ..Background::default() },
            Background { forks: 100, holds: vec![Fd::Stdout], ..Background::default() },
            Background { group: Group::Setsid, holds: vec![Fd::Stdout, Fd::Stderr], until: Until::Ms(8_000), forks: 0 }) at SIDE;
        /// `shutdown` and the end of stdin have no effect: the process stays until it is killed.
        "ignore-stop" IgnoreStop at STOP;
        /// SIGTERM, SIGINT and SIGHUP have no effect on the process.
        "ignore-signals" IgnoreSignals at SETTING;
        /// The process stops itself (SIGSTOP) until somebody continues it.
        "stop-self" StopSelf at SIDE;
    }
    Time {
        /// This many milliseconds pass in which the process reads nothing; then it goes on, whatever came meanwhile.
        "delay-ms" DelayMs(u64: 1_000, 9_900, 10_100) at PAUSE;
        /// The reply comes after this many milliseconds, unless a cancel or the end of stdin comes first.
        "cancellable-delay-ms" CancellableDelayMs(u64: 1_000, 9_900, 10_100) at BEFORE;
        /// The reply comes this many milliseconds after the call's own `timeoutMs`, whatever comes meanwhile.
        "after-timeout-ms" AfterTimeoutMs(u64: 0, 4_900, 5_100) at BEFORE of RUNS;
    }
    Mu {
        /// This signal is sent to mu.
        "kill-mu" KillMu(Sig: Sig::Kill, Sig::Term, Sig::Int, Sig::Hup) at SIDE;
    }
    Secret {
        /// A string of the reply gains the value of this environment variable.
        "leak-env-reply" LeakEnvReply(String: "MU_PLUGIN_CANARY".to_owned()) at REPLY;
        /// The value of this environment variable is printed on stderr.
        "leak-env-stderr" LeakEnvStderr(String: "MU_PLUGIN_CANARY".to_owned()) at SIDE;
    }
}
