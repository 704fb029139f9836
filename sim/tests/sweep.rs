//! A host is acquired, looked after, used and released, and everything that can end is ended at each of its points: mu, its
//! plugin, the power, the disk. Every oracle holds, and in the end mu's rows and the backend agree.
//!
//! Alone in its executable: SQLite has state that all threads of a process share. `cargo sim sweep all` plays all points of
//! all scenarios; here it is every so many of one.

use mu_sim::explore::sweep::{Point, Sort, ended_at, points};
use mu_sim::play::{Finding, Setting, simulated};
use mu_sim::scenario::{Scenario, is_rule};

const LIFE: &str = r#"
title = "The life of a host"
rules = ["EFF-02", "EFF-03", "EFF-04", "A-85"]
[plugins.cloud]
seams = ["link", "host", "job"]
host.acquire = { lookup = true, fenceKey = true }
[[steps]]
run = "mu plugin add cloud -- {cloud}"
exit = 0
[[steps]]
run = "mu host acquire box --provider cloud --param size=2"
exit = 0
[[steps]]
run = "mu host status box"
exit = 0
[[steps]]
run = "mu host exec box -- 'echo done'"
exit = 0
[[steps]]
run = "mu host release box"
exit = 0
"#;

fn scenario() -> Scenario {
    Scenario::parse("life", LIFE, &is_rule).unwrap_or_else(|error| panic!("{error}"))
}

/// Every so many of the points of this sort.
fn some(sort: Sort, every: usize) -> Vec<Point> {
    let courses = simulated(&scenario(), Setting { courses: true, ..Setting::default() })
        .expect("the machine can do that")
        .courses;
    let all = points(&scenario(), &courses, &[sort]).points;
    assert!(all.len() > 20 * every, "{}: only {} points", sort.text(), all.len());
    all.into_iter().step_by(every).collect()
}

fn findings(point: &Point) -> Vec<Finding> {
    let played = simulated(&ended_at(&scenario(), point), Setting::default());
    played.expect("the machine can do that").findings
}

fn sweep(sort: Sort, every: usize) {
    for point in some(sort, every) {
        let findings = findings(&point);
        assert!(findings.is_empty(), "{}: {findings:#?}", point.text());
    }
}

/// EFF-02, EFF-03, EFF-04, EFF-12, PRC-15
#[test]
fn mu_may_be_killed_anywhere() {
    sweep(Sort::Mu, 3);
}

/// EFF-04, TRN-19
#[test]
fn a_plugin_may_be_killed_anywhere() {
    sweep(Sort::Plugin, 1);
}

/// EFF-02, A-85
#[test]
fn the_power_may_fail_anywhere() {
    sweep(Sort::Power, 2);
}

/// EFF-02, EFF-03
#[test]
fn the_disk_may_fail_anywhere() {
    sweep(Sort::DiskErrors, 17);
}
