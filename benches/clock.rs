//! What is counted: time on a processor where it can be told, and medians of rounds in which all take turns, so that a busy
//! machine slows them alike.

use std::time::Duration;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;
use rustix::time::{ClockId, clock_gettime};

/// Time that the calling thread has spent on a processor.
pub fn thread_time() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime).try_into().expect("time goes on")
}

/// Time that children who have ended, and theirs, have spent on a processor.
///
/// # Panics
/// When the kernel does not count.
pub fn children_time() -> Duration {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).expect("the kernel counts");
    let micros = |time: TimeVal| time.tv_sec() as u64 * 1_000_000 + time.tv_usec() as u64;
    Duration::from_micros(micros(usage.user_time()) + micros(usage.system_time()))
}

/// The middle one.
///
/// # Panics
/// Without any.
pub fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// Lets each of `count` contestants take a turn in each round. In: what a turn measures. Out: the medians of each.
pub fn rounds<const N: usize>(
    rounds: usize,
    count: usize,
    mut turn: impl FnMut(usize) -> [f64; N],
) -> Vec<[f64; N]> {
    let mut all = vec![[const { Vec::new() }; N]; count];
    for _ in 0..rounds {
        for (which, columns) in all.iter_mut().enumerate() {
            for (column, measured) in columns.iter_mut().zip(turn(which)) {
                column.push(measured);
            }
        }
    }
    all.into_iter().map(|columns| columns.map(median)).collect()
}
