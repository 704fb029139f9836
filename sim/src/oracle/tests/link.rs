//! What is asked of a link.

use super::*;

/// A conversation of one call that is answered by a success.
fn one_call(tale: Tale, line: &str, answer: &str) -> Tale {
    tale.mu_says(BOX, line).plugin_reads(BOX).answers(answer).done(0)
}

/// LINK-04
#[test]
fn a_push_that_is_not_declared_is_reported() {
    let rev = "0123456789abcdef0123456789abcdef01234567";
    let own = format!(r#""localRepo":"/r","remoteRepo":"r","rev":"{rev}","timeoutMs":1"#);
    let push = |from, to| one_call(Tale::linked(from, to), &call(2, "link.push", &own), &run(2, "0"));
    push("", "").passes_all();
    push(r#""push":true"#, r#""push":false"#).breaks("LINK-04");
    push(r#""push":true,"#, "").breaks("LINK-04");
}

/// REG-18
#[test]
fn a_fetch_that_is_not_declared_is_reported() {
    let line = call(2, "link.fetch", r#""remoteCwd":"w","localRepo":"/r","timeoutMs":20000"#);
    let fetch = |to| one_call(Tale::linked(r#""fetch":true"#, to), &line, &run(2, "0"));
    fetch(r#""fetch":true"#).passes_all();
    fetch(r#""fetch":false"#).breaks("REG-18");
}

/// SEAM-08
#[test]
fn a_phase_that_is_not_declared_is_reported() {
    let check = |phase: &str| {
        let line = call(2, "link.checkSteps", &format!(r#""phase":"{phase}""#));
        one_call(Tale::linked("", ""), &line, &result(2, "[]"))
    };
    check("reach").passes_all();
    check("agent").breaks("SEAM-08");
}

/// LINK-20: counted in bytes.
#[test]
fn a_script_that_is_too_long_is_reported() {
    let exec = |script: &str| {
        let own = format!(r#""script":"{script}","cwd":".","timeoutMs":1"#);
        one_call(Tale::linked("", ""), &call(2, "link.exec", &own), &run(2, "0"))
    };
    exec("123456789").passes_all();
    exec("1234567890").breaks("LINK-20");
    exec("éééé1").passes_all();
    exec("ééééé").breaks("LINK-20");
}

/// TMO-01
#[test]
fn another_timeout_than_the_usual_one_is_reported() {
    let exec = |line: &str, ms: &str| {
        let line = Tale::linked("", "").runs(line).mu_says(BOX, &script(2).replace("20000", ms));
        line.plugin_reads(BOX).answers(&run(2, "0")).mu_prints("out\n", "").done(0)
    };
    exec("mu host exec h -- true", "20000").passes_all();
    exec("mu host exec h -- true", "10000").breaks("TMO-01");
    exec("mu host exec h --timeout 10s -- true", "10000").passes_all();
}

const CHANNELS: (&str, &str) = (r#""slots":"self""#, r#""slots":"mu""#);

/// Two calls on one host, the second before or after the answer to the first; `add` gives the host its channels.
fn two_calls(add: &str, overlap: bool, link: (&str, &str)) -> Tale {
    let tale = Tale::linked(link.0, link.1).mu_says(BOX, &script(2)).plugin_reads(BOX).passes(10);
    let second = script(3).replace("true", "false");
    let tale = match overlap {
        true => tale.mu_says(BOX, &second).answers(&run(2, "0")),
        false => tale.answers(&run(2, "0")).mu_says(BOX, &second),
    };
    let mut tale = tale.answers(&run(3, "0")).done(0);
    let adding = Ran {
        pid: Pid(90),
        argv: add.split(' ').map(Into::into).collect(),
        exit: Some(Exit::Status(0)),
        ..tale.ran[0].clone()
    };
    tale.ran.push(adding);
    tale
}

/// SEAM-04
#[test]
fn more_calls_at_once_than_channels_are_reported() {
    let add = "mu host add h --plugin box";
    two_calls(add, false, CHANNELS).passes_all();
    two_calls(add, true, CHANNELS).breaks("SEAM-04");
    two_calls(&format!("{add} --max-sessions 2"), true, CHANNELS).passes_all();
    two_calls(&format!("{add} --max-sessions=2"), true, CHANNELS).passes_all();
    two_calls("mu host add other --plugin box --max-sessions 2", true, CHANNELS).breaks("SEAM-04");
    two_calls(add, true, ("", "")).passes_all();
}

/// SEAM-04: of another mu too, as long as that lives.
#[test]
fn the_channel_of_a_mu_that_died_is_free() {
    let killed = Tale::linked(CHANNELS.0, CHANNELS.1).mu_says(BOX, &script(2)).plugin_reads(BOX);
    let other = |tale: Tale| {
        let tale = tale.mu_starts(200).plugin_starts(200, 201, "box");
        let tale = tale.writes(200, Tale::pipe(201, Std::In), format!("{}\n", initialize(1)).as_bytes());
        let declared = format!("{}\n", declaration(CHANNELS.0, CHANNELS.1));
        let tale = tale.writes(201, Tale::pipe(201, Std::Out), declared.as_bytes());
        let tale = tale.reads(200, Tale::pipe(201, Std::Out)).passes(1);
        tale.writes(200, Tale::pipe(201, Std::In), format!("{}\n", script(2)).as_bytes())
    };
    let rules = other(killed).rules();
    assert!(rules.contains(&"SEAM-04"), "{rules:?}");
    let killed = Tale::linked(CHANNELS.0, CHANNELS.1).mu_says(BOX, &script(2)).plugin_reads(BOX);
    let rules = other(killed.mu_ends_with(Exit::Signal(9))).rules();
    assert!(!rules.contains(&"SEAM-04"), "{rules:?}");
}

const STOPPING: (&str, &str) =
    (r#""slots":"self","remoteOnTimeout":"stopped""#, r#""slots":"mu","remoteOnTimeout":"stopping""#);

/// LINK-18
#[test]
fn a_run_that_is_still_stopping_keeps_its_channel() {
    let next_after = |ms| {
        let tale = Tale::linked(STOPPING.0, STOPPING.1).mu_says(BOX, &script(2)).plugin_reads(BOX);
        let tale = tale.passes(20_000).answers(&run(2, "null")).passes(ms);
        let tale = tale.mu_says(BOX, &script(3).replace("true", "false")).answers(&run(3, "0"));
        tale.passes(5_000).done(0)
    };
    next_after(5_000).passes_all();
    next_after(4_999).breaks("SEAM-04");
}

/// LINK-18: what broke the plugin came before the answer, which is none then.
#[test]
fn a_run_that_was_answered_behind_a_broken_line_is_over() {
    let tale = |before: &str| {
        let tale = Tale::calls(STOPPING.0, STOPPING.1).passes(20_000);
        let tale =
            tale.answers(&format!("{before}{}", run(2, "null"))).mu_prints("out\n", "mu: no exit code\n");
        tale.done(1).rules()
    };
    assert!(tale("").contains(&"LINK-18"));
    assert!(!tale("Content-Length: 91\n").contains(&"LINK-18"));
}

/// LINK-18
#[test]
fn a_run_that_is_still_stopping_is_not_handed_out() {
    let ends_after = |ms, signal: bool| {
        let tale = Tale::calls(STOPPING.0, STOPPING.1).passes(20_000).answers(&run(2, "null")).passes(ms);
        let tale = tale.mu_prints("out\n", "mu: no exit code\n");
        match signal {
            true => {
                let tale = tale.mu_prints("", "").mu_is_told(15).gives_up(&[]).box_ends();
                tale.mu_ends_with(Exit::Signal(15))
            }
            false => tale.done(1),
        }
    };
    ends_after(5_000, false).passes_all();
    ends_after(4_999, false).breaks("LINK-18");
    ends_after(5_000, true).passes_all();
    ends_after(1_000, true).breaks("LINK-18");
}
