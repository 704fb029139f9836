//! What is left out is the same, what is written down is what is played, and what does not come right is found.

use std::collections::BTreeSet;

use super::*;
use crate::play::{Played, Setting, Show, simulated};
use crate::scenario::is_rule;
use crate::trace::Digest;

/// A plugin is added, a host of it runs a script, and two mu run at once.
const STEPS: &str = r#"
title = "A host runs a script"
rules = ["LINK-01"]
[plugins.box]
[[steps]]
run = "mu plugin add box -- {box}"
exit = 0
[[steps]]
run = "mu host add far --plugin box"
exit = 0
[[steps]]
run = "mu host exec far -- 'echo done'"
exit = 0
[[steps]]
run = "mu host rm far"
overlap = true
[[steps]]
run = "mu plugin list"
"#;

fn scenario() -> Scenario {
    Scenario::parse("sweep", STEPS, &is_rule).unwrap_or_else(|error| panic!("{error}"))
}

fn played(scenario: &Scenario, courses: bool) -> Played {
    let setting = Setting { courses, show: Show::Transcript, ..Setting::default() };
    simulated(scenario, setting).expect("the machine can do that")
}

fn all() -> Vec<Point> {
    points(&scenario(), &played(&scenario(), true).courses, &Sort::ALL).points
}

/// One of every so many, so that the tests stay short; each time others of each sort.
fn some(points: &[Point], every: usize) -> impl Iterator<Item = &Point> {
    points.iter().skip(every / 2).step_by(every)
}

#[test]
fn there_are_points_of_every_sort_in_every_step() {
    let points = all();
    for step in 1..=5 {
        for sort in [Sort::Mu, Sort::Power, Sort::DiskErrors] {
            let count = points.iter().filter(|point| point.step == step && point.sort() == sort).count();
            assert!(count > 1, "step {step}, {}: {count}", sort.text());
        }
    }
    let acts =
        |step| points.iter().filter(move |point| point.sort() == Sort::Plugin && point.step == step).count();
    assert_eq!([1, 2, 3, 4, 5].map(acts).map(|count| count > 5), [true, false, true, false, false]);
}

#[test]
fn a_point_is_written_as_a_file_that_plays_the_same() {
    let digest = |scenario: &Scenario| -> Option<Digest> { played(scenario, false).chain };
    for point in some(&all(), 150) {
        let ended = ended_at(&scenario(), point);
        let again =
            Scenario::parse("again", &ended.to_toml(), &is_rule).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(again, ended);
        assert_eq!(digest(&again), digest(&ended), "{}", point.text());
    }
}

#[test]
fn every_sort_of_point_takes_effect_and_comes_right() {
    let mut seen = BTreeSet::new();
    let mut points = all();
    points.sort_by_key(Point::sort);
    for point in some(&points, 7) {
        let played = played(&ended_at(&scenario(), point), false);
        assert!(played.findings.is_empty(), "{}: {:#?}", point.text(), played.findings);
        let transcript = played.transcript.expect("it was asked for");
        assert!(transcript.contains("FAULT"), "{} does not take effect:\n{transcript}", point.text());
        seen.insert(point.sort());
    }
    assert_eq!(seen.len(), Sort::ALL.len());
}

/// Every point that is left out, against the one that stands for it.
#[test]
fn what_is_left_out_is_the_same_world() {
    let scenario = scenario();
    let world = |point: &Point| {
        let played = played(&ended_at(&scenario, point), false);
        let transcript = played.transcript.expect("it was asked for");
        let is_the_end =
            |line: &&str| line.contains("FAULT") || line.contains("world     sends SIGKILL to mu");
        transcript.lines().filter(|line| !is_the_end(line)).collect::<Vec<_>>().join("\n")
    };
    let courses = played(&scenario, true).courses;
    let all = |step: usize, sort| points::unmerged(&courses[step - 1], sort);
    let mut left_out = 0;
    for (step, sort) in [(3, Sort::Mu), (3, Sort::Power), (4, Sort::Mu), (5, Sort::Power)] {
        let mut before = None;
        for (point, is_same) in all(step, sort) {
            match (&before, is_same) {
                (Some(before), true) => {
                    // Of many it is enough to look at some.
                    left_out += 1;
                    if left_out % 7 == 0 {
                        assert_eq!(world(&point), world(before), "{} and before", point.text());
                    }
                }
                _ => before = Some(point),
            }
        }
    }
    assert!(left_out > 300, "{left_out}");
}

#[test]
fn a_database_that_is_damaged_is_found() {
    let mut scenario = scenario();
    let step = |step: Step| Step { run: Some("mu --version".into()), ..step };
    scenario.real = false;
    scenario.why_not_real = Some("it looks into the simulated disk".into());
    scenario.steps = vec![step(Step { converged: true, ..Step::default() })];
    assert!(played(&scenario, false).findings.is_empty());
    scenario.steps.insert(0, step(Step { db: Some(Db::Garbage), ..Step::default() }));
    assert_eq!(played(&scenario, false).findings.len(), 1);
}

/// To the last event: what stays broken and is not asked again has failed once.
#[test]
fn an_error_that_nothing_follows_is_the_same_whether_it_stays_or_not() {
    let errors: Vec<Point> = all().into_iter().filter(|point| point.sort() == Sort::DiskErrors).collect();
    let mut left_out = 0;
    for pair in errors.chunks(2).step_by(7) {
        let [once, stays] = pair else { panic!("each error comes once and stays") };
        assert!(once.stays_as(stays) && !stays.stays_as(once), "{}", once.text());
        let [one, other] = [once, stays].map(|point| played(&ended_at(&scenario(), point), false));
        if one.failed_alone {
            left_out += 1;
            assert_eq!((one.chain, one.events), (other.chain, other.events), "{}", once.text());
        } else {
            assert!(!other.failed_alone, "{}", stays.text());
        }
    }
    assert!(left_out > 5, "{left_out}");
}
