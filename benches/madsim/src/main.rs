//! madsim's side of the bench of the executor: the same ping-pong as in `benches/executor.rs`, on madsim. In: lines on
//! standard input, each a number of runs. Out: a line for each, the nanoseconds that a run has spent on a processor.

use std::io::{self, BufRead};
use std::time::Duration;

use madsim::runtime::Runtime;
use madsim::time::{Instant, sleep};
use rustix::time::{ClockId, clock_gettime};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

const ROUND_TRIPS: u32 = 100;
const PAUSE: Duration = Duration::from_millis(600);
const SPAN: Duration = Duration::from_secs(60);
const PING: &[u8; 16] = b"a ping of mu's.\n";

async fn ask(mut pipe: DuplexStream) {
    let mut buf = [0; PING.len()];
    for _ in 0..ROUND_TRIPS {
        pipe.write_all(PING).await.expect("the other side reads");
        pipe.read_exact(&mut buf).await.expect("the other side answers");
        sleep(PAUSE).await;
    }
}

async fn answer(mut pipe: DuplexStream) {
    let mut buf = [0; PING.len()];
    while pipe.read_exact(&mut buf).await.is_ok() {
        pipe.write_all(&buf).await.expect("the other side reads");
    }
}

fn run() {
    Runtime::with_seed_and_config(1, madsim::Config::default()).block_on(async {
        let start = Instant::now();
        let (near, far) = duplex(4096);
        madsim::task::spawn(answer(far));
        ask(near).await;
        assert!(start.elapsed() >= SPAN);
    });
}

fn thread_time() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime).try_into().expect("time goes on")
}

fn main() {
    for line in io::stdin().lock().lines() {
        let runs: u32 = line.expect("text").trim().parse().expect("a number of runs");
        let start = thread_time();
        for _ in 0..runs {
            run();
        }
        println!("{}", (thread_time() - start).as_nanos() / u128::from(runs));
    }
}
