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

/// CALL-04: a deadline in the past.
#[test]
fn a_call_that_is_sent_after_its_own_deadline_is_reported() {
    const WALL: u64 = crate::kernel::WALL_START_MS as u64;
    let sent_at = |tale: Tale, wall: u64| {
        let tale = tale.passes(wall - WALL - 1000).mu_says(BOX, &script(2)).plugin_reads(BOX);
        tale.answers(&run(2, "0")).done(0).rules()
    };
    let linked = || Tale::linked("", "");
    assert_eq!(sent_at(linked(), LATER + 2), [""; 0]);
    assert_eq!(sent_at(linked(), LATER + 3), ["CALL-04"]);
    // Where the wall clock leaps, or the machine sleeps, the deadline may be older than that.
    let outside = |what| linked().push(OUTSIDE.0, what);
    assert_eq!(sent_at(outside(What::WallStep(LATER as i64 + 60_000)), LATER + 2), [""; 0]);
    assert_eq!(sent_at(outside(What::Suspend(7_200_000_000_000)), LATER + 2), [""; 0]);
    assert_eq!(sent_at(outside(What::Suspend(7_200_000_000_000)), LATER + 3), ["CALL-04"]);
    // Who is stopped may have looked at the clock before.
    let is = |tale: Tale, effect| tale.push(MU, What::Delivered { number: 19, effect });
    let stopped = is(is(linked(), Effect::Stops).passes(10), Effect::Continues);
    assert_eq!(sent_at(stopped, LATER + 3), [""; 0]);
}

/// CALL-04: a clock that was set back before mu began is what its deadlines are told by.
#[test]
fn a_deadline_is_told_by_the_wall_clock_of_its_time() {
    let set = |ahead: i64| {
        let to = crate::kernel::WALL_START_MS + 1000 + ahead;
        let tale =
            Tale::new().push(OUTSIDE.0, What::WallStep(to)).mu_starts(MU).plugin_starts(MU, BOX, "box");
        let tale = tale.mu_says(BOX, &initialize(1)).plugin_reads(BOX).answers(&declaration("", ""));
        tale.mu_says(BOX, &script(2)).plugin_reads(BOX).answers(&run(2, "0")).done(0)
    };
    set(0).passes_all();
    set(-86_400_000).passes_all();
    set(86_400_000).breaks("CALL-04");
}
