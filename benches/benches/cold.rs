//! `mu plugin list` from the start of the process to its end, with ten plugins in the database, beside `sqlite3` with the
//! select that reads the same, and beside a program that does nothing. `cargo bench -p mu-benches --bench cold`.
//!
//! mu is built as it is released. Wall time counts; beside it stands the time of the processes on a processor. Everything
//! that is read lies in memory. The bar is twice `sqlite3`.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::disallowed_macros,
    reason = "a stopwatch, and processes of the real machine"
)]

use std::process::{Command, Stdio};
use std::time::Instant;

use mu_benches::clock::{children_time, rounds};
use mu_benches::rows::Rows;
use mu_benches::stage::Stage;
use mu_benches::{child, executables};

const ROUNDS: usize = 201;
const SELECT: &str = "SELECT name, version, instance, seams, channel, argv FROM plugins ORDER BY name";

/// Milliseconds for one run: by the wall clock, and on a processor.
fn run(mut command: Command) -> [f64; 2] {
    let (wall, processor) = (Instant::now(), children_time());
    let status = command.status().expect("it can be executed");
    let taken = [wall.elapsed(), children_time() - processor].map(|time| time.as_secs_f64() * 1000.0);
    assert!(status.success(), "{command:?}: {status}");
    taken
}

fn main() {
    if child::run_if_asked() {
        return;
    }
    let mu = executables::mu();
    let stage = Stage::idle();
    stage.register(&mu);
    Rows::open(&stage.database()).add_plugins(9);
    let quiet = |program: &str| {
        let mut command = Command::new(program);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command
    };
    let sqlite = || {
        let mut command = quiet("sqlite3");
        command.arg(stage.database()).arg(SELECT);
        command
    };
    let read = sqlite().stdout(Stdio::piped()).output().expect("the command `sqlite3` is installed").stdout;
    assert_eq!(String::from_utf8_lossy(&read).lines().count(), 10, "ten plugins");
    let names = ["true", "sqlite3", "mu plugin list", "mu --version"];
    let taken = rounds(ROUNDS, names.len(), |which| {
        run(match which {
            0 => quiet("/bin/true"),
            1 => sqlite(),
            2 => stage.command(&mu, &["plugin", "list"]),
            _ => stage.command(&mu, &["--version"]),
        })
    });
    println!("{:<16} {:>8} {:>10} {:>14} {:>10}", "", "ms", "/ sqlite3", "processor ms", "/ sqlite3");
    for (name, [wall, processor]) in names.iter().zip(&taken) {
        let [sqlite_wall, sqlite_processor] = taken[1];
        println!(
            "{name:<16} {wall:>8.2} {:>10.2} {processor:>14.2} {:>10.2}",
            wall / sqlite_wall,
            processor / sqlite_processor
        );
    }
}
