//! The command line of the simulator: `cargo sim`.
//!
//! In: the words of the command line, and the folder of the workspace, in which `scenarios/` lies. Out: text or one JSON
//! document on standard output, progress on standard error, and the exit code: 0 all held, 1 something did not, 2 the
//! command line or a file is wrong, 3 the simulator itself could not do its work.
//!
//! - `args`: the words; `files`: names to scenarios; `item`: one thing that is played, and what came of it
//! - `worker`: items played in processes of their own, so that neither a crash nor a hang of one takes the others along
//! - `campaign`: many items, their sum (`tally`) and the progress that is shown meanwhile (`progress`)
//! - `sweep`: scenarios that are ended at each of their points
//! - `kills`: real runs of mu that are killed at random moments
//! - `marks`: what random seeds must reach
//! - `rules`: who cites which rule; `score`: whether planted bugs are caught
//! - `shrink`: the smallest scenario that fails like another
//! - `real`: scenarios on real processes; `determinism`: every item twice
//! - `replay`: one item, to be read; `page`: the same as an HTML page, `new_file`: where that goes; `keep`: failures as files

// This is not mu: it reads its own command line, starts its own processes and tells how long they took.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

mod args;
mod campaign;
mod determinism;
mod files;
mod item;
mod keep;
mod kills;
mod marks;
mod new_file;
mod page;
mod progress;
mod real;
mod replay;
mod rules;
mod score;
mod shrink;
mod sweep;
mod tally;
mod worker;

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;

use serde_json::json;

use args::{Request, Verb};

/// Everything held.
const HELD: u8 = 0;
/// Something did not hold.
const FOUND: u8 = 1;

/// Why a command was not carried out.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The command line or a file is wrong: one line that says where.
    #[error("{0}")]
    Input(String),
    /// The simulator could not do its work.
    #[error("{0}")]
    Broken(String),
}

impl Failure {
    fn exit(&self) -> u8 {
        match self {
            Failure::Input(_) => 2,
            Failure::Broken(_) => 3,
        }
    }

    fn broken(what: &str, error: impl std::fmt::Display) -> Failure {
        Failure::Broken(format!("{what}: {error}"))
    }
}

/// Where the commands work.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// The workspace.
    pub(crate) root: PathBuf,
    /// The folder of the scenarios.
    pub(crate) scenarios: PathBuf,
}

/// Runs the command line `words` (without the program's own name) and answers with the exit code. `root` is the folder
/// of the workspace.
pub fn main(root: &Path, words: impl Iterator<Item = OsString>) -> u8 {
    let words: Vec<OsString> = words.collect();
    let json = words.iter().any(|word| word == "--json");
    let done = match args::parse(&words) {
        Ok(Request::Print(text)) => {
            say(&text);
            Ok(HELD)
        }
        Ok(Request::Do { scenarios, verb }) => {
            let scenarios = scenarios.unwrap_or_else(|| root.join("scenarios"));
            run(&Place { root: root.to_owned(), scenarios }, verb, json)
        }
        Err(failure) => Err(failure),
    };
    let lost = UNSAID.lock().ok().and_then(|mut unsaid| unsaid.take());
    let done = done.and_then(|exit| match lost {
        Some(error) => Err(Failure::broken("cannot write to standard output", error)),
        None => Ok(exit),
    });
    done.unwrap_or_else(|failure| {
        if json {
            say(&format!(
                "{}\n",
                json!({ "ok": false, "error": failure.to_string(), "exit": failure.exit() })
            ));
        }
        tell(&format!("mu-sim: {failure}\n"));
        failure.exit()
    })
}

fn run(place: &Place, verb: Verb, json: bool) -> Result<u8, Failure> {
    match verb {
        Verb::All { seeds, jobs } => {
            let mut items = files::items(place, &[])?;
            items.extend(seeds.items());
            campaign::run(place, &items, jobs, campaign::Style { each: false, json, whole: true })
        }
        Verb::Run { files, real: false, jobs } => campaign::run(
            place,
            &files::items(place, &files)?,
            jobs,
            campaign::Style { each: true, json, whole: false },
        ),
        Verb::Run { files, real: true, jobs } => real::run(place, &files, jobs, json),
        Verb::Seeds { seeds, jobs } => {
            let items: Vec<_> = seeds.items().collect();
            campaign::run(place, &items, jobs, campaign::Style { each: false, json, whole: false })
        }
        Verb::Replay(asked) => replay::run(place, &asked, json),
        Verb::Determinism { seeds, files } => determinism::run(place, &files, seeds, json),
        Verb::Rules(asked) => rules::run(place, &asked, json),
        Verb::Kills { asked, jobs } => kills::run(place, asked, jobs, json),
        Verb::Sweep { asked, jobs } => sweep::run(place, &asked, jobs, json),
        Verb::Shrink(asked) => shrink::run(place, &asked, json),
        Verb::Score { which, seeds, shrink: false, jobs } => score::run(place, &which, seeds, jobs, json),
        Verb::Score { which, seeds, shrink: true, jobs } => score::shrink(place, &which, seeds, jobs, json),
        Verb::Worker => worker::serve(),
        Verb::Events { item } => replay::events(&item),
    }
}

/// The cargo that built this program, to be run in `folder`; silent on standard output, which is for reports.
fn cargo(folder: &Path) -> Command {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.current_dir(folder).stdin(Stdio::null()).stdout(Stdio::null());
    command
}

/// Why standard output did not take everything.
static UNSAID: Mutex<Option<io::Error>> = Mutex::new(None);

/// Prints on standard output. That nobody listens any more is no failure; any other is told at the end.
fn say(text: &str) {
    let mut stdout = io::stdout();
    let said = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
    if let Err(error) = said
        && error.kind() != io::ErrorKind::BrokenPipe
        && let Ok(mut unsaid) = UNSAID.lock()
    {
        unsaid.get_or_insert(error);
    }
}

/// Prints on standard error.
fn tell(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes());
}
