//! Request ids.

use super::*;

/// CALL-04
#[test]
fn an_id_that_two_plugins_get_is_reported() {
    let tale = Tale::stopped().box_ends().plugin_starts(MU, 103, "crate").mu_says(103, &initialize(1));
    tale.ends(103, Exit::Status(0)).mu_reaps(103).mu_ends().breaks("CALL-04");
}

/// CALL-04
#[test]
fn an_id_that_a_restarted_plugin_gets_again_is_reported() {
    let tale = Tale::stopped().box_ends().plugin_starts(MU, 103, "box").mu_says(103, &initialize(1));
    tale.ends(103, Exit::Status(0)).mu_reaps(103).mu_ends().breaks("CALL-04");
}

#[test]
fn another_invocation_may_use_the_same_ids() {
    let mut tale = Tale::sound().mu_starts(200).plugin_starts(200, 201, "box");
    tale = tale.writes(200, Tale::pipe(201, Std::In), format!("{}\n", initialize(1)).as_bytes());
    let tale = tale.ends(201, Exit::Status(0)).push(200, What::Reap { child: Pid(201) });
    tale.ends(200, Exit::Status(0)).passes_all();
}
