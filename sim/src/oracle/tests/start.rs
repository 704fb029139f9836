//! How a plugin begins.

use super::*;

/// PRC-02
#[test]
fn a_plugin_in_the_group_of_its_mu_is_reported() {
    let tale = Tale::new().mu_starts(MU).spawns(Pid(MU), BOX, "/plugins/mu-plugin-box", MU);
    tale.ends(BOX, Exit::Status(0)).mu_reaps(BOX).mu_ends().breaks("PRC-02");
}

/// PRC-03
#[test]
fn two_processes_of_one_plugin_at_once_are_reported() {
    let tale = Tale::ready().plugin_starts(MU, 103, "box");
    let tale = tale.ends(103, Exit::Status(0)).mu_reaps(103);
    tale.mu_says(BOX, SHUTDOWN).mu_closes(BOX).box_ends().mu_ends().breaks("PRC-03");
}

/// TMO-10
#[test]
fn a_plugin_that_exited_may_be_started_again() {
    let tale = Tale::stopped().box_ends().plugin_starts(MU, 103, "box").mu_says(103, &initialize(2));
    tale.ends(103, Exit::Status(0)).mu_reaps(103).mu_ends().passes_all();
}

/// TRN-20
#[test]
fn a_broken_plugin_that_is_started_again_is_reported() {
    for line in ["hello", "[]", "{\"jsonrpc\":\"2.0\",\"id\":1,\"id\":1,\"result\":{}}"] {
        let tale =
            Tale::greeted().box_says(line).mu_reads(BOX).mu_says(BOX, &cancel(1)).mu_says(BOX, SHUTDOWN);
        let tale = tale.mu_closes(BOX).box_ends();
        tale.plugin_starts(MU, 103, "box")
            .ends(103, Exit::Status(0))
            .mu_reaps(103)
            .mu_ends()
            .breaks("TRN-20");
    }
}

/// A-03: what it says while it is stopped breaks nothing.
#[test]
fn words_after_the_shutdown_break_no_plugin() {
    let tale = Tale::ready().mu_says(BOX, SHUTDOWN).mu_closes(BOX).box_says("bye").mu_reads(BOX).box_ends();
    tale.plugin_starts(MU, 103, "box").ends(103, Exit::Status(0)).mu_reaps(103).mu_ends().passes_all();
}

/// HSK-01
#[test]
fn another_first_line_is_reported() {
    let tale = Tale::started().mu_says(BOX, &cancel(1));
    assert!(tale.rules().contains(&"HSK-01"));
}

/// HSK-01
#[test]
fn an_initialize_of_another_version_is_reported() {
    let other = initialize(1).replace("\"5\"", "\"6\"");
    let tale = Tale::started().mu_says(BOX, &other).box_says(&reply(1)).mu_reads(BOX);
    tale.mu_says(BOX, SHUTDOWN).mu_closes(BOX).box_ends().mu_ends().breaks("HSK-01");
}

/// HSK-01
#[test]
fn a_second_initialize_is_reported() {
    Tale::ready()
        .mu_says(BOX, &initialize(2))
        .mu_says(BOX, &cancel(2))
        .mu_says(BOX, SHUTDOWN)
        .mu_closes(BOX)
        .box_ends()
        .mu_ends()
        .breaks("HSK-01");
}

/// HSK-09
#[test]
fn a_call_before_the_answer_is_reported() {
    let call = r#"{"jsonrpc":"2.0","id":2,"method":"link.checkSteps","params":{}}"#;
    let tale = Tale::greeted().mu_says(BOX, call).box_says(&reply(1)).box_says(&reply(2)).mu_reads(BOX);
    let rules = tale.mu_says(BOX, SHUTDOWN).mu_closes(BOX).box_ends().mu_ends().rules();
    assert!(rules.contains(&"HSK-09"), "{rules:?}");
}

/// HSK-08
#[test]
fn a_handshake_of_more_than_ten_seconds_is_reported() {
    let late = |ms| {
        let tale = Tale::greeted().passes(ms).mu_says(BOX, &cancel(1)).mu_says(BOX, SHUTDOWN);
        tale.mu_closes(BOX).box_ends().mu_ends()
    };
    late(10_000).passes_all();
    late(10_020).breaks("HSK-08");
}

/// HSK-08: the time counts in which mu could do something.
#[test]
fn a_handshake_during_which_mu_was_stopped_may_take_longer() {
    let is = |effect| What::Delivered { number: 19, effect };
    let tale = Tale::greeted().push(MU, is(Effect::Stops)).passes(30_000).push(MU, is(Effect::Continues));
    tale.mu_says(BOX, &cancel(1)).mu_says(BOX, SHUTDOWN).mu_closes(BOX).box_ends().mu_ends().passes_all();
}

/// TRN-20, A-07
#[test]
fn a_plugin_that_answered_off_its_schema_is_not_started_again() {
    let tale = Tale::calls("", "").answers(&result(2, "[]")).gives_up(&[2]).box_ends();
    let tale = tale.plugin_starts(MU, 103, "box").ends(103, Exit::Status(0)).mu_reaps(103);
    tale.mu_ends_with(Exit::Status(1)).breaks("TRN-20");
}

/// HSK-01: unless somebody wants it to end.
#[test]
fn a_plugin_that_is_ended_before_anything_was_asked_is_reported() {
    let ended = |tale: Tale| tale.mu_says(BOX, SHUTDOWN).mu_closes(BOX).box_ends();
    ended(Tale::started()).mu_ends().breaks("HSK-01");
    ended(Tale::started().mu_is_told(15)).mu_ends_with(Exit::Signal(15)).passes_all();
    let late = Tale::started().mu_says(BOX, SHUTDOWN).mu_is_told(15).mu_closes(BOX).box_ends();
    late.mu_ends_with(Exit::Signal(15)).breaks("HSK-01");
    ended(Tale::started().box_says("hello").mu_reads(BOX)).mu_ends().passes_all();
}
