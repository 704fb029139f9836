//! Expectations against what came.

use serde_json::json;

use super::super::expect::find;
use super::super::{Step, Text};

fn step(text: &str) -> Step {
    toml::from_str(text).expect("a step")
}

#[test]
fn paths_lead_through_members_elements_and_lengths() {
    let root = json!({ "data": { "plugins": [{ "name": "box" }, { "name": "crate" }] } });
    assert_eq!(find(&root, "data.plugins[1].name"), Some(json!("crate")));
    assert_eq!(find(&root, "data.plugins.#"), Some(json!(2)));
    assert_eq!(find(&root, "data.#"), Some(json!(1)));
    assert_eq!(find(&root, "data.plugins[2]"), None);
    assert_eq!(find(&json!([1, [2]]), "[1][0]"), Some(json!(2)));
}

#[test]
fn what_agrees_is_no_mismatch() {
    let envelope =
        json!({ "ok": true, "data": { "name": "box", "n": 3, "x": [1, 2], "f": 0.5 }, "next": null });
    let step = step(
        "json = { ok = true, data = { name = 'box', n = 3 }, 'data.x' = [1, 2], 'data.f' = 0.5 }\n\
         json_absent = ['next', 'data.other']",
    );
    assert_eq!(step.json_mismatches(&envelope), [""; 0]);
}

#[test]
fn each_difference_is_a_mismatch() {
    let envelope = json!({ "ok": false, "error": "Other", "data": { "n": "3", "x": [1, 2] } });
    let step = step(
        "error = 'PluginRefused'\n\
         json = { ok = true, 'data.n' = 3, 'data.x' = [1], 'data.y' = 1 }\n\
         json_absent = ['data.n']",
    );
    let mismatches = step.json_mismatches(&envelope);
    assert_eq!(mismatches.len(), 6, "{mismatches:?}");
    assert!(mismatches[0].contains("Other") && mismatches[0].contains("PluginRefused"));
}

#[test]
fn a_number_is_not_its_text_and_an_integer_no_float() {
    for (expected, actual) in [("1", json!(1.0)), ("1.0", json!(1)), ("'1'", json!(1)), ("true", json!(1))] {
        let step = step(&format!("json = {{ v = {expected} }}"));
        assert_eq!(step.json_mismatches(&json!({ "v": actual })).len(), 1, "{expected} against {actual}");
    }
}

#[test]
fn text_is_held_against_parts_and_lines() {
    let text: Text = toml::from_str("contains = ['a', 'b']\nnot_contains = 'c'\nlines = 1").unwrap();
    assert_eq!(text.mismatches("stdout", "ab\n"), [""; 0]);
    let mismatches = text.mismatches("stdout", "ac\nd\n");
    assert_eq!(mismatches, ["stdout lacks \"b\"", "stdout holds \"c\"", "stdout has 2 lines, not 1"]);
}

#[test]
fn time_is_held_against_its_bounds_and_they_are_included() {
    let step = step("within_ms = 100\ntook_ms = [50, 90]");
    assert_eq!([50, 90].map(|ms| step.time_mismatches(ms).len()), [0, 0]);
    assert_eq!([49, 91, 101].map(|ms| step.time_mismatches(ms).len()), [1, 1, 2]);
}

#[test]
fn a_fetch_head_is_held_against_a_part_or_its_absence() {
    let mismatch = |wanted: &str, held| step(&format!("fetch_head = '{wanted}'")).fetch_head_mismatch(held);
    assert_eq!(mismatch("absent", None), None);
    assert_eq!(mismatch("4711", Some("x 4711\n")), None);
    assert_eq!(Step::default().fetch_head_mismatch(Some("x")), None);
    for (wanted, held) in [("absent", Some("x")), ("4711", Some("x")), ("4711", None)] {
        assert!(mismatch(wanted, held).is_some_and(|text| text.starts_with("FETCH_HEAD")), "{wanted}");
    }
}
