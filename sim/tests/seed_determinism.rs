//! What one run leaves in the process changes nothing in the next.
//!
//! Alone in its executable: SQLite has state that all threads of a process share.

use mu_sim::explore;
use mu_sim::play::{self, Setting, Show};

/// Chain and number of events, and the events themselves.
fn run(seed: u64) -> (String, u64, String) {
    let setting = Setting { drawn: true, show: Show::Events, ..Setting::default() };
    let played = play::simulated(&explore::draw(seed), setting).expect("a seed can be played");
    let chain = played.chain.expect("a simulated run has one").to_string();
    (chain, played.events, played.transcript.expect("it was asked for"))
}

#[test]
fn a_seed_is_the_same_run_alone_and_after_a_hundred_others() {
    let seeds = [4711, 12, 99];
    let alone = seeds.map(run);
    for other in 1_000..1_100 {
        run(other);
    }
    for (seed, alone) in seeds.into_iter().zip(alone) {
        let after = run(seed);
        let first = alone.2.lines().zip(after.2.lines()).find(|(one, other)| one != other);
        assert_eq!(first, None, "seed {seed}: the first event that differs");
        assert_eq!(alone, after, "seed {seed}");
    }
}
