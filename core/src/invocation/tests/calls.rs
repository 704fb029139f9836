//! Calls of one run of mu: repeats, restarts, siblings, and what becomes of a call that nobody waits for.

use mu_protocol::messages::checks::Phase;
use mu_protocol::messages::link::{CheckStepsParams, ExecParams, Run};
use mu_protocol::messages::target::{HostRef, Target};
use mu_protocol::messages::values::{Millis, Name, RemotePath};
use serde_json::{Value, json};

use super::*;
use crate::call_error::CallError;
use crate::testing::PluginProcess;

const BUDGET: Duration = Duration::from_secs(25);

fn target() -> Target {
    let host = HostRef { name: Name::new("far").unwrap(), handle: None, instance: None };
    Target { agent: None, job: None, host }
}

fn exec(script: &str) -> ExecParams {
    ExecParams {
        target: target(),
        script: script.into(),
        cwd: RemotePath::new(".").unwrap(),
        timeout_ms: Millis::new(20_000).unwrap(),
    }
}

/// A plugin that shakes hands, does `f` at each call, and exits with its stdin.
fn serving(mut f: impl FnMut(&mut PluginProcess, &Value) + 'static) -> Script {
    let mut sound = sound("box");
    Box::new(move |plugin, heard| {
        sound(plugin, heard);
        if let Heard::Line(line) = heard {
            let message: Value = serde_json::from_str(line).unwrap();
            if message["params"].get("target").is_some() {
                f(plugin, &message);
            }
        }
    })
}

fn ran(id: &Value, stdout: &str) -> String {
    let result = json!({"exitCode": 0, "stdout": stdout, "stderr": "", "partial": false});
    format!("{}\n", json!({"jsonrpc": "2.0", "id": id, "result": result}))
}

fn failed(id: &Value, kind: &str) -> String {
    let error = json!({"code": -32000, "message": "no", "data": {"kind": kind}});
    format!("{}\n", json!({"jsonrpc": "2.0", "id": id, "error": error}))
}

/// The calls that a plugin got, as JSON.
fn calls(os: &FakeOs, nth: usize) -> Vec<Value> {
    let child = os.children()[nth].clone();
    let lines = &child.borrow().lines;
    let parsed = lines.iter().map(|line| serde_json::from_str::<Value>(line).unwrap());
    parsed.filter(|message| message["params"].get("target").is_some()).collect()
}

/// CALL-01, CALL-02
#[test]
fn a_call_carries_its_target_and_a_deadline_in_wall_time() {
    let os = machine(|_| Ok(serving(|plugin, call| plugin.says(&ran(&call["id"], "hello")))));
    let run = run(&os, async |mu| mu.call(&start(), &exec("true"), BUDGET).await).unwrap();
    assert_eq!(
        run,
        Run { exit_code: Some(0), stdout: "hello".into(), stderr: String::new(), partial: false }
    );
    let wanted = json!({"deadline": 1_000_000 + 25_000, "target": {"host": {"name": "far"}}, "script": "true",
        "cwd": ".", "timeoutMs": 20_000});
    assert_eq!(calls(&os, 0)[0]["params"], wanted);
    assert_eq!(os.children()[0].borrow().methods(), ["initialize", "link.exec", "shutdown"]);
}

/// ERR-01, A-28, CALL-03, CALL-04: four sends that differ in id and deadline alone, then the plugin's last word.
#[test]
fn retryable_is_repeated_three_times_and_no_more() {
    let os = machine(|_| Ok(serving(|plugin, call| plugin.says(&failed(&call["id"], "retryable")))));
    let error = run(&os, async |mu| mu.call(&start(), &exec("true"), BUDGET).await).unwrap_err();
    assert!(matches!(&error, CallError::Refused(_, error) if error.kind == ErrorKind::Retryable), "{error}");
    let mut sent = calls(&os, 0);
    assert_eq!(sent.len(), 4);
    let ids: Vec<u64> = sent.iter().map(|call| call["id"].as_u64().unwrap()).collect();
    assert_eq!(ids, [2, 3, 4, 5]);
    let deadlines: Vec<u64> = sent.iter().map(|call| call["params"]["deadline"].as_u64().unwrap()).collect();
    assert_eq!(deadlines, [1_025_000, 1_025_200, 1_025_700, 1_026_700]);
    for call in &mut sent {
        call["id"].take();
        call["params"]["deadline"].take();
    }
    assert!(sent.iter().all(|call| *call == sent[0]));
}

/// ERR-01: across a restart the count goes on.
#[test]
fn repeats_are_counted_across_restarts() {
    let os = machine(|_| {
        Ok(serving(|plugin, call| {
            plugin.says(&failed(&call["id"], "retryable"));
            plugin.exit = Some(Exit::Status(0));
        }))
    });
    let error = run(&os, async |mu| mu.call(&start(), &exec("true"), BUDGET).await).unwrap_err();
    assert!(matches!(error, CallError::Refused(..)), "{error}");
    assert_eq!(os.children().len(), 4);
}

/// ERR-02 to ERR-04
#[test]
fn no_other_kind_is_repeated() {
    for kind in ["permanent", "unknown-outcome"] {
        let os = machine(move |_| Ok(serving(move |plugin, call| plugin.says(&failed(&call["id"], kind)))));
        let error = run(&os, async |mu| mu.call(&start(), &exec("true"), BUDGET).await).unwrap_err();
        assert_eq!(error.is_definite(), kind == "permanent");
        assert_eq!(calls(&os, 0).len(), 1, "{kind}");
    }
}

/// A-28, PRC-10: the pause is cut short, and what the plugin said last stands.
#[test]
fn a_signal_during_the_pause_ends_the_repeats() {
    let os = machine(|_| Ok(serving(|plugin, call| plugin.says(&failed(&call["id"], "retryable")))));
    let sender = os.clone();
    os.after(Duration::from_millis(300), move || sender.signal(Signal::Terminate));
    let error = run(&os, async |mu| mu.call(&start(), &exec("true"), BUDGET).await).unwrap_err();
    assert!(matches!(error, CallError::Refused(..)), "{error}");
    assert_eq!(calls(&os, 0).len(), 2);
    assert_eq!(seconds(&os), 0.3);
}

/// TMO-04, TMO-05, TMO-09, TMO-10: the next call starts it again, with ids that were never used.
#[test]
fn a_call_without_an_answer_ends_its_process_and_the_next_starts_another() {
    let silent = Rc::new(Cell::new(true));
    let os = machine(move |_| {
        let silent = silent.clone();
        Ok(serving(move |plugin, call| {
            if !silent.replace(false) {
                plugin.says(&ran(&call["id"], "again"));
            }
        }))
    });
    let (first, second) = run(&os, async |mu| {
        let first = mu.call(&start(), &exec("true"), BUDGET).await;
        (first, mu.call(&start(), &exec("true"), BUDGET).await)
    });
    let error = first.unwrap_err();
    assert_eq!(error.to_string(), "link.exec had no answer within 25 s");
    assert!(!error.is_definite());
    assert_eq!(second.unwrap().stdout, "again");
    let lines = os.children()[0].borrow().lines.clone();
    assert!(lines[2].contains(r#""method":"$/cancel","params":{"id":2}"#), "{lines:?}");
    assert!(lines[3].contains("shutdown"));
    assert_eq!(calls(&os, 1)[0]["id"], json!(4));
    assert_eq!(seconds(&os), 25.0);
}

/// TMO-05: one grace on top, for a plugin that reads and hears nothing.
#[test]
fn a_deaf_plugin_holds_a_call_for_its_deadline_and_one_grace() {
    let os = machine(|os| {
        let os = os.clone();
        Ok(Box::new(move |plugin, heard| {
            if let Heard::Line(line) = heard
                && line.contains("initialize")
            {
                plugin.says(&answer("box", line));
                let child = os.children().last().unwrap().clone();
                os.after(Duration::from_millis(1), move || child.borrow_mut().deaf = true);
            }
        }))
    });
    let error = run(&os, async |mu| {
        mu.start(start()).await.unwrap();
        mu.sleep_until(Mono(Duration::from_secs(1))).await.unwrap();
        mu.call(&start(), &exec("true"), BUDGET).await.unwrap_err()
    });
    // Not a byte went into that pipe: the plugin keeps running, and the call has certainly not happened (TMO-08).
    assert!(matches!(error, CallError::NotSent(_, NotSent::Overdue)), "{error}");
    assert_eq!(seconds(&os), 1.0 + 25.0 + 5.0, "the stop at the end of mu takes the grace");
    assert!(os.children()[0].borrow().killed);
}

/// A-14, TRN-19, TRN-20: a break takes the innocent call with it, and nothing of that plugin runs again.
#[test]
fn a_break_ends_the_sibling_and_refuses_the_next() {
    let os = machine(|_| {
        Ok(serving(|plugin, call| {
            if call["params"]["script"] == "bad" {
                plugin.says("{\"jsonrpc\":\"2.0\",\"id\":99,\"result\":null}\n");
            }
        }))
    });
    let (innocent, guilty, next) = run(&os, async |mu| {
        let (start, good, bad) = (start(), exec("good"), exec("bad"));
        let (innocent, guilty) = join(mu.call(&start, &good, BUDGET), mu.call(&start, &bad, BUDGET)).await;
        (innocent, guilty, mu.call(&start, &good, BUDGET).await)
    });
    for unanswered in [innocent, guilty] {
        let error = unanswered.unwrap_err();
        assert!(matches!(error, CallError::Unanswered(_)), "{error}");
        assert!(error.to_string().contains("line 2 of its stdout is not a valid message"), "{error}");
    }
    let next = next.unwrap_err();
    assert!(matches!(next, CallError::Start(StartError::Failed(Failure::Broken { .. }))), "{next}");
    assert_eq!(os.children().len(), 1);
}

/// A-14: each answer finds its own call, whatever their order.
#[test]
fn calls_answered_in_reverse_each_get_their_own_answer() {
    let held = Rc::new(RefCell::new(Vec::new()));
    let os = machine(move |_| {
        let held = held.clone();
        Ok(serving(move |plugin, call| {
            held.borrow_mut().push(ran(&call["id"], call["params"]["script"].as_str().unwrap()));
            if held.borrow().len() == 8 {
                held.borrow_mut().drain(..).rev().for_each(|line| plugin.says(&line));
            }
        }))
    });
    let scripts: Vec<ExecParams> = (0..8).map(|nth| exec(&format!("script {nth}"))).collect();
    let runs = run(&os, async |mu| {
        let start = start();
        join_all(scripts.iter().map(|script| mu.call(&start, script, BUDGET))).await
    });
    for (script, run) in scripts.iter().zip(runs) {
        assert_eq!(run.unwrap().stdout, script.script);
    }
    assert_eq!(os.children().len(), 1);
}

/// TMO-04, TMO-08: whoever made it is gone.
#[test]
fn a_dropped_call_is_given_up() {
    for written in [false, true] {
        let os = machine(|_| Ok(serving(|_, _| {})));
        run(&os, async |mu| {
            mu.start(start()).await.unwrap();
            let (start, script) = (start(), exec("true"));
            let mut call = Box::pin(mu.call(&start, &script, BUDGET));
            poll_fn(|cx| {
                assert!(call.as_mut().poll(cx).is_pending());
                Poll::Ready(())
            })
            .await;
            if written {
                let soon = mu.os().now() + Duration::from_secs(1);
                mu.sleep_until(soon).await.unwrap();
            }
            drop(call);
            mu.start(start.clone()).await.unwrap();
        });
        let wanted: &[&str] = match written {
            false => &["initialize", "shutdown"],
            true => &["initialize", "link.exec", "$/cancel", "shutdown"],
        };
        assert_eq!(os.children()[0].borrow().methods(), wanted);
        assert_eq!(os.children().len(), if written { 2 } else { 1 });
    }
}

/// A-10: refused before the plugin is started, when it can fit with no id at all.
#[test]
fn a_message_above_the_line_limit_is_not_sent() {
    let os = machine(|_| Ok(sound("box")));
    let script = exec(&"x".repeat(1 << 20));
    let error = run(&os, async |mu| mu.call(&start(), &script, BUDGET).await).unwrap_err();
    assert!(matches!(error, CallError::TooLong(..)) && error.is_definite(), "{error}");
    assert!(os.children().is_empty());
}

/// A-10: a message of exactly 1 MiB is legal.
#[test]
fn a_message_of_exactly_the_line_limit_is_sent() {
    let os = machine(|_| Ok(serving(|plugin, call| plugin.says(&ran(&call["id"], "")))));
    run(&os, async |mu| mu.call(&start(), &exec(""), BUDGET).await).unwrap();
    let empty = os.children()[0].borrow().lines[1].len();
    for (length, fits) in [((1 << 20) - empty, true), ((1 << 20) - empty + 1, false)] {
        let os = machine(|_| Ok(serving(|plugin, call| plugin.says(&ran(&call["id"], "")))));
        let script = exec(&"x".repeat(length));
        let ended = run(&os, async |mu| mu.call(&start(), &script, BUDGET).await);
        assert_eq!(ended.is_ok(), fits, "{ended:?}");
        assert!(os.children().len() <= 1);
    }
}

/// LOAD-08 holds for calls.
#[test]
fn a_call_of_a_seam_that_is_missing_is_not_sent() {
    let os = machine(|_| Ok(sound("box")));
    let start = Start { needs: vec![Seam::Host], ..start() };
    let error = run(&os, async |mu| mu.call(&start, &exec("true"), BUDGET).await).unwrap_err();
    assert!(matches!(error, CallError::Start(StartError::Refused(_))), "{error}");
    assert!(calls(&os, 0).is_empty());
}

/// PRC-09, PRC-10, TMO-09
#[test]
fn a_signal_leaves_the_call_unanswered() {
    let os = machine(|_| Ok(serving(|_, _| {})));
    let sender = os.clone();
    os.after(Duration::from_secs(2), move || sender.signal(Signal::HangUp));
    let error = run(&os, async |mu| mu.call(&start(), &exec("true"), BUDGET).await).unwrap_err();
    assert_eq!(error.signal(), Some(Signal::HangUp));
    assert!(!error.is_definite());
    assert_eq!(os.children()[0].borrow().methods(), ["initialize", "link.exec", "$/cancel", "shutdown"]);
}

/// A-04: a plugin that leaves right after its handshake is not started without end.
#[test]
fn a_plugin_that_exits_before_the_call_is_written_is_asked_once() {
    let os = machine(|_| {
        Ok(Box::new(|plugin, heard| {
            if let Heard::Line(line) = heard {
                plugin.says(&answer("box", line));
                plugin.exit = Some(Exit::Status(1));
            }
        }))
    });
    let error = run(&os, async |mu| mu.call(&start(), &exec("true"), BUDGET).await).unwrap_err();
    assert!(matches!(error, CallError::NotSent(_, NotSent::Gone)), "{error}");
    assert_eq!(os.children().len(), 1);
}

/// TMO-03: each call has its own deadline; the sibling that shares the process pays for the first.
#[test]
fn the_deadline_of_one_call_leaves_its_sibling_unanswered() {
    let os = machine(|_| Ok(serving(|_, _| {})));
    let steps = CheckStepsParams { target: target(), phase: Phase::Reach, root: None, agent: None };
    let (long, short) = run(&os, async |mu| {
        let (start, script) = (start(), exec("true"));
        let read = Duration::from_secs(10);
        join(mu.call(&start, &script, BUDGET), mu.call(&start, &steps, read)).await
    });
    assert_eq!(short.unwrap_err().to_string(), "link.checkSteps had no answer within 10 s");
    let long = long.unwrap_err().to_string();
    assert_eq!(
        long,
        "link.exec had no answer: the plugin was stopped, since link.checkSteps had no answer in time"
    );
    assert_eq!(seconds(&os), 10.0);
}
