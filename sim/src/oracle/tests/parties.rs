//! Several mu and one effect.

use super::effects::{FENCED, acquire, lookup, made, release};
use super::*;

const REPEATS: &str = r#"{"lookup":false,"fenceKey":false,"dedupe":{"exact":true,"windowMs":60000}}"#;

/// EFF-05
#[test]
fn a_lookup_beside_a_writer_that_lives_is_reported() {
    let none = result(2, r#"{"none":true}"#);
    let begun = || Tale::provided(FENCED).mu_asks(&acquire(2, "k"));
    begun()
        .mu_is_killed()
        .another(FENCED)
        .other_says(&lookup(2, "k", true))
        .other_is_answered(&none)
        .passes_all();
    let beside = begun().another(FENCED).other_says(&lookup(2, "k", true)).other_is_answered(&none);
    beside.answers(&made(2)).done(0).breaks("EFF-05");
    // One that is stopped lives.
    let stopped = begun().push(MU, What::Delivered { number: 19, effect: Effect::Stops }).another(FENCED);
    let rules = stopped.other_says(&lookup(2, "k", true)).other_is_answered(&none).mu_is_killed().rules();
    assert_eq!(rules, ["EFF-05"]);
}

/// EFF-06
#[test]
fn a_resolver_beside_another_is_reported() {
    let none = result(2, r#"{"none":true}"#);
    let tale = Tale::provided(FENCED).mu_says(BOX, &lookup(2, "k", true)).plugin_reads(BOX);
    let tale = tale.another(FENCED).other_says(&lookup(2, "k", true)).other_is_answered(&none);
    tale.answers(&none).done(0).breaks("EFF-06");
}

/// EFF-12
#[test]
fn a_group_that_was_sent_it_and_lives_is_reported() {
    let killed = |tale: Tale| tale.mu_ends_with(Exit::Signal(9));
    let resent = |tale: Tale| {
        let tale = tale.another(REPEATS).other_asks(&acquire(3, "k")).other_is_answered(&made(3));
        tale.ends(HELPER, Exit::Status(0)).rules()
    };
    let begun = || Tale::provided(REPEATS).helper_starts().mu_asks(&acquire(2, "k"));
    let alone = killed(begun()).ends(BOX, Exit::Status(0));
    assert_eq!(resent(alone), ["EFF-12"]);
    let gone = killed(begun()).ends(BOX, Exit::Status(0)).ends(HELPER, Exit::Status(0));
    let gone = gone.another(REPEATS).other_asks(&acquire(3, "k")).other_is_answered(&made(3));
    gone.passes_all();
}

/// Two releases are two effects.
#[test]
fn another_key_is_another_effect() {
    let tale = Tale::provided(FENCED).mu_asks(&acquire(2, "k")).answers(&made(2)).mu_asks(&release(3, "r"));
    let tale = tale.another(FENCED).other_asks(&release(3, "s")).other_is_answered(&result(3, "null"));
    tale.answers(&result(3, "null")).done(0).passes_all();
}
