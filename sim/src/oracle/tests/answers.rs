//! What mu prints.

use super::*;
use crate::oracle::answers::check;

const FAILURE: &str = r#"{"ok":false,"error":"plugin-failed","message":"box is ill","next":null,"exit":5}"#;
const SUCCESS: &str = r#"{"ok":true,"data":{"plugins":[],"more":0},"next":null}"#;

fn answer(args: &[&str], exit: Exit, stdout: &str, stderr: &str) -> Ran {
    Ran {
        pid: Pid(MU),
        argv: ["mu", "plugin", "list"].iter().chain(args).map(|arg| (*arg).to_owned()).collect(),
        stdout: stdout.into(),
        stderr: stderr.into(),
        exit: Some(exit),
        crash: false,
        heard: true,
    }
}

fn rules(ran: &Ran) -> Vec<&'static str> {
    let mut found = Vec::new();
    check(ran, &mut found);
    found.into_iter().map(|violation| violation.rule).collect()
}

/// A failure with `--json`.
fn failure(exit: i32, stdout: &str) -> Vec<&'static str> {
    rules(&answer(&["--json"], Exit::Status(exit), &format!("{stdout}\n"), ""))
}

/// A success with `--json`.
fn success(exit: i32, stdout: &str) -> Vec<&'static str> {
    rules(&answer(&["--json"], Exit::Status(exit), &format!("{stdout}\n"), ""))
}

#[test]
fn what_the_page_promises_passes() {
    assert_eq!(failure(5, FAILURE), [""; 0]);
    assert_eq!(success(0, SUCCESS), [""; 0]);
    let people = answer(&[], Exit::Status(5), &format!("{FAILURE}\n"), "mu: a note\nmu: box is ill\n");
    assert_eq!(rules(&people), [""; 0]);
    assert_eq!(rules(&answer(&[], Exit::Status(0), "NAME  VERSION\n", "")), [""; 0]);
    assert_eq!(rules(&answer(&[], Exit::Signal(15), "", "mu: ended by SIGTERM\n")), [""; 0]);
    let next = SUCCESS.replace("null", r#"{"mode":"seq","commands":["mu plugin list"]}"#);
    assert_eq!(success(0, &next), [""; 0]);
}

#[test]
fn a_script_has_its_own_status_and_text() {
    let exec = |json: bool, exit: i32, stdout: &str| {
        let ran = answer(&[], Exit::Status(exit), stdout, "");
        let argv = ["mu", if json { "--json" } else { "-q" }, "host", "exec", "dock", "--", "--json"];
        rules(&Ran { argv: argv.map(str::to_owned).to_vec(), ..ran })
    };
    let envelope = |code: &str| format!("{{\"ok\":true,\"data\":{{\"exit_code\":{code}}},\"next\":null}}\n");
    assert_eq!(exec(false, 7, "no such thing\n"), [""; 0]);
    assert_eq!(exec(true, 7, &envelope("7")), [""; 0]);
    assert_eq!(exec(true, 1, &envelope("null")), [""; 0]);
    assert_eq!(exec(true, 0, &envelope("7")), ["OUT-01"]);
    assert_eq!(exec(true, 0, &envelope("null")), ["OUT-01"]);
    assert_eq!(exec(true, 7, "no such thing\n"), ["OUT-03"]);
}

/// OUT-02
#[test]
fn an_envelope_with_another_exit_is_reported() {
    assert_eq!(failure(4, FAILURE), ["OUT-02", "OUT-02"], "the exit, and that of this error");
    assert_eq!(failure(0, &FAILURE.replace(":5}", ":0}")), ["OUT-02", "OUT-02"]);
    assert_eq!(failure(5, &FAILURE.replace(":5}", ":\"5\"}")), ["OUT-02"]);
}

/// OUT-02
#[test]
fn an_error_that_no_page_names_is_reported() {
    assert_eq!(failure(5, &FAILURE.replace("plugin-failed", "bad-luck")), ["OUT-02"]);
}

/// OUT-02
#[test]
fn a_member_too_many_or_too_few_is_reported() {
    assert_eq!(failure(5, &FAILURE.replace("\"next\"", "\"more\":1,\"next\"")), ["OUT-02"]);
    assert_eq!(failure(5, &FAILURE.replace("\"next\":null,", "")), ["OUT-02"]);
    assert_eq!(success(0, &SUCCESS.replace("\"next\"", "\"more\":1,\"next\"")), ["OUT-01"]);
}

/// OUT-03
#[test]
fn a_failure_without_an_envelope_is_reported() {
    assert_eq!(failure(5, ""), ["OUT-03"]);
    assert_eq!(failure(5, "it did not work"), ["OUT-03"]);
    assert_eq!(rules(&answer(&[], Exit::Status(101), "", "thread panicked\n")), ["OUT-03"]);
    let mut broken = answer(&[], Exit::Status(0), "", "");
    broken.stdout = vec![0xff];
    assert_eq!(rules(&broken), ["OUT-03"]);
}

/// OUT-01
#[test]
fn text_where_json_was_asked_for_is_reported() {
    assert_eq!(success(0, "NAME  VERSION"), ["OUT-01"]);
    assert_eq!(success(0, "[]"), ["OUT-01"]);
}

/// OUT-01
#[test]
fn a_success_that_exits_otherwise_is_reported() {
    assert_eq!(success(1, SUCCESS), ["OUT-01"]);
    assert_eq!(success(0, &SUCCESS.replace("true", "1")), ["OUT-01"]);
}

/// OUT-03
#[test]
fn an_envelope_that_nobody_asked_for_is_reported() {
    assert_eq!(rules(&answer(&[], Exit::Status(0), &format!("{SUCCESS}\n"), "")), ["OUT-03"]);
    let behind = answer(&["--", "--json"], Exit::Status(0), &format!("{SUCCESS}\n"), "");
    assert_eq!(rules(&behind), ["OUT-03"]);
}

/// OUT-01
#[test]
fn an_envelope_over_several_lines_or_without_an_end_of_line_is_reported() {
    assert_eq!(success(0, &SUCCESS.replace(",\"next\"", ",\n\"next\"")), ["OUT-01"]);
    assert_eq!(rules(&answer(&["--json"], Exit::Status(0), SUCCESS, "")), ["OUT-01"]);
}

/// BUD-03
#[test]
fn a_message_of_two_lines_is_reported() {
    for bad in ["\\n", "\\r", "\\u001b"] {
        assert_eq!(failure(5, &FAILURE.replace(" is ", bad)), ["BUD-03"]);
    }
    assert_eq!(failure(5, &FAILURE.replace("box is ill", "")), ["BUD-03"]);
}

/// BUD-03
#[test]
fn a_text_that_differs_from_the_envelope_is_reported() {
    for stderr in ["", "mu: box is well\n", "mu: box is ill\nmu: box is ill\n", "box is ill\n"] {
        let ran = answer(&[], Exit::Status(5), &format!("{FAILURE}\n"), stderr);
        assert_eq!(rules(&ran), ["BUD-03"], "{stderr:?}");
    }
}

/// OUT-04
#[test]
fn a_next_of_another_shape_is_reported() {
    for next in ["\"mu\"", "{\"mode\":\"both\",\"commands\":[\"mu\"]}", "{\"mode\":\"alt\",\"commands\":[]}"]
    {
        assert_eq!(success(0, &SUCCESS.replace("null", next)), ["OUT-04"], "{next}");
    }
}

/// PRC-12
#[test]
fn a_result_beside_a_death_by_signal_is_reported() {
    assert_eq!(rules(&answer(&[], Exit::Signal(15), "box\n", "")), ["OUT-03"]);
    assert_eq!(rules(&answer(&[], Exit::Signal(15), "", "mu: a\nmu: b\n")), ["BUD-03"]);
}

/// PRC-13: there may be nobody left to write the envelope.
#[test]
fn a_mu_that_was_made_to_panic_may_exit_without_an_envelope() {
    let crash = |exit| Ran { crash: true, ..answer(&["--json"], Exit::Status(exit), "", "") };
    assert_eq!(rules(&crash(1)), [""; 0]);
    assert_eq!(rules(&crash(5)), ["OUT-03"]);
}

#[test]
fn a_quiet_exit_before_a_closed_stdout_is_not_judged() {
    let ran = Ran { heard: false, ..answer(&["--json"], Exit::Status(5), "", "") };
    assert_eq!(rules(&ran), [""; 0]);
}
