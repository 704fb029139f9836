//! What fires when, over a plain table.

use crate::os::Mono;

/// The timers of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Timer {
    /// `initialize` has had no answer for ten seconds (HSK-08).
    Handshake,
    /// The earliest deadline of a call is here (TMO-04).
    Deadline,
    /// The stop sequence began one grace ago and the group is not empty (PRC-07).
    Grace,
}

const ALL: [Timer; 3] = [Timer::Handshake, Timer::Deadline, Timer::Grace];

/// At most one due time for each timer.
#[derive(Debug, Default)]
pub(super) struct Timers([Option<Mono>; ALL.len()]);

impl Timers {
    pub(super) fn set(&mut self, timer: Timer, at: Mono) {
        self.0[timer as usize] = Some(at);
    }

    pub(super) fn clear(&mut self, timer: Timer) {
        self.0[timer as usize] = None;
    }

    /// The earliest due time.
    pub(super) fn next(&self) -> Option<Mono> {
        self.0.iter().flatten().min().copied()
    }

    /// A timer whose time has come.
    pub(super) fn expired(&self, now: Mono) -> Option<Timer> {
        ALL.into_iter().find(|&timer| self.0[timer as usize].is_some_and(|at| at <= now))
    }
}
