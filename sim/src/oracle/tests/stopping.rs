//! The stop sequence.

use super::*;

const TERM: i32 = 15;

/// PRC-07: a plugin that does not end is killed when the grace is over.
#[test]
fn a_stop_that_needs_the_kill_passes() {
    Tale::stopped().passes(5_000).box_is_killed().mu_ends().passes_all();
}

/// PRC-07
#[test]
fn a_handshake_that_is_cancelled_passes() {
    let tale = Tale::greeted().passes(10_000).mu_says(BOX, &cancel(1)).mu_says(BOX, SHUTDOWN).mu_closes(BOX);
    tale.box_ends().mu_ends().passes_all();
}

/// PRC-07
#[test]
fn a_cancel_for_what_was_never_asked_is_reported() {
    let tale = Tale::ready().mu_says(BOX, &cancel(2)).mu_says(BOX, SHUTDOWN).mu_closes(BOX);
    tale.box_ends().mu_ends().breaks("PRC-07");
}

/// PRC-07
#[test]
fn a_cancel_for_what_was_answered_is_reported() {
    let tale = Tale::ready().mu_says(BOX, &cancel(1)).mu_says(BOX, SHUTDOWN).mu_closes(BOX);
    tale.box_ends().mu_ends().breaks("PRC-07");
}

/// TMO-06: the answer and the cancel cross.
#[test]
fn a_cancel_for_what_was_answered_and_not_read_passes() {
    let tale = Tale::greeted().box_says(&reply(1)).mu_says(BOX, &cancel(1)).mu_says(BOX, SHUTDOWN);
    tale.mu_closes(BOX).mu_reads(BOX).box_ends().mu_ends().passes_all();
}

/// TRN-19: what breaks the plugin leaves its calls unanswered, whatever follows.
#[test]
fn a_cancel_for_what_was_answered_behind_an_invalid_line_passes() {
    let stray = r#"{"jsonrpc":"2.0","method":"watch/settled","params":{}}"#;
    for line in ["hello", stray, &reply(9)] {
        let tale = Tale::greeted().box_says(line).box_says(&reply(1)).mu_reads(BOX);
        let tale = tale.mu_says(BOX, &cancel(1)).mu_says(BOX, SHUTDOWN).mu_closes(BOX);
        tale.box_ends().mu_ends().passes_all();
    }
}

/// A-05
#[test]
fn a_second_cancel_is_reported() {
    let tale = Tale::greeted().mu_says(BOX, &cancel(1)).mu_says(BOX, &cancel(1)).mu_says(BOX, SHUTDOWN);
    tale.mu_closes(BOX).box_ends().mu_ends().breaks("A-05");
}

/// PRC-07
#[test]
fn a_pending_call_without_a_cancel_is_reported() {
    let tale = Tale::greeted().mu_says(BOX, SHUTDOWN).mu_closes(BOX).box_ends().mu_ends();
    tale.breaks("PRC-07");
    let crossing = Tale::greeted().box_says(&reply(1)).mu_says(BOX, SHUTDOWN).mu_closes(BOX).mu_reads(BOX);
    crossing.box_ends().mu_ends().breaks("PRC-07");
}

/// PRC-07
#[test]
fn a_line_after_shutdown_is_reported() {
    let tale = Tale::greeted().mu_says(BOX, SHUTDOWN).mu_says(BOX, &cancel(1)).mu_closes(BOX);
    tale.box_ends().mu_ends().breaks("PRC-07");
    let twice = Tale::ready().mu_says(BOX, SHUTDOWN).mu_says(BOX, SHUTDOWN).mu_closes(BOX);
    twice.box_ends().mu_ends().breaks("PRC-07");
}

/// TMO-04
#[test]
fn a_request_after_a_cancel_is_reported() {
    let call = r#"{"jsonrpc":"2.0","id":2,"method":"initialize","params":{}}"#;
    let tale = Tale::greeted().mu_says(BOX, &cancel(1)).mu_says(BOX, call).mu_says(BOX, &cancel(2));
    let rules = tale.mu_says(BOX, SHUTDOWN).mu_closes(BOX).box_ends().mu_ends().rules();
    assert!(rules.contains(&"TMO-04"), "{rules:?}");
}

/// PRC-08
#[test]
fn an_end_of_stdin_without_shutdown_is_reported() {
    Tale::ready().mu_closes(BOX).box_ends().mu_ends().breaks("PRC-08");
}

/// A-73: a line that the pipe does not take is dropped.
#[test]
fn an_end_of_stdin_without_shutdown_behind_a_full_pipe_passes() {
    let pipe = Tale::pipe(BOX, Std::In);
    let half = Tale::ready().writes(MU, pipe, b"{\"half").mu_closes(BOX);
    half.box_ends().mu_ends().passes_all();
    let blank = format!("{}\n", " ".repeat(999));
    let mut full = Tale::ready();
    for _ in 0..66 {
        full = full.writes(MU, pipe, blank.as_bytes());
    }
    let rules = full.mu_closes(BOX).box_ends().mu_ends().rules();
    assert!(!rules.contains(&"PRC-08"), "{rules:?}");
    let broken = Tale::ready().push(MU, What::Broken(pipe)).mu_closes(BOX);
    broken.box_ends().mu_ends().passes_all();
}

/// A-04: nobody is left to read it.
#[test]
fn an_end_of_stdin_without_shutdown_after_the_leaders_exit_passes() {
    let tale = Tale::ready().ends(BOX, Exit::Status(3)).mu_kills(BOX).mu_closes(BOX).mu_reaps(BOX);
    tale.mu_ends().passes_all();
}

/// PRC-07
#[test]
fn a_stdin_that_is_never_closed_is_reported() {
    let rules = Tale::ready().mu_says(BOX, SHUTDOWN).mu_reaps(BOX).mu_ends().rules();
    assert!(rules.contains(&"PRC-07"), "{rules:?}");
}

/// PRC-07
#[test]
fn a_stdin_that_stays_open_after_shutdown_is_reported() {
    let tale = Tale::ready().mu_says(BOX, SHUTDOWN).passes(1_000).mu_closes(BOX).box_ends().mu_ends();
    tale.breaks("PRC-07");
}

/// PRC-08
#[test]
fn a_signal_that_begins_no_stop_is_reported() {
    let tale = Tale::ready().mu_is_told(TERM).passes(1_000).mu_says(BOX, SHUTDOWN).mu_closes(BOX);
    tale.box_ends().mu_ends_with(Exit::Signal(TERM)).breaks("PRC-08");
}

/// TRN-18
#[test]
fn an_invalid_line_that_begins_no_stop_is_reported() {
    let tale = Tale::ready().box_says("hello").mu_reads(BOX).passes(1_000).mu_says(BOX, SHUTDOWN);
    tale.mu_closes(BOX).box_ends().mu_ends().breaks("TRN-18");
}

/// TRN-17, TRN-21
#[test]
fn a_request_or_an_unknown_notification_that_begins_no_stop_is_reported() {
    for line in [r#"{"jsonrpc":"2.0","id":9,"method":"x"}"#, r#"{"jsonrpc":"2.0","method":"log"}"#] {
        let tale = Tale::ready().box_says(line).mu_reads(BOX).passes(1_000).mu_says(BOX, SHUTDOWN);
        tale.mu_closes(BOX).box_ends().mu_ends().breaks("TRN-18");
    }
}

/// A-72
#[test]
fn an_end_of_stdout_that_begins_no_stop_is_reported() {
    let tale = Tale::ready().push(MU, What::Eof(Tale::pipe(BOX, Std::Out))).passes(1_000);
    tale.mu_says(BOX, SHUTDOWN).mu_closes(BOX).box_ends().mu_ends().breaks("A-72");
}

/// PRC-13
#[test]
fn a_kill_before_the_grace_is_over_is_reported() {
    Tale::stopped().passes(4_999).box_is_killed().mu_ends().breaks("PRC-13");
}

/// PRC-13, TRN-18
#[test]
fn a_kill_without_the_stop_sequence_is_reported() {
    Tale::ready().box_is_killed().mu_closes(BOX).mu_ends().breaks("PRC-13");
    Tale::ready().box_is_killed().mu_ends().breaks("PRC-13");
    let late = Tale::ready().passes(60_000).mu_says(BOX, SHUTDOWN).box_is_killed().mu_closes(BOX);
    late.mu_ends().breaks("PRC-13");
}

/// PRC-13: a crash cannot wait.
#[test]
fn a_kill_without_the_stop_sequence_by_a_mu_that_crashes_passes() {
    Tale::ready().mu_is_made_to_panic().box_is_killed().mu_ends_with(Exit::Status(1)).passes_all();
}

/// PRC-07
#[test]
fn another_signal_than_the_kill_is_reported() {
    let tale = Tale::stopped().signals(MU, Target::Group(Pid(BOX)), TERM).box_ends().mu_ends();
    tale.breaks("PRC-07");
}

/// PRC-07
#[test]
fn a_plugin_that_lives_after_the_grace_is_reported() {
    Tale::stopped().passes(5_100).box_is_killed().mu_ends().breaks("PRC-07");
}

/// PRC-07: the time counts in which mu could do something.
#[test]
fn a_plugin_that_lives_after_the_grace_of_a_stopped_mu_passes() {
    let is = |effect| What::Delivered { number: 19, effect };
    let tale = Tale::stopped().push(MU, is(Effect::Stops)).passes(9_000).push(MU, is(Effect::Continues));
    tale.box_is_killed().mu_ends().passes_all();
}

/// PRC-17
#[test]
fn a_group_that_outlives_its_leader_is_reported() {
    let ends = |ms| {
        let tale = Tale::ready().helper_starts().mu_says(BOX, SHUTDOWN).mu_closes(BOX);
        let tale = tale.ends(BOX, Exit::Status(0)).passes(ms).mu_kills(BOX).ends(HELPER, Exit::Signal(9));
        tale.mu_reaps(BOX).mu_ends()
    };
    ends(0).passes_all();
    ends(100).breaks("PRC-17");
}

/// PRC-18: who leaves the group in time is nobody's business.
#[test]
fn a_helper_that_leaves_the_group_at_its_leaders_end_passes() {
    let tale = Tale::ready().helper_starts().mu_says(BOX, SHUTDOWN).mu_closes(BOX).ends(BOX, Exit::Status(0));
    tale.push(HELPER, What::NewSession).mu_kills(BOX).mu_reaps(BOX).passes(100).mu_ends().passes_all();
}

/// PRC-09
#[test]
fn a_start_after_a_signal_is_reported() {
    let tale = Tale::ready().mu_is_told(TERM).mu_says(BOX, SHUTDOWN).mu_closes(BOX);
    let tale = tale.plugin_starts(MU, 103, "crate").ends(103, Exit::Status(0)).mu_reaps(103);
    tale.box_ends().mu_ends_with(Exit::Signal(TERM)).breaks("PRC-09");
}

/// PRC-10
#[test]
fn a_request_after_a_signal_is_reported() {
    let tale = Tale::started().mu_is_told(TERM).mu_says(BOX, &initialize(1)).mu_says(BOX, &cancel(1));
    let tale = tale.mu_says(BOX, SHUTDOWN).mu_closes(BOX).box_ends();
    tale.mu_ends_with(Exit::Signal(TERM)).breaks("PRC-10");
}

/// PRC-12
#[test]
fn a_mu_that_exits_in_spite_of_a_signal_is_reported() {
    let ends = |exit| {
        let tale = Tale::ready().mu_is_told(2).mu_is_told(TERM).mu_says(BOX, SHUTDOWN).mu_closes(BOX);
        tale.box_ends().mu_ends_with(exit)
    };
    ends(Exit::Signal(2)).passes_all();
    ends(Exit::Signal(9)).passes_all();
    ends(Exit::Signal(1)).breaks("PRC-12");
    ends(Exit::Status(0)).breaks("PRC-12");
}

/// PRC-12: the verb was done before.
#[test]
fn a_signal_that_comes_when_no_plugin_is_left_may_be_missed() {
    Tale::stopped().box_ends().mu_is_told(TERM).mu_ends().passes_all();
}

/// A signal that mu was told to ignore is none.
#[test]
fn an_ignored_signal_passes() {
    let ignored = What::Delivered { number: 1, effect: Effect::Ignored };
    Tale::ready()
        .push(MU, ignored)
        .passes(1_000)
        .mu_says(BOX, SHUTDOWN)
        .mu_closes(BOX)
        .box_ends()
        .mu_ends()
        .passes_all();
}

/// PRC-07, A-05: one cancel for each call that is pending.
#[test]
fn a_stop_with_calls_in_flight_cancels_each_pending_one() {
    let three = || {
        let tale = Tale::calls("", "").mu_says(BOX, &script(3)).mu_says(BOX, &script(4));
        tale.answers(&run(3, "0")).runs("mu plugin check").passes(25_000)
    };
    let ends = |tale: Tale| tale.box_ends().mu_ends().rules();
    let stops = |ids: &[u64]| ends(three().gives_up(ids));
    let ours = |rules: Vec<&str>| rules.into_iter().filter(|rule| ["PRC-07", "A-05"].contains(rule)).count();
    assert_eq!(ours(stops(&[2, 4])), 0);
    assert_eq!(ours(stops(&[2])), 1);
    assert_eq!(ours(stops(&[2, 3, 4])), 1);
    assert_eq!(ours(stops(&[2, 4, 4])), 1);
}

/// PRC-10
#[test]
fn a_call_after_a_signal_is_reported() {
    let tale = Tale::calls("", "").answers(&run(2, "0")).mu_is_told(TERM).mu_says(BOX, &script(3));
    let tale = tale.gives_up(&[3]).box_ends().mu_ends_with(Exit::Signal(TERM));
    assert!(tale.rules().contains(&"PRC-10"));
}

/// TRN-18, A-07, A-09, TRN-16
#[test]
fn a_reply_to_a_call_that_is_off_its_schema_or_comes_twice_must_begin_the_stop() {
    let run = |text: &str| run(2, "0").replace(r#""exitCode":0"#, text);
    let wrong = [
        run(r#""exitCode":256"#),
        run(r#""exitCode":0,"more":1"#),
        result(2, "[]"),
        error(2, "{}"),
        error(2, r#"{"kind":"later"}"#),
        error(2, r#"{"kind":"human"}"#),
        reply(9),
    ];
    for line in wrong {
        let tale = |late| Tale::calls("", "").answers(&line).passes(late).gives_up(&[2]).box_ends();
        let rules = tale(1_000).mu_ends_with(Exit::Status(1)).rules();
        assert!(rules.contains(&"TRN-18"), "{line}: {rules:?}");
        tale(0).mu_ends_with(Exit::Status(1)).passes_all();
    }
    let twice = Tale::calls("", "").answers(&run(r#""exitCode":0"#)).answers(&run(r#""exitCode":0"#));
    let rules = twice.passes(1_000).mu_prints("out\n", "").done(0).rules();
    assert_eq!(rules, ["TRN-18"]);
}

/// TMO-06: what crosses the cancel is ignored.
#[test]
fn a_reply_after_the_cancel_breaks_nothing() {
    let tale = Tale::calls("", "").passes(25_000).gives_up(&[2]).answers(&run(2, "0")).answers(&run(2, "0"));
    tale.box_ends().mu_ends_with(Exit::Status(1)).passes_all();
}
