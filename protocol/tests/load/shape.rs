//! A declaration that is off the schema: LOAD-05, LOAD-06, LOAD-07.

use mu_protocol::declaration::{FirstTurn, Role};
use serde_json::{Value, json};

use crate::{DIGEST, full, judge, judge_for, refusal, refused, with, without};

/// Every object of [`full`], with what may be left out of it.
const OBJECTS: [(&str, &[&str]); 14] = [
    ("", &[]),
    ("/plugin", &[]),
    ("/seams", &["link", "job", "host", "channel"]),
    ("/seams/link", &["push"]),
    ("/seams/job", &["channel", "firstTurn", "outlivesHost", "honours"]),
    ("/seams/job/start", &["dedupe", "inFlightMs"]),
    ("/seams/job/start/dedupe", &[]),
    ("/seams/job/honours", &[]),
    ("/seams/host", &[]),
    ("/seams/host/acquire", &["dedupe", "inFlightMs"]),
    ("/seams/host/acquire/dedupe", &[]),
    ("/seams/channel", &[]),
    ("/seams/channel/caps", &[]),
    ("/seams/link/checks", &[]),
];

fn path(pointer: &str) -> String {
    pointer.trim_start_matches('/').replace('/', ".")
}

/// The members of the object at `pointer`; none for a list.
fn names(pointer: &str) -> Vec<String> {
    let object = full();
    let object = object.pointer(pointer).and_then(Value::as_object);
    object.map(|members| members.keys().cloned().collect()).unwrap_or_default()
}

/// LOAD-05
#[test]
fn each_mandatory_member_is_missed_at_every_depth() {
    for (object, optional) in OBJECTS {
        for name in names(object).iter().filter(|name| !optional.contains(&name.as_str())) {
            let member = format!("{object}/{name}");
            assert_eq!(refusal(&without(&member)), ("LOAD-05", path(&member)));
        }
    }
}

///
#[test]
fn each_optional_member_may_be_left_out() {
    for (object, optional) in OBJECTS {
        for name in optional.iter().filter(|name| names(object).iter().any(|declared| declared == *name)) {
            // Some other rule may miss it.
            let verdict = judge(&without(&format!("{object}/{name}"))).map_err(|refusal| refusal.rule);
            assert!(
                !matches!(verdict, Err("LOAD-05" | "LOAD-06" | "LOAD-07")),
                "{object}/{name}: {verdict:?}"
            );
        }
    }
}

/// LOAD-06
#[test]
fn an_unknown_member_is_refused_at_every_depth() {
    for (object, _) in
        OBJECTS.into_iter().filter(|(object, _)| !names(object).is_empty() && *object != "/seams")
    {
        let member = format!("{object}/extra");
        assert_eq!(refusal(&with(&member, json!(null))), ("LOAD-06", path(&member)));
    }
}

/// LOAD-07
#[test]
fn null_is_no_value_of_any_member() {
    for (object, _) in OBJECTS {
        for name in names(object) {
            let member = format!("{object}/{name}");
            assert_eq!(refusal(&with(&member, json!(null))), ("LOAD-07", path(&member)));
        }
    }
}

/// LOAD-07
#[test]
fn no_member_takes_a_value_of_another_type() {
    for (object, _) in OBJECTS {
        for name in names(object) {
            let member = format!("{object}/{name}");
            for other in [json!("?"), json!(-7), json!([{}]), json!({})] {
                let kept = full();
                let declared = kept.pointer(&member).unwrap();
                let same = std::mem::discriminant(declared) == std::mem::discriminant(&other);
                if !same && member != "/protocol" {
                    let (rule, field) = refusal(&with(&member, other.clone()));
                    assert!(rule == "LOAD-07" || rule == "LOAD-05" && other == json!({}), "{rule} {field}");
                    assert!(field.starts_with(&path(&member)), "{field} for {member}");
                }
            }
        }
    }
}

refused! {
    /// LOAD-07
    an_unknown_seam: with("/seams/vcs", json!({})) => "LOAD-07", "seams.vcs";
    /// LOAD-07
    an_unknown_view: with("/seams/job/view", json!("float")) => "LOAD-07", "seams.job.view";
    /// SEAM-06
    an_unknown_remote_on_timeout: with("/seams/link/remoteOnTimeout", json!("never"))
        => "LOAD-07", "seams.link.remoteOnTimeout";
    /// SEAM-07
    an_unknown_quiescence: with("/seams/link/quiescence", json!("maybe")) => "LOAD-07", "seams.link.quiescence";
    /// SEAM-08
    an_unknown_phase: with("/seams/link/checks", json!(["reach", "beyond"])) => "LOAD-07", "seams.link.checks[1]";
    /// SEAM-10
    an_unknown_role: with("/seams/job/honours/roles", json!(["root"])) => "LOAD-07", "seams.job.honours.roles[0]";
    /// LOAD-07
    a_word_in_capitals: with("/seams/link/slots", json!("MU")) => "LOAD-07", "seams.link.slots";
    /// SEAM-14
    deduplication_that_is_not_exact: with("/seams/job/start/dedupe/exact", json!(false))
        => "LOAD-07", "seams.job.start.dedupe.exact";
    ///
    a_channel_that_deduplicates_in_another_way: with("/seams/channel/caps/dedupe", json!("exact"))
        => "LOAD-07", "seams.channel.caps.dedupe";
    ///
    a_channel_that_deduplicates_without_a_window: with("/seams/channel/caps/dedupe", json!({"exact": true}))
        => "LOAD-05", "seams.channel.caps.dedupe.windowMs";
    ///
    an_unknown_way_to_watch: with("/seams/channel/caps/watch", json!("pigeon")) => "LOAD-07", "seams.channel.caps.watch";

    /// HSK-04
    an_empty_instance: with("/instance", json!("")) => "LOAD-07", "instance";
    /// HSK-04
    an_instance_of_129_characters: with("/instance", json!("é".repeat(129))) => "LOAD-07", "instance";
    ///
    an_instance_with_a_control_character: with("/instance", json!("a\u{85}b")) => "LOAD-07", "instance";
    /// HSK-02
    an_empty_version: with("/plugin/version", json!("")) => "LOAD-07", "plugin.version";
    ///
    a_name_in_capitals: with("/plugin/name", json!("Box")) => "LOAD-07", "plugin.name";
    ///
    a_name_of_33_characters: with("/seams/job/kind", json!("a".repeat(33))) => "LOAD-07", "seams.job.kind";
    ///
    a_name_that_starts_with_a_digit: with("/seams/channel/name", json!("1a")) => "LOAD-07", "seams.channel.name";
    /// HSK-07
    a_digest_in_capitals: with("/schema", json!(DIGEST.to_uppercase())) => "LOAD-07", "schema";
    /// HSK-07
    a_digest_that_is_too_short: with("/schema", json!(&DIGEST[..70])) => "LOAD-07", "schema";
    /// HSK-07
    a_digest_without_its_algorithm: with("/schema", json!(&DIGEST[7..])) => "LOAD-07", "schema";

    /// LOAD-07
    a_protocol_with_a_fraction: with("/protocol", json!(1.5)) => "LOAD-07", "protocol";
    /// LOAD-07
    a_protocol_that_is_a_string: with("/protocol", json!("1")) => "LOAD-07", "protocol";
    /// LOAD-07
    a_negative_size: with("/seams/link/maxScriptBytes", json!(-1)) => "LOAD-07", "seams.link.maxScriptBytes";
    /// LOAD-07
    a_size_past_two_to_the_53: with("/seams/link/maxScriptBytes", json!(1_u64 << 53))
        => "LOAD-07", "seams.link.maxScriptBytes";

    /// LOAD-07
    a_result_that_is_null: json!(null) => "LOAD-07", "result";
    /// LOAD-07
    a_result_that_is_an_array: json!([1, {"name": "box", "version": "1"}, "prod", DIGEST, {}]) => "LOAD-07", "result";
    /// LOAD-07
    a_seam_given_as_an_array: with("/seams/host", json!([{"lookup": true, "fenceKey": true}]))
        => "LOAD-07", "seams.host";
    /// LOAD-07
    a_result_that_is_a_string: json!("ready") => "LOAD-07", "result";
    /// LOAD-05
    a_result_without_members: json!({}) => "LOAD-05", "protocol";
}

/// LOAD-05
#[test]
fn what_is_missing_is_named_before_what_is_unknown() {
    let mut declaration = without("/seams/link/maxScriptBytes");
    crate::set(&mut declaration, "/seams/link/maxScriptByte", json!(1));
    assert_eq!(refusal(&declaration), ("LOAD-05", "seams.link.maxScriptBytes".to_owned()));
}

/// HSK-04
#[test]
fn an_instance_has_128_characters_at_most_and_they_are_not_bytes() {
    let declaration = judge(&with("/instance", json!("😀".repeat(128)))).unwrap();
    assert_eq!(declaration.instance.chars().count(), 128);
}

///
#[test]
fn an_instance_may_hold_colons() {
    assert_eq!(judge(&with("/instance", json!("a:b:c"))).unwrap().instance, "a:b:c");
}

/// LOAD-07
#[test]
fn integers_are_written_as_digits_alone() {
    let text = full().to_string();
    for number in ["131072.0", "131072e0", "1e400", "1e-400", "-0", "18446744073709551616", "131072.5"] {
        let refusal = judge_for(&[], &text.replace("131072", number), None).unwrap_err();
        assert_eq!(
            (refusal.rule, refusal.field.as_str()),
            ("LOAD-07", "seams.link.maxScriptBytes"),
            "{number}"
        );
    }
}

/// LOAD-07
#[test]
fn the_largest_integer_loads() {
    let declaration = judge(&with("/seams/link/maxScriptBytes", json!((1_u64 << 53) - 1))).unwrap();
    assert_eq!(declaration.seams.link.unwrap().max_script_bytes, 9_007_199_254_740_991);
}

/// TRN-01
#[test]
fn names_and_words_may_be_spelt_with_escapes() {
    let text = full().to_string().replace("\"slots\":\"self\"", "\"\\u0073lots\":\"sel\\u0066\"");
    assert!(text.contains("\\u0073"));
    assert_eq!(judge_for(&[], &text, None), judge(&full()));
}

///
#[test]
fn what_is_left_out_has_its_meaning_and_stays_left_out() {
    let mut declaration = full();
    for member in ["firstTurn", "outlivesHost", "honours", "channel"] {
        crate::remove(&mut declaration, &format!("/seams/job/{member}"));
    }
    crate::remove(&mut declaration, "/seams/link/push");
    let loaded = judge(&declaration).unwrap();
    let (link, job) = (loaded.seams.link.as_ref().unwrap(), loaded.seams.job.as_ref().unwrap());
    assert!(!link.pushes() && !job.survives_host());
    assert_eq!(job.begins(), FirstTurn::OnSend);
    let obeys = job.obeys();
    assert_eq!(
        (obeys.command, obeys.env, obeys.sockets, obeys.roles),
        (false, true, false, vec![Role::FullAccess])
    );
    assert_eq!(serde_json::from_str::<Value>(&loaded.to_json()).unwrap(), declaration);
}
