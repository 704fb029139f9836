//! Effects and their intents.

use super::effects::{FENCED, acquire, intent, made};
use super::*;
use crate::oracle::rows::EffectRow;

/// An acquire, before which this was durable.
fn with(change: impl FnOnce(EffectRow) -> Option<EffectRow>) -> Tale {
    let line = acquire(2, "k");
    let tale = Tale::provided(FENCED).holds(change(intent(&line)).into_iter().collect());
    tale.mu_says(BOX, &line).plugin_reads(BOX).answers(&made(2)).done(0)
}

/// EFF-02
#[test]
fn an_intent_that_was_not_durable_is_reported() {
    with(Some).passes_all();
    with(|_| None).breaks("EFF-02");
    with(|row| Some(EffectRow { key: "other".into(), ..row })).breaks("EFF-02");
}

/// EFF-02
#[test]
fn an_intent_that_is_not_that_of_the_request_is_reported() {
    with(|row| Some(EffectRow { params: row.params.replace("2", "3"), ..row })).breaks("EFF-02");
    with(|row| Some(EffectRow { sha256: "0".repeat(64), ..row })).breaks("EFF-02");
    with(|row| Some(EffectRow { instance: "j".into(), ..row })).breaks("EFF-02");
    with(|row| Some(EffectRow { method: "host.release".into(), ..row })).breaks("EFF-02");
}

/// EFF-02
#[test]
fn a_send_that_was_not_written_down_is_reported() {
    let sends = |sends: Vec<(u64, u64, i32)>| with(|row| Some(EffectRow { sends, ..row }));
    sends(vec![]).breaks("EFF-02");
    sends(vec![(3, LATER + 2, BOX)]).breaks("EFF-02");
    sends(vec![(2, 1, BOX)]).breaks("EFF-02");
    sends(vec![(2, LATER + 2, 999)]).breaks("EFF-02");
    sends(vec![(1, 1, 7), (2, LATER + 2, BOX)]).passes_all();
}

/// What was durable at another moment proves nothing.
#[test]
fn an_image_of_another_moment_does_not_count() {
    let line = acquire(2, "k");
    let tale = Tale::provided(FENCED).holds(vec![intent(&line)]).passes(1);
    let tale = tale.push(MU, What::Note("something else".into()));
    tale.mu_says(BOX, &line).plugin_reads(BOX).answers(&made(2)).done(0).breaks("EFF-02");
}

/// EFF-03
#[test]
fn an_intent_that_outlives_a_definite_reply_is_reported() {
    let line = acquire(2, "k");
    let answered = |answer: &str| {
        let mut tale = Tale::provided(FENCED).mu_asks(&line).answers(answer);
        tale.rows.effects = vec![intent(&line)];
        tale
    };
    answered(&made(2)).done(0).breaks("EFF-03");
    answered(&error(2, r#"{"kind":"permanent"}"#)).done(0).breaks("EFF-03");
    answered(&error(2, r#"{"kind":"unknown-outcome"}"#)).done(0).passes_all();
    // Off its schema: an unknown outcome (EFF-23), and the end of the plugin.
    answered(&result(2, "null")).gives_up(&[]).box_ends().mu_ends_with(Exit::Status(0)).passes_all();
    answered(&made(2)).mu_is_killed().passes_all();
    let mut full = answered(&made(2)).done(0);
    full.excuses.disk_fails = true;
    full.passes_all();
}
