//! What is left of a scenario is known exactly where a judge asks for something that can be seen in it.

use super::*;
use crate::explore::draw;

fn scenario(rest: &str) -> Scenario {
    let head = "title = 't'\nrules = ['PRC-03']\n";
    Scenario::parse("test", &format!("{head}{rest}"), &is_rule).unwrap_or_else(|error| panic!("{error}"))
}

/// Shrinks by a judge who looks at the candidate alone.
fn shrunk(whole: &Scenario, most: usize, fails: impl Fn(&Scenario) -> bool) -> Shrunk {
    let mut judge = |candidate: &Scenario| match fails(candidate) {
        true => Verdict::Same { inert: BTreeSet::new(), missed: false },
        false => Verdict::Other,
    };
    shrink(whole, most, &mut judge).expect("as it is, it fails")
}

/// What is left, as text, below the lines for readers.
fn left(whole: &Scenario, fails: impl Fn(&Scenario) -> bool) -> String {
    let shrunk = shrunk(whole, 10_000, fails);
    assert!(!shrunk.spent);
    let text = shrunk.scenario.to_toml();
    text.lines().skip(2).map(|line| format!("{line}\n")).collect()
}

const WORLD: &str = r#"
seed = 77
short_io = 3
real = false
why_not_real = "so"
[plugins.box]
seams = ["link", "job"]
job.view = "bound"
[plugins.cloud]
file = { kind = "missing" }
[backend]
land_ms = 5
[[faults]]
plugin = "box"
on = "link.exec"
nth = 3
do = { stderr-flood = 9000 }
[[faults]]
plugin = "cloud"
do = "bom"
[[faults]]
plugin = "box"
do = { exit = 3 }
[[steps]]
run = "mu plugin add box -- {box}"
exit = 0
[[steps]]
run = "mu plugin add cloud -- {cloud}"
overlap = true
[[steps]]
chmod = { box = "0700" }
advance_ms = 70000
[[steps]]
run = "mu host exec far-box --timeout 1500ms --json -- 'echo a; exit 3'"
signal = [{ what = "TERM", at_ms = 4999 }, { what = "INT", at_ms = 5000 }]
kill_at_call = 130
exit = 7
json = { "error" = "x", "next" = 1 }
[[steps]]
wall_step_ms = -3600000
calm = true
[[steps]]
run = "mu plugin check"
"#;

/// So that a judge need not say what it wants of the steps.
fn runs(candidate: &Scenario, verb: &str) -> bool {
    candidate.steps.iter().any(|step| step.run.as_ref().is_some_and(|run| run.starts_with(verb)))
}

#[test]
fn one_step_is_left_of_a_scenario_of_which_one_step_matters() {
    let left = left(&scenario(WORLD), |candidate| runs(candidate, "mu plugin check"));
    assert_eq!(left, "\n[[steps]]\nrun = \"mu plugin check\"\n");
}

#[test]
fn of_two_faults_that_matter_both_are_left_with_their_plugins() {
    let left = left(&scenario(WORLD), |candidate| {
        let is_met = |name: &str| candidate.faults.iter().any(|fault| fault.act.name() == name);
        is_met("bom") && is_met("stderr-flood")
    });
    let plugins = "\n[plugins.box]\nseams = [\"link\"]\n\n[plugins.cloud]\nseams = [\"link\"]\n";
    let faults = "\n[[faults]]\nplugin = \"box\"\ndo = { stderr-flood = 1 }\n\n[[faults]]\nplugin = \"cloud\"\ndo = \"bom\"\n";
    assert!(left.starts_with(&format!("{plugins}{faults}\n[[steps]]\n")), "{left}");
    assert_eq!(left.matches("[[steps]]").count(), 1, "{left}");
}

#[test]
fn a_number_becomes_as_small_as_it_can_be() {
    let back = |candidate: &Scenario| {
        candidate.steps.iter().any(|step| step.wall_step_ms.is_some_and(|ms| ms <= -99))
    };
    assert_eq!(
        left(&scenario(WORLD), back),
        "real = false\nwhy_not_real = \"so\"\n\n[[steps]]\nwall_step_ms = -99\n"
    );
    let late = |candidate: &Scenario| candidate.steps.iter().any(|step| step.advance_ms >= Some(1_234));
    assert_eq!(left(&scenario(WORLD), late), "\n[[steps]]\nadvance_ms = 1234\n");
    let signal = |candidate: &Scenario| {
        candidate.steps.iter().flat_map(|step| &step.signal).any(|signal| signal.at_ms > 1_000)
    };
    let left = left(&scenario(WORLD), signal);
    assert!(left.contains("signal = { at_ms = 1001, to = \"mu\", what = \"INT\" }\n"), "{left}");
}

#[test]
fn words_that_matter_not_are_left_out_of_a_command_line() {
    let left = left(&scenario(WORLD), |candidate| {
        let run =
            candidate.steps.iter().find_map(|step| step.run.as_ref().filter(|run| run.contains("exec")));
        run.is_some_and(|run| run.contains(" -- ") && run.contains("--json"))
    });
    assert_eq!(left, "\n[[steps]]\nrun = \"mu host exec --json -- true\"\n");
}

/// The step that expects something is left as it is: `exit = 7` may go, and never becomes `exit = 0`.
#[test]
fn an_expectation_is_left_out_or_left_alone() {
    let fails = |candidate: &Scenario| candidate.steps.iter().any(|step| step.exit == Some(7));
    let left = left(&scenario(WORLD), fails);
    assert_eq!(left, "\n[[steps]]\nrun = \"mu host\"\nexit = 7\n");
    let json = |candidate: &Scenario| candidate.steps.iter().any(|step| step.json.contains_key("next"));
    let left = self::left(&scenario(WORLD), json);
    assert_eq!(left, "\n[[steps]]\nrun = \"mu host\"\njson = { next = 1 }\n");
}

/// Without its `to` a signal would be for mu.
#[test]
fn a_signal_is_for_the_same_process_or_for_none() {
    let step = "[plugins.box]\n[[steps]]\nrun = 'mu plugin list'\n";
    let whole = scenario(&format!("{step}signal = {{ to = 'box', what = 'STOP', at_ms = 0 }}\n"));
    let stops = |candidate: &Scenario| candidate.steps.iter().any(|step| !step.signal.is_empty());
    assert!(left(&whole, stops).contains("to = \"box\""));
}

#[test]
fn changes_of_several_steps_are_made_in_one() {
    let fails = |candidate: &Scenario| {
        let until = candidate.steps.iter().position(|step| step.run.as_deref() == Some("mu plugin check"));
        let before = &candidate.steps[..until.map_or(0, |at| at + 1)];
        before.iter().any(|step| step.calm) && before.iter().any(|step| !step.chmod.is_empty())
    };
    assert_eq!(
        left(&scenario(WORLD), fails),
        "\n[plugins.box]\nseams = [\"link\"]\n\n[[steps]]\nchmod = { box = \"0700\" }\ncalm = true\n\
         run = \"mu plugin check\"\n"
    );
}

/// A fault that never takes effect may stand in no file: whatever is left, it is gone.
#[test]
fn a_fault_that_never_takes_effect_is_left_out_at_once() {
    let whole = scenario(WORLD);
    let mut asked = Vec::new();
    let mut judge = |candidate: &Scenario| {
        asked.push(candidate.faults.len());
        let is_inert = |index: &usize| candidate.faults[*index].act.name() != "bom";
        let inert = (0..candidate.faults.len()).filter(is_inert).collect();
        Verdict::Same { inert, missed: false }
    };
    let shrunk = shrink(&whole, 2, &mut judge).unwrap();
    assert_eq!((shrunk.scenario.faults.len(), shrunk.scenario.steps.len()), (1, whole.steps.len()));
    assert_eq!(asked, [3, 1]);
}

/// So the file says nothing that does not take place.
#[test]
fn a_command_that_asks_for_a_key_that_is_not_there_is_mended() {
    let whole = scenario("[[steps]]\nrun = 'mu effect resolve {key}'\n[[steps]]\nrun = 'mu plugin list'\n");
    let mut judge = |candidate: &Scenario| match runs(candidate, "mu effect resolve") {
        true => Verdict::Same { inert: BTreeSet::new(), missed: candidate.steps.iter().any(Step::names_key) },
        false => Verdict::Other,
    };
    let shrunk = shrink(&whole, 2, &mut judge).unwrap();
    assert_eq!(shrunk.scenario.steps[0].run.as_deref(), Some("mu effect resolve none"));
    let mut never = |_: &Scenario| Verdict::Same { inert: BTreeSet::new(), missed: true };
    assert_eq!(shrink(&whole, 100, &mut never), None);
}

#[test]
fn what_does_not_fail_is_not_shrunk() {
    assert_eq!(shrink(&scenario(WORLD), 100, &mut |_| Verdict::Other), None);
}

#[test]
fn no_more_candidates_are_played_than_were_allowed() {
    let fails = |candidate: &Scenario| runs(candidate, "mu host exec far-box --timeout");
    let all = shrunk(&scenario(WORLD), 10_000, fails);
    assert!(!all.spent && all.tried > 20, "{} candidates", all.tried);
    for most in [1, 7, 20] {
        let some = shrunk(&scenario(WORLD), most, fails);
        assert_eq!((some.tried, some.spent), (most, true));
    }
}

/// Whatever a seed draws, it ends by itself, at the same file, and nothing more can be taken from that.
#[test]
fn shrinking_a_seed_ends_and_ends_the_same() {
    for seed in 0..12 {
        let whole = draw(seed);
        let drawn = whole.faults.len();
        let fails = |candidate: &Scenario| {
            runs(candidate, "mu plugin add")
                && candidate.faults.len() >= drawn.min(1)
                && candidate.seed == seed
        };
        let (one, other) = (shrunk(&whole, 10_000, fails), shrunk(&whole, 10_000, fails));
        assert_eq!(one, other);
        assert!(!one.spent && one.tried < 2_000, "{} candidates", one.tried);
        let cost = Cost::of(&one.scenario);
        assert_eq!((cost.steps, cost.faults, cost.plugins), (1, drawn.min(1), drawn.min(1)));
        assert_eq!(shrunk(&one.scenario, 10_000, fails).scenario, one.scenario);
    }
}

const ENDING: &str = r#"
[plugins.box]
[[steps]]
chmod = { box = "0775" }
run = "mu plugin add box -- {box}"
[[steps]]
calm = true
file = { box = {} }
db = "restored"
[[steps]]
run = "mu plugin add box -- {box}"
exit = 0
"#;

/// The command has to succeed because the file is sound again.
#[test]
fn what_an_ending_makes_good_stays_as_long_as_it_is_spoiled() {
    let whole = scenario(ENDING);
    let due = |change: &dyn Fn(&mut Vec<Step>)| {
        let mut candidate = whole.clone();
        change(&mut candidate.steps);
        let last = candidate.steps.len();
        is_still_due((&whole, 3), (&candidate, last), "it ended with status 4, not status 0")
    };
    assert!(due(&|_| ()));
    assert!(due(&|steps| steps[1].db = None));
    assert!(!due(&|steps| steps[1].calm = false));
    assert!(!due(&|steps| steps[1].file.clear()));
    assert!(due(&|steps| {
        steps[1].file.clear();
        steps[0].chmod.clear();
    }));
    assert!(due(&|steps| drop(steps.remove(0))));
    assert!(!due(&|steps| drop(steps.remove(1))));
}

/// A-42: an open effect takes two looks with the time between them, anything else takes one.
#[test]
fn convergence_is_due_when_the_hosts_were_asked_for() {
    let whole = scenario(
        "real = false\nwhy_not_real = 'so'\n[[steps]]\ncalm = true\nadvance_ms = 7\n\
         [[steps]]\nrun = 'mu host status cave'\n[[steps]]\nadvance_ms = 5\n\
         [[steps]]\nrun = 'mu host status cave'\n[[steps]]\nrun = 'mu host list'\nconverged = true\n",
    );
    let due = |without: &[usize], text: &str| {
        let mut candidate = whole.clone();
        without.iter().rev().for_each(|at| drop(candidate.steps.remove(*at)));
        let last = candidate.steps.len();
        is_still_due((&whole, 5), (&candidate, last), text)
    };
    let (open, lost) =
        ("the host.acquire of cave, key 7, is still open", "host cave is lost, and its machine exists");
    assert!(due(&[], open) && !due(&[0], open) && !due(&[1], open) && !due(&[2], open) && !due(&[3], open));
    assert!(due(&[], lost) && !due(&[0], lost) && due(&[1], lost) && due(&[1, 2], lost));
    assert!(!due(&[1, 3], lost) && due(&[1, 3], "host nest is lost, and its machine exists"));
}
