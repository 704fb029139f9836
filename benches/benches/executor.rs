//! mu-sim's executor and its simulated machine beside turmoil, a paused tokio and madsim on the same work: two tasks play
//! ping-pong through a pipe, a hundred round trips with a timer of 600 ms after each, which makes 60 virtual seconds.
//! `cargo bench -p mu-benches --bench executor`.
//!
//! All but the machine use `tokio::io::duplex`, which needs no runtime; the machine has pipes, processes and a hash of
//! every event of its own. A run counts from nothing to the last timer. Time is that of the thread on a processor. The bar
//! is 200 ns a poll, with pipes and timers. `benches/executor.sh` has the row of madsim too, which has to be built with a
//! cfg of its own and is a process that takes its turns when it is asked to.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::disallowed_macros,
    reason = "a stopwatch, and peers that run on the real machine"
)]

use std::env;
use std::future::{Future, poll_fn};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use mu_benches::clock::{rounds, thread_time};
use mu_core::os::Exit;
use mu_sim::executor::{Executor, Step};
use mu_sim::kernel::{self, Fork, Give, Group, Machine, STDIN, STDOUT, Sys};
use mu_sim::streams::Stream;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::runtime::Builder;

const ROUND_TRIPS: u32 = 100;
const PAUSE: Duration = Duration::from_millis(600);
const SPAN: Duration = Duration::from_secs(60);
const PING: &[u8; 16] = b"a ping of mu's.\n";
const ROUNDS: usize = 21;

/// The side that asks. `sleep` is the world's timer.
async fn ask<S: Future<Output = ()>>(mut pipe: DuplexStream, mut sleep: impl FnMut(Duration) -> S) {
    let mut buf = [0; PING.len()];
    for _ in 0..ROUND_TRIPS {
        pipe.write_all(PING).await.expect("the other side reads");
        pipe.read_exact(&mut buf).await.expect("the other side answers");
        sleep(PAUSE).await;
    }
}

/// The side that answers.
async fn answer(mut pipe: DuplexStream) {
    let mut buf = [0; PING.len()];
    while pipe.read_exact(&mut buf).await.is_ok() {
        pipe.write_all(&buf).await.expect("the other side reads");
    }
}

/// A run on mu-sim's executor; answers the number of polls.
fn executor() -> u64 {
    let executor = Rc::new(Executor::new(Stream::new(1, "order")));
    let (near, far) = duplex(4096);
    let timers = executor.clone();
    let sleep = move |span: Duration| {
        let (timers, mut at) = (timers.clone(), None);
        poll_fn(move |cx| {
            let at = *at.get_or_insert_with(|| timers.now() + span.as_nanos() as u64);
            if timers.now() >= at {
                return Poll::Ready(());
            }
            timers.set_timer(at, cx.waker().clone());
            Poll::Pending
        })
    };
    executor.spawn(Box::pin(ask(near, sleep))).expect("there is room");
    executor.spawn(Box::pin(answer(far))).expect("there is room");
    loop {
        match executor.step(u64::MAX) {
            Step::Idle => break,
            Step::Panicked(_, reason) => std::panic::resume_unwind(reason),
            _ => {}
        }
    }
    assert_eq!(executor.now(), SPAN.as_nanos() as u64);
    executor.polls()
}

/// A run on the simulated machine: two processes, with pipes between them; answers the number of polls.
fn machine() -> u64 {
    async fn answer(sys: Sys) -> Exit {
        let mut buf = [0; PING.len()];
        while let count @ 1.. = sys.read(STDIN, &mut buf).await.expect("a pipe") {
            sys.write_all(STDOUT, &buf[..count]).await.expect("the parent reads");
        }
        Exit::Status(0)
    }
    let machine = Machine::new(1);
    let parent = |sys: Sys| async move {
        let fds = [(STDIN, Give::Pipe), (STDOUT, Give::Pipe)];
        let child = sys.fork(&Fork { name: "answer", group: Group::Own, fds: &fds }, answer).expect("room");
        let [to, from] = child.pipes[..] else { panic!("two pipes") };
        let mut buf = [0; PING.len()];
        for _ in 0..ROUND_TRIPS {
            sys.write_all(to, PING).await.expect("the child reads");
            let count = sys.read(from, &mut buf).await.expect("the child answers");
            assert_eq!(count, PING.len());
            sys.sleep(PAUSE).await;
        }
        Exit::Status(0)
    };
    let started = machine.start_fn(&kernel::Command::new(["ask"]), parent).expect("room");
    machine.run_until_exit(&started).expect("it ends");
    assert_eq!(machine.now(), SPAN);
    machine.polls()
}

/// A run on a current-thread tokio whose clock is paused.
fn tokio_paused() {
    let runtime = Builder::new_current_thread().enable_time().start_paused(true).build().expect("a runtime");
    runtime.block_on(async {
        let start = tokio::time::Instant::now();
        let (near, far) = duplex(4096);
        tokio::spawn(answer(far));
        ask(near, tokio::time::sleep).await;
        assert!(start.elapsed() >= SPAN);
    });
}

/// A run of turmoil with one host: both tasks and their pipe are on it, so that its network costs nothing. The step is a
/// millisecond, as it is when nobody says otherwise.
fn turmoil_steps() {
    let mut sim = turmoil::Builder::new().simulation_duration(SPAN * 2).build();
    sim.client("host", async {
        let (near, far) = duplex(4096);
        tokio::spawn(answer(far));
        ask(near, tokio::time::sleep).await;
        Ok(())
    });
    sim.run().expect("it ends");
    assert!(sim.elapsed() >= SPAN);
}

/// madsim's side, in a process of its own.
struct Madsim {
    process: Child,
    replies: BufReader<std::process::ChildStdout>,
}

impl Madsim {
    fn start(program: &str) -> Madsim {
        let mut process = Command::new(program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program that benches/executor.sh builds");
        let replies = BufReader::new(process.stdout.take().expect("a pipe"));
        Madsim { process, replies }
    }

    /// Nanoseconds a run, over so many.
    fn turn(&mut self, runs: u32) -> f64 {
        let mut reply = String::new();
        writeln!(self.process.stdin.as_mut().expect("a pipe"), "{runs}").expect("it reads");
        self.replies.read_line(&mut reply).expect("it answers");
        reply.trim().parse().expect("nanoseconds")
    }
}

impl Drop for Madsim {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}

/// Nanoseconds a run, over so many.
fn turn<T>(runs: u32, mut run: impl FnMut() -> T) -> f64 {
    let start = thread_time();
    for _ in 0..runs {
        std::hint::black_box(run());
    }
    (thread_time() - start).as_nanos() as f64 / f64::from(runs)
}

fn main() {
    let mut madsim = env::var("MU_BENCH_MADSIM").ok().map(|program| Madsim::start(&program));
    let names = ["mu: executor", "mu: machine", "tokio, paused", "turmoil", "madsim"];
    let count = if madsim.is_some() { names.len() } else { names.len() - 1 };
    let times = rounds(ROUNDS, count, |which| match which {
        0 => [turn(100, executor)],
        1 => [turn(50, machine)],
        2 => [turn(50, tokio_paused)],
        3 => [turn(1, turmoil_steps)],
        _ => [madsim.as_mut().expect("it is there").turn(10)],
    });
    let polls = [executor(), machine()];
    println!(
        "{:<14} {:>10} {:>8} {:>9} {:>14} {:>12}",
        "", "µs a run", "polls", "ns a poll", "/ executor", "× real time"
    );
    for (which, [time]) in times.iter().enumerate() {
        print!("{:<14} {:>10.1}", names[which], time / 1000.0);
        match polls.get(which) {
            Some(polls) => print!(" {polls:>8} {:>9.0}", time / *polls as f64),
            None => print!(" {:>8} {:>9}", "", ""),
        }
        println!(" {:>14.1} {:>12.0}", time / times[0][0], SPAN.as_nanos() as f64 / time);
    }
    if madsim.is_none() {
        println!("madsim is left out: benches/executor.sh builds it and has it take part");
    }
}
