//! Three clocks over one virtual time: monotonic, boottime (which goes on while the machine sleeps), wall (which can
//! be stepped).

use std::time::Duration;

use crate::streams::Stream;

/// 2026-01-01T00:00:00Z, where the wall clock of every run begins.
pub const WALL_START_MS: i64 = 1_767_225_600_000;

/// The clock in which a process's start is kept, as on Linux: 100 ticks a second.
const NANOS_PER_TICK: u64 = 10_000_000;

const NANOS_PER_MS: i64 = 1_000_000;

pub(crate) struct Clocks {
    /// The instant of virtual time at which the machine was started last.
    pub(crate) booted: u64,
    pub(crate) boot_id: u128,
    boot_ids: Stream,
    /// Nanoseconds slept since the start.
    slept: u64,
    /// Wall clock minus virtual time, in nanoseconds.
    wall_ahead: i64,
}

impl Clocks {
    pub(crate) fn new(seed: u64) -> Clocks {
        let mut boot_ids = Stream::new(seed, "boot");
        let boot_id = draw_id(&mut boot_ids);
        Clocks { booted: 0, boot_id, boot_ids, slept: 0, wall_ahead: WALL_START_MS * NANOS_PER_MS }
    }

    pub(crate) fn reboot(&mut self, now: u64) {
        self.booted = now;
        self.slept = 0;
        self.boot_id = draw_id(&mut self.boot_ids);
    }

    pub(crate) fn monotonic(&self, now: u64) -> Duration {
        Duration::from_nanos(now - self.booted)
    }

    /// The instant of virtual time at which the monotonic clock shows `at`.
    pub(crate) fn instant(&self, at: Duration) -> u64 {
        let nanos = u64::try_from(at.as_nanos()).unwrap_or(u64::MAX);
        self.booted.saturating_add(nanos)
    }

    pub(crate) fn boottime(&self, now: u64) -> Duration {
        Duration::from_nanos(now - self.booted + self.slept)
    }

    /// Boottime in clock ticks.
    pub(crate) fn ticks(&self, now: u64) -> u64 {
        (now - self.booted + self.slept) / NANOS_PER_TICK
    }

    /// The boot id as the kernel spells it.
    pub(crate) fn boot_text(&self) -> String {
        let hex = format!("{:032x}", self.boot_id);
        [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
    }

    pub(crate) fn wall_ms(&self, now: u64) -> i64 {
        (self.wall_ahead + now as i64).div_euclid(NANOS_PER_MS)
    }

    pub(crate) fn set_wall(&mut self, now: u64, ms: i64) {
        self.wall_ahead = ms * NANOS_PER_MS - now as i64;
    }

    pub(crate) fn sleep(&mut self, span: u64) {
        self.slept += span;
        self.wall_ahead += span as i64;
    }
}

fn draw_id(ids: &mut Stream) -> u128 {
    u128::from(ids.word()) << 64 | u128::from(ids.word())
}
