//! The form that is stored, and what differs from it.

use mu_protocol::declaration::Declaration;
use serde_json::{Value, json};

use crate::{full, judge, judge_for, remove, set, with, without};

/// The rule and the field by which `declared` is refused after `recorded` was recorded.
fn difference(recorded: &Value, declared: &Value) -> Option<(&'static str, String)> {
    let recorded = judge(recorded).unwrap();
    let verdict = judge_for(&[], &declared.to_string(), Some(&recorded));
    verdict.err().map(|refusal| (refusal.rule, refusal.field))
}

/// SEC-01
#[test]
fn the_recorded_form_comes_back_exactly() {
    let declaration = judge(&full()).unwrap();
    assert_eq!(Declaration::from_recorded(&declaration.to_json()), Ok(declaration));
}

/// SEC-01
#[test]
fn the_recorded_form_is_in_the_order_of_the_schema() {
    let text = judge(&full()).unwrap().to_json();
    assert!(text.starts_with(
        r#"{"protocol":1,"plugin":{"name":"box","version":"0.1.0"},"instance":"prod-eu","schema":"#
    ));
    assert!(text.ends_with(r#""watch":"stream","settleText":"full"}}}}"#));
}

/// SEC-01
#[test]
fn a_damaged_record_is_a_flaw_and_no_declaration() {
    let text = judge(&full()).unwrap().to_json();
    let twice = text.replacen("\"protocol\":1", "\"protocol\":1,\"protocol\":1", 1);
    for damaged in [&text[..text.len() - 1], "", "[]", "{}", &text.replace("\"fetch\"", "\"f\""), &twice] {
        assert!(Declaration::from_recorded(damaged).is_err(), "{damaged}");
    }
}

/// LOAD-19
#[test]
fn the_same_declaration_in_another_order_is_the_same() {
    let declared = full().to_string().replacen("\"instance\":\"prod-eu\",", "", 1).replacen(
        "\"schema\":",
        "\"instance\":\"prod-eu\",\"schema\":",
        1,
    );
    assert_ne!(declared, full().to_string());
    let recorded = judge(&full()).unwrap();
    assert!(judge_for(&[], &declared, Some(&recorded)).is_ok());
}

/// REG-10
#[test]
fn the_start_that_add_makes_is_bound_to_no_record() {
    assert!(judge_for(&[], &with("/instance", json!("other")).to_string(), None).is_ok());
}

/// A-20
#[test]
fn each_member_that_differs_is_named() {
    let others = [
        ("/plugin/version", json!("0.2.0")),
        ("/instance", json!("prod-us")),
        ("/seams/link/fetch", json!(false)),
        ("/seams/link/push", json!(true)),
        ("/seams/link/slots", json!("mu")),
        ("/seams/link/maxScriptBytes", json!(131_073)),
        ("/seams/job/kind", json!("crate")),
        ("/seams/job/start/dedupe/windowMs", json!(60_001)),
        ("/seams/job/start/inFlightMs", json!(501)),
        ("/seams/job/outlivesHost", json!(false)),
        ("/seams/job/honours/sockets", json!(false)),
        ("/seams/host/acquire/lookup", json!(true)),
        ("/seams/channel/caps/receipt", json!("none")),
        ("/seams/channel/caps/command", json!(true)),
    ];
    for (pointer, other) in others {
        let path = pointer[1..].replace('/', ".");
        assert_eq!(difference(&full(), &with(pointer, other)), Some(("LOAD-19", path)));
    }
}

/// LOAD-19
#[test]
fn a_member_that_appears_or_goes_is_named() {
    let without_push = without("/seams/link/push");
    let expected = Some(("LOAD-19", "seams.link.push".to_owned()));
    assert_eq!(difference(&without_push, &full()), expected);
    assert_eq!(difference(&full(), &without_push), expected);
}

/// LOAD-19
#[test]
fn a_seam_that_appears_or_goes_is_named() {
    let mut less = without("/seams/host");
    remove(&mut less, "/seams/link");
    let mut more = full();
    set(&mut more, "/seams/link", full()["seams"]["link"].clone());
    assert_eq!(difference(&less, &more), Some(("LOAD-19", "seams.link".to_owned())));
    assert_eq!(difference(&more, &less), Some(("LOAD-19", "seams.link".to_owned())));
}

/// LOAD-19
#[test]
fn a_list_that_grows_shrinks_or_turns_is_named_at_its_element() {
    let checks = |phases: Value| with("/seams/link/checks", phases);
    let at = |path: &str| Some(("LOAD-19", path.to_owned()));
    assert_eq!(
        difference(&full(), &checks(json!(["template", "reach", "agent"]))),
        at("seams.link.checks[2]")
    );
    assert_eq!(difference(&full(), &checks(json!(["template"]))), at("seams.link.checks[1]"));
    assert_eq!(difference(&full(), &checks(json!(["reach", "template"]))), at("seams.link.checks[0]"));
}

/// A-20
#[test]
fn of_several_differences_the_first_in_the_schemas_order_is_named() {
    let mut declared = with("/instance", json!("other"));
    set(&mut declared, "/seams/link/slots", json!("mu"));
    assert_eq!(difference(&full(), &declared), Some(("LOAD-19", "instance".to_owned())));
}

/// LOAD-19
#[test]
fn a_declaration_that_no_longer_loads_is_refused_for_that() {
    assert_eq!(difference(&full(), &with("/seams/channel/caps/watch", json!("poll"))).unwrap().0, "LOAD-13");
}
