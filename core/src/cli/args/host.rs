//! The verbs of `mu host`: their arguments, and the request that they make.

use std::ffi::OsString;
use std::time::Duration;

use clap::builder::RangedI64ValueParser;
use clap::{Args, Subcommand, value_parser};
use mu_protocol::messages::values::RemotePath;

use super::{Full, Request, utf8};
use crate::cli::failure::{Failure, Kind};
use crate::deadlines::LONGEST;
use crate::link::shell;
use crate::store::hosts::Params;
use crate::verbs::host_add::Setup;
use crate::verbs::name::{self, HostName};

/// The most calls at once that a host may be given.
const MOST_SESSIONS: i64 = 1000;

#[derive(Subcommand)]
pub(super) enum Verb {
    /// Register a host that a plugin reaches
    #[command(
        long_about = "Register a host whose link is a plugin. The plugin is not started: what it\n\
            declared when it was added decides. The same command again changes nothing.",
        after_help = "Example:\n  mu host add dock --plugin box --fetch 'git -C {local} fetch {host}:{remote}'"
    )]
    Add(Add),
    /// Have a plugin make a host
    #[command(
        long_about = "Have a plugin make a host. Whatever fails or dies meanwhile, the same command\n\
            again finds out what became of it and makes no second one.",
        after_help = "Example:\n  mu host acquire box --provider cloud --param size=large --param region=eu"
    )]
    Acquire {
        /// The host's name: a lower-case letter, then up to 31 of a-z 0-9 _ -
        name: String,
        /// The plugin that makes it
        #[arg(long, value_name = "PLUGIN")]
        provider: String,
        /// What the plugin is to heed; may be given several times
        #[arg(long = "param", value_name = "KEY=VALUE", allow_hyphen_values = true)]
        params: Vec<String>,
    },
    /// Ask the plugin that made a host how it is, and keep what it says
    #[command(after_help = "Example:\n  mu host status box")]
    Status {
        /// The host's name
        name: String,
        #[command(flatten)]
        full: Full,
    },
    /// Have the plugin that made a host take it away
    #[command(after_help = "Example:\n  mu host release box")]
    Release {
        /// The host's name
        name: String,
    },
    /// List the hosts, those that were added and those that were acquired
    #[command(after_help = "Example:\n  mu host list --json")]
    List(Full),
    /// Show what one host is registered with, or what is recorded of it
    #[command(after_help = "Example:\n  mu host show dock")]
    Show {
        /// The host's name
        name: String,
        #[command(flatten)]
        full: Full,
    },
    /// Remove a host that was added and nothing uses, or one that is lost
    #[command(after_help = "Example:\n  mu host rm dock")]
    Rm {
        /// The host's name
        name: String,
    },
    /// Check hosts side by side, step by step
    #[command(
        long_about = "Check hosts side by side: template, reach, agent, with the steps that their\n\
            plugins add. A host that a person has to look after gets no further step.",
        after_help = "Example:\n  mu host check dock --agent claude"
    )]
    Check {
        /// The hosts' names
        #[arg(required = true)]
        names: Vec<String>,
        /// The harness to look for on them
        #[arg(long, value_name = "NAME")]
        agent: Option<String>,
        #[command(flatten)]
        full: Full,
    },
    /// Run a script on a host and pass on what it writes and its status
    #[command(
        long_about = "Run a POSIX shell script on a host. Its output and exit status become mu's own.\n\
            One word behind -- is the script, verbatim; several are quoted and joined.",
        after_help = "Example:\n  mu host exec dock --cwd src --timeout 2m -- 'make && make test'"
    )]
    Exec {
        /// The host's name
        name: String,
        /// Where to run it on the host; `.` is where a login starts
        #[arg(long, value_name = "DIR", default_value = ".", value_parser = remote_path)]
        cwd: RemotePath,
        #[command(flatten)]
        timeout: Timeout,
        /// The script, or the words of a command
        #[arg(last = true, required = true, num_args = 1.., value_name = "SCRIPT")]
        script: Vec<OsString>,
    },
    /// Fetch the HEAD of a work tree on a host into a repository here
    #[command(
        long_about = "Fetch the HEAD of a work tree on a host: FETCH_HEAD of the repository here\n\
            names it afterwards. The link does it, or else the host's --fetch template.",
        after_help = "Example:\n  mu host fetch dock src/app --repo ~/src/app"
    )]
    Fetch {
        /// The host's name
        name: String,
        /// The work tree on the host
        #[arg(value_name = "REMOTE-DIR", value_parser = remote_path)]
        remote: RemotePath,
        /// The repository, or a directory in it [default: working directory]
        #[arg(long, value_name = "DIR", value_parser = filled)]
        repo: Option<String>,
        #[command(flatten)]
        timeout: Timeout,
    },
}

#[derive(Args)]
pub(super) struct Add {
    /// The host's name: a lower-case letter, then up to 31 of a-z 0-9 _ -
    name: String,
    /// The plugin that is its link
    #[arg(long, value_name = "NAME")]
    plugin: String,
    /// Shell command that fetches, with {local}, {remote} and {host} in it
    #[arg(long, value_name = "TEMPLATE", value_parser = filled)]
    fetch: Option<String>,
    /// The repository on it that worktrees are made from
    #[arg(long, value_name = "PATH", value_parser = filled)]
    repo: Option<String>,
    /// How many calls it takes at once
    #[arg(long, value_name = "N", default_value_t = 1, allow_hyphen_values = true, value_parser = sessions())]
    max_sessions: u32,
    /// Of hosts without a plugin, as is --exec
    #[arg(long, value_name = "COMMAND", hide = true, conflicts_with = "plugin")]
    shell: Option<OsString>,
    /// Of hosts without a plugin, as is --shell
    #[arg(long, value_name = "COMMAND", hide = true, conflicts_with = "plugin")]
    exec: Option<OsString>,
}

#[derive(Args)]
pub(super) struct Timeout {
    /// After how long it is cut off: a number and ms, s, m or h
    #[arg(long, value_name = "SPAN", default_value = "20s", allow_hyphen_values = true, value_parser = span)]
    timeout: Duration,
}

impl Verb {
    /// What the words ask for.
    pub(super) fn request(self) -> Result<Request, Failure> {
        Ok(match self {
            Verb::Add(add) => {
                let setup = Setup {
                    plugin: add.plugin.parse()?,
                    fetch_template: add.fetch,
                    repo: add.repo,
                    max_sessions: add.max_sessions,
                };
                Request::HostAdd { name: add.name.parse()?, setup }
            }
            Verb::Acquire { name, provider, params } => Request::HostAcquire {
                name: name.parse()?,
                provider: provider.parse()?,
                params: host_params(params)?,
            },
            Verb::Status { name, full } => Request::HostStatus { name: name.parse()?, full: full.full },
            Verb::Release { name } => Request::HostRelease { name: name.parse()? },
            Verb::List(Full { full }) => Request::HostList { full },
            Verb::Show { name, full } => Request::HostShow { name: name.parse()?, full: full.full },
            Verb::Rm { name } => Request::HostRm { name: name.parse()? },
            Verb::Check { names, agent, full } => {
                let mut hosts: Vec<HostName> = Vec::new();
                for name in names {
                    let name = name.parse()?;
                    if !hosts.contains(&name) {
                        hosts.push(name);
                    }
                }
                let agent = agent.map(|agent| name::parse("agent", &agent)).transpose()?;
                Request::HostCheck { names: hosts, agent, full: full.full }
            }
            Verb::Exec { name, cwd, timeout, script } => {
                let script = match utf8(script)?.as_slice() {
                    [script] => script.clone(),
                    words => shell::command(words),
                };
                Request::HostExec { name: name.parse()?, script, cwd, timeout: timeout.timeout }
            }
            Verb::Fetch { name, remote, repo, timeout } => {
                Request::HostFetch { name: name.parse()?, remote, repo, timeout: timeout.timeout }
            }
        })
    }
}

/// `--param` by `--param`. Each key once, neither empty nor with a NUL.
fn host_params(words: Vec<String>) -> Result<Params, Failure> {
    let mut params = Params::new();
    for word in words {
        let refuse = |what: &str| {
            let what = format!("--param {word:?} {what}; example: --param size=large");
            Err(Failure::new(Kind::BadArgument, what).or_else(["mu host acquire --help"]))
        };
        let Some((key, value)) = word.split_once('=') else { return refuse("has no `=`") };
        if key.is_empty() {
            return refuse("has no key before its `=`");
        }
        if word.contains('\0') {
            return refuse("holds a NUL character");
        }
        if params.insert(key.to_owned(), value.to_owned()).is_some() {
            return refuse("comes after another one with the same key");
        }
    }
    Ok(params)
}

fn sessions() -> RangedI64ValueParser<u32> {
    value_parser!(u32).range(1..=MOST_SESSIONS)
}

fn remote_path(word: &str) -> Result<RemotePath, &'static str> {
    RemotePath::new(word).map_err(|_| "a path on a host is not empty")
}

fn filled(word: &str) -> Result<String, &'static str> {
    if word.is_empty() { Err("it is empty") } else { Ok(word.to_owned()) }
}

/// A span of time: `500ms`, `20s`, `5m`, `2h`.
fn span(word: &str) -> Result<Duration, &'static str> {
    const RULE: &str = "a span is a number from 1 on and ms, s, m or h, and at most a day; example: 20s";
    let digits = word.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = word.split_at(digits);
    let number: u64 = number.parse().map_err(|_| RULE)?;
    let unit_ms = match unit {
        "ms" => 1,
        "s" => 1000,
        "m" => 60 * 1000,
        "h" => 60 * 60 * 1000,
        _ => return Err(RULE),
    };
    let span = Duration::from_millis(number.checked_mul(unit_ms).ok_or(RULE)?);
    if span.is_zero() || span > LONGEST { Err(RULE) } else { Ok(span) }
}
