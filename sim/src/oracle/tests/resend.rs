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

mod of_effects {
    use super::super::effects::{FENCED, acquire, intent, lookup, made, release};
    use super::*;

    const REPEATS: &str = r#"{"lookup":false,"fenceKey":false,"dedupe":{"exact":true,"windowMs":60000}}"#;

    /// mu sends an acquire and is killed; later another mu sends this line.
    fn resent(declared: &str, ms: u64, line: &str) -> Tale {
        let tale = Tale::provided(declared).mu_asks(&acquire(2, "k")).mu_is_killed().passes(ms);
        tale.another(declared).other_asks(line).other_is_answered(&made(3))
    }

    /// CALL-03, CALL-04
    #[test]
    fn a_resend_by_another_mu_differs_in_id_and_deadline_alone() {
        resent(REPEATS, 1, &acquire(3, "k")).passes_all();
        resent(REPEATS, 1, &acquire(3, "k").replace(r#""size":"2""#, r#""size":"3""#)).breaks("CALL-03");
        resent(REPEATS, 1, &acquire(3, "k").replace(r#"{"size":"2"}"#, r#"{ "size":"2"}"#)).breaks("CALL-03");
        let same_deadline = acquire(3, "k").replace("1767229200003", "1767229200002");
        resent(REPEATS, 1, &same_deadline).breaks("CALL-04");
        let same_id = acquire(2, "k").replace("1767229200002", "1767229200003");
        let tale = Tale::provided(REPEATS).mu_asks(&acquire(2, "k")).mu_is_killed().another(REPEATS);
        tale.other_asks(&same_id).other_is_answered(&made(2)).breaks("CALL-04");
    }

    /// EFF-09, EFF-10, EFF-11
    #[test]
    fn an_acquire_is_sent_again_only_where_a_repeat_is_recognised() {
        resent(FENCED, 1, &acquire(3, "k")).breaks("EFF-09");
        resent(r#"{"lookup":false,"fenceKey":false}"#, 1, &acquire(3, "k")).breaks("EFF-11");
        resent(REPEATS, 60_000, &acquire(3, "k")).passes_all();
        resent(REPEATS, 60_001, &acquire(3, "k")).breaks("EFF-10");
    }

    /// EFF-03
    #[test]
    fn a_resend_of_what_was_answered_is_reported() {
        let released = |answer: &str, ends: &dyn Fn(Tale) -> Tale| {
            let tale = Tale::provided(FENCED).mu_asks(&acquire(2, "k")).answers(&made(2));
            let tale = ends(tale.mu_asks(&release(3, "r")).answers(answer));
            tale.another(FENCED).other_asks(&release(4, "r")).other_is_answered(&result(4, "null"))
        };
        let null = result(3, "null");
        let done = |tale: Tale| tale.done(0);
        released(&null, &Tale::mu_is_killed).passes_all();
        released(&null, &done).breaks("EFF-03");
        released(&error(3, r#"{"kind":"unknown-outcome"}"#), &done).passes_all();
    }

    /// ERR-01, TMO-09
    #[test]
    fn one_mu_repeats_an_effect_after_retryable_alone() {
        let twice = |answer: &str| {
            let tale = Tale::provided(FENCED).mu_asks(&acquire(2, "k")).answers(answer);
            tale.mu_asks(&acquire(3, "k")).answers(&made(3)).done(0)
        };
        twice(&error(2, RETRYABLE)).passes_all();
        twice(&error(2, r#"{"kind":"permanent"}"#)).breaks("ERR-02");
        twice(&error(2, r#"{"kind":"unknown-outcome"}"#)).breaks("ERR-04");
        let mut tale = Tale::provided(FENCED);
        for id in 2..7 {
            tale = tale.mu_asks(&acquire(id, "k")).answers(&error(id, RETRYABLE));
        }
        tale.done(0).breaks("ERR-01");
    }

    /// A-44
    #[test]
    fn a_fence_that_is_not_declared_is_reported() {
        let asked = |fence| {
            let tale = Tale::provided(r#"{"lookup":true,"fenceKey":false}"#).mu_asks(&acquire(2, "k"));
            let tale = tale.answers(&error(2, r#"{"kind":"unknown-outcome"}"#)).done(0);
            let tale = tale.another(r#"{"lookup":true,"fenceKey":false}"#).other_says(&lookup(2, "k", fence));
            tale.other_is_answered(&result(2, r#"{"pending":true}"#))
        };
        asked(false).passes_all();
        asked(true).breaks("A-44");
    }

    #[test]
    fn an_intent_has_the_bytes_of_its_request() {
        assert_eq!(intent(&acquire(2, "k")).params, intent(&acquire(3, "k")).params);
    }
}
