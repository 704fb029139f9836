//! The words of the command line.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::{Args, Parser, Subcommand};

use super::item::Item;
use super::rules::Asked;
use super::score::Which;
use super::{Failure, kills, replay, shrink, sweep};
use crate::explore::sweep::Sort;

/// The largest seed: a scenario's seed is a TOML integer.
pub(crate) const LAST_SEED: u64 = i64::MAX as u64;
/// Scenarios that are played on real processes at once: they mostly sleep.
const REAL_JOBS: usize = 8;
/// Worlds in which mu is killed at once.
const KILL_JOBS: usize = 4;

/// What a command line asks for.
pub(crate) enum Request {
    /// Help or the version.
    Print(String),
    /// Something to do.
    Do {
        /// The folder given with `--scenarios`.
        scenarios: Option<PathBuf>,
        /// What.
        verb: Verb,
    },
}

/// The verbs, read and complete.
pub(crate) enum Verb {
    All { seeds: Seeds, jobs: usize },
    Run { files: Vec<PathBuf>, real: bool, jobs: usize },
    Seeds { seeds: Seeds, jobs: usize },
    Replay(replay::Asked),
    Shrink(shrink::Asked),
    Determinism { seeds: Seeds, files: Vec<PathBuf> },
    Rules(Asked),
    Score { which: Which, seeds: u64, shrink: bool, jobs: usize },
    Kills { asked: kills::Asked, jobs: usize },
    Sweep { asked: sweep::Asked, jobs: usize },
    Worker,
    Events { item: Item },
}

/// Consecutive seeds.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Seeds {
    /// How many random seeds
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..))]
    count: u64,
    /// The first of them
    #[arg(long, value_name = "SEED", default_value_t = 0, value_parser = seed)]
    from: u64,
    /// Take one seed in so many; with 16 all of them open each database afresh
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    every: u16,
}

impl Seeds {
    pub(crate) fn items(self) -> impl Iterator<Item = Item> {
        let all = (self.from..=LAST_SEED).step_by(self.every.into());
        all.take(usize::try_from(self.count).unwrap_or(usize::MAX)).map(Item::Seed)
    }
}

#[derive(Parser)]
#[command(
    name = "mu-sim",
    bin_name = "cargo sim",
    version,
    no_binary_name = true,
    disable_help_subcommand = true,
    about = "Plays mu against faulty plugins, in a simulated machine or on real processes",
    long_about = "Plays mu against faulty plugins, in a simulated machine or on real processes.\n\
        Without a verb: every scenario file, then 1,000 random seeds.",
    after_help = "Examples:\n  cargo sim\n  cargo sim run scenarios/a-log-line-on-stdout.toml\n  cargo sim replay 4711\n\n\
        Exit codes: 0 all held, 1 something did not, 2 a wrong command line or file,\n\
        3 the simulator could not do its work."
)]
struct Cli {
    /// Print one JSON document on standard output
    #[arg(long, global = true)]
    json: bool,
    /// The folder of the scenario files, instead of the workspace's
    #[arg(long, global = true, value_name = "DIR")]
    scenarios: Option<PathBuf>,
    /// How many processes, or scenarios on real processes at once
    #[arg(long, global = true, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
    #[command(subcommand)]
    verb: Option<Word>,
}

#[derive(Subcommand)]
enum Word {
    /// Play scenario files
    #[command(
        after_help = "Examples:\n  cargo sim run\n  cargo sim run scenarios/a-log-line-on-stdout.toml\n  \
            cargo sim run --real"
    )]
    Run {
        /// Use the real mu and real fake plugins, which are built first
        #[arg(long)]
        real: bool,
        /// Which; all of the folder when none is given
        files: Vec<PathBuf>,
    },
    /// Play random seeds
    #[command(after_help = "Example:\n  cargo sim seeds --count 100000 --from 1000")]
    Seeds(Seeds),
    /// Play one seed or file and print all of it: what was drawn, the transcript, the hash chain
    #[command(after_help = "Examples:\n  cargo sim replay 4711\n  cargo sim replay 4711 --html run.html\n  \
            cargo sim replay 4711 --toml > scenarios/found.toml\n\n\
            The page needs no other file: what did not hold and the rule, and each step as a sequence diagram\n\
            with mu's database at every moment at which it changed.")]
    Replay {
        /// A seed, or a scenario file
        #[arg(value_name = "SEED|FILE")]
        what: String,
        /// Print the scenario file that a seed stands for, and play nothing
        #[arg(long, conflicts_with_all = ["html", "mermaid"])]
        toml: bool,
        /// Write the run to this file as one HTML page, instead of printing the transcript
        #[arg(long, value_name = "FILE", conflicts_with = "mermaid")]
        html: Option<PathBuf>,
        /// Print the run as a Mermaid sequence diagram, and nothing else
        #[arg(long)]
        mermaid: bool,
    },
    /// Find the smallest scenario that fails like a seed or a file, and write it as a file with its transcript
    #[command(after_help = "Examples:\n  cargo sim shrink 4711\n  \
            cargo sim shrink 4711 --into found.toml\n\n\
            It leaves out and makes smaller what it can of plugins, steps and faults, as long as the same oracle\n\
            breaks the same rule. A run that holds is not shrunk: exit code 2.")]
    Shrink {
        /// A seed, or a scenario file
        #[arg(value_name = "SEED|FILE")]
        what: String,
        /// The file that is written, instead of one in target/sim
        #[arg(long, value_name = "FILE")]
        into: Option<PathBuf>,
        /// How many smaller scenarios are tried, at most
        #[arg(long, value_name = "N", default_value_t = 3000, value_parser = clap::value_parser!(u32).range(1..))]
        candidates: u32,
    },
    /// Play every file and many seeds in two processes each, and compare their hash chains
    #[command(after_help = "Example:\n  cargo sim determinism --count 200")]
    Determinism {
        #[command(flatten)]
        seeds: Seeds,
        /// Which files; all of the folder when none is given
        files: Vec<PathBuf>,
    },
    /// End scenarios at each of their points in turn, run their verbs again, and see that all comes right
    #[command(after_help = "Examples:\n  cargo sim sweep all\n  \
            cargo sim sweep scenarios/a-log-line-on-stdout.toml --also-plugin --power --disk-errors\n  \
            cargo sim sweep all --power --sample 2000 --by \"$(git rev-parse HEAD)\"\n\n\
            mu is killed at each of its calls and operations on the disk, wherever the world differs from that\n\
            at the point before. What is found is written to target/sim, for `cargo sim replay`.")]
    Sweep {
        /// Scenario files; `all` is all of the folder
        #[arg(value_name = "FILE|all", required = true)]
        files: Vec<PathBuf>,
        /// Kill the plugins at each of their acts too
        #[arg(long)]
        also_plugin: bool,
        /// Cut the power of mu's machine at each point too
        #[arg(long)]
        power: bool,
        /// Have each operation on the disk fail too, once and from there on
        #[arg(long)]
        disk_errors: bool,
        /// So many points, chosen by a text
        #[arg(long, value_name = "N", requires = "by", value_parser = clap::value_parser!(u32).range(1..))]
        sample: Option<u32>,
        /// The text that chooses: the same ones for the same text
        #[arg(long, value_name = "TEXT", requires = "sample")]
        by: Option<String>,
    },
    /// Kill the real mu at random moments, run it again, and compare its hosts with the backend's ledger
    #[command(after_help = "Example:\n  cargo sim kills --count 1000")]
    Kills {
        /// How many runs of mu are killed
        #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..))]
        count: u64,
        /// The seed of what is drawn
        #[arg(long, value_name = "SEED", default_value_t = 0, value_parser = seed)]
        seed: u64,
    },
    /// Tell which scenarios, tests and benchmarks cite which rule
    #[command(
        after_help = "Examples:\n  cargo sim rules\n  cargo sim rules PRC-07 LOAD\n  cargo sim rules --uncovered\n\n\
            It fails when something cites a rule that does not exist, and when nothing cites a rule that\n\
            sim/finished-rules.toml calls finished."
    )]
    Rules {
        /// Rules and groups to list with who cites them; a table by group when none is given
        #[arg(value_name = "RULE|GROUP")]
        words: Vec<String>,
        /// List only what nothing cites
        #[arg(long)]
        uncovered: bool,
    },
    /// Plant bugs in a copy of the tree, one at a time, and see whether a scenario or a seed catches each
    #[command(after_help = "Examples:\n  cargo sim score\n  cargo sim score 3 17\n  \
            cargo sim score 22 --shrink\n  \
            cargo sim score --pick 5 --by \"$(git rev-parse HEAD)\"\n\n\
            The bugs are in sim/planted.toml; the copy is kept in target/score, for the next time.")]
    Score {
        /// The numbers of the bugs; all when none is given
        #[arg(value_name = "N", conflicts_with = "pick")]
        numbers: Vec<u32>,
        /// So many of them, chosen by a text
        #[arg(long, value_name = "N", requires = "by", value_parser = clap::value_parser!(u16).range(1..))]
        pick: Option<u16>,
        /// The text that chooses: the same ones for the same text
        #[arg(long, value_name = "TEXT", requires = "pick")]
        by: Option<String>,
        /// How many random seeds are tried on a bug that no scenario has caught
        #[arg(long, value_name = "N", default_value_t = 2000)]
        seeds: u64,
        /// Shrink the first seed that catches each, instead: to three steps and two faults at most
        #[arg(long)]
        shrink: bool,
    },
    /// Play the items that come on standard input
    #[command(hide = true)]
    Worker,
    /// Print every event of one item
    #[command(hide = true)]
    Events {
        #[arg(allow_hyphen_values = true)]
        item: String,
    },
}

fn seed(word: &str) -> Result<u64, String> {
    match word.parse() {
        Ok(seed) if seed <= LAST_SEED => Ok(seed),
        _ => Err(format!("a seed is a whole number from 0 to {LAST_SEED}")),
    }
}

/// Whether a word is meant as a seed, and the seed.
pub(crate) fn as_seed(word: &str) -> Option<Result<u64, Failure>> {
    let digits = word.strip_prefix(['-', '+']).unwrap_or(word);
    let numeric = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    numeric.then(|| seed(word).map_err(|reason| Failure::Input(format!("`{word}`: {reason}"))))
}

/// Reads the words.
pub(crate) fn parse(words: &[OsString]) -> Result<Request, Failure> {
    let cli = match Cli::try_parse_from(words) {
        Ok(cli) => cli,
        Err(error) if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) => {
            return Ok(Request::Print(error.render().to_string()));
        }
        Err(error) => return Err(Failure::Input(one_line(&error.render().to_string()))),
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let jobs = cli.jobs.map(usize::from);
    let everything = Seeds { count: 1000, from: 0, every: 1 };
    let verb = match cli.verb {
        None => Verb::All { seeds: everything, jobs: jobs.unwrap_or(cores) },
        Some(Word::Run { real, files }) => {
            Verb::Run { files, real, jobs: jobs.unwrap_or(if real { REAL_JOBS } else { cores }) }
        }
        Some(Word::Seeds(seeds)) => Verb::Seeds { seeds, jobs: jobs.unwrap_or(cores) },
        Some(Word::Replay { mermaid: true, .. }) if cli.json => {
            return Err(Failure::Input("`--mermaid` cannot be used with `--json`".to_owned()));
        }
        Some(Word::Replay { what, toml, html, mermaid }) => {
            Verb::Replay(replay::Asked { what, toml, html, mermaid })
        }
        Some(Word::Determinism { seeds, files }) => Verb::Determinism { seeds, files },
        Some(Word::Rules { words, uncovered }) => Verb::Rules(Asked { words, uncovered }),
        Some(Word::Shrink { what, into, candidates }) => {
            Verb::Shrink(shrink::Asked { what, into, candidates: candidates as usize })
        }
        Some(Word::Score { numbers, pick, by, seeds, shrink }) => {
            let which = match (pick, by) {
                (Some(count), Some(text)) => Which::Picked { count: count.into(), text },
                _ if numbers.is_empty() => Which::All,
                _ => Which::Numbers(numbers),
            };
            Verb::Score { which, seeds, shrink, jobs: jobs.unwrap_or(cores) }
        }
        Some(Word::Kills { count, seed }) => {
            Verb::Kills { asked: kills::Asked { count, seed }, jobs: jobs.unwrap_or(KILL_JOBS) }
        }
        Some(Word::Sweep { files, also_plugin, power, disk_errors, sample, by }) => {
            let more = [(Sort::Plugin, also_plugin), (Sort::Power, power), (Sort::DiskErrors, disk_errors)];
            let more = more.into_iter().filter(|(_, asked)| *asked).map(|(sort, _)| sort);
            let sample = sample.zip(by).map(|(count, by)| sweep::Sample { count: count as usize, by });
            let files = if files.iter().any(|file| file.as_os_str() == "all") { Vec::new() } else { files };
            let asked = sweep::Asked { files, sorts: [Sort::Mu].into_iter().chain(more).collect(), sample };
            Verb::Sweep { asked, jobs: jobs.unwrap_or(cores) }
        }
        Some(Word::Worker) => Verb::Worker,
        Some(Word::Events { item }) => {
            let item = Item::read(&item).ok_or_else(|| Failure::Input(format!("`{item}` is no item")))?;
            Verb::Events { item }
        }
    };
    Ok(Request::Do { scenarios: cli.scenarios, verb })
}

/// clap writes a paragraph; what counts of it is the first one and the tips.
fn one_line(text: &str) -> String {
    let text = text.strip_prefix("error: ").unwrap_or(text);
    let words = |paragraph: &str| paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut paragraphs = text.split("\n\n");
    let first = words(paragraphs.next().unwrap_or_default());
    let tips = paragraphs.filter_map(|paragraph| paragraph.trim_start().strip_prefix("tip: "));
    tips.fold(first, |line, tip| format!("{line}; {}", words(tip)))
}
