//! Who may live when mu has ended.

use super::*;

const KILLED: Exit = Exit::Signal(9);

/// PRC-03
#[test]
fn a_helper_that_lives_when_mu_exits_is_reported() {
    let tale = Tale::ready().helper_starts().mu_says(BOX, SHUTDOWN).mu_closes(BOX);
    tale.box_ends().mu_ends().breaks("PRC-03");
}

/// PRC-18: who has left the group is out of mu's reach.
#[test]
fn a_helper_in_a_session_of_its_own_may_live() {
    let tale =
        Tale::ready().helper_starts().push(HELPER, What::NewSession).mu_says(BOX, SHUTDOWN).mu_closes(BOX);
    tale.box_ends().mu_ends().passes_all();
}

/// TRN-18
#[test]
fn a_plugin_that_is_not_reaped_is_reported() {
    Tale::stopped().ends(BOX, Exit::Status(0)).mu_kills(BOX).mu_ends().breaks("TRN-18");
}

/// PRC-13
#[test]
fn a_mu_that_crashed_reaps_nobody() {
    let tale = Tale::ready().mu_is_made_to_panic().mu_kills(BOX).ends(BOX, KILLED);
    tale.mu_ends_with(Exit::Status(1)).passes_all();
}

/// PRC-15
#[test]
fn a_plugin_that_lives_on_when_its_mu_was_killed_is_reported() {
    let dies_after = |ms| Tale::ready().mu_ends_with(KILLED).passes(ms).ends(BOX, Exit::Status(0));
    dies_after(5_000).passes_all();
    dies_after(5_001).breaks("PRC-15");
}

/// PRC-15: nothing happens in a trace in which nobody can go on.
#[test]
fn a_plugin_that_never_ends_when_its_mu_was_killed_is_reported() {
    Tale::ready().mu_ends_with(KILLED).passes(5_000).passes_all();
    Tale::ready().mu_ends_with(KILLED).passes(5_001).breaks("PRC-15");
}

/// PRC-15: the rest of the group too.
#[test]
fn a_helper_of_a_plugin_whose_mu_was_killed_is_reported() {
    let tale = Tale::ready().helper_starts().mu_ends_with(KILLED).ends(BOX, Exit::Status(0));
    tale.passes(6_000).ends(HELPER, KILLED).breaks("PRC-15");
}

#[test]
fn a_stubborn_plugin_may_outlive_a_killed_mu() {
    let mut tale = Tale::ready().mu_ends_with(KILLED).passes(60_000);
    tale.stubborn.insert("box".into());
    tale.passes_all();
}

/// PRC-03: but not one that could stop it.
#[test]
fn a_stubborn_plugin_may_not_outlive_a_mu_that_exits() {
    let mut tale = Tale::ready().mu_says(BOX, SHUTDOWN).mu_closes(BOX).mu_reaps(BOX).mu_ends();
    tale.stubborn.insert("box".into());
    tale.breaks("PRC-03");
}
