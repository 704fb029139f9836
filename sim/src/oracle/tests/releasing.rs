//! A machine that another mu is about to release.

use super::effects::{FENCED, VM, about, acquire, made, provider, release};
use super::*;

/// mu has acquired `vm`.
fn acquired() -> Tale {
    Tale::provided(FENCED).mu_asks(&acquire(2, "k")).answers(&made(2))
}

/// mu has asked for its release.
fn begun() -> Tale {
    acquired().mu_asks(&release(3, "r"))
}

fn released(tale: Tale) -> Tale {
    tale.answers(&result(3, "null")).done(0)
}

fn exec(id: u64) -> String {
    about(id, "link.exec", VM, r#","script":"true","cwd":".","timeoutMs":20000"#)
}

/// Another mu runs a script there.
fn runs(tale: Tale) -> Tale {
    tale.passes(1000).another(FENCED).other_says(&exec(2)).other_is_answered(&run(2, "0"))
}

/// A-78
#[test]
fn a_script_on_a_machine_that_is_being_released_is_reported() {
    released(runs(begun())).breaks("A-78");
    // Before it was asked for, and once it is known how it ended.
    released(runs(acquired()).mu_asks(&release(3, "r"))).passes_all();
    runs(begun().answers(&error(3, r#"{"kind":"permanent"}"#))).done(0).passes_all();
    // Whoever asked for it is gone.
    runs(begun().mu_is_killed()).passes_all();
}

/// A-78
#[test]
fn a_release_of_which_nothing_is_known_is_open_as_long_as_its_mu_lives() {
    let unknown = || begun().answers(&error(3, r#"{"kind":"unknown-outcome"}"#));
    runs(unknown()).done(0).breaks("A-78");
    runs(unknown().done(0)).passes_all();
}

/// A-78
#[test]
fn another_machine_may_be_used_meanwhile() {
    let there = |from: &str, to: &str| {
        let tale = begun().passes(1000).another(FENCED).other_says(&exec(2).replace(from, to));
        released(tale.other_is_answered(&run(2, "0"))).rules()
    };
    assert_eq!(there("", ""), ["A-78"]);
    // Nobody has told of these, which is what another oracle looks after.
    assert_eq!(there(r#""vm""#, r#""vm-2""#), ["HOST-03"]);
    assert_eq!(there(r#""name":"h""#, r#""name":"g""#), ["HOST-03"]);
}

/// A-78: who has looked at the host before that, and shakes hands meanwhile, knows nothing of it. With channels it does.
#[test]
fn a_script_whose_plugin_shakes_hands_meanwhile_passes() {
    let slow = |slots: &str| {
        let declared = format!("{}\n", provider(FENCED).replace(r#""slots":"self""#, slots));
        let tale = acquired().mu_starts(200).plugin_starts(200, 201, "box").other_says(&initialize(1));
        let tale = tale.mu_asks(&release(3, "r")).passes(1000);
        let tale = tale.writes(201, Tale::pipe(201, Std::Out), declared.as_bytes());
        let tale = tale.reads(200, Tale::pipe(201, Std::Out)).other_says(&exec(2));
        released(tale.other_is_answered(&run(2, "0"))).rules()
    };
    assert_eq!(slow(r#""slots":"self""#), [""; 0]);
    assert_eq!(slow(r#""slots":"mu""#), ["A-78"]);
    // What it sends later it has looked for again.
    let next = |ms| {
        let tale = acquired().another(FENCED).other_says(&exec(2).replace("true", "false"));
        let first = format!("{}\n", run(2, "0"));
        let tale = tale.writes(201, Tale::pipe(201, Std::Out), first.as_bytes());
        let tale = tale.reads(200, Tale::pipe(201, Std::Out)).mu_asks(&release(3, "r")).passes(ms);
        released(tale.other_says(&exec(3)).other_is_answered(&run(3, "0"))).rules()
    };
    assert_eq!(next(0), [""; 0]);
    assert_eq!(next(1000), ["A-78"]);
}

/// A-78: what began before it goes on.
#[test]
fn a_repeat_of_what_began_before_is_no_beginning() {
    let busy = format!("{}\n", error(2, r#"{"kind":"retryable"}"#));
    let tale = acquired().another(FENCED).other_says(&exec(2));
    let tale =
        tale.writes(201, Tale::pipe(201, Std::Out), busy.as_bytes()).reads(200, Tale::pipe(201, Std::Out));
    let tale = tale.mu_asks(&release(3, "r")).passes(10_000);
    let next = |line: &str| {
        let tale = tale.clone().other_says(line).other_is_answered(&run(3, "0"));
        released(tale).rules()
    };
    assert_eq!(next(&exec(3)), [""; 0]);
    assert!(next(&exec(3).replace("true", "false")).contains(&"A-78"));
}

/// HOST-12, A-80
#[test]
fn a_host_that_is_called_lost_beside_its_release_is_reported() {
    let status = about(2, "host.status", VM, "");
    let gone = result(2, r#"{"state":"gone","reason":"it is off"}"#);
    let said = |tale: Tale, error: &str| {
        let mut tale = tale.other_is_answered(&gone);
        tale.ran[1].argv = "mu host status h".split(' ').map(Into::into).collect();
        tale.ran[1].stdout = format!(r#"{{"ok":false,"error":"{error}","exit":4}}"#).into();
        tale
    };
    let asked = |tale: Tale| tale.another(FENCED).other_says(&status);
    released(said(asked(begun()), "host-lost")).breaks("HOST-12");
    released(said(asked(acquired()).mu_asks(&release(3, "r")), "host-lost")).breaks("HOST-12");
    released(said(asked(begun()), "host-not-ready")).passes_all();
    said(asked(begun().mu_is_killed()), "host-lost").passes_all();
    // The release has ended before the other mu does: it may have been recorded.
    said(asked(begun()).answers(&error(3, r#"{"kind":"permanent"}"#)), "host-lost").done(0).passes_all();
}
