//! What is drawn is a scenario like any other, and means the same for ever.

use super::*;
use crate::scenario::is_rule;

#[test]
fn every_seed_is_a_scenario_that_can_be_written_down_and_read_again() {
    for seed in 0..500 {
        let scenario = draw(seed);
        let again = Scenario::parse("drawn", &scenario.to_toml(), &is_rule);
        assert_eq!(again.as_ref(), Ok(&scenario), "{}", scenario.to_toml());
    }
}
