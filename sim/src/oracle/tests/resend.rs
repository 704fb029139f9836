//! Calls that are sent again.

use super::*;

const RETRYABLE: &str = r#"{"kind":"retryable"}"#;

/// `mu host exec` sends a script so many times, each after this answer; the last send is answered by a result.
fn sent(times: u64, answer: &dyn Fn(u64) -> String) -> Tale {
    let mut tale = Tale::linked("", "").runs("mu host exec h -- true");
    for id in 2..2 + times {
        tale = tale.mu_says(BOX, &script(id)).plugin_reads(BOX);
        tale = if id == 1 + times { tale.answers(&run(id, "0")) } else { tale.answers(&answer(id)) };
    }
    tale.mu_prints("out\n", "").done(0)
}

/// ERR-01
#[test]
fn three_repeats_after_retryable_pass_and_a_fourth_is_reported() {
    sent(4, &|id| error(id, RETRYABLE)).passes_all();
    sent(5, &|id| error(id, RETRYABLE)).breaks("ERR-01");
}

/// ERR-02, ERR-03, ERR-04
#[test]
fn a_repeat_after_any_other_answer_is_reported() {
    sent(2, &|id| error(id, r#"{"kind":"permanent"}"#)).breaks("ERR-02");
    sent(2, &|id| error(id, r#"{"kind":"human","remedy":"log in"}"#)).breaks("ERR-03");
    sent(2, &|id| error(id, r#"{"kind":"unknown-outcome"}"#)).breaks("ERR-04");
    sent(2, &|id| run(id, "1")).breaks("ERR-01");
}

/// TMO-09
#[test]
fn a_repeat_of_what_was_not_answered_is_reported() {
    let tale = Tale::calls("", "").mu_says(BOX, &script(3)).plugin_reads(BOX);
    let tale = tale.answers(&run(3, "0")).answers(&run(2, "0")).mu_prints("out\n", "").done(0);
    tale.breaks("ERR-01");
    let tale = Tale::calls("", "").passes(25_000).gives_up(&[2]).box_ends();
    let tale = tale.plugin_starts(MU, 103, "box");
    let say =
        |tale: Tale, line: &str| tale.writes(MU, Tale::pipe(103, Std::In), format!("{line}\n").as_bytes());
    let tale = say(tale, &initialize(3)).writes(
        103,
        Tale::pipe(103, Std::Out),
        format!("{}\n", reply(3)).as_bytes(),
    );
    let tale = say(tale.reads(MU, Tale::pipe(103, Std::Out)), &script(4));
    let rules = tale.ends(103, Exit::Status(0)).mu_reaps(103).mu_ends_with(Exit::Status(1)).rules();
    assert!(rules.contains(&"TMO-09"), "{rules:?}");
}

/// CALL-03
#[test]
fn a_repeat_with_other_parameters_is_reported() {
    let tale =
        Tale::calls("", "").answers(&error(2, RETRYABLE)).mu_says(BOX, &script(3).replace("true", "false"));
    tale.plugin_reads(BOX).answers(&run(3, "0")).mu_prints("out\n", "").done(0).breaks("CALL-03");
}

/// CALL-04
#[test]
fn a_repeat_with_the_same_deadline_is_reported() {
    let again = script(2).replace(r#""id":2"#, r#""id":3"#);
    let tale = Tale::calls("", "").answers(&error(2, RETRYABLE)).mu_says(BOX, &again).plugin_reads(BOX);
    tale.answers(&run(3, "0")).mu_prints("out\n", "").done(0).breaks("CALL-04");
}

#[test]
fn two_hosts_or_one_host_twice_may_be_asked_the_same() {
    let step = |id| call(id, "link.checkSteps", r#""phase":"reach""#);
    let check = |line: &str, second: String| {
        let tale = Tale::linked("", "").runs(line).mu_says(BOX, &step(2)).mu_says(BOX, &second);
        tale.plugin_reads(BOX).answers(&result(2, "[]")).answers(&result(3, "[]")).done(0)
    };
    check("mu host check h i", step(3).replace(r#""name":"h""#, r#""name":"i""#)).passes_all();
    check("mu host check h h", step(3)).passes_all();
}
