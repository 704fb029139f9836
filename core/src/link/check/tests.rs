use serde_json::{Value, json};

use super::*;
use crate::testing::FakeOs;
use crate::testing::dock::{calls, dock, error, linked, ran, with_link};

/// A step of a plugin.
fn step(step: &str, ok: Value) -> Value {
    json!({"step": step, "ok": ok, "detail": format!("{step} it is")})
}

/// A machine whose link adds steps to all phases and answers the phases with these replies, and scripts with status 0.
fn machine(template: Value, reach: Value, agent: Value) -> FakeOs {
    let declaration = with_link(json!({"checks": ["template", "reach", "agent"], "fetch": true}));
    let serve = move |request: &Value| {
        Some(match request["params"]["phase"].as_str() {
            None => ran(json!(0), "fine\n"),
            Some("template") => template.clone(),
            Some("reach") => reach.clone(),
            _ => agent.clone(),
        })
    };
    dock(declaration, |host| host.repo = Some("/srv/app x".into()), serve)
}

fn steps(of: &[Value]) -> Value {
    json!({ "result": of })
}

fn checked(os: &FakeOs) -> Report {
    let agent = Name::new("claude").unwrap();
    linked(os, async |link| link.check(Some(&agent)).await)
}

fn names(report: &Report) -> Vec<(&str, StepOk)> {
    report.steps.iter().map(|shown| (shown.step.as_str(), shown.ok.expect("known"))).collect()
}

fn kind(report: &Report) -> Option<Kind> {
    report.failure.as_ref().map(|failure| failure.kind)
}

/// LINK-10, LINK-12, LINK-13
#[test]
fn phases_come_in_order_with_mus_own_steps_first_and_warn_and_skip_do_not_fail() {
    let os = machine(
        steps(&[step("disk", json!("warn"))]),
        steps(&[step("vpn", json!(null)), step("reach", json!(true))]),
        steps(&[]),
    );
    let report = checked(&os);
    let wanted = [
        ("fetch", StepOk::Passed),
        ("box:disk", StepOk::Warn),
        ("reach", StepOk::Passed),
        ("repo", StepOk::Passed),
        ("box:vpn", StepOk::Skipped),
        ("box:reach", StepOk::Passed),
        ("agent", StepOk::Passed),
    ];
    assert_eq!(names(&report), wanted);
    assert_eq!(report.failure, None);
    assert_eq!(report.steps[1].detail, "disk it is");
    let of = |method: &str| {
        let calls = calls(&os).into_iter().filter(|call| call["method"] == method);
        calls.map(|call| call["params"].clone()).collect::<Vec<_>>()
    };
    let scripts: Vec<Value> = of("link.exec").iter().map(|params| params["script"].clone()).collect();
    assert_eq!(scripts, ["true", "git -C '/srv/app x' rev-parse --git-dir", "command -v claude"]);
    let params = |phase: &str| {
        let host = json!({"host": {"name": "dock"}});
        json!({"target": host, "phase": phase, "root": "/srv/app x", "agent": "claude"})
    };
    assert_eq!(of("link.checkSteps"), ["template", "reach", "agent"].map(params));
}

/// SEAM-08
#[test]
fn only_declared_phases_are_asked_for_and_without_a_harness_none_is_looked_for() {
    let os = dock(
        with_link(json!({"checks": ["reach"]})),
        |_| {},
        |request| {
            let asked = request["method"] == "link.checkSteps";
            Some(if asked { steps(&[step("vpn", json!(true))]) } else { ran(json!(0), "") })
        },
    );
    let report = linked(&os, async |link| link.check(None).await);
    assert_eq!(
        names(&report),
        [("fetch", StepOk::Failed), ("reach", StepOk::Passed), ("box:vpn", StepOk::Passed)]
    );
    let params = json!({"target": {"host": {"name": "dock"}}, "phase": "reach"});
    assert_eq!(calls(&os)[1], json!({"method": "link.checkSteps", "params": params}));
}

///
#[test]
fn a_step_that_fails_fails_the_check_and_the_rest_is_taken() {
    let os = machine(
        steps(&[step("disk", json!(false)), step("cpu", json!(true))]),
        steps(&[step("vpn", json!(false))]),
        steps(&[]),
    );
    let report = checked(&os);
    assert_eq!(report.steps.len(), 7);
    let failure = report.failure.unwrap();
    assert_eq!(failure.kind, Kind::CheckFailed);
    assert_eq!(failure.message, "host dock: step box:disk failed: disk it is");
}

/// LINK-13, LINK-14, A-39
#[test]
fn a_hand_back_keeps_its_bare_name_and_ends_the_check_of_the_host() {
    for ok in [json!(false), json!(true), json!(null), json!("warn")] {
        let os = machine(
            steps(&[]),
            steps(&[step("vpn", json!(true)), step("handback", ok), step("after", json!(true))]),
            steps(&[]),
        );
        let report = checked(&os);
        let last = report.steps.last().unwrap();
        assert_eq!((last.step.as_str(), last.detail.as_str()), ("handback", "handback it is"));
        assert_eq!(names(&report).iter().map(|step| step.0).collect::<Vec<_>>(), {
            ["fetch", "reach", "repo", "box:vpn", "handback"]
        });
        let failure = report.failure.unwrap();
        assert_eq!(
            (failure.kind, failure.message.as_str()),
            (Kind::NeedsHuman, "host dock needs a person: handback it is")
        );
    }
}

/// LINK-14, ERR-03
#[test]
fn an_error_that_needs_a_person_hands_back_too() {
    let human = error(json!({"kind": "human", "remedy": "log in"}));
    let os = machine(human, steps(&[]), steps(&[]));
    let report = checked(&os);
    assert_eq!(names(&report), [("fetch", StepOk::Passed), ("handback", StepOk::Failed)]);
    assert_eq!((report.steps[1].detail.as_str(), kind(&report)), ("log in", Some(Kind::NeedsHuman)));
    assert_eq!(calls(&os).len(), 1);
}

///
#[test]
fn an_error_that_is_definite_is_a_failed_step_and_no_end() {
    let os = machine(steps(&[]), error(json!({"kind": "permanent"})), steps(&[step("x", json!(true))]));
    let report = checked(&os);
    assert_eq!(names(&report).iter().map(|step| step.0).collect::<Vec<_>>(), {
        ["fetch", "reach", "repo", "box:reach", "agent", "box:x"]
    });
    assert_eq!((report.steps[3].ok, kind(&report)), (Some(StepOk::Failed), Some(Kind::CheckFailed)));
}

/// TRN-19, TMO-09: a step of which nothing is known has not failed.
#[test]
fn a_plugin_that_gives_no_answer_ends_the_check_with_its_outcome_unknown() {
    let os = dock(with_link(json!({})), |_| {}, |_| None);
    let report = checked(&os);
    let steps: Vec<_> = report.steps.iter().map(|shown| (shown.step.as_str(), shown.ok)).collect();
    assert_eq!(steps, [("fetch", Some(StepOk::Failed)), ("reach", None)]);
    assert_eq!(kind(&report), Some(Kind::CheckFailed), "the first reason stands");
    let os = dock(with_link(json!({"fetch": true})), |_| {}, |_| None);
    assert_eq!(kind(&checked(&os)), Some(Kind::OutcomeUnknown));
}

#[test]
fn a_script_of_mus_own_that_does_not_end_with_0_is_a_failed_step_that_says_why() {
    let cases = [
        (
            json!({"exitCode": 1, "stdout": "", "stderr": "no such\nthing", "partial": false}),
            "ended with status 1: no such",
        ),
        (json!({"exitCode": 1, "stdout": "x", "stderr": "", "partial": false}), "ended with status 1"),
        (
            json!({"exitCode": null, "stdout": "", "stderr": "", "partial": false}),
            "was cut off at its timeout",
        ),
    ];
    for (run, detail) in cases {
        let os = dock(
            with_link(json!({"fetch": true, "checks": []})),
            |_| {},
            move |_| Some(json!({ "result": run })),
        );
        let report = checked(&os);
        assert_eq!(names(&report)[1..], [("reach", StepOk::Failed), ("agent", StepOk::Failed)]);
        assert_eq!(report.steps[1].detail, format!("`true` {detail}"));
    }
}

/// JOB-08
#[test]
fn the_job_seam_adds_its_steps_in_the_same_way() {
    let mut declaration: Value = serde_json::from_str(&with_link(json!({"fetch": true})).to_json()).unwrap();
    declaration["seams"]["job"] = json!({"kind": "agent", "view": "bound", "handle": "pane",
        "start": {"lookup": true, "fenceKey": false}, "checks": ["agent"]});
    let declaration = mu_protocol::declaration::Declaration::from_recorded(&declaration.to_string()).unwrap();
    let os = dock(
        declaration,
        |_| {},
        |request| {
            Some(match request["method"].as_str() {
                Some("link.exec") => ran(json!(0), ""),
                Some("job.checkSteps") => {
                    steps(&[step("login", json!(true)), step("handback", json!(false))])
                }
                _ => steps(&[]),
            })
        },
    );
    let report = checked(&os);
    let wanted = [
        ("fetch", StepOk::Passed),
        ("reach", StepOk::Passed),
        ("agent", StepOk::Passed),
        ("box:login", StepOk::Passed),
        ("handback", StepOk::Failed),
    ];
    assert_eq!(names(&report), wanted);
    let params = json!({"target": {"host": {"name": "dock"}}, "phase": "agent", "agent": "claude"});
    assert_eq!(*calls(&os).last().unwrap(), json!({"method": "job.checkSteps", "params": params}));
}
