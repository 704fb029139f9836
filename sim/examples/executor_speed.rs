//! How fast the simulated machine is: processor time a poll with pipes and timers, and a whole small run.
//!
//! `cargo run --release -p mu-sim --example executor_speed`

// A measurement needs a place to say what it found.
#![allow(clippy::disallowed_macros)]

use std::path::Path;
use std::time::Duration;

use mu_core::os::{Exec, Exit};
use mu_sim::disk::{Disk, Node};
use mu_sim::kernel::{
    Budget, Command, Fork, Give, Group, Machine, Options, STDERR, STDIN, STDOUT, Spawn, Sys,
};

const LINE: &[u8] = br#"{"jsonrpc":"2.0","id":1,"method":"host.status","params":{"target":{"host":"box"}}}"#;
const ROUND_TRIPS: u32 = 200_000;
const RUNS: u32 = 2_000;

/// Nanoseconds of processor time that this process has had; what else the computer does must not count.
fn cpu_ns() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/schedstat").expect("Linux tells");
    stat.split(' ').next().and_then(|field| field.parse().ok()).expect("the first field is a number")
}

async fn echo(sys: Sys) -> Exit {
    let mut buf = [0; 4096];
    while let count @ 1.. = sys.read(STDIN, &mut buf).await.unwrap_or(0) {
        if sys.write_all(STDOUT, &buf[..count]).await.is_err() {
            break;
        }
    }
    Exit::Status(0)
}

/// A line to a child and back, and a deadline set and dropped, each time; then a timer that fires.
async fn ping(sys: Sys) -> Exit {
    let fds = [(STDIN, Give::Pipe), (STDOUT, Give::Pipe)];
    let child = sys.fork(&Fork { name: "echo", group: Group::Own, fds: &fds }, echo).expect("there is room");
    let [to, from] = child.pipes[..] else { return Exit::Status(1) };
    let mut buf = [0; 4096];
    for _ in 0..ROUND_TRIPS {
        sys.write_all(to, LINE).await.expect("the child reads");
        let deadline = sys.now() + Duration::from_secs(10);
        let read = sys.read_before(from, &mut buf, deadline).await.expect("the child writes");
        assert_eq!(read, Some(LINE.len()));
        sys.sleep(Duration::from_micros(1)).await;
    }
    Exit::Status(0)
}

fn options(recording: bool) -> Options {
    let budget = Budget { steps: u64::MAX, virtual_time: Duration::from_secs(3600) };
    Options { recording, budget, ..Options::new(1) }
}

fn round_trips(recording: bool) {
    let machine = Machine::with(options(recording), Disk::new());
    let started = machine.start_fn(&Command::new(["ping"]), ping).expect("there is room");
    let begin = cpu_ns();
    assert_eq!(machine.run_until_exit(&started), Ok(Exit::Status(0)));
    let took = cpu_ns() - begin;
    println!(
        "{} round trips, {}: {:.0} ns a poll, {:.0} ns a round trip, {} polls, {} events",
        ROUND_TRIPS,
        if recording { "recorded" } else { "chain only" },
        took / machine.polls() as f64,
        took / f64::from(ROUND_TRIPS),
        machine.polls(),
        machine.event_count(),
    );
}

/// Starts two programs of the disk, exchanges ten lines with each, stops them and reaps them.
async fn invocation(sys: Sys) -> Exit {
    let exec = Exec { argv: vec!["/opt/plugin".into()], env: Vec::new() };
    let fds = [(STDIN, Give::Pipe), (STDOUT, Give::Pipe), (STDERR, Give::Pipe)];
    let spawn = Spawn { exec: &exec, group: Group::Own, fds: &fds, cwd: None, defaults: &[] };
    let mut buf = [0; 4096];
    for _ in 0..2 {
        let child = sys.spawn(&spawn).expect("it is on the disk");
        for _ in 0..10 {
            sys.write_all(child.pipes[0], LINE).await.expect("the plugin reads");
            sys.read(child.pipes[1], &mut buf).await.expect("the plugin writes");
        }
        for fd in child.pipes {
            sys.close(fd).expect("it is open");
        }
        sys.wait_for(child.pid).await.expect("it ends");
    }
    Exit::Status(0)
}

fn whole_runs() {
    let begin = cpu_ns();
    for seed in 0..RUNS {
        let machine = Machine::new(u64::from(seed));
        let plugin = Node::Program { name: "plugin".into(), busy: false, interpreter_missing: false };
        machine.disk().put(Path::new("/opt/plugin"), 1000, 0o755, plugin);
        machine.install("plugin", echo);
        for _ in 0..3 {
            let started = machine.start_fn(&Command::new(["mu"]), invocation).expect("there is room");
            assert_eq!(machine.run_until_exit(&started), Ok(Exit::Status(0)));
        }
    }
    let took = cpu_ns() - begin;
    println!(
        "{RUNS} runs of 3 invocations with 2 plugins and 20 round trips each, recorded, no database: {:.1} us a run",
        took / 1e3 / f64::from(RUNS)
    );
}

fn main() {
    round_trips(false);
    round_trips(true);
    whole_runs();
}
