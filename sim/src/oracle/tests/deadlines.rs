//! When calls end.

use super::*;

/// A call of 20 s that is given up after so many milliseconds, and whose plugin dies so much later.
fn given_up(after: u64, dies_after: u64) -> Tale {
    let tale = Tale::calls("", "").passes(after).gives_up(&[2]).passes(dies_after);
    let tale = if dies_after < 5_000 { tale.box_ends() } else { tale.box_is_killed() };
    tale.mu_ends_with(Exit::Status(1))
}

/// TMO-02, TMO-04
#[test]
fn a_call_that_is_given_up_at_its_deadline_passes() {
    given_up(25_000, 0).passes_all();
    given_up(25_000, 5_000).passes_all();
}

/// TMO-04
#[test]
fn a_call_that_outlasts_its_deadline_is_reported() {
    given_up(25_100, 0).breaks("TMO-04");
    let tale = Tale::calls("", "").passes(25_100).answers(&run(2, "0")).mu_prints("out\n", "");
    tale.done(0).breaks("TMO-04");
}

/// TMO-05: the whole of it, whatever the plugin does.
#[test]
fn a_call_that_outlasts_its_deadline_and_a_grace_is_reported() {
    let rules = given_up(25_000, 5_100).rules();
    assert!(rules.contains(&"TMO-05"), "{rules:?}");
    let never = Tale::calls("", "").passes(31_000).gives_up(&[2]).box_ends().mu_ends_with(Exit::Status(1));
    assert_eq!(never.rules(), ["TMO-04", "TMO-05"]);
}

/// TMO-05: a late reply does not make it shorter (TMO-07), nor end it.
#[test]
fn a_late_reply_is_no_end() {
    let tale = Tale::calls("", "").passes(25_000).gives_up(&[2]).answers(&run(2, "0")).passes(5_100);
    let rules = tale.box_is_killed().mu_ends_with(Exit::Status(1)).rules();
    assert!(rules.contains(&"TMO-05"), "{rules:?}");
}

/// TMO-03
#[test]
fn a_read_has_ten_seconds() {
    let check = call(2, "link.checkSteps", r#""phase":"reach""#);
    let ends_after = |ms| {
        let tale = Tale::linked("", "").runs("mu host check h").mu_says(BOX, &check).plugin_reads(BOX);
        tale.passes(ms).gives_up(&[2]).box_ends().mu_ends()
    };
    ends_after(10_000).passes_all();
    ends_after(10_100).breaks("TMO-04");
}

/// TMO-05: time in which mu is stopped does not count.
#[test]
fn the_time_counts_in_which_mu_runs() {
    let is = |effect| What::Delivered { number: 19, effect };
    let tale = Tale::calls("", "").push(MU, is(Effect::Stops)).passes(60_000).push(MU, is(Effect::Continues));
    tale.passes(25_000).gives_up(&[2]).box_ends().mu_ends_with(Exit::Status(1)).passes_all();
}

/// TMO-05: a plugin that reads nothing, with a full pipe.
#[test]
fn a_call_whose_line_is_half_written_ends_too() {
    let half = |ms| {
        let tale = Tale::linked("", "").runs("mu host exec h -- true");
        let line = script(2);
        let tale = tale.writes(MU, Tale::pipe(BOX, Std::In), &line.as_bytes()[..line.len() - 1]);
        tale.passes(ms).mu_closes(BOX).passes(5_000).box_is_killed().mu_ends_with(Exit::Status(1))
    };
    half(25_000).passes_all();
    half(25_100).breaks("TMO-05");
}

/// TMO-02
#[test]
fn a_call_that_is_given_up_too_early_is_reported() {
    given_up(24_000, 0).breaks("TMO-02");
    given_up(20_000, 0).breaks("TMO-02");
}

/// TMO-02: the first of several deadlines stops the plugin (A-14), and so does whatever else ends it.
#[test]
fn a_call_may_end_early_when_there_is_cause() {
    let short = script(3).replace("20000", "1000").replace("true", "false");
    let tale = Tale::calls("", "").mu_says(BOX, &short).passes(6_000).gives_up(&[2, 3]).box_ends();
    let rules = tale.mu_ends_with(Exit::Status(1)).rules();
    assert!(!rules.contains(&"TMO-02"), "{rules:?}");
    let stopped = Tale::calls("", "").passes(10).mu_is_told(15).gives_up(&[2]).box_ends();
    stopped.mu_ends_with(Exit::Signal(15)).passes_all();
    let broken = Tale::calls("", "").passes(10).answers("hello").gives_up(&[2]).box_ends();
    broken.mu_ends_with(Exit::Status(1)).passes_all();
    let eof = Tale::calls("", "").push(MU, What::Eof(Tale::pipe(BOX, Std::Out))).gives_up(&[2]).box_ends();
    eof.mu_ends_with(Exit::Status(1)).passes_all();
}
