//! Shrinking, with a judge who plays each candidate on the simulated machine.
//!
//! Alone in its executable: SQLite has state that all threads of a process share.

use std::collections::BTreeSet;

use mu_sim::explore::shrink::{Shrunk, Verdict, shrink};
use mu_sim::play::{Finding, Played, Setting, simulated};
use mu_sim::scenario::{Scenario, is_rule};

const BOTH: &str = r#"
title = "Two plugins, and much that goes wrong"
rules = ["PRC-03"]
seed = 5
short_io = 4
[plugins.box]
seams = ["link", "job"]
[plugins.cloud]
declare.instance = "eu"
[plugins.relay]
file = { mode = "0775" }
[[faults]]
plugin = "box"
do = { stderr-flood = 50000 }
[[faults]]
plugin = "cloud"
when = "on-eof"
do = { exit = 9 }
[[faults]]
plugin = "cloud"
start = 1
do = "crlf"
[[steps]]
run = "mu plugin add relay -- {relay}"
[[steps]]
run = "mu plugin add box -- {box} --region eu"
advance_ms = 4000
[[steps]]
run = "mu plugin list --json"
[[steps]]
run = "mu plugin add cloud -- {cloud}"
[[steps]]
run = "mu plugin check --json"
exit = 0
"#;

fn read(text: &str) -> Scenario {
    Scenario::parse("test", text, &is_rule).unwrap_or_else(|error| panic!("{error}"))
}

fn play(candidate: &Scenario) -> Option<Played> {
    simulated(candidate, Setting::default()).ok()
}

/// Shrinks by a judge who looks at what a candidate has come to.
fn shrunk(whole: &Scenario, fails: impl Fn(&Played) -> bool) -> Shrunk {
    let mut judge = |candidate: &Scenario| {
        let Some(played) = play(candidate).filter(&fails) else { return Verdict::Other };
        let is_inert = |finding: &Finding, index: usize| match finding {
            Finding::Inert { plugin, fault } => {
                let one = &candidate.faults[index];
                *plugin == one.plugin && fault == one.act.name()
            }
            _ => false,
        };
        let all = 0..candidate.faults.len();
        let inert: BTreeSet<usize> =
            all.filter(|index| played.findings.iter().any(|one| is_inert(one, *index))).collect();
        let missed = played.findings.iter().any(|finding| matches!(finding, Finding::Missed { .. }));
        Verdict::Same { inert, missed }
    };
    shrink(whole, 2_000, &mut judge).expect("as it is, it fails")
}

#[test]
fn the_least_in_which_two_faults_take_effect_is_two_registrations() {
    let both =
        |played: &Played| played.fired.contains_key("stderr-flood") && played.fired.contains_key("exit");
    let one = shrunk(&read(BOTH), both);
    assert_eq!(
        one.scenario.to_toml(),
        "title = \"Two plugins, and much that goes wrong\"\nrules = [\"PRC-03\"]\n\n\
         [plugins.box]\nseams = [\"link\"]\n\n[plugins.cloud]\nseams = [\"link\"]\n\n\
         [[faults]]\nplugin = \"box\"\ndo = { stderr-flood = 1 }\n\n\
         [[faults]]\nplugin = \"cloud\"\ndo = { exit = 0 }\n\n\
         [[steps]]\nrun = \"mu plugin add box -- {box}\"\n\n\
         [[steps]]\nrun = \"mu plugin add cloud -- {cloud}\"\n"
    );
    assert!(!one.spent && one.tried < 400, "{} candidates", one.tried);
    assert_eq!(shrunk(&read(BOTH), both), one);
    assert!(both(&play(&read(&one.scenario.to_toml())).unwrap()));
}

#[test]
fn the_step_that_expects_what_does_not_come_is_left_alone() {
    let fails = |played: &Played| {
        let text = "it ended with status 5, not status 0";
        let fails = |finding: &Finding| matches!(finding, Finding::Expectation { text: said, .. } if said.starts_with(text));
        played.findings.iter().any(fails)
    };
    let whole =
        BOTH.replace("do = \"crlf\"", "do = \"bom\"").replace("-- {cloud}\"", "-- {cloud}\"\nexit = 0");
    let one = shrunk(&read(&whole), fails);
    let (steps, faults) = (&one.scenario.steps, &one.scenario.faults);
    assert_eq!(
        (steps.len(), faults.len(), one.scenario.plugins.len()),
        (1, 1, 1),
        "{}",
        one.scenario.to_toml()
    );
    assert_eq!((steps[0].exit, faults[0].act.name()), (Some(0), "bom"));
    assert!(play(&one.scenario).unwrap().findings.iter().all(|one| !matches!(one, Finding::Inert { .. })));
}
