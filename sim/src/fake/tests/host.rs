//! The host seam: what the backend is asked, what is said of its answers and of its silence, and the faults around both.

use serde_json::{Value, json};

use super::super::memory::{
    Did, INITIALIZE, Line, Memory, backend, call, call_on, cancel, fault, plan, request,
};
use super::super::{Act, Fault, Fd, When};
use crate::backend::BackendTable;

const HOSTS: [&str; 4] = ["host.acquire", "host.lookup", "host.status", "host.release"];

/// A plugin that hears these lines, and the end of stdin at 90,000 ms.
fn hears(lines: &[(u64, String)]) -> Memory {
    let lines: Vec<(u64, Option<&str>)> = lines.iter().map(|(at, line)| (*at, Some(line.as_str()))).collect();
    Memory::new(&[&[(0, Some(INITIALIZE))], &lines[..], &[(90_000, None)]].concat())
}

/// The replies behind that to `initialize`, with their times.
fn replies(memory: &Memory) -> Vec<(u64, Value)> {
    let written = memory.did.iter().filter_map(|(at, did)| match did {
        Did::Wrote(Fd::Stdout, bytes) => Some((*at, serde_json::from_slice(bytes).expect("one line"))),
        _ => None,
    });
    written.skip(1).collect()
}

/// The one reply to this request of id 2 at 100 ms.
fn reply(memory: &mut Memory, faults: &[Fault]) -> (u64, Value) {
    memory.run(&plan(faults));
    let mut all = replies(memory);
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0)
}

fn asked(line: String, over: Line) -> (u64, Value) {
    let mut memory = hears(&[(100, line)]);
    memory.line = over;
    reply(&mut memory, &[])
}

fn kind(reply: &Value) -> &str {
    reply["error"]["data"]["kind"].as_str().unwrap_or("none")
}

fn questions(memory: &Memory) -> usize {
    memory.did.iter().filter(|(_, did)| matches!(did, Did::Asked(..))).count()
}

fn machines(memory: &Memory) -> usize {
    memory.backend.books.ledgers["test"].machines.len()
}

fn on(method: &str, when: When, act: Act) -> Fault {
    Fault { on: Some(method.to_owned()), when: Some(when), ..fault(act) }
}

/// HOST-05, HOST-06, HOST-07, HOST-08
#[test]
fn what_the_backend_answers_is_passed_on() {
    for (method, result) in [
        ("host.acquire", json!({ "handle": "vm-2" })),
        ("host.lookup", json!({ "found": { "handle": "vm-1" } })),
        ("host.status", json!({ "state": "up", "handle": "vm-1" })),
        ("host.release", Value::Null),
    ] {
        let (at, reply) = asked(request(2, method), Line::Sound);
        assert_eq!((at, reply), (100, json!({ "jsonrpc": "2.0", "id": 2, "result": result })), "{method}");
    }
}

/// ERR-01, ERR-06: what was never asked has not happened; but a release may be a repeat of one that did.
#[test]
fn a_backend_that_cannot_be_reached_is_retryable_unless_the_call_may_be_a_repeat() {
    for method in HOSTS {
        let wanted = if method == "host.release" { "unknown-outcome" } else { "retryable" };
        let (at, refused) = asked(request(2, method), Line::Refused);
        assert_eq!((at, kind(&refused)), (100, wanted), "{method}");
        let (at, given_up) = asked(request(2, method), Line::Deaf);
        assert_eq!((at, kind(&given_up)), (3_100, wanted), "{method}");
    }
}

/// ERR-04, HOST-11: what was asked and not answered may have happened.
#[test]
fn a_backend_that_falls_silent_leaves_the_outcome_unknown() {
    for (line, at) in [(Line::DeafOnceItStands, 8_100), (Line::Reset, 100)] {
        for method in ["host.acquire", "host.release"] {
            let (when, reply) = asked(request(2, method), line);
            assert_eq!((when, kind(&reply)), (at, "unknown-outcome"), "{method}");
        }
        let (when, lookup) = asked(request(2, "host.lookup"), line);
        assert!(when == at && lookup["result"]["unknown"].is_string(), "{lookup}");
        let (when, status) = asked(request(2, "host.status"), line);
        assert_eq!((when, &status["result"]["state"]), (at, &json!("unknown")));
        // A script that did not run has not run.
        let exec = call_on("vm-1", 2, "link.exec", r#""script":"echo a","cwd":".","timeoutMs":1"#);
        assert_eq!(kind(&asked(exec, line).1), "retryable");
    }
}

/// A release that failed must not be told as one that went well, however its bytes are spoiled.
#[test]
fn an_answer_that_is_an_error_is_not_spoiled() {
    for (act, kind_then) in
        [(Act::Crlf, "unknown-outcome"), (Act::ResultNull, "unknown-outcome"), (Act::ErrorHuman, "human")]
    {
        let mut memory = hears(&[(100, request(2, "host.release"))]);
        memory.line = Line::Reset;
        let (_, told) = reply(&mut memory, &[on("host.release", When::Instead, act)]);
        assert_eq!(kind(&told), kind_then, "{told}");
    }
}

#[test]
fn a_slow_backend_gives_signs_of_life() {
    let mut memory = hears(&[(100, request(2, "host.acquire"))]);
    memory.backend = backend(&BackendTable { acquire_ms: Some(60_000), ..BackendTable::default() });
    let (at, reply) = reply(&mut memory, &[]);
    assert_eq!((at, &reply["result"]["handle"]), (60_100, &json!("vm-2")));
}

/// HOST-08, HOST-11
#[test]
fn what_is_about_no_machine_of_this_instance_is_refused() {
    let release = |handle| call_on(handle, 2, "host.release", r#""key":"r""#);
    assert_eq!(kind(&asked(release("vm-9"), Line::Sound).1), "permanent");
    let elsewhere = release("vm-1").replace(r#""instance":"test""#, r#""instance":"other""#);
    let mut memory = hears(&[(100, elsewhere)]);
    assert_eq!(kind(&reply(&mut memory, &[]).1), "permanent");
    assert_eq!(questions(&memory), 0);
    assert_eq!(kind(&asked(call(2, "host.status", ""), Line::Sound).1), "permanent");
}

/// HOST-03
#[test]
fn a_script_runs_only_on_a_machine_that_is_there() {
    let own = r#""script":"echo up > mark; sleep 0.2; echo out","cwd":".","timeoutMs":20000"#;
    let mut memory = hears(&[(100, call_on("vm-1", 2, "link.exec", own))]);
    let (at, done) = reply(&mut memory, &[]);
    assert_eq!((at, &done["result"]["stdout"]), (300, &json!("out\n")));
    assert!(memory.when(|did| matches!(did, Did::Stored(..))).is_some());
    let mut memory = hears(&[(100, call_on("vm-2", 2, "link.exec", own))]);
    let (at, refused) = reply(&mut memory, &[]);
    assert_eq!((at, kind(&refused)), (100, "permanent"));
    assert!(memory.when(|did| matches!(did, Did::Stored(..))).is_none());
}

/// PRC-14: the backend goes on with what it was asked for.
#[test]
fn a_cancel_and_the_end_of_stdin_hang_up() {
    let slow = BackendTable { acquire_ms: Some(1_000), ..BackendTable::default() };
    let ends: [&[(u64, Option<&str>)]; 2] = [&[(600, Some(&cancel(2))), (90_000, None)], &[(600, None)]];
    for end in ends {
        let acquire = request(2, "host.acquire");
        let mut memory =
            Memory::new(&[&[(0, Some(INITIALIZE)), (100, Some(acquire.as_str()))], end].concat());
        memory.backend = backend(&slow);
        memory.run(&plan(&[]));
        assert_eq!(replies(&memory), []);
        assert_eq!(memory.when(|did| *did == Did::HungUp(1)), Some(600));
        let now = crate::backend::Now { at_ms: 1_100, wall_ms: 1_100 };
        memory.backend.books.settle(now);
        assert_eq!(machines(&memory), 2);
    }
}

#[test]
fn calls_of_hosts_overlap() {
    let mut memory = hears(&[(100, request(2, "host.acquire")), (200, request(3, "host.status"))]);
    memory.backend = backend(&BackendTable { acquire_ms: Some(1_000), ..BackendTable::default() });
    memory.run(&plan(&[]));
    let all: Vec<_> = replies(&memory).into_iter().map(|(at, reply)| (at, reply["id"].clone())).collect();
    assert_eq!(all, [(200, json!(3)), (1_100, json!(2))]);
}

/// ERR-06: the truth, for nothing was asked.
#[test]
fn an_error_before_the_effect_or_instead_of_the_answer_asks_nothing() {
    for when in [When::BeforeEffect, When::Instead] {
        let mut memory = hears(&[(100, request(2, "host.acquire"))]);
        let (_, reply) = reply(&mut memory, &[on("host.acquire", when, Act::ErrorPermanent)]);
        assert_eq!((kind(&reply), questions(&memory), machines(&memory)), ("permanent", 0, 1), "{when:?}");
    }
}

#[test]
fn an_error_after_the_effect_is_a_lie() {
    let mut memory = hears(&[(100, request(2, "host.acquire"))]);
    let (_, reply) = reply(&mut memory, &[on("host.acquire", When::AfterEffect, Act::ErrorPermanent)]);
    assert_eq!((kind(&reply), questions(&memory), machines(&memory)), ("permanent", 1, 2));
}

#[test]
fn no_reply_may_come_before_or_after_the_effect() {
    for (when, made) in [(When::BeforeEffect, 1), (When::AfterEffect, 2), (When::Instead, 2)] {
        let mut memory = hears(&[(100, request(2, "host.acquire"))]);
        memory.run(&plan(&[on("host.acquire", when, Act::NoReply)]));
        assert_eq!((replies(&memory).len(), machines(&memory)), (0, made), "{when:?}");
    }
}

#[test]
fn a_delay_lies_before_or_after_the_question() {
    let slow = BackendTable { acquire_ms: Some(300), ..BackendTable::default() };
    for (when, made) in [(When::BeforeEffect, 1_400), (When::AfterEffect, 400)] {
        let mut memory = hears(&[(100, request(2, "host.acquire"))]);
        memory.backend = backend(&slow);
        let (at, _) = reply(&mut memory, &[on("host.acquire", when, Act::DelayMs(1_000))]);
        assert_eq!(at, 1_400, "{when:?}");
        assert_eq!(memory.backend.books.ledgers["test"].machines[1].made_ms, made, "{when:?}");
    }
}

#[test]
fn a_process_may_end_on_either_side_of_the_effect() {
    for (when, made) in [(When::BeforeEffect, 1), (When::AfterEffect, 2)] {
        let mut memory = hears(&[(100, request(2, "host.acquire"))]);
        memory.run(&plan(&[on("host.acquire", when, Act::Exit(3))]));
        assert_eq!((replies(&memory).len(), machines(&memory)), (0, made), "{when:?}");
    }
}

#[test]
fn answers_that_are_made_up_ask_nothing() {
    for (method, act, result) in [
        ("host.lookup", Act::LookupPending, json!({ "pending": true })),
        ("host.lookup", Act::LookupNone, json!({ "none": true })),
        ("host.status", Act::StatusGone, json!({ "state": "gone", "reason": "no machine answers" })),
    ] {
        let mut memory = hears(&[(100, request(2, method))]);
        let (_, reply) = reply(&mut memory, &[Fault { on: Some(method.to_owned()), ..fault(act) }]);
        assert_eq!((&reply["result"], questions(&memory)), (&result, 0));
    }
}

#[test]
fn answers_that_are_bent_are_about_what_the_backend_said() {
    for (method, act, result) in [
        ("host.lookup", Act::FoundOtherHandle, json!({ "found": { "handle": "vm-1-other" } })),
        ("host.status", Act::StatusOtherHandle, json!({ "state": "up", "handle": "vm-1-other" })),
        ("host.acquire", Act::AcquireWithoutHandle, json!({})),
    ] {
        let mut memory = hears(&[(100, request(2, method))]);
        let (_, reply) = reply(&mut memory, &[Fault { on: Some(method.to_owned()), ..fault(act) }]);
        assert_eq!((&reply["result"], questions(&memory)), (&result, 1));
    }
}
