//! Hosts that a plugin provides, from the command line down to a scripted plugin: acquire, status, release, and what becomes
//! of effects without an answer.

use std::time::Duration;

use serde_json::{Value, json};

use crate::os::Pid;
use crate::testing::cloud::{Cloud, declaration};
use crate::testing::{Ran, process};

const ACQUIRE: [&str; 5] = ["host", "acquire", "box", "--provider", "cloud"];

fn result(value: Value) -> Option<Value> {
    Some(json!({ "result": value }))
}

fn error(kind: Value) -> Option<Value> {
    Some(json!({"error": {"code": -32000, "message": "no", "data": kind}}))
}

fn fenced() -> Value {
    json!({"lookup": true, "fenceKey": true})
}

fn failed(ran: &Ran, exit: u8, error: &str) {
    assert_eq!((ran.exit, ran.error().as_str()), (exit, error), "{ran:?}");
}

/// The next run of mu is another process: the one before is gone.
fn next_process(cloud: &Cloud) {
    cloud.os.lives(process(500, 8 + cloud.os.children().len() as u64));
}

/// HOST-04, HOST-05, EFF-03, A-26, A-85
#[test]
fn an_acquire_that_is_answered_leaves_a_ready_host_and_no_intent() {
    let cloud = Cloud::new(fenced());
    cloud.serves(|_| result(json!({"handle": "i-1", "deadlineAt": 5_000_000, "maxJobs": 2})));
    let ran =
        cloud.os.run(&[&ACQUIRE[..], &["--param", "size=large", "--param", "eq=a=b", "--json"]].concat());
    assert_eq!(ran.exit, 0, "{ran:?}");
    let row = json!({"name": "box", "plugin": "cloud", "instance": "here", "state": "ready", "handle": "i-1",
        "params": {"size": "large", "eq": "a=b"}, "deadline_at": 5_000_000, "idle_reclaim_ms": null, "max_jobs": 2,
        "reason": null, "since": 1_000_000});
    let request = &cloud.requests()[0];
    let mut row = row;
    row["key"] = request["params"]["key"].clone();
    assert_eq!(ran.json()["data"], row);
    assert_eq!(cloud.count("effects"), 0);
    assert_eq!(request["params"]["params"], json!({"size": "large", "eq": "a=b"}));
    assert_eq!(request["params"]["target"], json!({"host": {"name": "box"}}));
    let mut shown = row;
    shown["effect"] = Value::Null;
    assert_eq!(cloud.os.run(&["host", "show", "box", "--json"]).json()["data"], shown);
}

/// EFF-02, EFF-04, EFF-09, EFF-13, A-44
#[test]
fn an_acquire_without_an_answer_is_looked_up_by_its_key_and_never_made_twice() {
    let cloud = Cloud::new(fenced());
    let ran = cloud.os.run(&ACQUIRE);
    failed(&ran, 1, "outcome-unknown");
    assert_eq!((cloud.count("effects"), cloud.count("effect_sends")), (1, 1));
    next_process(&cloud);
    cloud.serves(|line| {
        assert_eq!(line["params"]["fence"], json!(true));
        result(json!({"found": {"handle": "i-1"}}))
    });
    let ran = cloud.os.run(&[&ACQUIRE[..], &["--json"]].concat());
    assert_eq!(ran.exit, 0, "{ran:?}");
    assert_eq!(ran.json()["data"]["handle"], "i-1");
    assert_eq!(cloud.asked(), ["host.acquire", "host.lookup"]);
    let requests = cloud.requests();
    assert_eq!(requests[0]["params"]["key"], requests[1]["params"]["key"]);
    assert_eq!(cloud.count("effects"), 0);
}

/// EFF-12, EFF-13, EFF-15
#[test]
fn a_fenced_none_lets_the_acquire_go_on_with_another_key() {
    let cloud = Cloud::new(fenced());
    cloud.os.run(&ACQUIRE);
    next_process(&cloud);
    cloud.serves(|line| match line["method"].as_str().unwrap() {
        "host.lookup" => result(json!({"none": true})),
        _ => result(json!({"handle": "i-2"})),
    });
    assert_eq!(cloud.os.run(&ACQUIRE).exit, 0);
    assert_eq!(cloud.asked(), ["host.acquire", "host.lookup", "host.acquire"]);
    let requests = cloud.requests();
    assert_ne!(requests[0]["params"]["key"], requests[2]["params"]["key"]);
}

/// EFF-13, A-42
#[test]
fn an_unfenced_none_counts_only_after_the_time_on_the_way() {
    let cloud = Cloud::new(json!({"lookup": true, "fenceKey": false, "inFlightMs": 30_000}));
    cloud.os.run(&ACQUIRE);
    next_process(&cloud);
    cloud.serves(|line| match line["method"].as_str().unwrap() {
        "host.lookup" => result(json!({"none": true})),
        _ => result(json!({"handle": "i-2"})),
    });
    failed(&cloud.os.run(&ACQUIRE), 1, "outcome-unknown");
    assert_eq!(cloud.asked(), ["host.acquire", "host.lookup"]);
    // The rest is short by now: it is waited out, and the answer is asked for anew.
    let os = cloud.os.clone();
    os.block_on(async {
        crate::os::Os::sleep_until(&os, crate::os::Os::now(&os) + Duration::from_secs(25)).await
    });
    next_process(&cloud);
    assert_eq!(cloud.os.run(&ACQUIRE).exit, 0);
    let asked = ["host.acquire", "host.lookup", "host.lookup", "host.lookup", "host.acquire"];
    assert_eq!(cloud.asked(), asked);
}

/// EFF-10, CALL-03, CALL-04, A-25, A-77
#[test]
fn without_a_lookup_the_very_same_bytes_go_again_inside_the_window() {
    let cloud = Cloud::new(
        json!({"lookup": false, "fenceKey": false, "dedupe": {"exact": true, "windowMs": 60_000}}),
    );
    cloud.os.run(&[&ACQUIRE[..], &["--param", "a=1"]].concat());
    next_process(&cloud);
    cloud.serves(|_| result(json!({"handle": "i-1"})));
    assert_eq!(cloud.os.run(&[&ACQUIRE[..], &["--param", "a=1"]].concat()).exit, 0);
    let mut requests = cloud.requests();
    assert_eq!(requests.len(), 2);
    assert_ne!(requests[0]["id"], requests[1]["id"]);
    assert_ne!(requests[0]["params"]["deadline"], requests[1]["params"]["deadline"]);
    for request in &mut requests {
        request["params"].as_object_mut().unwrap().remove("deadline");
    }
    assert_eq!(requests[0]["params"], requests[1]["params"]);
}

/// EFF-05, EFF-12, A-43, A-78
#[test]
fn while_the_writer_or_the_group_lives_nothing_is_sent() {
    let cloud = Cloud::new(fenced());
    cloud.os.run(&ACQUIRE);
    cloud.serves(|_| result(json!({"found": {"handle": "i-1"}})));
    let (mu, group) = (process(500, 7), process(1001, 11));
    // Its writer goes on as another process than the one that asks.
    let asks = |args: &[&str]| cloud.os.as_process(600, 50).run(args);
    for args in [&ACQUIRE[..], &["host", "exec", "box", "--", "true"], &["host", "release", "box"]] {
        let ran = asks(args);
        failed(&ran, 4, "effect-busy");
        assert!(ran.message().contains("process 500"), "{}", ran.message());
    }
    cloud.os.ends(mu.pid);
    cloud.os.group_lives(group.clone(), true);
    let ran = asks(&ACQUIRE);
    failed(&ran, 4, "effect-busy");
    assert!(ran.message().contains("group 1001"), "{}", ran.message());
    assert_eq!(cloud.asked(), ["host.acquire"]);
    cloud.os.group_lives(group, false);
    assert_eq!(asks(&ACQUIRE).exit, 0);
}

/// EFF-07, A-20, A-21
#[test]
fn another_instance_is_neither_started_nor_asked() {
    let cloud = Cloud::new(fenced());
    cloud.os.run(&ACQUIRE);
    next_process(&cloud);
    cloud.register(declaration(fenced(), "there"));
    for args in [&ACQUIRE[..], &["host", "status", "box"]] {
        let ran = cloud.os.run(args);
        failed(&ran, 4, "stop-changed");
        assert!(ran.message().contains("here") && ran.message().contains("there"), "{}", ran.message());
    }
    assert_eq!(cloud.os.children().len(), 1);
}

/// EFF-08, HOST-03, HOST-08
#[test]
fn a_release_without_an_answer_is_sent_again() {
    let cloud = Cloud::new(fenced());
    cloud.serves(|_| result(json!({"handle": "i-1"})));
    cloud.os.run(&ACQUIRE);
    cloud.serves(|_| None);
    failed(&cloud.os.run(&["host", "release", "box"]), 1, "outcome-unknown");
    next_process(&cloud);
    cloud.serves(|_| result(Value::Null));
    assert_eq!(cloud.os.run(&["host", "release", "box"]).exit, 0);
    assert_eq!(cloud.asked(), ["host.acquire", "host.release", "host.release"]);
    assert_eq!((cloud.count("hosts"), cloud.count("effects")), (0, 0));
    let requests = cloud.requests();
    let host = json!({"name": "box", "handle": "i-1", "instance": "here"});
    assert_eq!(requests[1]["params"]["target"]["host"], host);
    assert_eq!(requests[1]["params"]["key"], requests[2]["params"]["key"]);
}

/// ERR-01 to ERR-04, EFF-03, A-28, A-41
#[test]
fn an_error_that_says_nothing_happened_leaves_nothing() {
    for (kind, exit, name, sends) in [
        (json!({"kind": "retryable"}), 5, "call-failed", 4),
        (json!({"kind": "permanent"}), 5, "call-failed", 1),
        (json!({"kind": "human", "remedy": "pay the bill"}), 5, "needs-human", 1),
        (json!({"kind": "unknown-outcome"}), 1, "outcome-unknown", 1),
    ] {
        let cloud = Cloud::new(fenced());
        cloud.serves(move |_| error(kind.clone()));
        let ran = cloud.os.run(&ACQUIRE);
        failed(&ran, exit, name);
        assert_eq!(cloud.asked().len(), sends, "{name}");
        let left = i64::from(exit == 1);
        assert_eq!((cloud.count("hosts"), cloud.count("effects")), (left, left), "{name}");
    }
}

/// HOST-09, HOST-10, HOST-12, HOST-16, A-56, A-66
#[test]
fn a_status_patches_facts_and_only_a_proof_loses_a_host() {
    let cloud = Cloud::new(fenced());
    cloud.serves(|_| result(json!({"handle": "i-1", "deadlineAt": 5_000_000, "idleReclaimMs": 7})));
    cloud.os.run(&ACQUIRE);
    let status = |answer: Value| {
        cloud.serves(move |_| result(answer.clone()));
        cloud.os.run(&["host", "status", "box", "--json"])
    };
    let ran = status(json!({"state": "up", "handle": "i-1", "idleReclaimMs": null, "maxJobs": 3}));
    let data = &ran.json()["data"];
    assert_eq!(
        (&data["deadline_at"], &data["idle_reclaim_ms"], &data["max_jobs"]),
        (&json!(5_000_000), &Value::Null, &json!(3))
    );
    failed(&status(json!({"state": "up", "handle": "i-2", "maxJobs": 9})), 1, "outcome-unknown");
    failed(&status(json!({"state": "unknown", "reason": "fog"})), 1, "outcome-unknown");
    let ran = status(json!({"state": "needs-human", "remedy": "log in"}));
    failed(&ran, 5, "needs-human");
    assert!(ran.message().contains("log in"));
    let shown = cloud.os.run(&["host", "show", "box", "--json"]).json();
    assert_eq!((&shown["data"]["state"], &shown["data"]["max_jobs"]), (&json!("ready"), &json!(3)));
    failed(&status(json!({"state": "gone", "reason": "terminated"})), 4, "host-lost");
    failed(&cloud.os.run(&["host", "exec", "box", "--", "true"]), 4, "host-lost");
    failed(&cloud.os.run(&ACQUIRE), 4, "host-lost");
    assert_eq!(cloud.os.run(&["host", "rm", "box"]).exit, 0);
    assert_eq!(cloud.count("hosts"), 0);
}

/// HOST-03, EFF-24
#[test]
fn calls_of_the_link_name_handle_and_instance() {
    let cloud = Cloud::new(fenced());
    cloud.serves(|_| result(json!({"handle": "i-1"})));
    cloud.os.run(&ACQUIRE);
    cloud.serves(|_| result(json!({"exitCode": 3, "stdout": "", "stderr": "", "partial": false})));
    assert_eq!(cloud.os.run(&["host", "exec", "box", "--", "true"]).exit, 3);
    let host = json!({"name": "box", "handle": "i-1", "instance": "here"});
    assert_eq!(cloud.requests()[1]["params"]["target"]["host"], host);
    cloud.register(declaration(fenced(), "there"));
    failed(&cloud.os.run(&["host", "exec", "box", "--", "true"]), 4, "stop-changed");
    failed(&cloud.os.run(&["host", "release", "box"]), 4, "stop-changed");
    assert_eq!(cloud.asked().len(), 2);
}

/// REG-12
#[test]
fn a_plugin_stays_while_a_host_or_an_effect_names_it() {
    let cloud = Cloud::new(fenced());
    cloud.os.run(&ACQUIRE);
    let ran = cloud.os.run(&["plugin", "rm", "cloud"]);
    failed(&ran, 4, "still-referenced");
    assert!(ran.message().contains("host box") && ran.message().contains("effect "), "{}", ran.message());
}

#[test]
fn an_operator_has_the_last_word_once_nobody_lives() {
    let cloud = Cloud::new(fenced());
    cloud.os.run(&ACQUIRE);
    let key = cloud.os.run(&["effect", "list", "--json"]).json()["data"]["effects"][0]["key"].clone();
    let key = key.as_str().unwrap().to_owned();
    let word =
        |args: &[&str]| cloud.os.as_process(600, 50).run(&[&["effect", "resolve", &key], args].concat());
    failed(&word(&["--as", "undone", "--because", "looked"]), 4, "effect-busy");
    cloud.os.ends(Pid(500));
    failed(&word(&["--as", "done", "--because", "looked"]), 2, "usage");
    let ran = word(&["--as", "done", "--handle", "i-9", "--because", "in the console", "--json"]);
    assert_eq!(ran.exit, 0, "{ran:?}");
    assert_eq!(ran.json()["data"]["outcome"], "done");
    assert_eq!((cloud.count("effects"), cloud.count("effect_verdicts")), (0, 1));
    let shown = cloud.os.as_process(600, 50).run(&["host", "show", "box", "--json"]).json();
    assert_eq!((&shown["data"]["state"], &shown["data"]["handle"]), (&json!("ready"), &json!("i-9")));
    failed(&word(&[]), 3, "unknown-effect");
}

#[test]
fn params_that_are_none_are_refused() {
    let cloud = Cloud::new(fenced());
    for param in [&["size"][..], &["=x"], &["a=1", "a=2"]] {
        let flags = param.iter().flat_map(|param| ["--param", param]);
        let args: Vec<&str> = ACQUIRE.into_iter().chain(flags).collect();
        failed(&cloud.os.run(&args), 2, "bad-argument");
    }
    assert_eq!(cloud.os.children().len(), 0);
}

///
#[test]
fn parameters_beyond_the_limit_of_a_line_leave_no_intent() {
    let cloud = Cloud::new(fenced());
    let param = format!("a={}", "x".repeat(1 << 20));
    failed(&cloud.os.run(&[&ACQUIRE[..], &["--param", &param]].concat()), 5, "too-long");
    assert_eq!((cloud.count("hosts"), cloud.count("effects")), (0, 0));
    assert_eq!(cloud.os.children().len(), 0);
}
