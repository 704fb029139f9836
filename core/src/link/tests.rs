//! Calls on a host through a scripted plugin.

use std::cell::{Cell, RefCell};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use serde_json::{Value, json};

use super::*;
use crate::os::{Mono, Pid, Signal};
use crate::testing::FakeOs;
use crate::testing::dock::{calls, dock, error, linked, ran, with_link};
use crate::testing::process;

const TIMEOUT: Duration = Duration::from_secs(20);

fn dot() -> RemotePath {
    RemotePath::new(".").unwrap()
}

fn exec(os: &FakeOs, script: &str) -> Result<Ran, LinkError> {
    linked(os, async |link| link.exec(script, &dot(), TIMEOUT).await)
}

fn answering(link: Value, reply: Value) -> FakeOs {
    dock(with_link(link), |_| {}, move |_| Some(reply.clone()))
}

fn hold(os: &FakeOs, pid: i32) {
    os.lives(process(pid, 1));
    let sql = "INSERT INTO host_channels (host, pid, started, boot, since) VALUES ('dock', ?1, 1, ?2, 0)";
    os.connection().execute(sql, rusqlite::params![pid, process(pid, 1).boot]).unwrap();
}

fn held(os: &FakeOs) -> i64 {
    os.connection().query_row("SELECT count(*) FROM host_channels", [], |row| row.get(0)).unwrap()
}

/// LINK-01, CALL-02
#[test]
fn a_script_goes_out_with_its_place_and_timeout_and_comes_back_as_a_run() {
    let os = answering(json!({}), ran(json!(3), "out"));
    let ran = exec(&os, "exit 3").unwrap();
    assert_eq!((ran.run.exit_code, ran.run.stdout.as_str(), ran.may_still_run), (Some(3), "out", false));
    let params =
        json!({"target": {"host": {"name": "dock"}}, "script": "exit 3", "cwd": ".", "timeoutMs": 20_000});
    assert_eq!(calls(&os), [json!({"method": "link.exec", "params": params})]);
}

/// LINK-20
#[test]
fn a_script_is_measured_in_bytes_before_anything_is_started() {
    let os = answering(json!({"maxScriptBytes": 4}), ran(json!(0), ""));
    assert_eq!(exec(&os, "üü").unwrap().run.exit_code, Some(0));
    assert_eq!(exec(&os, "üüa"), Err(LinkError::ScriptTooLong { bytes: 5, limit: 4 }));
    assert_eq!(calls(&os).len(), 1);
}

/// LINK-20, A-10
#[test]
fn a_script_that_fits_the_link_and_no_line_is_not_sent() {
    let os = answering(json!({"maxScriptBytes": 4 << 20}), ran(json!(0), ""));
    let error = exec(&os, &"\n".repeat(1 << 19)).unwrap_err();
    assert!(matches!(error, LinkError::Call(CallError::TooLong(..))), "{error}");
    assert!(os.children().is_empty());
}

/// LINK-16, LINK-19
#[test]
fn what_a_run_without_status_left_follows_from_the_declaration() {
    for (word, may_still_run, waited) in [("stopped", false, 0), ("stopping", false, 5), ("unknown", true, 0)]
    {
        let os = answering(json!({"remoteOnTimeout": word}), ran(Value::Null, "so far"));
        let ended = linked(&os, async |link| {
            let ran = link.exec("sleep 60", &dot(), TIMEOUT).await.unwrap();
            (ran, link.invocation.os().now())
        });
        let (ran, Mono(at)) = ended;
        assert_eq!((ran.run.exit_code, ran.may_still_run), (None, may_still_run), "{word}");
        assert_eq!(ran.run.stdout, "so far");
        assert_eq!(at, Duration::from_secs(waited), "{word}");
    }
}

/// LINK-18
#[test]
fn a_stopping_link_keeps_the_channel_for_the_grace_and_no_longer() {
    let os = answering(json!({"remoteOnTimeout": "stopping", "slots": "mu"}), ran(Value::Null, ""));
    let (during, after) = (Rc::new(Cell::new(0)), os.clone());
    let seen = during.clone();
    os.after(Duration::from_millis(4999), move || seen.set(held(&after)));
    exec(&os, "sleep 60").unwrap();
    assert_eq!((during.get(), held(&os)), (1, 0));
}

/// LINK-18
#[test]
fn a_run_with_a_status_is_handed_on_at_once() {
    let os = answering(json!({"remoteOnTimeout": "stopping"}), ran(json!(0), ""));
    exec(&os, "true").unwrap();
    assert_eq!(os.now().0, Duration::ZERO);
}

/// LINK-18, PRC-12: what was cut off may still run, whoever would like mu to end.
#[test]
fn a_signal_does_not_end_the_wait_for_what_is_stopping() {
    let os = answering(json!({"remoteOnTimeout": "stopping", "slots": "mu"}), ran(Value::Null, ""));
    let sender = os.clone();
    os.after(Duration::from_secs(2), move || sender.signal(Signal::Interrupt));
    let ran = exec(&os, "sleep 60").unwrap();
    assert_eq!((ran.run.exit_code, os.now().0, held(&os)), (None, Duration::from_secs(5), 0));
}

/// ERR-05
#[test]
fn an_unknown_outcome_of_a_script_is_a_run_without_a_status() {
    let os = answering(json!({}), error(json!({"kind": "unknown-outcome"})));
    let ran = exec(&os, "true").unwrap();
    assert_eq!((ran.run.exit_code, ran.may_still_run, ran.said.as_deref()), (None, true, Some("said so")));
}

/// ERR-02, ERR-03
#[test]
fn a_definite_error_is_no_run() {
    for data in [json!({"kind": "permanent"}), json!({"kind": "human", "remedy": "log in"})] {
        let os = answering(json!({}), error(data));
        assert!(matches!(exec(&os, "true"), Err(LinkError::Call(CallError::Refused(..)))));
        assert_eq!(calls(&os).len(), 1);
    }
}

/// SEAM-04, SEAM-05
#[test]
fn calls_of_one_host_take_turns_when_mu_keeps_count_and_overlap_when_the_plugin_does() {
    for (slots, sessions, wanted) in [("mu", 1, 1), ("mu", 2, 2), ("self", 1, 3)] {
        let waiting: Rc<RefCell<Vec<Value>>> = Rc::default();
        let comes_in = waiting.clone();
        let serve = move |request: &Value| {
            comes_in.borrow_mut().push(request["id"].clone());
            None
        };
        let os = dock(with_link(json!({"slots": slots})), |host| host.max_sessions = sessions, serve);
        let most = Rc::new(Cell::new(0));
        for second in 1..=6 {
            let (waiting, most, machine) = (waiting.clone(), most.clone(), os.clone());
            os.after(Duration::from_secs(second), move || {
                let ids = waiting.take();
                most.set(most.get().max(ids.len()));
                for id in ids {
                    let Value::Object(mut reply) = ran(json!(0), "") else { panic!() };
                    reply.extend([("jsonrpc".into(), json!("2.0")), ("id".into(), id)]);
                    machine.children()[0].borrow_mut().says(&format!("{}\n", Value::from(reply)));
                }
            });
        }
        linked(&os, async |link| {
            let login = dot();
            let one = || link.exec("true", &login, TIMEOUT);
            let all = futures_util::future::join_all([one(), one(), one()]).await;
            assert!(all.iter().all(Result::is_ok), "{all:?}");
        });
        assert_eq!((most.get(), held(&os)), (wanted, 0), "{slots} {sessions}");
    }
}

///
#[test]
fn a_host_held_by_others_is_waited_for_as_long_as_the_call_may_take_and_nothing_is_started() {
    let os = answering(json!({"slots": "mu"}), ran(json!(0), ""));
    hold(&os, 70);
    let busy = LinkError::Busy { budget: Duration::from_secs(25), holders: vec![Pid(70)] };
    assert_eq!(exec(&os, "true"), Err(busy));
    assert_eq!((os.now().0, os.children().len(), held(&os)), (Duration::from_secs(25), 0, 1));
}

///
#[test]
fn a_channel_is_taken_from_a_holder_that_is_gone() {
    let os = answering(json!({"slots": "mu"}), ran(json!(0), ""));
    hold(&os, 70);
    let machine = os.clone();
    os.after(Duration::from_secs(3), move || machine.ends(Pid(70)));
    exec(&os, "true").unwrap();
    let waited = os.now().0.as_millis();
    assert!((3000..=3500).contains(&waited), "{waited}");
    assert_eq!(held(&os), 0);
}

#[test]
fn who_holds_channels_does_not_matter_when_the_plugin_keeps_count() {
    let os = answering(json!({"slots": "self"}), ran(json!(0), ""));
    hold(&os, 70);
    exec(&os, "true").unwrap();
    assert_eq!(os.now().0, Duration::ZERO);
}

/// PRC-09
#[test]
fn a_signal_ends_the_wait_for_a_channel_and_nothing_is_started() {
    let os = answering(json!({"slots": "mu"}), ran(json!(0), ""));
    hold(&os, 70);
    let sender = os.clone();
    os.after(Duration::from_secs(2), move || sender.signal(Signal::HangUp));
    assert_eq!(exec(&os, "true"), Err(LinkError::Interrupted(Signal::HangUp)));
    assert_eq!((os.now().0, os.children().len()), (Duration::from_secs(2), 0));
}

///
#[test]
fn a_call_that_fails_gives_its_channel_back() {
    let os = answering(json!({"slots": "mu"}), error(json!({"kind": "permanent"})));
    assert!(exec(&os, "true").is_err());
    assert_eq!(held(&os), 0);
}

fn fetch(os: &FakeOs) -> Result<CommitId, LinkError> {
    linked(os, async |link| {
        let repository = Repository::find(link.invocation.os(), Path::new("repo")).unwrap();
        link.fetch(&RemotePath::new("src/app").unwrap(), &repository, TIMEOUT).await
    })
}

const SHA: &str = "0123456789abcdef0123456789abcdef01234567";

/// A repository `repo` with an old FETCH_HEAD; the path of that.
fn repository(os: &FakeOs) -> PathBuf {
    let git = os.env().cwd.join("repo/.git");
    std::fs::create_dir_all(&git).unwrap();
    std::fs::write(git.join("FETCH_HEAD"), "f".repeat(40)).unwrap();
    git.join("FETCH_HEAD")
}

/// LINK-03, LINK-21, REG-19
#[test]
fn a_link_that_fetches_gets_the_call_after_fetch_head_is_gone() {
    let head: Rc<RefCell<PathBuf>> = Rc::default();
    let written = head.clone();
    let serve = move |_: &Value| {
        assert!(!written.borrow().exists(), "FETCH_HEAD was there when the call came");
        std::fs::write(&*written.borrow(), format!("{SHA}\t\t'x' of y\n")).unwrap();
        Some(ran(json!(0), ""))
    };
    let os =
        dock(with_link(json!({"fetch": true})), |host| host.fetch_template = Some("false".into()), serve);
    head.replace(repository(&os));
    assert_eq!(fetch(&os).unwrap().as_str(), SHA);
    let repo = os.env().cwd.join("repo");
    let params = json!({"target": {"host": {"name": "dock"}}, "remoteCwd": "src/app", "localRepo": repo,
        "timeoutMs": 20_000});
    assert_eq!(calls(&os), [json!({"method": "link.fetch", "params": params})]);
}

/// LINK-03, LINK-21
#[test]
fn a_fetch_that_brings_nothing_fails_and_leaves_no_old_head() {
    type Wanted = fn(&LinkError) -> bool;
    let cases: [(Value, Wanted); 4] = [
        (ran(json!(0), ""), |error| *error == LinkError::NoFetchHead),
        (ran(json!(128), ""), |e| matches!(e, LinkError::FetchFailed(Run { exit_code: Some(128), .. }))),
        (ran(Value::Null, ""), |e| matches!(e, LinkError::FetchFailed(Run { exit_code: None, .. }))),
        (error(json!({"kind": "unknown-outcome"})), |e| matches!(e, LinkError::Call(CallError::Refused(..)))),
    ];
    for (reply, wanted) in cases {
        let os = answering(json!({"fetch": true}), reply);
        let head = repository(&os);
        let error = fetch(&os).unwrap_err();
        assert!(wanted(&error), "{error:?}");
        assert!(!head.exists());
    }
}

/// A-37, LINK-21
#[test]
fn a_fetch_that_never_gets_its_turn_leaves_the_head_alone() {
    let os = answering(json!({"fetch": true, "slots": "mu"}), ran(json!(0), ""));
    let head = repository(&os);
    hold(&os, 70);
    assert!(matches!(fetch(&os), Err(LinkError::Busy { .. })));
    assert!(head.exists());
}

/// REG-18
#[test]
fn a_link_that_does_not_fetch_is_left_alone_and_the_template_runs() {
    let os = dock(
        with_link(json!({"slots": "mu"})),
        |host| host.fetch_template = Some("get {host} {remote} {local}".into()),
        |_| None,
    );
    let head = repository(&os);
    let written = head.clone();
    let os = os.with_programs(move |_| {
        let head = written.clone();
        Ok(Box::new(move |shell, heard| {
            assert_eq!(heard, crate::testing::Heard::End);
            assert!(!head.exists());
            std::fs::write(&head, format!("{SHA}\n")).unwrap();
            shell.exit = Some(crate::os::Exit::Status(0));
        }))
    });
    assert_eq!(fetch(&os).unwrap().as_str(), SHA);
    let repo = os.env().cwd.join("repo");
    let command = format!("get dock src/app {}", shell::quote(repo.to_str().unwrap()));
    let argv: Vec<_> = os.children().iter().map(|child| child.borrow().argv.clone()).collect();
    assert_eq!(argv, [["/bin/sh", "-c", &command].map(std::ffi::OsString::from)]);
    assert_eq!(held(&os), 0);
}

/// REG-18
#[test]
fn without_fetch_and_template_nothing_runs() {
    let os = answering(json!({}), ran(json!(0), ""));
    repository(&os);
    assert_eq!(fetch(&os), Err(LinkError::NoTemplate));
    assert!(os.children().is_empty());
}

fn push(os: &FakeOs) -> Result<Run, LinkError> {
    linked(os, async |link| {
        let (local, remote) = (AbsolutePath::new("/src/app").unwrap(), RemotePath::new("app.git").unwrap());
        let rev = CommitId::new(SHA).unwrap();
        let first = link.push(&local, &remote, &rev, TIMEOUT).await;
        assert_eq!(first, link.push(&local, &remote, &rev, TIMEOUT).await);
        first
    })
}

/// LINK-04 to LINK-08
#[test]
fn a_push_names_the_whole_commit_and_can_be_repeated() {
    for exit in [json!(0), json!(1), Value::Null] {
        let os = answering(json!({"push": true}), ran(exit.clone(), ""));
        assert_eq!(json!(push(&os).unwrap().exit_code), exit);
        let params = json!({"target": {"host": {"name": "dock"}}, "localRepo": "/src/app", "remoteRepo": "app.git",
            "rev": SHA, "timeoutMs": 20_000});
        let call = json!({"method": "link.push", "params": params});
        assert_eq!(calls(&os), [call.clone(), call]);
    }
}

/// LINK-04, SEAM-03
#[test]
fn a_link_that_does_not_push_is_not_asked_to() {
    for link in [json!({}), json!({"push": false})] {
        let os = answering(link, ran(json!(0), ""));
        assert_eq!(push(&os), Err(LinkError::NoPush));
        assert!(os.children().is_empty());
    }
}

/// TMO-02, A-27
#[test]
fn an_answer_counts_until_five_seconds_past_the_timeout() {
    let os = dock(with_link(json!({})), |_| {}, |_| None);
    let error = exec(&os, "true").unwrap_err();
    assert!(matches!(error, LinkError::Call(CallError::Unanswered(_))), "{error}");
    assert_eq!(os.now().0, Duration::from_secs(25));
    let os = os.with_var("MU_DEADLINE_LINK_EXEC_MS", "soon");
    assert!(matches!(exec(&os, "true"), Err(LinkError::Variable(_))));
}
