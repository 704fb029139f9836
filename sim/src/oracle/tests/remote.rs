//! How `mu host exec` and `mu host fetch` end.

use super::*;

/// The script was answered by this, and mu ended so.
fn ended(answer: &str, status: i32, stdout: &str, stderr: &str) -> Tale {
    Tale::calls("", "").answers(answer).mu_prints(stdout, stderr).done(status)
}

/// A failure of mu with this exit code, as it stands on stdout and on stderr.
fn failure(error: &str, exit: i32) -> (String, &'static str) {
    (
        format!(r#"{{"ok":false,"error":"{error}","message":"it failed","next":null,"exit":{exit}}}"#) + "\n",
        "mu: it failed\n",
    )
}

/// LINK-02
#[test]
fn status_and_output_of_a_run_are_passed_through() {
    ended(&run(2, "0"), 0, "out\n", "").passes_all();
    ended(&run(2, "7"), 7, "out\n", "").passes_all();
    ended(&run(2, "7"), 1, "out\n", "").breaks("LINK-02");
    ended(&run(2, "0"), 0, "out", "").breaks("LINK-02");
    let loud = run(2, "3").replace(r#""stderr":"""#, r#""stderr":"err\n""#);
    ended(&loud, 3, "out\n", "err\n").passes_all();
    ended(&loud, 3, "out\n", "").breaks("LINK-02");
}

/// LINK-02
#[test]
fn a_remote_may_print_what_looks_like_an_envelope() {
    let answer = run(2, "4").replace(r#""out"#, r#""{\"ok\":false}"#);
    ended(&answer, 4, "{\"ok\":false}\n", "").passes_all();
}

/// LINK-02
#[test]
fn an_envelope_holds_the_run() {
    let json = |stdout: &str, code: &str, status| {
        let data = format!(r#"{{"exit_code":{code},"stdout":"{stdout}","stderr":"","partial":false}}"#);
        let envelope = format!("{{\"ok\":true,\"data\":{data},\"next\":null}}\n");
        ended(&run(2, "7"), status, &envelope, "").runs("mu host exec h --json -- true")
    };
    json("out\\n", "7", 7).passes_all();
    json("else\\n", "7", 7).breaks("LINK-02");
    json("out\\n", "0", 7).breaks("OUT-01");
}

/// ERR-05
#[test]
fn a_run_without_exit_code_is_exit_1_and_says_so() {
    ended(&run(2, "null"), 1, "out\n", "mu: no exit code\n").passes_all();
    ended(&run(2, "null"), 0, "out\n", "mu: no exit code\n").breaks("LINK-02");
    ended(&run(2, "null"), 1, "out\n", "").breaks("ERR-05");
    let unknown = error(2, r#"{"kind":"unknown-outcome"}"#);
    ended(&unknown, 1, "", "mu: no exit code\n").passes_all();
    ended(&unknown, 0, "", "mu: no exit code\n").breaks("ERR-05");
}

/// ERR-01, ERR-02, ERR-03
#[test]
fn what_is_definite_is_exit_5() {
    for (rule, data) in
        [("ERR-02", r#"{"kind":"permanent"}"#), ("ERR-03", r#"{"kind":"human","remedy":"log in"}"#)]
    {
        let (stdout, stderr) = failure("plugin-failed", 5);
        ended(&error(2, data), 5, &stdout, stderr).passes_all();
        ended(&error(2, data), 1, "", "").breaks(rule);
    }
    ended(&error(2, r#"{"kind":"retryable"}"#), 1, "", "").breaks("ERR-01");
}

/// TMO-09
#[test]
fn what_is_unanswered_is_exit_1() {
    let given_up = |status, stdout: &str, stderr: &str| {
        let tale = Tale::calls("", "").passes(25_000).gives_up(&[2]).box_ends();
        tale.mu_prints(stdout, stderr).mu_ends_with(Exit::Status(status))
    };
    given_up(1, "", "mu: it was not answered\n").passes_all();
    let (stdout, stderr) = failure("plugin-failed", 5);
    given_up(5, &stdout, stderr).breaks("TMO-09");
    given_up(0, "", "").breaks("TMO-09");
}

/// REG-18
#[test]
fn a_success_without_any_run_is_reported() {
    Tale::linked("", "").runs("mu host exec h -- true").done(0).breaks("REG-18");
}

/// LINK-03
#[test]
fn a_fetch_that_failed_is_no_success() {
    let line = call(2, "link.fetch", r#""remoteCwd":"w","localRepo":"/r","timeoutMs":20000"#);
    let fetch = |code: &str, status| {
        let tale = Tale::linked("", "").runs("mu host fetch h w").mu_says(BOX, &line).plugin_reads(BOX);
        let (stdout, stderr) =
            if status == 0 { (String::new(), "") } else { failure("plugin-failed", status) };
        tale.answers(&run(2, code)).mu_prints(&stdout, stderr).done(status)
    };
    fetch("0", 0).passes_all();
    fetch("1", 5).passes_all();
    fetch("1", 0).breaks("LINK-03");
}

mod of_hosts {
    use super::super::effects::{FENCED, VM, about, acquire, made, release};
    use super::*;

    /// A verb whose request is answered like this ends with each of these statuses, of which the first alone is due.
    fn ends(line: &str, request: &str, answer: &str, rule: &str, [due, wrong]: [i32; 2]) {
        let tale = |status: i32| {
            let tale = Tale::provided(FENCED).runs("mu host acquire h --provider box");
            let tale = match line.contains("acquire") {
                true => tale,
                false => tale.mu_asks(&acquire(9, "a")).answers(&made(9)).runs(line),
            };
            let tale = match request.contains("key") {
                true => tale.mu_asks(request),
                false => tale.mu_says(BOX, request).plugin_reads(BOX),
            };
            let envelope = match status {
                0 => String::new(),
                status => {
                    let error = match status {
                        1 => "outcome-unknown",
                        4 => "host-lost",
                        _ => "call-failed",
                    };
                    let message = r#""message":"no","next":null"#;
                    format!("{{\"ok\":false,\"error\":\"{error}\",{message},\"exit\":{status}}}\n")
                }
            };
            tale.answers(answer).mu_prints(&envelope, "mu: no\n").done(status).rules()
        };
        let of_remote = |rules: Vec<&'static str>| -> Vec<&'static str> {
            rules.into_iter().filter(|rule| *rule != "OUT-02" && *rule != "BUD-03").collect()
        };
        assert_eq!(of_remote(tale(due)), [""; 0], "{line}: {due}");
        assert_eq!(of_remote(tale(wrong)), [rule], "{line}: {wrong}");
    }

    /// HOST-05, ERR-02, ERR-04
    #[test]
    fn an_acquire_ends_as_it_was_answered() {
        let line = "mu host acquire h --provider box";
        ends(line, &acquire(2, "k"), &made(2), "HOST-05", [0, 1]);
        ends(line, &acquire(2, "k"), &error(2, r#"{"kind":"permanent"}"#), "ERR-02", [5, 1]);
        ends(line, &acquire(2, "k"), &error(2, r#"{"kind":"unknown-outcome"}"#), "ERR-05", [1, 5]);
    }

    /// HOST-08
    #[test]
    fn a_release_ends_as_it_was_answered() {
        let line = "mu host release h";
        ends(line, &release(2, "r"), &result(2, "null"), "HOST-08", [0, 1]);
        ends(line, &release(2, "r"), &error(2, r#"{"kind":"permanent"}"#), "ERR-02", [5, 0]);
    }

    /// HOST-07, HOST-12, HOST-16, A-66
    #[test]
    fn a_status_ends_as_it_was_answered() {
        let line = "mu host status h";
        let status = about(2, "host.status", VM, "");
        let state = |state: &str| result(2, state);
        ends(line, &status, &state(r#"{"state":"up","handle":"vm"}"#), "HOST-07", [0, 4]);
        ends(line, &status, &state(r#"{"state":"gone","reason":"x"}"#), "HOST-12", [4, 1]);
        ends(line, &status, &state(r#"{"state":"needs-human","remedy":"x"}"#), "A-66", [5, 1]);
        ends(line, &status, &state(r#"{"state":"unknown","reason":"x"}"#), "HOST-16", [1, 4]);
    }
}
