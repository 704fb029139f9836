//! What a refusal says: one line, the field, the reason, the remedy, the rule; nothing of the plugin's values.

use mu_protocol::envelope::Body;
use mu_protocol::load::{LoadRefusal, Registration, load};
use serde_json::{Value, json};

use crate::{DIGEST, OTHER_DIGEST, full, judge, judge_for, with, without};

fn text(result: &Value) -> String {
    judge(result).unwrap_err().to_string()
}

/// LOAD-05
#[test]
fn a_missing_member_is_named_with_what_to_do() {
    assert_eq!(
        text(&without("/seams/link/maxScriptBytes")),
        "seams.link.maxScriptBytes is missing; declare it; `mu plugin schema` prints its form (LOAD-05)"
    );
}

/// LOAD-07
#[test]
fn an_unknown_word_is_answered_with_the_known_ones() {
    assert_eq!(
        text(&with("/seams/job/view", json!("float"))),
        "seams.job.view is none of `bound`, `detached`; declare it as `mu plugin schema` says (LOAD-07)"
    );
}

/// LOAD-03
#[test]
fn a_wrong_name_is_shown_beside_the_registered_one() {
    assert!(
        text(&with("/plugin/name", json!("crate")))
            .starts_with("plugin.name is `crate`, registered is `box`; ")
    );
}

/// LOAD-04
#[test]
fn a_wrong_digest_is_answered_with_the_right_one() {
    let text = text(&with("/schema", json!(OTHER_DIGEST)));
    assert!(text.contains(DIGEST) && !text.contains("bbbb"), "{text}");
}

/// LOAD-06
#[test]
fn the_name_of_an_unknown_member_is_escaped_and_cut() {
    let text = text(&with(&format!("/plugin/\u{1b}[2J\n{}", "x".repeat(100)), json!(1)));
    assert!(text.starts_with("plugin.\\u{1b}[2J\\nxxx") && text.contains("x… is unknown"), "{text}");
    assert!(!text.contains('\n') && !text.contains('\u{1b}'));
}

fn answered_with(error: &Value) -> LoadRefusal {
    let registration = Registration { name: "box", needs: &[] };
    load(&Body::Error(crate::json(&error.to_string())), &registration, DIGEST, None).unwrap_err()
}

/// LOAD-02, A-70
#[test]
fn the_first_line_of_an_errors_message_is_kept_apart() {
    let refusal = answered_with(&json!({"code": 1, "message": "no\ttoken\u{1b}[0m\nsecond line"}));
    assert_eq!(refusal.said.as_deref(), Some("notoken[0m"));
    assert!(!refusal.to_string().contains("token"));
}

/// LOAD-02
#[test]
fn each_escape_in_the_kept_line_is_decoded() {
    let error = r#"{"message":"\u00e9\ud83d\ude00\u20AC\/\"\\\b\f\r\t."}"#;
    let registration = Registration { name: "box", needs: &[] };
    let refusal = load(&Body::Error(crate::json(error)), &registration, DIGEST, None).unwrap_err();
    assert_eq!(refusal.said.as_deref(), Some("é😀€/\"\\."));
}

/// A-12
#[test]
fn the_kept_line_has_400_characters_at_most() {
    let refusal = answered_with(&json!({"message": "é".repeat(500)}));
    assert_eq!(refusal.said.map(|said| said.chars().count()), Some(400));
}

/// LOAD-02
#[test]
fn an_error_without_a_message_says_nothing() {
    assert_eq!(answered_with(&json!({"message": 7})).said, None);
}

/// The pointers to everything in `value` that holds nothing else.
fn leaves(pointer: &str, value: &Value) -> Vec<String> {
    match value {
        Value::Object(members) => {
            members.iter().flat_map(|(name, value)| leaves(&format!("{pointer}/{name}"), value)).collect()
        }
        Value::Array(items) => items
            .iter()
            .enumerate()
            .flat_map(|(at, value)| leaves(&format!("{pointer}/{at}"), value))
            .collect(),
        _ => vec![pointer.to_owned()],
    }
}

/// SEC-01
#[test]
fn no_refusal_repeats_a_value() {
    let recorded = judge(&full()).unwrap();
    let mut refused = 0;
    for leaf in leaves("", &full()) {
        for canary in [json!("CANARY 7"), json!(["CANARY 7"]), json!("canary-7"), json!({"a": "CANARY 7"})] {
            let mut declaration = full();
            *declaration.pointer_mut(&leaf).unwrap() = canary;
            let Err(refusal) = judge_for(&[], &declaration.to_string(), Some(&recorded)) else { continue };
            refused += 1;
            // A well-formed name is the one value that is shown, to tell it from the registered one.
            if refusal.rule != "LOAD-03" {
                // The instance is for those who have an effect at another one (A-21); the text does not have it.
                let refusal = LoadRefusal { other_instance: None, ..refusal };
                let text = format!("{refusal} {refusal:?}").to_lowercase();
                assert!(!text.contains("canary") && !text.contains('\n'), "{text}");
            }
        }
    }
    assert!(refused > 100);
}

/// LOAD-01 to LOAD-19
#[test]
fn each_text_starts_with_the_field_and_ends_with_the_rule() {
    for result in [with("/protocol", json!(9)), with("/seams", json!({})), without("/seams/job"), json!(3)] {
        let refusal = judge(&result).unwrap_err();
        let text = refusal.to_string();
        assert!(text.starts_with(&refusal.field) && text.ends_with(&format!("({})", refusal.rule)), "{text}");
    }
}
