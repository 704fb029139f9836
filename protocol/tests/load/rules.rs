//! The rules besides the shape.

use mu_protocol::declaration::Seam;
use mu_protocol::envelope::Body;
use mu_protocol::load::{LoadRefusal, Registration, load};
use serde_json::{Value, json};

use crate::{DIGEST, OTHER_DIGEST, full, judge, judge_for, refusal, refused, remove, set, with, without};

/// A job seam that needs no other seam.
fn plain_job() -> Value {
    let mut declaration = full();
    set(&mut declaration, "/seams", json!({"job": full()["seams"]["job"]}));
    for member in ["channel", "firstTurn", "honours"] {
        remove(&mut declaration, &format!("/seams/job/{member}"));
    }
    declaration
}

/// [`plain_job`] with the given members in its job seam.
fn job_with(members: &[(&str, Value)]) -> Value {
    let mut declaration = plain_job();
    for (name, value) in members {
        set(&mut declaration, &format!("/seams/job/{name}"), value.clone());
    }
    declaration
}

fn neither() -> Value {
    json!({"lookup": false, "fenceKey": true, "inFlightMs": 1})
}

refused! {
    /// LOAD-01
    a_later_protocol: with("/protocol", json!(2)) => "LOAD-01", "protocol";
    /// LOAD-01
    protocol_zero: with("/protocol", json!(0)) => "LOAD-01", "protocol";
    /// LOAD-01
    a_negative_protocol: with("/protocol", json!(-1)) => "LOAD-01", "protocol";
    /// LOAD-01
    a_later_protocol_with_a_shape_of_its_own: json!({"protocol": 2, "capabilities": []}) => "LOAD-01", "protocol";
    /// LOAD-03
    another_name: with("/plugin/name", json!("crate")) => "LOAD-03", "plugin.name";
    /// LOAD-04
    another_digest: with("/schema", json!(OTHER_DIGEST)) => "LOAD-04", "schema";
    /// LOAD-09
    no_seam: with("/seams", json!({})) => "LOAD-09", "seams";
    /// LOAD-10
    a_host_without_link: without("/seams/link") => "LOAD-10", "seams.host";
    /// A-01
    a_host_without_job: without("/seams/job") => "LOAD-10", "seams.host";
    /// LOAD-11
    an_acquire_that_cannot_be_resolved: with("/seams/host/acquire", neither()) => "LOAD-11", "seams.host.acquire";
    /// LOAD-12
    a_start_that_cannot_be_resolved: job_with(&[("start", neither())]) => "LOAD-12", "seams.job.start";
    /// LOAD-13
    a_channel_that_is_polled: with("/seams/channel/caps/watch", json!("poll")) => "LOAD-13", "seams.channel.caps.watch";
    /// LOAD-13
    a_channel_that_cannot_be_watched: with("/seams/channel/caps/watch", json!("none"))
        => "LOAD-13", "seams.channel.caps.watch";
    /// LOAD-14
    a_channel_without_text: with("/seams/channel/caps/settleText", json!("none"))
        => "LOAD-14", "seams.channel.caps.settleText";
    /// LOAD-15
    a_channel_with_a_fence: with("/seams/channel/caps/fence", json!("incarnation"))
        => "LOAD-15", "seams.channel.caps.fence";
    /// LOAD-16
    a_job_that_names_another_channel: with("/seams/job/channel", json!("other")) => "LOAD-16", "seams.job.channel";
    /// LOAD-16
    a_job_that_names_a_channel_without_a_channel_seam: without("/seams/channel") => "LOAD-16", "seams.job.channel";
    /// LOAD-17
    a_first_turn_at_the_start_with_a_file: job_with(&[("firstTurn", json!("at-start")), ("handle", json!("file"))])
        => "LOAD-17", "seams.job.firstTurn";
    /// LOAD-17
    a_first_turn_at_the_start_with_a_pane: job_with(&[("firstTurn", json!("at-start")), ("handle", json!("pane"))])
        => "LOAD-17", "seams.job.firstTurn";
    /// LOAD-18
    no_environment_and_no_channel:
        job_with(&[("honours", json!({"command": true, "env": false, "sockets": true, "roles": []}))])
        => "LOAD-18", "seams.job.honours.env";
}

/// LOAD-02
#[test]
fn an_error_is_refused_whatever_its_data() {
    for error in [
        r#"{"code":-32000,"message":"no","data":{"kind":"retryable"}}"#,
        r#"{"code":-32000,"message":"no","data":{"kind":"cosmic"}}"#,
        r#"{"code":-32000,"message":"no"}"#,
        r#"{"message":7}"#,
        "{}",
    ] {
        let registration = Registration { name: "box", needs: &[] };
        let refusal = load(&Body::Error(crate::json(error)), &registration, DIGEST, None).unwrap_err();
        assert_eq!((refusal.rule, refusal.field.as_str()), ("LOAD-02", "error"), "{error}");
    }
}

fn needing(seam: Seam, result: &Value) -> Result<(), LoadRefusal> {
    judge_for(&[seam], &result.to_string(), None).map(drop)
}

/// LOAD-08
#[test]
fn a_seam_that_is_needed_and_missing_is_refused() {
    for (seam, field) in
        [(Seam::Link, "seams.link"), (Seam::Host, "seams.host"), (Seam::Channel, "seams.channel")]
    {
        let refusal = needing(seam, &plain_job()).unwrap_err();
        assert_eq!((refusal.rule, refusal.field.as_str()), ("LOAD-08", field));
    }
}

/// LOAD-08
#[test]
fn a_seam_that_is_needed_and_declared_loads() {
    for seam in [Seam::Link, Seam::Job, Seam::Host, Seam::Channel] {
        assert_eq!(needing(seam, &full()), Ok(()));
    }
}

/// LOAD-10
#[test]
fn every_other_set_of_seams_loads() {
    let seams = full()["seams"].as_object().unwrap().clone();
    for set in 1..16_u8 {
        let mut declaration = job_with(&[]);
        let mut chosen = serde_json::Map::new();
        for (bit, name) in ["link", "job", "host", "channel"].iter().enumerate() {
            if set & (1 << bit) != 0 {
                chosen.insert((*name).to_owned(), seams[*name].clone());
            }
        }
        if chosen.contains_key("job") {
            chosen["job"] = declaration["seams"]["job"].clone();
        }
        let host_alone = set & 4 != 0 && set & 3 != 3;
        declaration["seams"] = Value::Object(chosen);
        assert_eq!(
            judge(&declaration).map_err(|refusal| refusal.rule).err(),
            host_alone.then_some("LOAD-10")
        );
    }
}

/// LOAD-11, LOAD-12
#[test]
fn lookup_or_exact_deduplication_is_enough() {
    for key in [
        json!({"lookup": true, "fenceKey": false}),
        json!({"lookup": false, "fenceKey": false, "dedupe": {"exact": true, "windowMs": 1}}),
    ] {
        assert!(judge(&with("/seams/host/acquire", key.clone())).is_ok());
        assert!(judge(&job_with(&[("start", key)])).is_ok());
    }
}

/// LOAD-12
#[test]
fn a_start_whose_handle_is_a_pane_or_file_need_not_be_resolvable() {
    for handle in ["pane", "file"] {
        assert!(judge(&job_with(&[("start", neither()), ("handle", json!(handle))])).is_ok());
    }
}

/// LOAD-14
#[test]
fn the_end_of_a_turns_text_is_enough() {
    assert!(judge(&with("/seams/channel/caps/settleText", json!("tail"))).is_ok());
}

/// A-68
#[test]
fn a_channel_that_no_job_names_loads() {
    let mut declaration = without("/seams/job/channel");
    remove(&mut declaration, "/seams/job/honours");
    assert!(judge(&declaration).is_ok());
}

/// LOAD-17
#[test]
fn a_first_turn_by_delivery_goes_with_any_handle() {
    for handle in ["pane", "file", "reply"] {
        assert!(judge(&job_with(&[("firstTurn", json!("on-send")), ("handle", json!(handle))])).is_ok());
    }
}

/// LOAD-18
#[test]
fn no_environment_is_fine_with_a_channel() {
    assert!(judge(&full()).is_ok_and(|loaded| !loaded.seams.job.unwrap().obeys().env));
}

/// LOAD-01 before LOAD-05 before LOAD-03 before LOAD-04 before LOAD-09 before LOAD-08
#[test]
fn of_several_broken_rules_the_first_in_order_is_named() {
    let mut declaration = json!({
        "protocol": 2, "plugin": {"name": "crate"}, "instance": "i",
        "schema": OTHER_DIGEST, "seams": {}
    });
    let judge = |declaration: &Value| needing(Seam::Link, declaration).map_err(|refusal| refusal.rule);
    assert_eq!(judge(&declaration), Err("LOAD-01"));
    declaration["protocol"] = json!(1);
    assert_eq!(judge(&declaration), Err("LOAD-05"));
    declaration["plugin"]["version"] = json!("1");
    assert_eq!(judge(&declaration), Err("LOAD-03"));
    declaration["plugin"]["name"] = json!("box");
    assert_eq!(judge(&declaration), Err("LOAD-04"));
    declaration["schema"] = json!(DIGEST);
    assert_eq!(judge(&declaration), Err("LOAD-09"));
    declaration["seams"] = plain_job()["seams"].clone();
    assert_eq!(judge(&declaration), Err("LOAD-08"));
}

/// LOAD-11
#[test]
fn a_refused_declaration_is_refused_at_the_first_of_two_broken_seams() {
    let mut declaration = with("/seams/host/acquire", neither());
    set(&mut declaration, "/seams/job/start", neither());
    assert_eq!(refusal(&declaration).0, "LOAD-11");
}
