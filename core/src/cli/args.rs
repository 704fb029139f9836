//! The argument tree, and argv to a typed request or a usage failure. Nothing ambient is read: no variable, no terminal.

use std::cell::RefCell;
use std::ffi::{OsStr, OsString};
use std::time::Duration;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use mu_protocol::messages::values::{Name, RemotePath};
use serde_json::json;

use crate::cli::failure::{Failure, Kind};
use crate::cli::output::{Output, Row};
use crate::cli::text::command;
use crate::store::effects::Verdict;
use crate::store::hosts::Params;
use crate::verbs::host_add::Setup;
use crate::verbs::name::{HostName, PluginName};

mod effect;
mod host;

/// What a run of mu is asked to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    /// Print a text that parsing itself produced: help, the version.
    Print(Box<Output>),
    /// `mu plugin add`
    PluginAdd {
        /// The name to register.
        name: PluginName,
        /// Program and arguments, verbatim.
        argv: Vec<String>,
    },
    /// `mu plugin list`
    PluginList {
        /// Cut nothing.
        full: bool,
    },
    /// `mu plugin show`
    PluginShow {
        /// Which plugin.
        name: PluginName,
        /// Cut nothing.
        full: bool,
    },
    /// `mu plugin rm`
    PluginRm {
        /// Which plugin.
        name: PluginName,
    },
    /// `mu plugin schema`
    PluginSchema {
        /// Its digest alone.
        digest: bool,
    },
    /// `mu plugin check`
    PluginCheck {
        /// Which plugins; none stands for all.
        names: Vec<PluginName>,
        /// Cut nothing.
        full: bool,
    },
    /// `mu host add`
    HostAdd {
        /// The name to register.
        name: HostName,
        /// What it is registered with.
        setup: Setup,
    },
    /// `mu host acquire`
    HostAcquire {
        /// The name it gets.
        name: HostName,
        /// The plugin that makes it.
        provider: PluginName,
        /// What the plugin is to heed.
        params: Params,
    },
    /// `mu host status`
    HostStatus {
        /// Which host.
        name: HostName,
        /// Cut nothing.
        full: bool,
    },
    /// `mu host release`
    HostRelease {
        /// Which host.
        name: HostName,
    },
    /// `mu effect list`
    EffectList {
        /// Cut nothing.
        full: bool,
    },
    /// `mu effect show`
    EffectShow {
        /// Its key.
        key: String,
        /// Cut nothing.
        full: bool,
    },
    /// `mu effect resolve`
    EffectResolve {
        /// Its key.
        key: String,
        /// What the operator says of it, and why; the rules decide when not given.
        word: Option<(Verdict, String)>,
    },
    /// `mu host list`
    HostList {
        /// Cut nothing.
        full: bool,
    },
    /// `mu host show`
    HostShow {
        /// Which host.
        name: HostName,
        /// Cut nothing.
        full: bool,
    },
    /// `mu host rm`
    HostRm {
        /// Which host.
        name: HostName,
    },
    /// `mu host check`
    HostCheck {
        /// Which hosts, each once; at least one.
        names: Vec<HostName>,
        /// The harness to look for.
        agent: Option<Name>,
        /// Cut nothing.
        full: bool,
    },
    /// `mu host exec`
    HostExec {
        /// Which host.
        name: HostName,
        /// A script for a POSIX shell.
        script: String,
        /// Where to run it.
        cwd: RemotePath,
        /// After how long it is cut off.
        timeout: Duration,
    },
    /// `mu host fetch`
    HostFetch {
        /// Which host.
        name: HostName,
        /// The work tree there whose HEAD is wanted.
        remote: RemotePath,
        /// The repository here, or a directory in its work tree; the working directory when not given.
        repo: Option<String>,
        /// After how long it is cut off.
        timeout: Duration,
    },
    /// `mu db query`, `mu sql`
    DbQuery {
        /// One statement.
        sql: String,
        /// May it write?
        write: bool,
        /// Cut nothing.
        full: bool,
    },
    /// `mu completions`
    Completions {
        /// For which shell.
        shell: Shell,
    },
}

/// The shells that completions exist for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Shell {
    /// bash
    Bash,
    /// zsh
    Zsh,
    /// fish
    Fish,
}

#[derive(Parser)]
#[command(
    name = "mu",
    bin_name = "mu",
    version,
    no_binary_name = true,
    disable_help_subcommand = true,
    about = "Coordinates coding agents in terminal panes, here or on hosts plugins reach",
    after_help = "Example:\n  mu plugin add box -- /usr/local/bin/mu-plugin-box --region eu\n\n\
        Exit codes: 0 done, 1 unknown or internal, 2 usage, 3 not found, 4 refused,\n\
        5 plugin or database failed, 130 interrupted."
)]
struct Cli {
    /// Print one JSON document {ok,data,next}
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Register, inspect and check plugins
    #[command(after_help = "Example:\n  mu plugin list")]
    Plugin {
        #[command(subcommand)]
        verb: PluginVerb,
    },
    /// Add, acquire and check hosts, run scripts and fetch from there
    #[command(after_help = "Example:\n  mu host list")]
    Host {
        #[command(subcommand)]
        verb: host::Verb,
    },
    /// See and resolve effects that have no definite answer
    #[command(after_help = "Example:\n  mu effect list")]
    Effect {
        #[command(subcommand)]
        verb: effect::Verb,
    },
    /// Look into mu's database
    #[command(after_help = "Example:\n  mu db query 'SELECT name, instance FROM plugins'")]
    Db {
        #[command(subcommand)]
        verb: DbVerb,
    },
    /// Run one SQL statement: the same as `mu db query`
    #[command(after_help = "Example:\n  mu sql 'SELECT count(*) FROM plugins'")]
    Sql(Query),
    /// Print a completion script for a shell
    #[command(after_help = "Example:\n  mu completions bash > ~/.local/share/bash-completion/completions/mu")]
    Completions {
        /// Which shell
        shell: Shell,
    },
}

#[derive(Subcommand)]
enum PluginVerb {
    /// Register a plugin, or renew what it declares
    #[command(
        long_about = "Register a plugin: check its file, start it once, store what it declares.\n\
            Everything after -- is its command line, verbatim. The same command again\n\
            renews the declaration.",
        after_help = "Example:\n  mu plugin add box -- /usr/local/bin/mu-plugin-box --region eu"
    )]
    Add {
        /// The plugin's name: a lower-case letter, then up to 31 of a-z 0-9 _ -
        name: String,
        /// The absolute path of its executable mu-plugin-NAME, and arguments
        #[arg(last = true, required = true, num_args = 1.., value_name = "ARGV")]
        argv: Vec<OsString>,
    },
    /// List the registered plugins
    #[command(after_help = "Example:\n  mu plugin list --json")]
    List(Full),
    /// Show what one plugin is registered with and what it declared
    #[command(after_help = "Example:\n  mu plugin show box")]
    Show {
        /// The plugin's name
        name: String,
        #[command(flatten)]
        full: Full,
    },
    /// Remove a plugin that nothing names any more
    #[command(after_help = "Example:\n  mu plugin rm box")]
    Rm {
        /// The plugin's name
        name: String,
    },
    /// Print the published schema of the plugin protocol, byte for byte
    #[command(after_help = "Example:\n  mu plugin schema > plugin-protocol-v1.json")]
    Schema {
        /// Print only sha256: and the hex digest of those bytes
        #[arg(long)]
        digest: bool,
    },
    /// Start plugins, hold them to what they declared, and stop them
    #[command(after_help = "Example:\n  mu plugin check box cloud")]
    Check {
        /// The plugins' names; all plugins when none is given
        names: Vec<String>,
        #[command(flatten)]
        full: Full,
    },
}

#[derive(Subcommand)]
enum DbVerb {
    /// Run one SQL statement
    #[command(
        long_about = "Run one SQL statement on mu's database. It may only read, unless --write is\n\
            given: no verb then checks what it changes.",
        after_help = "Example:\n  mu db query 'SELECT name, instance FROM plugins'"
    )]
    Query(Query),
}

#[derive(Args)]
struct Query {
    /// One statement
    sql: String,
    /// Let the statement write, in a transaction of its own
    #[arg(long)]
    write: bool,
    #[command(flatten)]
    full: Full,
}

#[derive(Args)]
struct Full {
    /// Cut nothing, whatever the size
    #[arg(long)]
    full: bool,
}

/// The argument tree.
pub(crate) fn tree() -> clap::Command {
    Cli::command()
}

thread_local! {
    /// Building the tree costs more than ten times a parse: once a thread.
    static TREE: RefCell<clap::Command> = RefCell::new(tree());
}

/// Reads a command line (`argv[0]` included, ignored). Returns whether JSON is wanted, which holds for failures too, and
/// the request.
pub fn parse(argv: &[OsString]) -> (bool, Result<Request, Failure>) {
    let words = argv.get(1..).unwrap_or_default();
    let before_dashes = words.iter().take_while(|word| *word != "--");
    let json = before_dashes.clone().any(|word| word == "--json");
    let parsed = TREE.with_borrow_mut(|tree| {
        let mut matches = tree.try_get_matches_from_mut(words)?;
        Cli::from_arg_matches_mut(&mut matches)
    });
    let request = match parsed {
        Ok(cli) => request(cli.verb),
        Err(error) => not_parsed(&error, words),
    };
    (json, request)
}

fn request(verb: Verb) -> Result<Request, Failure> {
    let query = |Query { sql, write, full }: Query| Request::DbQuery { sql, write, full: full.full };
    Ok(match verb {
        Verb::Plugin { verb } => match verb {
            PluginVerb::Add { name, argv } => Request::PluginAdd { name: name.parse()?, argv: utf8(argv)? },
            PluginVerb::List(Full { full }) => Request::PluginList { full },
            PluginVerb::Show { name, full } => Request::PluginShow { name: name.parse()?, full: full.full },
            PluginVerb::Rm { name } => Request::PluginRm { name: name.parse()? },
            PluginVerb::Schema { digest } => Request::PluginSchema { digest },
            PluginVerb::Check { names, full } => {
                let names = names.iter().map(|name| name.parse()).collect::<Result<_, _>>()?;
                Request::PluginCheck { names, full: full.full }
            }
        },
        Verb::Host { verb } => return verb.request(),
        Verb::Effect { verb } => return verb.request(),
        Verb::Db { verb: DbVerb::Query(args) } | Verb::Sql(args) => query(args),
        Verb::Completions { shell } => Request::Completions { shell },
    })
}

/// What stands behind `--` is stored, shown or sent as text. mu mends nothing: it refuses.
pub(in crate::cli) fn utf8(argv: Vec<OsString>) -> Result<Vec<String>, Failure> {
    let text = |(at, word): (usize, OsString)| {
        word.into_string().map_err(|word| {
            let shown = word.to_string_lossy();
            let what = format!("argument {} after `--` is not UTF-8: {shown}; rename what it names", at + 1);
            Failure::new(Kind::BadArgument, what)
        })
    };
    argv.into_iter().enumerate().map(text).collect()
}

/// Help and version are results; everything else is a usage failure of one line.
fn not_parsed(error: &clap::Error, words: &[OsString]) -> Result<Request, Failure> {
    let text = error.render().to_string();
    let (key, text) = match error.kind() {
        ErrorKind::DisplayHelp => ("help", text),
        ErrorKind::DisplayVersion => ("version", text),
        _ => return Err(usage(error, &text, words)),
    };
    let row = Row::new([(key, json!(text.trim_end()))]);
    Ok(Request::Print(Box::new(Output::verbatim(row, text))))
}

fn usage(error: &clap::Error, text: &str, words: &[OsString]) -> Failure {
    let (verb, known) = verb_of(words);
    let verb_words = verb.iter().map(String::as_str);
    let help = command(["mu"].into_iter().chain(verb_words).chain(["--help"]));
    let dashes = words.iter().any(|word| word == "--");
    let dashes_missing = !dashes && !is_unknown_flag(error) && error.kind() != ErrorKind::ValueValidation;
    let message = match error.kind() {
        _ if dashes_missing && verb == ["plugin", "add"] => {
            "`--` is missing: everything behind it is the plugin's command line, verbatim; example: \
             mu plugin add box -- /usr/local/bin/mu-plugin-box"
                .into()
        }
        _ if dashes_missing && verb == ["host", "exec"] => {
            "`--` is missing: everything behind it is the script; example: mu host exec dock -- 'git status'"
                .into()
        }
        ErrorKind::MissingSubcommand | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            format!("a verb is missing: one of {}", known.join(", "))
        }
        _ => one_line(text),
    };
    Failure::new(Kind::Usage, message).or_else([help])
}

fn is_unknown_flag(error: &clap::Error) -> bool {
    error.kind() == ErrorKind::UnknownArgument
        && matches!(error.get(ContextKind::InvalidArg), Some(ContextValue::String(word)) if word.starts_with('-'))
}

/// The leading words of a command line that name a verb, and the words that may follow them.
fn verb_of(words: &[OsString]) -> (Vec<String>, Vec<String>) {
    let name = |verb: &clap::Command| verb.get_name().to_owned();
    TREE.with_borrow(|tree| {
        let mut at = tree;
        let mut verb = Vec::new();
        let is_flag = |word: &OsString| word.as_encoded_bytes().starts_with(b"-");
        for word in words.iter().take_while(|word| *word != "--").filter(|word| !is_flag(word)) {
            let Some(next) = at.get_subcommands().find(|verb| OsStr::new(verb.get_name()) == word) else {
                break;
            };
            verb.push(name(next));
            at = next;
        }
        (verb, at.get_subcommands().map(name).collect())
    })
}

/// clap writes a paragraph; what counts of it is the first one and the tips.
fn one_line(text: &str) -> String {
    let text = text.strip_prefix("error: ").unwrap_or(text);
    let mut paragraphs = text.split("\n\n");
    let words = |paragraph: &str| paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut line = words(paragraphs.next().unwrap_or_default());
    for tip in paragraphs.filter_map(|paragraph| paragraph.trim_start().strip_prefix("tip: ")) {
        line += "; ";
        line += &words(tip);
    }
    line
}

#[cfg(test)]
mod tests;
