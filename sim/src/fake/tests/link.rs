//! The link seam: what is answered, when, and what the faults of calls make of it.

use serde_json::{Value, json};

use super::super::memory::{Did, INITIALIZE, Memory, call, cancel, fault, plan, request};
use super::super::{Act, Fault, Fd, Plan, PluginTable, When};

/// Everything that mu sends, at its times; the end of stdin at 60,000 ms.
fn hears(lines: &[(u64, String)]) -> Memory {
    let greeting = [(0, Some(INITIALIZE))];
    let lines: Vec<(u64, Option<&str>)> = lines.iter().map(|(at, line)| (*at, Some(line.as_str()))).collect();
    Memory::new(&[&greeting, &lines[..], &[(60_000, None)]].concat())
}

/// The replies behind that to `initialize`, with their times.
fn replies(memory: &Memory) -> Vec<(u64, Value)> {
    let mut all = Vec::new();
    for (at, did) in &memory.did {
        let Did::Wrote(Fd::Stdout, bytes) = did else { continue };
        for line in String::from_utf8_lossy(bytes).lines() {
            all.push((*at, serde_json::from_str(line).unwrap_or(Value::Null)));
        }
    }
    all.split_off(1)
}

fn answers(plan: &Plan, lines: &[(u64, String)]) -> Vec<(u64, Value)> {
    let mut memory = hears(lines);
    memory.run(plan);
    replies(&memory)
}

/// The one answer to this call of id 2 at 100 ms.
fn answer(plan: &Plan, line: String) -> (u64, Value) {
    let mut all = answers(plan, &[(100, line)]);
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0)
}

fn script(id: u64, script: &str, timeout_ms: u64) -> String {
    call(id, "link.exec", &format!(r#""script":{},"cwd":".","timeoutMs":{timeout_ms}"#, json!(script)))
}

fn met_with(method: &str, act: Act) -> Plan {
    plan(&[on(method, act)])
}

fn on(method: &str, act: Act) -> Fault {
    Fault { on: Some(method.to_owned()), ..fault(act) }
}

fn table(text: &str) -> Plan {
    let table: PluginTable = toml::from_str(text).expect("a plugin table");
    Plan::new("box", &table, &[], "sha256:00").unwrap()
}

/// LINK-02
#[test]
fn a_script_is_answered_when_it_has_run() {
    let (at, reply) = answer(&plan(&[]), request(2, "link.exec"));
    assert_eq!(at, 300);
    let result = json!({ "exitCode": 0, "stdout": "out\n", "stderr": "err\n", "partial": false });
    assert_eq!(reply, json!({ "jsonrpc": "2.0", "id": 2, "result": result }));
    let (at, reply) = answer(&plan(&[]), script(2, "echo a; exit 7; echo b", 1));
    assert_eq!(
        (at, &reply["result"]["exitCode"], &reply["result"]["stdout"]),
        (100, &json!(7), &json!("a\n"))
    );
}

/// LINK-15
#[test]
fn a_script_is_cut_at_its_timeout_and_has_no_exit_code_then() {
    let (at, reply) = answer(&plan(&[]), script(2, "echo a; sleep 3; echo b; exit 0", 2_999));
    let result = json!({ "exitCode": null, "stdout": "a\n", "stderr": "", "partial": true });
    assert_eq!((at, &reply["result"]), (3_099, &result));
    let (at, reply) = answer(&plan(&[]), script(2, "sleep 3; exit 1", 3_000));
    assert_eq!((at, &reply["result"]["exitCode"]), (3_100, &json!(1)));
}

#[test]
fn what_a_script_writes_into_files_is_written_at_its_time() {
    let mut memory = hears(&[(100, script(2, "sleep 1; echo up > mark; sleep 9; echo x > late", 5_000))]);
    memory.run(&plan(&[]));
    let stored: Vec<_> = memory.did.iter().filter(|(_, did)| matches!(did, Did::Stored(..))).collect();
    assert_eq!(stored, [&(1_100, Did::Stored("./mark".into(), b"up\n".to_vec()))]);
}

/// SEAM-05, A-14
#[test]
fn overlapping_calls_are_answered_as_they_become_due() {
    let lines = [
        (100, script(2, "sleep 2", 9_000)),
        (200, script(3, "sleep 1", 9_000)),
        (300, request(4, "link.push")),
    ];
    let ids: Vec<_> =
        answers(&plan(&[]), &lines).iter().map(|(at, reply)| (*at, reply["id"].clone())).collect();
    assert_eq!(ids, [(300, json!(4)), (1_200, json!(3)), (2_100, json!(2))]);
}

/// TMO-04
#[test]
fn a_cancelled_call_is_not_answered_and_its_siblings_are() {
    let lines = [(100, script(2, "sleep 2", 9_000)), (100, script(3, "sleep 2", 9_000)), (900, cancel(2))];
    let ids: Vec<_> = answers(&plan(&[]), &lines).iter().map(|(_, reply)| reply["id"].clone()).collect();
    assert_eq!(ids, [3]);
}

/// PRC-14
#[test]
fn the_end_of_stdin_drops_what_is_in_flight() {
    let line = script(2, "sleep 70", 90_000);
    let mut memory = hears(&[(100, line)]);
    memory.run(&plan(&[]));
    assert_eq!((replies(&memory).len(), memory.now), (0, 60_000));
}

/// LINK-03
#[test]
fn a_fetch_writes_the_head_of_the_host_before_it_answers() {
    let sha = "0123456789abcdef0123456789abcdef01234567";
    let mut memory = hears(&[(100, request(2, "link.fetch"))]);
    memory.run(&table(&format!("head = '{sha}'")));
    let stored = memory.did.iter().position(|(_, did)| {
        matches!(did, Did::Stored(path, bytes)
            if path.ends_with("repo/.git/FETCH_HEAD") && bytes.starts_with(sha.as_bytes()))
    });
    let written = memory.did.iter().rposition(|(_, did)| matches!(did, Did::Wrote(..)));
    assert!(stored.expect("it is written") < written.unwrap());
    assert_eq!(replies(&memory)[0].1["result"]["exitCode"], 0);
}

/// LINK-03
#[test]
fn a_fetch_into_nothing_fails() {
    let mut memory = hears(&[(100, request(2, "link.fetch"))]);
    memory.read_only = true;
    memory.run(&plan(&[]));
    assert_eq!(replies(&memory)[0].1["result"]["exitCode"], 128);
}

/// LINK-03
#[test]
fn a_fetch_that_does_not_succeed_writes_nothing() {
    let stored = |act| {
        let mut memory = hears(&[(100, request(2, "link.fetch"))]);
        memory.run(&met_with("link.fetch", act));
        memory.did.iter().any(|(_, did)| matches!(did, Did::Stored(..)))
    };
    assert!(!stored(Act::NoFetchHead) && !stored(Act::ErrorPermanent) && !stored(Act::ExitCode(1)));
    assert!(stored(Act::NoReply) && stored(Act::ExitCode(0)));
}

/// LINK-07
#[test]
fn a_push_succeeds_as_often_as_it_is_asked_for() {
    let all = answers(&plan(&[]), &[(100, request(2, "link.push")), (200, request(3, "link.push"))]);
    assert!(all.iter().all(|(_, reply)| reply["result"]["exitCode"] == 0) && all.len() == 2);
}

/// LINK-11
#[test]
fn steps_are_those_of_the_table_for_the_phase() {
    let phase = |plan: &Plan, phase: &str| {
        answer(plan, call(2, "link.checkSteps", &format!(r#""phase":"{phase}""#))).1["result"].clone()
    };
    let reach = phase(&plan(&[]), "reach");
    assert_eq!((&reach[0]["step"], &reach[0]["ok"]), (&json!("reach"), &json!(true)));
    let own = table(
        "steps = [
            { phase = 'reach', step = 'a' },
            { phase = 'agent', step = 'handback', ok = false, detail = 'log in' },
            { phase = 'reach', step = 'b', ok = 'skip' },
            { phase = 'reach', step = 'c', ok = 'warn', detail = 'slow' },
        ]",
    );
    let step = |step: &str, ok: Value, detail: &str| json!({ "step": step, "ok": ok, "detail": detail });
    let reach = [step("a", json!(true), ""), step("b", Value::Null, ""), step("c", json!("warn"), "slow")];
    assert_eq!(phase(&own, "reach"), json!(reach));
    assert_eq!(phase(&own, "agent"), json!([step("handback", json!(false), "log in")]));
    assert_eq!(phase(&own, "template"), json!([]));
}

/// ERR-01
#[test]
fn a_fault_meets_as_many_requests_in_a_row_as_it_says() {
    let some = Fault { nth: Some(2), times: Some(2), ..on("link.push", Act::ErrorRetryable) };
    let lines: Vec<_> = (2..7).map(|id| (100 * id, request(id, "link.push"))).collect();
    let all = answers(&plan(&[some]), &lines);
    let failed: Vec<_> = all.iter().map(|(_, reply)| reply.get("error").is_some()).collect();
    assert_eq!(failed, [false, true, true, false, false]);
}

/// TRN-16
#[test]
fn a_reply_more_comes_in_the_same_write_or_later() {
    let twice = Fault { when: Some(When::AfterReply), ..on("link.push", Act::Reply) };
    let mut memory = hears(&[(100, request(2, "link.push"))]);
    memory.run(&plan(std::slice::from_ref(&twice)));
    assert_eq!((memory.writes(Fd::Stdout).len(), replies(&memory).len()), (2, 2));
    let all = answers(&plan(&[Fault { after_ms: Some(50), ..twice }]), &[(100, request(2, "link.push"))]);
    assert_eq!(all.iter().map(|(at, _)| *at).collect::<Vec<_>>(), [100, 150]);
}

/// A-14
#[test]
fn a_reply_behind_the_next_comes_after_that_of_a_later_call() {
    let held = on("link.push", Act::BehindNext);
    let lines = [(100, request(2, "link.push")), (400, request(3, "link.push"))];
    let ids: Vec<_> =
        answers(&plan(&[held]), &lines).iter().map(|(at, reply)| (*at, reply["id"].clone())).collect();
    assert_eq!(ids, [(400, json!(3)), (400, json!(2))]);
}

/// TMO-06
#[test]
fn a_reply_after_the_cancel_comes_as_often_as_it_is_scripted() {
    let late = Fault { when: Some(When::OnCancel), ..on("link.exec", Act::Reply) };
    let lines = [(100, script(2, "sleep 5; exit 3", 9_000)), (400, cancel(2)), (500, cancel(2))];
    for times in 1..3 {
        let all = answers(&plan(&vec![late.clone(); times]), &lines);
        assert_eq!(all.len(), times);
        assert!(all.iter().all(|(at, reply)| *at == 400 && reply["result"]["exitCode"] == 3));
    }
}

/// TMO-02, TMO-07
#[test]
fn a_reply_at_a_time_after_the_timeout_comes_in_spite_of_all() {
    for late in [0, 4_900, 5_100] {
        let plan = met_with("link.exec", Act::AfterTimeoutMs(late));
        let (at, reply) = answer(&plan, script(2, "sleep 99", 2_000));
        assert_eq!((at, &reply["result"]["exitCode"]), (2_100 + late, &Value::Null));
        let mut memory = hears(&[(57_000, script(2, "exit 0", 2_000)), (58_000, cancel(2))]);
        memory.run(&plan);
        assert_eq!(replies(&memory).len(), 1);
        assert_eq!(memory.now, 60_000.max(59_000 + late));
    }
}

#[test]
fn answers_are_wrong_in_the_way_their_names_say() {
    let wrong = |method, act| answer(&met_with(method, act), request(2, method)).1["result"].clone();
    assert!(wrong("link.exec", Act::WrongShape).is_array());
    assert!(wrong("link.checkSteps", Act::WrongShape)["exitCode"].is_number());
    assert_eq!(wrong("link.exec", Act::ExitCode(256))["exitCode"], 256);
    assert_eq!(wrong("link.checkSteps", Act::StepOkUnknown)[0]["ok"], "maybe");
    let padded = wrong("link.exec", Act::PaddedString(204_800));
    assert_eq!(padded["stderr"].as_str().unwrap().len(), 204_804);
}

/// LINK-02
#[test]
fn a_cut_run_can_claim_an_exit_code() {
    let (_, reply) = answer(&met_with("link.exec", Act::ExitCode(124)), script(2, "sleep 9", 1_000));
    assert_eq!((&reply["result"]["exitCode"], &reply["result"]["partial"]), (&json!(124), &json!(true)));
}

/// A-03
#[test]
fn an_answer_to_shutdown_has_no_id() {
    let shutdown = "{\"jsonrpc\":\"2.0\",\"method\":\"shutdown\"}\n".to_owned();
    let all = answers(&plan(&[fault(Act::AnswerShutdown)]), &[(100, shutdown)]);
    assert_eq!(all, [(100, json!({ "jsonrpc": "2.0", "id": null, "result": null }))]);
}

/// TRN-04
#[test]
fn half_a_reply_is_followed_by_nothing() {
    let mut memory = hears(&[(100, request(2, "link.push"))]);
    memory.run(&met_with("link.push", Act::HalfReply));
    let last = memory.writes(Fd::Stdout).pop().unwrap();
    assert!(last.starts_with(b"{\"jsonrpc\"") && !last.ends_with(b"\n"));
    assert!(serde_json::from_slice::<Value>(&last).is_err());
}

/// TRN-15
#[test]
fn members_more_and_twice_stand_in_every_kind_of_result() {
    for method in ["link.exec", "link.checkSteps"] {
        let of = |act| {
            let mut memory = hears(&[(100, request(2, method))]);
            memory.run(&met_with(method, act));
            String::from_utf8(memory.writes(Fd::Stdout).pop().unwrap()).unwrap()
        };
        for act in [Act::UnknownFieldResult, Act::UnknownFieldNested] {
            let text = of(act);
            assert!(
                text.contains("\"surplus\":true") && text.contains("\"std") == (method == "link.exec"),
                "{text}"
            );
        }
        let twice = of(Act::DuplicateKeyNested);
        let key = if method == "link.exec" { "\"exitCode\"" } else { "\"detail\"" };
        assert_eq!(twice.matches(key).count(), 2, "{twice}");
        let depth = of(Act::Nesting(64)).chars().fold((0_i32, 0), |(now, most), c| match c {
            '{' | '[' => (now + 1, most.max(now + 1)),
            '}' | ']' => (now - 1, most),
            _ => (now, most),
        });
        assert_eq!(depth, (0, 64));
    }
}
