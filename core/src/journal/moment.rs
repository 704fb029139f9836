//! Time that outlives a run.
//!
//! Within one start of the machine it is measured by the clock that goes on through sleep; from one start to another by
//! the wall clock, which may be off by [`MARGIN`]. A wall clock that shows an earlier time than it did tells nothing.

use std::time::Duration;

use crate::os::{BootTime, EpochMs, Os};

/// How far the wall clocks of two starts of the machine are trusted not to differ.
pub const MARGIN: Duration = Duration::from_secs(10 * 60);

/// A moment, by both clocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moment {
    /// The wall clock.
    pub wall: EpochMs,
    /// The clock of this start of the machine.
    pub boot: BootTime,
}

impl Moment {
    /// Now.
    pub fn now<O: Os>(os: &O) -> Moment {
        Moment { wall: os.wall(), boot: os.boot() }
    }

    /// The most that can have passed from `self` to `now`; `None`: no bound.
    pub fn passed_at_most(&self, now: &Moment) -> Option<Duration> {
        match self.passed(now)? {
            Passed::Exactly(span) => Some(span),
            Passed::About(span) => Some(span.saturating_add(MARGIN)),
        }
    }

    /// How much longer it takes until `span` has certainly passed since `self`; `None` when the clocks do not tell.
    pub fn rest_of(&self, span: Duration, now: &Moment) -> Option<Duration> {
        Some(match self.passed(now)? {
            Passed::Exactly(passed) => span.saturating_sub(passed),
            Passed::About(passed) => span.saturating_add(MARGIN).saturating_sub(passed),
        })
    }

    /// `None` when a clock ran backwards.
    fn passed(&self, now: &Moment) -> Option<Passed> {
        let wall = u64::try_from(now.wall.0.checked_sub(self.wall.0)?).ok()?;
        if self.boot.boot == now.boot.boot {
            return now.boot.since.checked_sub(self.boot.since).map(Passed::Exactly);
        }
        Some(Passed::About(Duration::from_millis(wall)))
    }
}

enum Passed {
    Exactly(Duration),
    About(Duration),
}

/// The time in which a repeat of an effect is recognised as one (EFF-10, EFF-17).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    begun: Moment,
    length: Duration,
}

impl Window {
    /// What must be left of it when a repeat is written, for the way to the plugin.
    pub const LEFT: Duration = crate::session::GRACE;

    /// The window of an intent that was committed at `begun`, before its first send.
    pub fn new(begun: Moment, length: Duration) -> Window {
        Window { begun, length }
    }

    /// Whether a repeat may be written now. A clock that ran backwards counts as a window that is over.
    pub fn is_open(&self, now: &Moment) -> bool {
        let passed = self.begun.passed_at_most(now);
        passed.is_some_and(|passed| passed.saturating_add(Window::LEFT) <= self.length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: Duration = Duration::from_secs(1);

    fn at(boot: &str, since: Duration, wall: i64) -> Moment {
        Moment { wall: EpochMs(wall), boot: BootTime { boot: boot.into(), since } }
    }

    ///
    #[test]
    fn within_one_start_of_the_machine_its_own_clock_counts() {
        let (from, to) = (at("a", 10 * S, 1_000_000), at("a", 70 * S, 9_000_000));
        assert_eq!(from.passed_at_most(&to), Some(60 * S));
        assert_eq!(from.rest_of(90 * S, &to), Some(30 * S));
        assert_eq!(from.rest_of(60 * S, &to), Some(Duration::ZERO));
    }

    ///
    #[test]
    fn from_one_start_to_another_the_wall_clock_counts_with_a_margin_to_the_unsafe_side() {
        let (from, to) = (at("a", 10 * S, 0), at("b", 1 * S, 3_600_000));
        assert_eq!(from.passed_at_most(&to), Some(4200 * S));
        assert_eq!(from.rest_of(3000 * S, &to), Some(Duration::ZERO));
        assert_eq!(from.rest_of(3001 * S, &to), Some(S));
        let soon = at("b", S, 5_000);
        assert_eq!(from.passed_at_most(&soon), Some(605 * S));
        assert_eq!(from.rest_of(3 * S, &soon), Some(598 * S), "the margin is to be waited for as well");
    }

    ///
    #[test]
    fn a_wall_clock_that_ran_backwards_tells_nothing() {
        let from = at("a", 10 * S, 1_000_000);
        for to in [at("a", 70 * S, 999_999), at("b", 70 * S, 999_999), at("a", 9 * S, 2_000_000)] {
            assert_eq!((from.passed_at_most(&to), from.rest_of(S, &to)), (None, None), "{to:?}");
        }
        let window = Window::new(from.clone(), 1_000_000 * S);
        assert!(!window.is_open(&at("a", 11 * S, 999_999)) && window.is_open(&at("a", 11 * S, 1_000_000)));
    }

    ///
    #[test]
    fn a_repeat_needs_a_grace_of_the_window() {
        let window = Window::new(at("a", 10 * S, 0), 60 * S);
        let after = |span: Duration| at("a", 10 * S + span, span.as_millis() as i64);
        assert!(window.is_open(&after(55 * S)));
        assert!(!window.is_open(&after(55 * S + Duration::from_nanos(1))));
        assert!(!window.is_open(&at("b", S, 0)), "the margin alone is longer");
        let long = Window::new(at("a", 10 * S, 0), 3600 * S);
        assert!(long.is_open(&at("b", S, (3600 - 600 - 5) * 1000)));
        assert!(!long.is_open(&at("b", S, (3600 - 600 - 5) * 1000 + 1)));
    }
}
