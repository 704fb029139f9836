use mu_protocol::declaration::{Declaration, Dedupe};
use mu_protocol::schema::SCHEMA_DIGEST;
use serde_json::{Value, json};

use super::*;
use crate::os::{BootTime, EpochMs, Pid};
use crate::testing::{FakeOs, process};

fn moment(ms: u64) -> Moment {
    let boot = BootTime { boot: "boot".into(), since: Duration::from_millis(ms) };
    Moment { wall: EpochMs(ms as i64), boot }
}

fn dead(os: &FakeOs) -> ProvenDead {
    let parties = super::super::proof::Parties { writer: process(1, 1), resolver: None, groups: Vec::new() };
    ProvenDead::look(os, &parties, &process(500, 7)).expect("nobody lives")
}

/// A declaration with every seam, of which these members of `job.start`, `host.acquire` and the caps are set.
fn declared(caps: KeyCapabilities, job: &[(&str, Value)], channel: &[(&str, Value)]) -> Declaration {
    let caps = serde_json::to_value(caps).unwrap();
    let mut seam = json!({"kind": "k", "view": "detached", "handle": "reply", "start": caps, "checks": []});
    let mut channel_caps = json!({"fence": "none", "receipt": "none", "dedupe": "none", "steer": "none", "interrupt": "native",
        "fresh": "restart", "answer": true, "command": true, "watch": "stream", "settleText": "tail"});
    job.iter().for_each(|(name, value)| seam[name] = value.clone());
    channel.iter().for_each(|(name, value)| channel_caps[name] = value.clone());
    let text = json!({"protocol": 1, "plugin": {"name": "box", "version": "1"}, "instance": "here", "schema": SCHEMA_DIGEST,
        "seams": {"job": seam, "host": {"acquire": caps}, "channel": {"name": "c", "caps": channel_caps}}});
    Declaration::from_recorded(&text.to_string()).expect("a declaration by the schema")
}

fn all_caps() -> Vec<KeyCapabilities> {
    let mut all = Vec::new();
    for lookup in [false, true] {
        for fence_key in [false, true] {
            for dedupe in [None, Some(Dedupe { window_ms: 60_000 })] {
                for in_flight_ms in [None, Some(5_000)] {
                    all.push(KeyCapabilities { lookup, fence_key, dedupe, in_flight_ms });
                }
            }
        }
    }
    all
}

/// The input space: each method with each shape of a declaration, each of who lives, both instances, newer or not, in
/// and out of the window. The expected step is read off the rules' own words.
/// EFF-05, EFF-06, EFF-07, EFF-08, EFF-09, EFF-10, EFF-11, EFF-13, EFF-14, EFF-16, EFF-17, SPAWN-22, A-20, A-44, A-48, A-76, A-77, A-78
#[test]
fn every_case_of_the_table() {
    let lives =
        [None, Some(Living::Writer(Pid(1))), Some(Living::Resolver(Pid(2))), Some(Living::Group(Pid(3)))];
    let channels = [
        ("none", json!("none")),
        ("exact", json!("none")),
        ("none", json!({"exact": true, "windowMs": 60_000})),
        ("exact", json!({"exact": true, "windowMs": 60_000})),
    ];
    let mut cases = 0;
    let os = FakeOs::new();
    for method in Method::ALL.iter().copied().filter(|method| method.is_effect()) {
        for caps in all_caps() {
            for (handle, first_turn) in
                [("reply", "on-send"), ("pane", "on-send"), ("file", "on-send"), ("reply", "at-start")]
            {
                for (receipt, dedupe) in &channels {
                    let declared = declared(
                        caps,
                        &[("handle", json!(handle)), ("firstTurn", json!(first_turn))],
                        &[("receipt", json!(receipt)), ("dedupe", dedupe.clone())],
                    );
                    for living in lives {
                        for instance in ["here", "there"] {
                            for superseded in [false, true] {
                                for passed in [0, 55_000, 55_001, 1_000_000] {
                                    let begun = moment(1_000);
                                    let open = Open { method, instance: "here", begun: &begun, superseded };
                                    let ways = Ways::of(method, &declared);
                                    let now = moment(1_000 + passed);
                                    let step = decide(
                                        &open,
                                        ways,
                                        instance,
                                        living.map_or_else(|| Ok(dead(&os)), Err),
                                        &now,
                                    );
                                    let in_window = passed <= 55_000;
                                    let word = expected(
                                        method,
                                        caps,
                                        first_turn == "at-start",
                                        receipt,
                                        dedupe != &json!("none"),
                                        living.is_some(),
                                        instance == "here",
                                        superseded,
                                        in_window,
                                    );
                                    assert_eq!(
                                        word_of(&step),
                                        word,
                                        "{method} {caps:?} {handle} {first_turn} {receipt} {dedupe} {living:?} {instance} {superseded} {passed}"
                                    );
                                    if let Step::LookUp { fenced, .. } = &step {
                                        assert_eq!(fenced.is_some(), caps.fence_key, "A-44");
                                    }
                                    cases += 1;
                                }
                            }
                        }
                    }
                }
            }
        }
    }
    assert_eq!(cases, 10 * 16 * 4 * 4 * 4 * 2 * 2 * 4);
}

#[allow(clippy::too_many_arguments)]
fn expected(
    method: Method,
    caps: KeyCapabilities,
    at_start: bool,
    receipt: &str,
    dedupes: bool,
    somebody_lives: bool,
    same_instance: bool,
    newer: bool,
    in_window: bool,
) -> &'static str {
    if somebody_lives {
        return "refuse";
    }
    if !same_instance {
        return "stop-changed";
    }
    match method.as_str() {
        "job.stop" | "host.release" => "reissue",
        "job.start" | "host.acquire" if caps.lookup => "look up",
        "job.start" if at_start => "leave",
        "job.start" | "host.acquire" if caps.dedupe.is_some() && in_window => "resend",
        "job.start" | "host.acquire" => "leave",
        "channel.command" | "channel.abort" | "channel.answer" => "leave",
        "channel.send" | "channel.fresh" | "channel.interrupt" if receipt == "exact" => "receipt",
        "channel.send" | "channel.fresh" | "channel.interrupt" if dedupes && !newer && in_window => "resend",
        "channel.send" | "channel.fresh" | "channel.interrupt" => "leave",
        other => panic!("{other} is no effect"),
    }
}

fn word_of(step: &Step) -> &'static str {
    match step {
        Step::Refuse(_) => "refuse",
        Step::StopChanged => "stop-changed",
        Step::Reissue(_) => "reissue",
        Step::LookUp { .. } => "look up",
        Step::Resend { .. } => "resend",
        Step::AskForReceipt(_) => "receipt",
        Step::Leave(_) => "leave",
    }
}

/// A seam that the plugin no longer declares offers nothing, and sends nothing.
#[test]
fn without_its_seam_an_effect_is_left() {
    let (os, declared) = (FakeOs::new(), crate::testing::declaration("box", None));
    for method in Method::ALL.iter().copied().filter(|method| method.is_effect()) {
        assert_eq!(Ways::of(method, &declared), Ways::None, "{method}");
        let begun = moment(0);
        let open = Open { method, instance: "prod-eu", begun: &begun, superseded: false };
        assert_eq!(decide(&open, Ways::None, "prod-eu", Ok(dead(&os)), &begun), Step::Leave(Left::NoWay));
    }
}

/// EFF-14
#[test]
fn a_none_counts_for_every_kind_but_that_with_a_file() {
    let caps = KeyCapabilities { lookup: true, fence_key: true, dedupe: None, in_flight_ms: None };
    for (handle, counts) in [("reply", true), ("pane", true), ("file", false)] {
        let declared = declared(caps, &[("handle", json!(handle))], &[]);
        let Ways::Key { none_counts, .. } = Ways::of(Method::JobStart, &declared) else { panic!() };
        assert_eq!(none_counts, counts, "{handle}");
    }
}
