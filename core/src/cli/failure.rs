//! Every way a verb can fail: a stable name, an exit code, one line of text and what to do next.

use mu_protocol::load::LoadRefusal;
use mu_protocol::messages::error::ErrorKind;
use serde::Serialize;

use crate::call_error::CallError;
use crate::cli::output::Next;
use crate::cli::text::{command, escape};
use crate::invocation::StartError;
use crate::store::StoreError;
use crate::trust::Untrusted;

/// How long a message may get, in characters, before its end is cut (OUT-09).
const MESSAGE_CHARS: usize = 1200;

macro_rules! kinds {
    ($($(#[doc = $doc:literal])* $kind:ident = $name:literal, $exit:literal;)*) => {
        /// What kind of failure: the `error` of the envelope and the exit code.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Kind { $($(#[doc = $doc])* $kind,)* }

        impl Kind {
            /// All of them, by exit code.
            pub const ALL: &[Kind] = &[$(Kind::$kind),*];

            /// The stable name in the envelope.
            pub fn name(self) -> &'static str {
                match self { $(Kind::$kind => $name),* }
            }

            /// The exit code of the process.
            pub fn exit(self) -> u8 {
                match self { $(Kind::$kind => $exit),* }
            }
        }
    };
}

kinds! {
    /// A defect of mu: every plugin was killed at once.
    Internal = "internal", 1;
    /// A call was sent, and whether it did its work is not known.
    OutcomeUnknown = "outcome-unknown", 1;
    /// A word of the command line that mu does not know, or one that is missing.
    Usage = "usage", 2;
    /// A name outside the grammar of names.
    BadName = "bad-name", 2;
    /// An argument that is not UTF-8, or not what it has to be.
    BadArgument = "bad-argument", 2;
    /// SQLite does not accept the statement.
    BadSql = "bad-sql", 2;
    /// The statement writes, and `--write` was not given.
    NeedsWrite = "needs-write", 2;
    /// No variable says where the database is.
    NoDatabasePath = "no-database-path", 2;
    /// A variable that says how long a call may take says nonsense.
    BadVariable = "bad-variable", 2;
    /// No plugin of that name is registered.
    UnknownPlugin = "unknown-plugin", 3;
    /// No host of that name is registered.
    UnknownHost = "unknown-host", 3;
    /// No open effect has that key.
    UnknownEffect = "unknown-effect", 3;
    /// There is no git repository where one is to be.
    NoRepository = "no-repository", 3;
    /// The plugin's file fails the trust checks.
    Untrusted = "untrusted", 4;
    /// The declaration breaks a load rule.
    LoadRefused = "load-refused", 4;
    /// The name is registered with another command line.
    ArgvDiffers = "argv-differs", 4;
    /// Another plugin holds the declared channel name.
    ChannelTaken = "channel-taken", 4;
    /// Something still names the plugin, or uses the host.
    StillReferenced = "still-referenced", 4;
    /// The name is registered with another set-up.
    HostDiffers = "host-differs", 4;
    /// The link serves no fetch, and the host has no template for it.
    NoFetchTemplate = "no-fetch-template", 4;
    /// The name of a host is taken.
    HostTaken = "host-taken", 4;
    /// The host has no definite answer to its acquire or release yet.
    HostNotReady = "host-not-ready", 4;
    /// The host is proven to exist no longer.
    HostLost = "host-lost", 4;
    /// Somebody lives who may still bring the effect about; nothing was sent.
    EffectBusy = "effect-busy", 4;
    /// The plugin is another instance than the one that has the host, or was sent the effect; nothing was sent.
    StopChanged = "stop-changed", 4;
    /// A newer mu wrote the database.
    DatabaseNewer = "database-newer", 4;
    /// The system lacks what mu starts with.
    MachineUnusable = "machine-unusable", 5;
    /// The plugin did not get as far as a declaration.
    PluginFailed = "plugin-failed", 5;
    /// A script or a request is longer than may be; nothing was sent.
    TooLong = "too-long", 5;
    /// Others held the host's channels all the time; nothing was sent.
    HostBusy = "host-busy", 5;
    /// The plugin was gone, or took nothing, before the call; nothing was sent.
    NotSent = "not-sent", 5;
    /// The plugin answered that it failed and that nothing happened.
    CallFailed = "call-failed", 5;
    /// A person has to act first.
    NeedsHuman = "needs-human", 5;
    /// A step of a check failed.
    CheckFailed = "check-failed", 5;
    /// A fetch failed, or brought nothing.
    FetchFailed = "fetch-failed", 5;
    /// A file of the git repository cannot be read or deleted.
    RepositoryUnusable = "repository-unusable", 5;
    /// Another process kept the database locked.
    DatabaseBusy = "database-busy", 5;
    /// The database, or its directory, cannot be opened, read or written.
    DatabaseUnusable = "database-unusable", 5;
    /// The file is no database of mu's, or a damaged one.
    DatabaseDamaged = "database-damaged", 5;
    /// The query was given up after too much work.
    QueryTooLong = "query-too-long", 5;
    /// A terminating signal came first.
    Interrupted = "interrupted", 130;
}

/// A verb that did not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Which kind.
    pub kind: Kind,
    /// One line: the thing, the reason, what to do.
    pub message: String,
    /// A useful command, where there is one.
    pub next: Option<Next>,
    /// Further lines for standard error, one for each thing the message only counts.
    pub notes: Vec<String>,
}

impl Failure {
    /// A failure whose message is made a harmless single line of bounded length (BUD-03, OUT-09).
    pub fn new(kind: Kind, message: impl AsRef<str>) -> Failure {
        let message = escape(message.as_ref());
        let message = match message.char_indices().nth(MESSAGE_CHARS) {
            None => message.into_owned(),
            Some((at, _)) => format!("{}… cut={}", &message[..at], message[at..].chars().count()),
        };
        Failure { kind, message, next: None, notes: Vec::new() }
    }

    /// With one or more commands to choose from.
    pub fn or_else<S: Into<String>>(mut self, commands: impl IntoIterator<Item = S>) -> Failure {
        self.next = Some(Next::alt(commands));
        self
    }

    /// With commands to run in this order.
    pub fn then<S: Into<String>>(mut self, commands: impl IntoIterator<Item = S>) -> Failure {
        self.next = Some(Next::seq(commands));
        self
    }

    /// A plugin that did not start. `argv` is the command line it was started with: a recorded declaration that no longer
    /// holds is renewed by `add` with the same one (REG-10).
    pub fn start(name: &str, argv: &[String], error: &StartError) -> Failure {
        let of = |kind| Failure::new(kind, format!("plugin {name}: {error}"));
        match error {
            StartError::Untrusted(Untrusted::Writable { path, .. }) => {
                of(Kind::Untrusted).or_else([command(["chmod", "go-w", path])])
            }
            StartError::Untrusted(_) => of(Kind::Untrusted),
            StartError::Refused(LoadRefusal { said: Some(said), .. }) => {
                Failure::new(Kind::LoadRefused, format!("plugin {name}: {error}; it says: {said}"))
            }
            StartError::Refused(LoadRefusal { rule: "LOAD-19", .. }) => {
                of(Kind::LoadRefused).or_else([add_command(name, argv)])
            }
            StartError::Refused(_) => of(Kind::LoadRefused),
            StartError::Interrupted(_) => of(Kind::Interrupted),
            failed if failed.exit_code() == Kind::LoadRefused.exit() => of(Kind::LoadRefused),
            _ => of(Kind::PluginFailed),
        }
    }

    /// A call that has no result. `subject` is what it was about, `plugin` and `argv` the plugin that was asked.
    pub fn call(subject: &str, plugin: &str, argv: &[String], error: &CallError) -> Failure {
        let kind = match error {
            CallError::Start(error) => return Failure::start(plugin, argv, error),
            CallError::TooLong(..) => Kind::TooLong,
            CallError::NotSent(..) if error.signal().is_some() => Kind::Interrupted,
            CallError::NotSent(..) => Kind::NotSent,
            CallError::Unanswered(_) => Kind::OutcomeUnknown,
            CallError::Refused(_, error) => match error.kind {
                ErrorKind::Retryable | ErrorKind::Permanent => Kind::CallFailed,
                ErrorKind::Human { .. } => Kind::NeedsHuman,
                ErrorKind::UnknownOutcome => Kind::OutcomeUnknown,
            },
        };
        Failure::new(kind, format!("{subject}: {error}"))
    }

    /// `{ok:false,error,message,next,exit}` (OUT-02).
    pub(crate) fn envelope(&self) -> impl Serialize {
        let Failure { kind, message, next, .. } = self;
        Envelope { ok: false, error: kind.name(), message, next, exit: kind.exit() }
    }
}

#[derive(Serialize)]
struct Envelope<'a> {
    ok: bool,
    error: &'static str,
    message: &'a str,
    next: &'a Option<Next>,
    exit: u8,
}

/// The command that registers `name` with `argv`.
pub fn add_command(name: &str, argv: &[String]) -> String {
    let words = ["mu", "plugin", "add", name, "--"].into_iter().chain(argv.iter().map(String::as_str));
    command(words)
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Failure {
        let kind = match &error {
            StoreError::NoPath => Kind::NoDatabasePath,
            StoreError::Newer { .. } => Kind::DatabaseNewer,
            StoreError::Busy { .. } => Kind::DatabaseBusy,
            StoreError::NotADatabase { .. }
            | StoreError::Foreign { .. }
            | StoreError::Damaged { .. }
            | StoreError::Rejected { .. }
            | StoreError::BadRow { .. } => Kind::DatabaseDamaged,
            StoreError::NotAFile { .. }
            | StoreError::Unreachable { .. }
            | StoreError::NoDirectory { .. }
            | StoreError::Unreadable { .. }
            | StoreError::ReadOnly { .. }
            | StoreError::Full { .. }
            | StoreError::Failed { .. } => Kind::DatabaseUnusable,
            StoreError::TooLong => Kind::QueryTooLong,
            StoreError::Interrupted(_) => Kind::Interrupted,
        };
        let failure = Failure::new(kind, error.to_string());
        match &error {
            StoreError::BadRow { table: "plugins", row, .. } => {
                failure.or_else([command(["mu", "plugin", "rm", row])])
            }
            StoreError::BadRow { table: "host_profiles", row, .. } => {
                failure.or_else([command(["mu", "host", "rm", row])])
            }
            StoreError::BadRow { table: "effects" | "effect_sends", row, .. } => {
                failure.or_else([command(["mu", "effect", "show", row])])
            }
            _ => failure,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLI_PAGE: &str = include_str!("../../../docs/cli.md");

    #[test]
    fn the_page_lists_every_failure_with_its_exit_code() {
        for kind in Kind::ALL {
            let row = format!("| `{}` | {} |", kind.name(), kind.exit());
            assert!(CLI_PAGE.contains(&row), "docs/cli.md misses a line that begins {row}");
        }
        let listed = CLI_PAGE.lines().filter(|line| line.starts_with("| `")).count();
        assert_eq!(listed, Kind::ALL.len(), "docs/cli.md lists a failure that does not exist");
    }

    #[test]
    fn names_are_unique_kebab_case_and_no_failure_exits_zero() {
        let mut names: Vec<_> = Kind::ALL.iter().map(|kind| kind.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Kind::ALL.len());
        assert!(names.iter().all(|name| name.chars().all(|c| c.is_ascii_lowercase() || c == '-')));
        assert!(Kind::ALL.iter().all(|kind| kind.exit() != 0));
    }

    fn refused(rule: &'static str, said: Option<&str>) -> Failure {
        let refusal = LoadRefusal {
            rule,
            field: "seams".into(),
            reason: "is wrong".into(),
            remedy: "mend it".into(),
            said: said.map(Into::into),
            other_instance: None,
        };
        Failure::start("box", &["/x/mu-plugin-box".into(), "a b".into()], &StartError::Refused(refusal))
    }

    /// LOAD-19, REG-10
    #[test]
    fn a_declaration_that_changed_is_renewed_by_the_same_command_line() {
        let failure = refused("LOAD-19", None);
        assert_eq!(failure.kind, Kind::LoadRefused);
        assert_eq!(failure.next.unwrap().commands(), ["mu plugin add box -- /x/mu-plugin-box 'a b'"]);
        assert_eq!(refused("LOAD-05", None).next, None);
    }

    /// LOAD-02, A-70
    #[test]
    fn what_a_plugin_says_instead_of_a_declaration_is_shown_escaped() {
        let message = refused("LOAD-02", Some("no \u{1b}[31mregion")).message;
        assert!(message.starts_with("plugin box: seams is wrong"), "{message}");
        assert!(message.ends_with(r"; it says: no \u{1b}[31mregion"), "{message}");
    }

    /// REG-07
    #[test]
    fn a_file_that_others_may_write_comes_with_the_command_that_mends_it() {
        let error = Untrusted::Writable { path: "/x y/mu-plugin-box".into(), mode: 0o777 };
        let failure = Failure::start("box", &[], &error.into());
        assert_eq!(failure.next.unwrap().commands(), ["chmod go-w '/x y/mu-plugin-box'"]);
    }

    /// OUT-02
    #[test]
    fn the_envelope_has_exactly_five_members() {
        let failure = Failure::new(Kind::Usage, "what").or_else(["mu --help"]);
        let wanted = r#"{"ok":false,"error":"usage","message":"what","next":{"mode":"alt","commands":["mu --help"]},"exit":2}"#;
        assert_eq!(crate::cli::output::json_line(&failure.envelope()), wanted);
    }

    /// BUD-03
    #[test]
    fn a_message_is_one_harmless_line() {
        assert_eq!(Failure::new(Kind::Usage, "a\nb\u{1b}c").message, r"a\nb\u{1b}c");
    }

    /// OUT-11
    #[test]
    fn a_long_message_says_how_much_was_cut() {
        let message = Failure::new(Kind::Usage, "ü".repeat(MESSAGE_CHARS + 7)).message;
        assert!(message.ends_with("ü… cut=7"), "{message}");
        let whole = "ü".repeat(MESSAGE_CHARS);
        assert_eq!(Failure::new(Kind::Usage, &whole).message, whole);
    }
}
