//! What is counted: time on a processor where it can be told, and medians of rounds in which all take turns, so that a busy
//! machine slows them alike.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Time that the calling thread has spent on a processor.
pub fn thread_time() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime).try_into().expect("time goes on")
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
