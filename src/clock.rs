//! The two clocks and the timer.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use mu_core::os::{EpochMs, Mono};
use rustix::time::{ClockId, Timespec, clock_gettime};

/// `CLOCK_MONOTONIC`. It does not count the time in which the machine is suspended, as tokio's timer does not:
/// a laptop that sleeps through a deadline goes on waiting where it stopped.
pub(crate) fn mono() -> Mono {
    let Timespec { tv_sec, tv_nsec } = clock_gettime(ClockId::Monotonic);
    Mono(Duration::new(tv_sec.unsigned_abs(), tv_nsec.unsigned_abs() as u32))
}

/// `CLOCK_BOOTTIME`: time since the machine was started, suspended or not.
pub(crate) fn boottime() -> Duration {
    let Timespec { tv_sec, tv_nsec } = clock_gettime(ClockId::Boottime);
    Duration::new(tv_sec.unsigned_abs(), tv_nsec.unsigned_abs() as u32)
}

/// `CLOCK_REALTIME`, in milliseconds, rounded down.
pub(crate) fn wall() -> EpochMs {
    let Timespec { tv_sec, tv_nsec } = clock_gettime(ClockId::Realtime);
    EpochMs(tv_sec * 1000 + tv_nsec / 1_000_000)
}

/// A timer on the monotonic clock; late by up to a millisecond, never early.
pub struct RealSleep {
    at: Mono,
    /// Made at the first poll that has to wait.
    timer: Option<Pin<Box<tokio::time::Sleep>>>,
}

impl RealSleep {
    pub(crate) fn until(at: Mono) -> RealSleep {
        RealSleep { at, timer: None }
    }
}

impl Future for RealSleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            let now = mono();
            if now >= self.at {
                return Poll::Ready(());
            }
            let left = self.at.0 - now.0;
            let timer = self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep(left)));
            ready!(timer.as_mut().poll(cx));
            self.timer = None;
        }
    }
}
