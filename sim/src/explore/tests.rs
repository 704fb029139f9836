//! What is drawn is a scenario like any other, and means the same for ever.

use std::cell::Cell;

use super::*;
use crate::scenario::is_rule;

thread_local! {
    /// The stream from which something was drawn before.
    static DRAWN_FROM: Cell<&'static str> = const { Cell::new("") };
}

/// The stream, from which a number was drawn already if it is the one.
pub(super) fn drawn_from(mut stream: Stream, name: &str) -> Stream {
    if name == DRAWN_FROM.get() {
        stream.below(1 << 40);
    }
    stream
}

/// A draw more in one place leaves all that is drawn elsewhere as it was.
#[test]
fn a_draw_more_in_one_place_leaves_the_others_as_they_were() {
    let without = |scenario: &Scenario, part: &str| {
        // Whether real processes could do it too follows from the steps.
        let mut scenario = Scenario { real: true, why_not_real: None, ..scenario.clone() };
        match part {
            "faults" => scenario.faults.retain(|fault| fault.plugin == "vault"),
            "provided/faults" => scenario.faults.retain(|fault| fault.plugin != "vault"),
            // The ending makes good what the steps before it did.
            "steps" | "provided/steps" => scenario.steps.clear(),
            // Nobody is in its ending but the plugins that it draws anew.
            "ending" => scenario.steps.truncate(ending_at(&scenario)),
            other => unreachable!("{other}"),
        }
        scenario
    };
    for part in ["faults", "provided/faults", "steps", "provided/steps", "ending"] {
        let mut changed = 0;
        for seed in 0..200 {
            let before = draw(seed);
            DRAWN_FROM.set(part);
            let after = draw(seed);
            DRAWN_FROM.set("");
            changed += u32::from(before != after);
            assert_eq!(without(&before, part), without(&after, part), "{part}, seed {seed}");
        }
        assert!(changed > 20, "{part}: {changed}");
    }
}

fn ending_at(scenario: &Scenario) -> usize {
    scenario.steps.iter().position(|step| step.calm).expect("every seed has an ending")
}

/// One half of all seeds has a provider of hosts; whatever can be drawn for it is drawn.
#[test]
fn what_can_happen_to_a_provider_happens_in_some_seed() {
    let seeds: Vec<Scenario> = (0..400).map(draw).collect();
    let provided = seeds.iter().filter(|scenario| scenario.backend.is_some());
    let steps: Vec<Step> = provided.clone().flat_map(|scenario| scenario.steps.clone()).collect();
    assert!((150..250).contains(&provided.count()));
    let is_met = |happens: &dyn Fn(&Step) -> bool| steps.iter().any(happens);
    let runs =
        |verb: &'static str| move |step: &Step| step.run.as_ref().is_some_and(|run| run.contains(verb));
    for verb in
        ["acquire", "status", "release", "exec cave", "check nest", "rm cave", "effect list", "resolve {key}"]
    {
        assert!(is_met(&runs(verb)), "{verb}");
    }
    assert!(is_met(&|step| step.kill_at_disk.is_some()) && is_met(&|step| step.power_at_disk.is_some()));
    assert!(is_met(&|step| step.kill_plugin_at.contains_key("vault")) && is_met(&|step| step.reboot));
    assert!(is_met(&|step| step.net.len() > 1) && is_met(&|step| !step.backend_do.is_empty()));
    assert!(is_met(&|step| step.disk_error.is_some()) && is_met(&|step| step.overlap));
    assert!(is_met(&|step| step
        .plan
        .get("vault")
        .is_some_and(|plan| format!("{plan:?}").contains("vault-2"))));
}

#[test]
fn every_seed_is_a_scenario_that_can_be_written_down_and_read_again() {
    for seed in 0..500 {
        let scenario = draw(seed);
        let again = Scenario::parse("drawn", &scenario.to_toml(), &is_rule);
        assert_eq!(again.as_ref(), Ok(&scenario), "{}", scenario.to_toml());
    }
}
