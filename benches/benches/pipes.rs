//! A small call over real pipes, alone and with 64 in flight: mu's core with a session to a plugin, beside a bare exchange of
//! the same bytes with the same child, and beside rmcp and lsp-server. `cargo bench -p mu-benches --bench pipes`.
//!
//! What is called is `link.exec`, as mu writes it: a line of 166 bytes, and one of 99 back. There are two children: a program
//! that has each answer ready, and the fake plugin of the scenarios. Everybody has a child of its own in each round; what is
//! counted begins after the handshake.
//!
//! - `bare` writes a line and reads one, blocking. `bare, tokio` does so as mu does: without blocking, woken by epoll.
//! - `rmcp` sends the same parameters as a request of a method that it does not know, so that both sides of it carry the same
//!   JSON. It starts without its handshake.
//! - `lsp-server` is made for the other end and has no client; its messages are written to the pipe and read from it by
//!   its own codec, without the threads that a server of it has. Its JSON is the same, and each message has a header.
//!
//! Wall time counts, since most of it is spent in waiting for the other side; beside it stands the time that the thread
//! has spent on a processor. The bar is 1.5 times `bare`.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::disallowed_macros,
    reason = "a stopwatch, and peers that run on the real machine"
)]

use std::cell::Cell;
use std::fs;
use std::io::{BufReader, BufWriter, Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use mu_benches::clock::{rounds, thread_time};
use mu_benches::stage::Stage;
use mu_benches::{child, executables};
use mu_core::invocation::{Invocation, Start};
use mu_protocol::load::Seam;
use mu_protocol::messages::dated::{undated_json, with_deadline};
use mu_protocol::messages::link::{ExecParams, Run};
use mu_protocol::messages::method::Method;
use mu_protocol::messages::target::{HostRef, Target};
use mu_protocol::messages::values::{EpochMillis, Millis, Name, RemotePath};
use mu_protocol::outgoing;
use mu_protocol::schema::SCHEMA_DIGEST;
use mu_sim::fake::{Plan, PluginTable};
use rmcp::model::{ClientRequest, CustomRequest, ServerResult};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe;

const ROUNDS: usize = 21;
/// How many calls a turn has.
const CALLS: usize = 1920;
const BUDGET: Duration = Duration::from_secs(20);
const METHOD: &str = "link.exec";
/// Any time with as many digits.
const DEADLINE: u64 = 1_796_000_000_000;

fn call() -> ExecParams {
    let host = HostRef { name: Name::new("far").expect("a name"), handle: None, instance: None };
    ExecParams {
        target: Target { agent: None, job: None, host },
        script: "uname -s".into(),
        cwd: RemotePath::new(".").expect("a path"),
        timeout_ms: Millis::new(20_000).expect("a span"),
    }
}

fn params() -> String {
    with_deadline(&undated_json(&call()), EpochMillis::new(DEADLINE).expect("a time"))
}

/// The line that mu writes.
fn line() -> Vec<u8> {
    outgoing::request(1000, Method::LinkExec.as_str(), &params()).expect("short enough")
}

/// What one turn has taken.
struct Stopwatch {
    wall: Instant,
    thread: Duration,
}

impl Stopwatch {
    fn start() -> Stopwatch {
        Stopwatch { wall: Instant::now(), thread: thread_time() }
    }

    /// Microseconds a call: by the wall clock, and on a processor.
    fn stop(self) -> [f64; 2] {
        [self.wall.elapsed(), thread_time() - self.thread]
            .map(|time| time.as_nanos() as f64 / 1000.0 / CALLS as f64)
    }
}

/// A plugin's executable, installed, with the word that it needs behind its name.
struct Plugin {
    stage: Stage,
    word: Option<&'static str>,
}

impl Plugin {
    /// The program that has each answer ready.
    fn idle(word: &'static str) -> Plugin {
        Plugin { stage: Stage::idle(), word: Some(word) }
    }

    /// The fake plugin, without a fault.
    fn fake() -> Plugin {
        let stage = Stage::new(&executables::fake_plugin());
        let plan = Plan::new(child::NAME, &PluginTable::default(), &[], SCHEMA_DIGEST).expect("a plan");
        let place = format!("{}.plan.json", stage.plugin().display());
        fs::write(place, plan.to_json()).expect("room for the plan");
        Plugin { stage, word: None }
    }

    fn argv(&self) -> Vec<String> {
        let path = self.stage.plugin().to_str().expect("a path in UTF-8").to_owned();
        [path].into_iter().chain(self.word.map(str::to_owned)).collect()
    }

    /// A process of it, not yet greeted.
    fn spawn(&self) -> Child {
        let argv = self.argv();
        let mut command = Command::new(&argv[0]);
        command.args(&argv[1..]).stdin(Stdio::piped()).stdout(Stdio::piped());
        command.spawn().expect("it can be executed")
    }

    /// A process of it that has declared itself, with its pipes.
    fn greeted(&self) -> (Child, OwnedFd, OwnedFd) {
        let mut process = self.spawn();
        let mut to = process.stdin.take().expect("a pipe");
        let mut from = process.stdout.take().expect("a pipe");
        to.write_all(&outgoing::initialize(1)).expect("it reads");
        read_lines(1, |buf| from.read(buf).expect("it answers"));
        (process, to.into(), from.into())
    }
}

/// Reads until so many lines have come.
fn read_lines(mut lines: usize, mut read: impl FnMut(&mut [u8]) -> usize) {
    let mut buf = [0; 64 << 10];
    while lines > 0 {
        let count = read(&mut buf);
        assert!(count > 0, "the child is gone");
        lines -= memchr::memchr_iter(b'\n', &buf[..count]).count();
    }
}

fn end(mut process: Child) {
    process.wait().expect("it exits with its stdin");
}

fn bare(plugin: &Plugin, flight: usize) -> [f64; 2] {
    let (process, to, from) = plugin.greeted();
    let line = line();
    let watch = Stopwatch::start();
    for _ in 0..CALLS / flight {
        for _ in 0..flight {
            let written = rustix::io::write(&to, &line).expect("it reads");
            assert_eq!(written, line.len(), "a line of this size is taken whole");
        }
        read_lines(flight, |buf| rustix::io::read(&from, buf).expect("it answers"));
    }
    let taken = watch.stop();
    drop(to);
    end(process);
    taken
}

/// Runs `f` on a runtime as mu has it.
fn on_tokio<T>(f: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build();
    runtime.expect("a runtime").block_on(f)
}

/// The child's pipes as tokio has them.
fn pipes(to: OwnedFd, from: OwnedFd) -> (pipe::Sender, pipe::Receiver) {
    for fd in [&to, &from] {
        let flags = fcntl_getfl(fd).expect("flags");
        fcntl_setfl(fd, flags | OFlags::NONBLOCK).expect("it does not block any more");
    }
    (pipe::Sender::from_owned_fd(to).expect("a pipe"), pipe::Receiver::from_owned_fd(from).expect("a pipe"))
}

fn bare_tokio(plugin: &Plugin, flight: usize) -> [f64; 2] {
    let (process, to, from) = plugin.greeted();
    let line = line();
    let taken = on_tokio(async {
        let (mut to, mut from) = pipes(to, from);
        let mut buf = vec![0; 64 << 10];
        let watch = Stopwatch::start();
        for _ in 0..CALLS / flight {
            for _ in 0..flight {
                to.write_all(&line).await.expect("it reads");
            }
            let mut lines = 0;
            while lines < flight {
                let count = from.read(&mut buf).await.expect("it answers");
                lines += memchr::memchr_iter(b'\n', &buf[..count]).count();
            }
        }
        watch.stop()
    });
    end(process);
    taken
}

fn mu_core(plugin: &Plugin, flight: usize) -> [f64; 2] {
    let start =
        Start { name: child::NAME.into(), argv: plugin.argv(), recorded: None, needs: vec![Seam::Link] };
    let taken = Cell::default();
    let exit = mu::enter(async |os| {
        let invocation = Invocation::new(os);
        let verb = async {
            invocation.start(start.clone()).await.expect("a sound declaration");
            let call = call();
            let watch = Stopwatch::start();
            for _ in 0..CALLS / flight {
                if flight == 1 {
                    invocation.call(&start, &call, BUDGET).await.expect("an answer");
                } else {
                    let calls = (0..flight).map(|_| invocation.call(&start, &call, BUDGET));
                    join_all(calls).await.into_iter().for_each(|result| drop(result.expect("an answer")));
                }
            }
            taken.set(watch.stop());
        };
        invocation.run(verb).await;
        0
    });
    assert_eq!(exit.expect("the machine is in order"), 0);
    taken.get()
}

fn rmcp(plugin: &Plugin, flight: usize) -> [f64; 2] {
    let mut process = plugin.spawn();
    let (to, from) = (process.stdin.take().expect("a pipe"), process.stdout.take().expect("a pipe"));
    let params: Value = serde_json::from_str(&params()).expect("JSON");
    let taken = on_tokio(async {
        let (to, from) = pipes(to.into(), from.into());
        let service = rmcp::service::serve_directly::<rmcp::RoleClient, _, _, _, _>((), (from, to), None);
        let ask = async || {
            let request = CustomRequest::new(METHOD, Some(params.clone()));
            let result = service.send_request(ClientRequest::CustomRequest(request)).await;
            let ServerResult::CustomResult(result) = result.expect("an answer") else {
                panic!("another type")
            };
            result.result_as::<Run>().expect("a run");
        };
        let watch = Stopwatch::start();
        for _ in 0..CALLS / flight {
            if flight == 1 {
                ask().await;
            } else {
                join_all((0..flight).map(|_| ask())).await;
            }
        }
        let taken = watch.stop();
        service.cancel().await.expect("it ends");
        taken
    });
    end(process);
    taken
}

fn lsp_server(plugin: &Plugin, flight: usize) -> [f64; 2] {
    use lsp_server::{Message, Request, Response};
    let mut process = plugin.spawn();
    let mut to = BufWriter::new(process.stdin.take().expect("a pipe"));
    let mut from = BufReader::new(process.stdout.take().expect("a pipe"));
    let params: Value = serde_json::from_str(&params()).expect("JSON");
    let watch = Stopwatch::start();
    for batch in 0..CALLS / flight {
        for nth in 0..flight {
            let id = i32::try_from(batch * flight + nth).expect("few enough");
            let request = Request::new(id.into(), METHOD.to_owned(), params.clone());
            Message::from(request).write(&mut to).expect("it reads");
        }
        for _ in 0..flight {
            let message = Message::read(&mut from).expect("a frame").expect("an answer");
            let Message::Response(Response { response_result, .. }) = message else { panic!("an answer") };
            let result = response_result.expect("a result");
            std::hint::black_box(serde_json::from_value::<Run>(result).expect("a run"));
        }
    }
    let taken = watch.stop();
    drop(to);
    end(process);
    taken
}

/// Who takes part, and with which child.
type Peer = (&'static str, fn(&Plugin, usize) -> [f64; 2], usize);

const PEERS: [Peer; 8] = [
    ("bare", bare, 0),
    ("bare, tokio", bare_tokio, 0),
    ("mu", mu_core, 0),
    ("rmcp", rmcp, 0),
    ("lsp-server", lsp_server, 1),
    ("bare", bare, 2),
    ("bare, tokio", bare_tokio, 2),
    ("mu", mu_core, 2),
];

fn main() {
    if child::run_if_asked() {
        return;
    }
    let plugins = [Plugin::idle(child::LINES), Plugin::idle(child::FRAMES), Plugin::fake()];
    println!(
        "{:<10} {:<8} {:<12} {:>10} {:>8} {:>14} {:>8}",
        "child", "flight", "", "µs a call", "/ bare", "processor µs", "/ bare"
    );
    for flight in [1, 64] {
        let taken = rounds(ROUNDS, PEERS.len(), |which| {
            let (_, turn, plugin) = PEERS[which];
            turn(&plugins[plugin], flight)
        });
        for ((name, _, plugin), [wall, thread]) in PEERS.into_iter().zip(&taken) {
            let [bare_wall, bare_thread] = taken[if plugin == 2 { 5 } else { 0 }];
            let child = if plugin == 2 { "fake" } else { "idle" };
            println!(
                "{child:<10} {flight:<8} {name:<12} {wall:>10.2} {:>8.2} {thread:>14.2} {:>8.2}",
                wall / bare_wall,
                thread / bare_thread
            );
        }
    }
}
