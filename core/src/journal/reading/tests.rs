use mu_protocol::declaration::{Dedupe, KeyCapabilities};
use mu_protocol::messages::method::parse_result;
use mu_protocol::outgoing::TooLong;
use mu_protocol::strict::Checked;
use serde_json::{Value, json};

use super::*;
use crate::call_error::{StartError, Unanswered};
use crate::journal::proof::{Parties, Permit, ProvenDead};
use crate::os::{BootTime, EpochMs, Exit, Signal};
use crate::session::{Cause, Ending, NotSent, StderrLine};
use crate::testing::{FakeOs, process};

fn moment(ms: u64) -> Moment {
    let boot = BootTime { boot: "boot".into(), since: Duration::from_millis(ms) };
    Moment { wall: EpochMs(ms as i64), boot }
}

fn fence() -> Fenced {
    let parties = Parties { writer: process(1, 1), resolver: None, groups: Vec::new() };
    let dead = ProvenDead::look(&FakeOs::new(), &parties, &process(500, 7)).unwrap();
    Fenced::by(&Permit::new(dead, "i", "i").unwrap(), true).unwrap()
}

fn ok(method: Method, result: Value) -> Result<AnyResult, CallError> {
    let result = result.to_string();
    Ok(parse_result(method, Checked::value(&result).unwrap())
        .unwrap_or_else(|error| panic!("{method} {result}: {error:?}")))
}

fn refused(method: Method, kind: ErrorKind) -> Result<AnyResult, CallError> {
    Err(CallError::Refused(method, ReplyError { code: 1, message: "no".into(), kind }))
}

fn unanswered(method: Method) -> Result<AnyResult, CallError> {
    let ending = Ending {
        cause: Cause::LeaderExited,
        exit: Exit::Status(0),
        grace_over: false,
        stdout_bytes: 0,
        late_bytes: 0,
        lines: 0,
        first_bytes: Vec::new(),
        declaration: None,
        unanswered: vec![1],
        stderr: StderrLine::default(),
    };
    let (id, budget) = (1, Duration::from_secs(1));
    Err(CallError::Unanswered(Box::new(Unanswered { id, method, budget, ending })))
}

fn errors(method: Method) -> Vec<Result<AnyResult, CallError>> {
    vec![
        refused(method, ErrorKind::Retryable),
        refused(method, ErrorKind::Permanent),
        refused(
            method,
            ErrorKind::Human { remedy: mu_protocol::messages::values::Reason::new("x").unwrap() },
        ),
        refused(method, ErrorKind::UnknownOutcome),
        unanswered(method),
        Err(CallError::NotSent(method, NotSent::Gone)),
        Err(CallError::TooLong(method, TooLong { bytes: 1 })),
        Err(CallError::Start(StartError::Interrupted(Signal::Terminate))),
    ]
}

fn key(lookup: bool, fence_key: bool, in_flight_ms: Option<u64>, none_counts: bool) -> Ways {
    let caps =
        KeyCapabilities { lookup, fence_key, dedupe: Some(Dedupe { window_ms: 60_000 }), in_flight_ms };
    Ways::Key { caps, none_counts, resends: true }
}

/// A word for a reading.
fn word(reading: &Reading) -> &'static str {
    match reading {
        Reading::Done(..) => "done",
        Reading::Undone(_) => "undone",
        Reading::AskAgain(_) => "again",
        Reading::Open(_) => "open",
    }
}

fn judge(
    question: Question,
    ways: Ways,
    expected: &Expected,
    quiet: Option<u64>,
    at: u64,
    answer: &Result<AnyResult, CallError>,
) -> Reading {
    let (quiet, at) = (quiet.map(moment), moment(at));
    read(Asked { question, ways, expected, quiet: quiet.as_ref(), at: &at }, answer)
}

/// Each effect's sound result, by its method.
fn result_of(method: Method) -> Value {
    let sent = json!({"channel": "c", "ack": "accepted", "msgId": "m1"});
    match method.as_str() {
        "host.acquire" => json!({"handle": "h"}),
        "host.release" | "job.stop" => Value::Null,
        "job.start" => json!({"view": {"command": "x", "env": {}}, "handle": "h", "baseline": {"runs": 0}}),
        "channel.send" | "channel.fresh" => sent,
        "channel.command" => json!({"channel": "c", "ack": "accepted"}),
        "channel.interrupt" => json!({"wasBusy": true, "pending": false, "msgId": "m1"}),
        "channel.abort" => {
            json!({"before": "busy", "after": "idle", "settled": true, "aborted": true, "pending": false})
        }
        "channel.answer" => json!({"keys": "y", "ack": "confirmed"}),
        other => panic!("{other} is no effect"),
    }
}

fn effects() -> impl Iterator<Item = Method> {
    Method::ALL.iter().copied().filter(|method| method.is_effect())
}

fn strict() -> Expected {
    Expected {
        msg_id: Some(MsgId::new("m1").unwrap()),
        channel: Some(Name::new("c").unwrap()),
        handle: true,
        no_turns: true,
    }
}

/// EFF-03, EFF-04, EFF-23, ERR-01 to ERR-04, A-41, TMO-08, TRN-19
#[test]
fn a_send_is_definite_by_a_sound_result_or_by_an_error_that_rules_the_effect_out() {
    let mut cases = 0;
    for method in effects() {
        for again in [false, true] {
            let question = || if again { Question::Again } else { Question::First };
            let sound = ok(method, result_of(method));
            assert_eq!(word(&judge(question(), Ways::None, &strict(), None, 0, &sound)), "done", "{method}");
            for answer in errors(method) {
                let wanted = match &answer {
                    Err(CallError::Refused(_, error)) if error.kind == ErrorKind::UnknownOutcome => "open",
                    Err(CallError::Refused(..)) => "undone",
                    Err(CallError::Unanswered(_)) => "open",
                    // Nothing was written now; of an earlier send that says nothing.
                    _ if again => "open",
                    _ => "undone",
                };
                let reading = judge(question(), Ways::None, &strict(), None, 0, &answer);
                assert_eq!(word(&reading), wanted, "{method} {again} {answer:?}");
                cases += 1;
            }
        }
    }
    assert_eq!(cases, 10 * 2 * 8);
}

/// EFF-19, EFF-21, SPAWN-14, A-33, A-51
#[test]
fn a_result_that_disagrees_with_its_request_decides_nothing() {
    let start = |handle: bool, runs: Option<u64>| {
        let mut result = json!({"view": {"command": "x", "env": {}}});
        if handle {
            result["handle"] = json!("h");
        }
        if let Some(runs) = runs {
            result["baseline"] = json!({ "runs": runs });
        }
        (Method::JobStart, result)
    };
    let sent = |method, channel: &str, ack: &str, id: Option<&str>| {
        let mut result = json!({"channel": channel, "ack": ack});
        if let Some(id) = id {
            result["msgId"] = json!(id);
        }
        (method, result)
    };
    let interrupted =
        |id: &str| (Method::ChannelInterrupt, json!({"wasBusy": false, "pending": false, "msgId": id}));
    for ((method, result), wanted) in [
        (start(true, Some(0)), "done"),
        (start(false, Some(0)), "open"),
        (start(true, None), "open"),
        (start(true, Some(1)), "open"),
        (sent(Method::ChannelSend, "c", "accepted", Some("m1")), "done"),
        (sent(Method::ChannelSend, "c", "sent", None), "done"),
        (sent(Method::ChannelSend, "c", "unknown", Some("m1")), "open"),
        (sent(Method::ChannelSend, "other", "accepted", Some("m1")), "open"),
        (sent(Method::ChannelSend, "c", "accepted", Some("m2")), "open"),
        (sent(Method::ChannelFresh, "c", "accepted", Some("m2")), "open"),
        (sent(Method::ChannelCommand, "other", "accepted", None), "open"),
        (interrupted("m1"), "done"),
        (interrupted("m2"), "open"),
        ((Method::ChannelAnswer, json!({"keys": "y", "ack": "unknown"})), "open"),
    ] {
        let reading = judge(Question::First, Ways::None, &strict(), None, 0, &ok(method, result.clone()));
        assert_eq!(word(&reading), wanted, "{method} {result}");
    }
    // Of a kind that gives no handle and has no turn in its start nothing of that is wanted.
    let (method, result) = start(false, None);
    let loose = Expected::default();
    assert_eq!(word(&judge(Question::First, Ways::None, &loose, None, 0, &ok(method, result))), "done");
}

/// EFF-09, EFF-12, EFF-13, EFF-14, HOST-06, JOB-03, A-42
#[test]
fn every_answer_to_a_lookup() {
    let mut cases = 0;
    for method in [Method::HostLookup, Method::JobLookup] {
        let found = match method {
            Method::HostLookup => json!({"found": {"handle": "h"}}),
            _ => {
                json!({"found": {"handle": "h", "view": {"command": "x", "env": {}}, "baseline": {"runs": 0}}})
            }
        };
        let answers = [
            ("found", found),
            ("pending", json!({"pending": true})),
            ("none", json!({"none": true})),
            ("unknown", json!({"unknown": "fog"})),
        ];
        for (name, answer) in &answers {
            for fenced in [false, true] {
                for in_flight in [None, Some(30_000)] {
                    for none_counts in [false, true] {
                        for quiet in [None, Some(1_000)] {
                            for at in [1_000, 20_999, 21_000, 30_999, 31_000, 99_000] {
                                let question = Question::LookUp(fenced.then(fence));
                                let ways = key(true, fenced, in_flight, none_counts);
                                let answer = ok(method, answer.clone());
                                let reading = judge(question, ways, &strict(), quiet, at, &answer);
                                let passed = quiet.map(|quiet| at - quiet);
                                let wanted = match *name {
                                    "found" => "done",
                                    "pending" | "unknown" => "open",
                                    _ if !none_counts => "open",
                                    _ if fenced => "undone",
                                    _ => match (in_flight, passed) {
                                        (None, _) | (_, None) => "open",
                                        (Some(all), Some(passed)) if passed >= all => "undone",
                                        (Some(all), Some(passed)) if all - passed <= 10_000 => "again",
                                        _ => "open",
                                    },
                                };
                                assert_eq!(
                                    word(&reading),
                                    wanted,
                                    "{method} {name} {fenced} {in_flight:?} {none_counts} {quiet:?} {at}"
                                );
                                if let Reading::AskAgain(rest) = reading {
                                    assert_eq!(
                                        rest.as_millis() as u64,
                                        31_000 - at,
                                        "no earlier than at the end"
                                    );
                                }
                                cases += 1;
                            }
                        }
                    }
                }
            }
        }
        for answer in errors(method) {
            for fenced in [false, true] {
                let question = Question::LookUp(fenced.then(fence));
                let reading =
                    judge(question, key(true, fenced, Some(1), true), &strict(), Some(0), 99_000, &answer);
                assert_eq!(
                    word(&reading),
                    "open",
                    "an error of a lookup says nothing of the effect: {answer:?}"
                );
            }
        }
    }
    assert_eq!(cases, 2 * 4 * 2 * 2 * 2 * 2 * 6);
}

/// EFF-13
#[test]
fn no_time_on_the_way_at_all_needs_no_wait_once_all_are_gone() {
    let none = ok(Method::HostLookup, json!({"none": true}));
    let ask = |quiet| {
        judge(Question::LookUp(None), key(true, false, Some(0), true), &Expected::default(), quiet, 5, &none)
    };
    assert_eq!((word(&ask(Some(5))), word(&ask(None))), ("undone", "open"));
}

/// EFF-19, SPAWN-14
#[test]
fn what_is_found_is_held_to_the_same_checks_as_a_start() {
    for (found, wanted) in [
        (json!({"handle": "h"}), "open"),
        (json!({"handle": "h", "view": {"command": "x", "env": {}}}), "open"),
        (json!({"handle": "h", "view": {"command": "x", "env": {}}, "baseline": {"runs": 2}}), "open"),
        (json!({"handle": "h", "view": {"command": "x", "env": {}}, "baseline": {"runs": 0}}), "done"),
    ] {
        let answer = ok(Method::JobLookup, json!({ "found": found }));
        let reading =
            judge(Question::LookUp(None), key(true, false, None, true), &strict(), None, 0, &answer);
        assert_eq!(word(&reading), wanted, "{found}");
    }
    // The handle alone is enough of a file kind (JOB-04).
    let answer = ok(Method::JobLookup, json!({"found": {"handle": "h"}}));
    let loose = Expected::default();
    let reading = judge(Question::LookUp(None), key(true, false, None, false), &loose, None, 0, &answer);
    assert_eq!(word(&reading), "done");
}

/// EFF-16, EFF-20
#[test]
fn only_an_accepted_receipt_of_the_very_delivery_resolves_it() {
    for (receipt, wanted) in [
        (json!({"state": "accepted", "id": "m1"}), "done"),
        (json!({"state": "accepted", "id": "m2"}), "open"),
        (json!({"state": "not-accepted", "id": "m1"}), "open"),
        (json!({"state": "unreachable", "id": "m1", "reason": "fog"}), "open"),
    ] {
        let ways = Ways::Delivery { receipt: true, dedupe: None };
        let answer = ok(Method::ChannelReceipt, receipt.clone());
        let reading = judge(Question::Receipt, ways, &strict(), None, 0, &answer);
        assert_eq!(word(&reading), wanted, "{receipt}");
    }
    for answer in errors(Method::ChannelReceipt) {
        let ways = Ways::Delivery { receipt: true, dedupe: None };
        assert_eq!(word(&judge(Question::Receipt, ways, &strict(), None, 0, &answer)), "open");
    }
}

/// EFF-19, EFF-21
#[test]
fn what_an_answer_must_agree_with_is_read_off_what_was_sent() {
    let declared = crate::testing::cloud::declaration(json!({"lookup": true, "fenceKey": true}), "here");
    let start = Expected::of(Method::JobStart, "{}", &declared);
    assert_eq!(start, Expected { handle: true, ..Expected::default() });
    let channel = crate::testing::declaration("box", Some("talk"));
    let params = json!({"target": {"agent": {"workstream": "w", "name": "a", "incarnation": 1},
        "job": {"kind": "k", "key": "j"}, "host": {"name": "h"}}, "text": "t", "msgId": "m7", "mode": "followUp",
        "force": false, "firstPrompt": false});
    let sent = Expected::of(Method::ChannelSend, &params.to_string(), &channel);
    assert_eq!(sent.channel.as_ref().map(Name::as_str), Some("talk"));
    assert_eq!(sent.msg_id.as_ref().map(MsgId::as_str), Some("m7"));
    assert_eq!(Expected::of(Method::HostAcquire, "{}", &channel), Expected::default());
}
