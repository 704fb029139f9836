//! Random seeds, as many as a test run has time for; `cargo sim seeds` plays more.
//!
//! Alone in its executable: SQLite has state that all threads of a process share.

use mu_sim::explore;
use mu_sim::play::{self, Setting};

const SEEDS: u64 = 200;

#[test]
fn the_first_seeds_hold() {
    let setting = Setting { drawn: true, ..Setting::default() };
    let mut wrong = Vec::new();
    let mut fired = 0;
    for seed in 0..SEEDS {
        let played = play::simulated(&explore::draw(seed), setting)
            .unwrap_or_else(|cannot| panic!("seed {seed} cannot be played: {cannot}"));
        wrong.extend(played.findings.iter().map(|finding| format!("cargo sim replay {seed}: {finding}")));
        fired += played.fired.values().sum::<u64>();
    }
    assert!(wrong.is_empty(), "{} findings:\n{}", wrong.len(), wrong.join("\n"));
    assert!(fired > SEEDS / 2, "only {fired} faults took effect in {SEEDS} runs");
}
