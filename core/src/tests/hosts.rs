//! The verbs of `mu host`: what they print and how they exit.

use std::time::Duration;

use serde_json::{Value, json};

use super::failed;
use crate::os::{FileKind, Os, Pid, Signal};
use crate::testing::dock::{calls, dock, error, host, ran, register, serving, trusted, with_link};
use crate::testing::{FakeOs, Ran, file, process};

const TEMPLATE: &str = "git -C {local} fetch {host}:{remote} HEAD";
const SHA: &str = "0123456789abcdef0123456789abcdef01234567";

/// A machine with the plugin `box`, whose link has this changed; nothing can be executed.
fn registered(link: Value) -> FakeOs {
    let os = FakeOs::new();
    register(&os, with_link(link), &[]);
    os
}

/// A machine whose host `dock` answers each call so.
fn answering(link: Value, reply: Value) -> FakeOs {
    dock(with_link(link), |_| {}, move |_| Some(reply.clone()))
}

fn run(exit_code: Value, stdout: &str, stderr: &str, partial: bool) -> Value {
    json!({"result": {"exitCode": exit_code, "stdout": stdout, "stderr": stderr, "partial": partial}})
}

fn exec(os: &FakeOs) -> Ran {
    os.run(&["host", "exec", "dock", "--", "true"])
}

/// Lets process 70 hold a channel of `dock`.
fn hold(os: &FakeOs) {
    os.lives(process(70, 1));
    let sql = "INSERT INTO host_channels (host, pid, started, boot, since) VALUES ('dock', 70, 1, ?1, 0)";
    os.connection().execute(sql, [process(70, 1).boot]).unwrap();
}

/// REG-16, HSK-05
#[test]
fn a_host_is_added_without_a_start_and_shown_as_it_was_added() {
    let os = registered(json!({}));
    let ran = os.run(
        &[
            ["host", "add", "dock", "--plugin", "box", "--fetch"],
            [TEMPLATE, "--repo", "/srv/app", "--max-sessions", "4", "--json"],
        ]
        .concat(),
    );
    let row = json!({"name": "dock", "plugin": "box", "identity": "plugin:box:prod-eu", "fetch_template": TEMPLATE,
        "repo": "/srv/app", "max_sessions": 4, "added_at": 1_000_000});
    let mut listed = row.clone();
    listed["kind"] = json!("profile");
    assert_eq!(ran.json()["data"], row);
    assert!(!os.looked_at().iter().any(|path| path.contains("mu-plugin")));
    assert_eq!(os.run(&["host", "show", "dock", "--json"]).json()["data"], row);
    assert_eq!(os.run(&["host", "list", "--json"]).json()["data"], json!({"hosts": [listed], "more": 0}));
    assert!(os.run(&["host", "list"]).out.starts_with("NAME"));
    let rows = os.run(&["sql", "--json", "SELECT * FROM host_profiles"]).json()["data"]["rows"].clone();
    assert_eq!(rows, json!([row]), "keys are columns");
}

#[test]
fn the_same_again_changes_nothing_and_another_set_up_is_refused() {
    let os = registered(json!({"fetch": true}));
    let out = os.run(&["host", "add", "dock", "--plugin", "box"]).out;
    assert_eq!(out, "host dock is registered: plugin box (plugin:box:prod-eu)\n");
    let before = os.run(&["host", "show", "dock", "--json"]).out;
    let out = os.run(&["host", "add", "dock", "--plugin", "box"]).out;
    assert_eq!(out, "host dock is registered with exactly that already\n");
    let ran = os.run(&["host", "add", "dock", "--plugin", "box", "--repo", "a b"]);
    failed(&ran, 4, "host-differs");
    let again = "mu host add dock --plugin box --repo 'a b' --max-sessions 1";
    assert_eq!(ran.json()["next"], json!({"mode": "seq", "commands": ["mu host rm dock", again]}));
    assert_eq!(os.run(&["host", "show", "dock", "--json"]).out, before);
}

/// REG-18, REG-19, A-38
#[test]
fn a_template_is_needed_without_a_fetch_and_idle_with_one() {
    let os = registered(json!({"fetch": false}));
    let ran = os.run(&["host", "add", "dock", "--plugin", "box"]);
    failed(&ran, 4, "no-fetch-template");
    assert!(ran.message().contains("fetch: false") && ran.message().contains("--fetch"), "{}", ran.message());
    failed(&os.run(&["host", "show", "dock"]), 3, "unknown-host");
    let os = registered(json!({"fetch": true}));
    assert_eq!(os.run(&["host", "add", "dock", "--plugin", "box"]).err, "");
    let ran = os.run(&["host", "add", "quay", "--plugin", "box", "--fetch", TEMPLATE]);
    assert_eq!((ran.exit, ran.err.lines().count()), (0, 1), "{ran:?}");
    assert!(ran.err.contains("not run"), "{}", ran.err);
    assert_eq!(os.run(&["host", "show", "quay", "--json"]).json()["data"]["fetch_template"], TEMPLATE);
}

/// LOAD-08
#[test]
fn a_plugin_without_a_link_is_no_hosts_link() {
    let os = FakeOs::new();
    let mut declaration = with_link(json!({}));
    declaration.seams.link = None;
    // `dock` was added when it still declared one.
    register(&os, declaration.clone(), &[host("dock", &declaration)]);
    let ran = os.run(&["host", "add", "quay", "--plugin", "box", "--fetch", "x"]);
    failed(&ran, 4, "load-refused");
    assert!(ran.message().contains("LOAD-08"), "{}", ran.message());
    failed(&exec(&os), 4, "load-refused");
}

#[test]
fn a_name_nobody_has_is_exit_3_with_near_names_in_every_verb() {
    let os = registered(json!({"fetch": true}));
    let ran = os.run(&["host", "add", "dock", "--plugin", "bxo"]);
    failed(&ran, 3, "unknown-plugin");
    assert!(ran.message().ends_with("did you mean box?"));
    os.run(&["host", "add", "dock", "--plugin", "box"]);
    for args in [
        &["host", "show", "dcok"][..],
        &["host", "rm", "dcok"],
        &["host", "check", "dock", "dcok"],
        &["host", "exec", "dcok", "--", "true"],
        &["host", "fetch", "dcok", "src"],
    ] {
        let ran = os.run(args);
        failed(&ran, 3, "unknown-host");
        assert!(ran.message().ends_with("did you mean dock?"), "{}", ran.message());
        assert_eq!(ran.next(), ["mu host list"]);
    }
    assert!(os.children().is_empty());
}

#[test]
fn verbs_on_a_fresh_machine_create_nothing() {
    let os = FakeOs::new();
    assert_eq!(os.run(&["host", "list", "--json"]).json()["data"], json!({"hosts": [], "more": 0}));
    failed(&os.run(&["host", "add", "dock", "--plugin", "box"]), 3, "unknown-plugin");
    failed(&os.run(&["host", "rm", "dock"]), 3, "unknown-host");
    failed(&exec(&os), 3, "unknown-host");
    assert!(!os.database().parent().unwrap().exists());
}

/// REG-12
#[test]
fn a_plugin_stays_while_a_host_names_it() {
    let os = registered(json!({"fetch": true}));
    for name in ["quay", "dock"] {
        os.run(&["host", "add", name, "--plugin", "box"]);
    }
    let ran = os.run(&["plugin", "rm", "box"]);
    failed(&ran, 4, "still-referenced");
    assert!(ran.message().contains("host dock, host quay;"), "{}", ran.message());
    for name in ["quay", "dock"] {
        assert_eq!(os.run(&["host", "rm", name]).out, format!("host {name} is no longer registered\n"));
    }
    assert_eq!(os.run(&["plugin", "rm", "box"]).exit, 0);
}

/// A-37
#[test]
fn a_host_stays_while_a_living_process_has_a_call_on_it() {
    let os = registered(json!({"fetch": true}));
    os.run(&["host", "add", "dock", "--plugin", "box"]);
    hold(&os);
    let ran = os.run(&["host", "rm", "dock"]);
    failed(&ran, 4, "still-referenced");
    assert!(ran.message().contains("process 70"), "{}", ran.message());
    os.ends(Pid(70));
    assert_eq!(os.run(&["host", "rm", "dock"]).exit, 0);
}

#[test]
fn rm_removes_a_row_that_mu_cannot_read() {
    let os = registered(json!({"fetch": true}));
    os.run(&["host", "add", "dock", "--plugin", "box"]);
    os.connection().execute_batch("UPDATE host_profiles SET max_sessions = 5000000000").unwrap();
    let list = os.run(&["host", "list", "--json"]);
    assert_eq!(list.json()["data"]["hosts"], json!([{"name": "dock"}]));
    assert!(list.err.contains("max_sessions of dock"), "{}", list.err);
    let ran = exec(&os);
    failed(&ran, 5, "database-damaged");
    assert_eq!(ran.next(), ["mu host rm dock"]);
    assert_eq!(os.run(&["host", "rm", "dock"]).exit, 0);
    assert_eq!(os.run(&["host", "list"]).exit, 0);
}

/// HSK-05, REG-10
#[test]
fn a_new_declaration_of_the_plugin_moves_the_identity_of_its_hosts() {
    let declaration = with_link(json!({"fetch": true}));
    let mut moved = declaration.clone();
    moved.instance = "prod-us".into();
    let os = FakeOs::new();
    register(&os, declaration.clone(), &[host("dock", &declaration)]);
    let os = trusted(os).with_programs(move |_| Ok(serving(&moved, |_| None)));
    assert_eq!(os.run(&["plugin", "add", "box", "--", "/opt/mu-plugin-box"]).exit, 0);
    let row = os.run(&["host", "show", "dock", "--json"]).json()["data"].clone();
    assert_eq!(row["identity"], "plugin:box:prod-us");
}

#[test]
fn the_output_and_the_status_of_a_script_are_passed_on_byte_for_byte() {
    let (out, err) = ("a\u{1b}[31m\tü\r\n\nno end", "oh\u{7}\nno");
    let os = answering(json!({}), run(json!(3), out, err, false));
    let ran = exec(&os);
    assert_eq!((ran.exit, ran.out.as_str(), ran.err.as_str()), (3, out, err));
    let ran = os.run(&["--json", "host", "exec", "dock", "--", "x"]);
    assert_eq!((ran.exit, ran.err.as_str(), ran.out.lines().count()), (3, "", 1));
    let data = json!({"host": "dock", "exit_code": 3, "stdout": out, "stderr": err, "partial": false,
        "may_still_run": false});
    assert_eq!(ran.json(), json!({"ok": true, "data": data, "next": null}));
}

#[test]
fn a_long_output_is_not_cut() {
    let long = "x".repeat(100_000);
    let os = answering(json!({}), ran(json!(0), &long));
    assert_eq!(exec(&os).out, long);
    let data = os.run(&["host", "exec", "dock", "--json", "--", "x"]).json()["data"].clone();
    assert_eq!(data["stdout"], long.as_str());
}

/// ERR-05, LINK-02
#[test]
fn a_run_without_a_status_exits_1_and_says_so_on_one_line() {
    let unknown = error(json!({"kind": "unknown-outcome"}));
    let cases = [
        (ran(Value::Null, "so far"), "unknown", "cut off after 20 s; it may still be running", "so far"),
        (ran(Value::Null, "so far"), "stopped", "cut off after 20 s; nothing of it runs any more", "so far"),
        (unknown, "stopped", "says: said so; it may still be running", ""),
    ];
    for (reply, word, says, out) in cases {
        let os = answering(json!({"remoteOnTimeout": word}), reply);
        let ran = exec(&os);
        assert_eq!((ran.exit, ran.out.as_str(), ran.err.lines().count()), (1, out, 1), "{ran:?}");
        assert!(ran.err.starts_with("mu: host dock: the script has no exit status"), "{}", ran.err);
        assert!(ran.err.trim_end().ends_with(says), "{}", ran.err);
        let ran = os.run(&["host", "exec", "dock", "--json", "--", "x"]);
        assert_eq!((ran.exit, &ran.json()["data"]["exit_code"]), (1, &Value::Null));
    }
}

/// LINK-02
#[test]
fn an_output_that_was_cut_is_told_on_stderr_alone() {
    let ran = exec(&answering(json!({}), run(json!(0), "half", "", true)));
    assert_eq!((ran.exit, ran.out.as_str()), (0, "half"));
    assert_eq!(ran.err, "mu: host dock: the output was cut\n");
}

/// ERR-01 to ERR-03, TMO-09, LINK-20
#[test]
fn a_script_that_did_not_run_is_a_failure_by_the_kind_of_the_reason() {
    let refused = |kind: &str| answering(json!({}), error(json!({ "kind": kind })));
    let os = refused("retryable");
    failed(&exec(&os), 5, "call-failed");
    assert_eq!(calls(&os).len(), 4);
    failed(&exec(&refused("permanent")), 5, "call-failed");
    let ran = exec(&answering(json!({}), error(json!({"kind": "human", "remedy": "log in"}))));
    failed(&ran, 5, "needs-human");
    assert!(ran.message().contains("log in"), "{}", ran.message());
    let silent = |link: Value| dock(with_link(link), |_| {}, |_| None);
    let ran = exec(&silent(json!({})));
    failed(&ran, 1, "outcome-unknown");
    assert!(ran.message().starts_with("host dock: link.exec had no answer within 25 s"), "{}", ran.message());
    let os = silent(json!({"maxScriptBytes": 3}));
    failed(&exec(&os), 5, "too-long");
    assert!(os.children().is_empty());
    failed(&exec(&silent(json!({})).with_var("MU_DEADLINE_LINK_EXEC_MS", "0")), 2, "bad-variable");
}

/// REG-08, LOAD-19
#[test]
fn a_plugin_that_may_not_be_started_runs_nothing() {
    let os = dock(with_link(json!({})), |_| {}, |_| None);
    let os = os.with_file("/opt/mu-plugin-box", file(FileKind::Regular, 1000, 0o775));
    failed(&exec(&os), 4, "untrusted");
    let other = with_link(json!({"maxScriptBytes": 7}));
    let os = dock(with_link(json!({})), |_| {}, |_| None);
    let os = os.with_programs(move |_| Ok(serving(&other, |_| None)));
    let ran = exec(&os);
    failed(&ran, 4, "load-refused");
    assert_eq!(ran.next(), ["mu plugin add box -- /opt/mu-plugin-box"]);
}

/// A-37
#[test]
fn a_host_held_by_others_is_busy_and_names_them() {
    let os = dock(with_link(json!({"slots": "mu"})), |_| {}, |_| None);
    hold(&os);
    let ran = os.run(&["host", "exec", "dock", "--timeout", "1s", "--", "true"]);
    failed(&ran, 5, "host-busy");
    assert!(
        ran.message().contains("within 6 s") && ran.message().contains("process 70"),
        "{}",
        ran.message()
    );
    assert!(os.children().is_empty());
}

/// PRC-12
#[test]
fn a_signal_ends_a_script_and_mu_says_that_it_was_sent() {
    let os = dock(with_link(json!({"slots": "mu"})), |_| {}, |_| None);
    let sender = os.clone();
    os.after(Duration::from_secs(2), move || sender.signal(Signal::Interrupt));
    let ran = exec(&os);
    assert_eq!((ran.exit, ran.out.as_str(), ran.err.lines().count()), (130, "", 1));
    assert!(ran.err.contains("ended by SIGINT, after: host dock: link.exec"), "{}", ran.err);
    assert_eq!(os.raised(), [Signal::Interrupt]);
    let count = "SELECT count(*) FROM host_channels";
    assert_eq!(os.connection().query_row(count, [], |row| row.get::<_, i64>(0)), Ok(0));
}

#[test]
fn a_fetch_reports_the_commit_and_where_it_is() {
    let os = FakeOs::new();
    let cwd = os.env().cwd.clone();
    std::fs::create_dir_all(cwd.join("src")).unwrap();
    let declaration = with_link(json!({"fetch": true}));
    register(&os, declaration.clone(), &[host("dock", &declaration)]);
    failed(&os.run(&["host", "fetch", "dock", "app"]), 3, "no-repository");
    failed(&os.run(&["host", "fetch", "dock", "app", "--repo", "gone"]), 3, "no-repository");
    std::fs::create_dir_all(cwd.join(".git")).unwrap();
    let head = cwd.join(".git/FETCH_HEAD");
    let serve = move |_: &Value| {
        std::fs::write(&head, format!("{SHA}\t\tx\n")).unwrap();
        Some(ran(json!(0), "noise"))
    };
    let os = trusted(os).with_programs(move |_| Ok(serving(&declaration, serve.clone())));
    let row = json!({"host": "dock", "remote_dir": "app", "repo": cwd, "commit": SHA});
    for repo in [&[][..], &["--repo", "src"]] {
        let args = [&["host", "fetch", "dock", "app", "--json"], repo].concat();
        assert_eq!(os.run(&args).json()["data"], row);
    }
    let text = os.run(&["host", "fetch", "dock", "app"]).out;
    assert_eq!(text, format!("HEAD of app on host dock is {SHA}, FETCH_HEAD of {} now\n", cwd.display()));
}

/// LINK-03
#[test]
fn a_fetch_that_fails_says_what_the_other_side_said() {
    let cases = [
        (run(json!(0), "", "", false), 5, "fetch-failed", "names no commit"),
        (
            run(json!(9), "", "\nno\u{1b} way", false),
            5,
            "fetch-failed",
            r"status 9; its stderr begins: no\u{1b} way",
        ),
        (run(Value::Null, "", "", false), 1, "outcome-unknown", "--timeout"),
    ];
    for (reply, exit, name, says) in cases {
        let os = answering(json!({"fetch": true}), reply);
        std::fs::create_dir_all(os.env().cwd.join(".git")).unwrap();
        let ran = os.run(&["host", "fetch", "dock", "app"]);
        failed(&ran, exit, name);
        assert!(ran.message().contains(says), "{}", ran.message());
    }
}

/// LINK-12, LINK-13
#[test]
fn a_check_that_passes_lists_its_steps_and_a_warn_line() {
    let serve = |request: &Value| {
        let disk = json!({"result": [{"step": "disk", "ok": "warn", "detail": "91 % full"}]});
        Some(if request["method"] == "link.exec" { ran(json!(0), "") } else { disk })
    };
    let os = dock(with_link(json!({"fetch": true})), |_| {}, serve);
    let ran = os.run(&["host", "check", "dock"]);
    let table = "HOST  STEP      OK    DETAIL\n\
        dock  fetch     true  by the link\n\
        dock  reach     true\n\
        dock  box:disk  warn  91 % full\n";
    assert_eq!((ran.exit, ran.out.as_str(), ran.err.as_str()), (0, table, ""));
    let rows = os.run(&["host", "check", "dock", "--json"]).json()["data"]["steps"].clone();
    assert_eq!(rows[2], json!({"host": "dock", "step": "box:disk", "ok": "warn", "detail": "91 % full"}));
}

/// LINK-14, A-39
#[test]
fn hosts_are_checked_side_by_side_and_one_that_fails_leaves_the_others_their_steps() {
    let declaration = with_link(json!({"fetch": true}));
    let os = FakeOs::new();
    register(&os, declaration.clone(), &["a", "b", "c"].map(|name| host(name, &declaration)));
    let serve = |request: &Value| {
        Some(match (request["params"]["target"]["host"]["name"].as_str(), request["method"].as_str()) {
            (Some("b"), Some("link.exec")) => error(json!({"kind": "human", "remedy": "log in\nthere"})),
            (Some("c"), Some("link.exec")) => ran(json!(1), ""),
            (_, Some("link.exec")) => ran(json!(0), "ok"),
            _ => json!({"result": []}),
        })
    };
    let os = trusted(os).with_programs(move |_| Ok(serving(&declaration, serve)));
    let ran = os.run(&["host", "check", "a", "b", "c"]);
    failed(&ran, 5, "needs-human");
    assert_eq!(ran.message(), r"host b needs a person: log in\nthere (2 of 3 hosts fail: b, c)");
    assert_eq!(ran.next(), ["mu host check b", "mu host check c"]);
    let wanted = [
        r"mu: host b needs a person: log in\nthere (2 of 3 hosts fail: b, c)",
        "mu: a: ok fetch: by the link",
        "mu: a: ok reach: ok",
        "mu: b: ok fetch: by the link",
        r"mu: b: failed handback: log in\nthere",
        "mu: c: ok fetch: by the link",
        "mu: c: failed reach: `true` ended with status 1",
    ];
    assert_eq!(ran.err.lines().collect::<Vec<_>>(), wanted);
    assert_eq!(os.children().len(), 1, "one process serves all hosts of a plugin (PRC-03)");
    assert_eq!(os.run(&["host", "check", "a"]).exit, 0);
}
