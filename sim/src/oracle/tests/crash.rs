//! Panics that nobody asked for.

use super::*;

const INTERNAL: &str =
    "{\"ok\":false,\"error\":\"internal\",\"message\":\"mu failed\",\"next\":null,\"exit\":1}\n";

/// PRC-13
#[test]
fn a_mu_that_panics_by_itself_is_reported() {
    let tale =
        || Tale::stopped().box_ends().mu_ends_with(Exit::Status(1)).mu_prints(INTERNAL, "mu: mu failed\n");
    tale().breaks("PRC-13");
    let mut made_to = tale();
    made_to.ran[0].crash = true;
    made_to.passes_all();
}

/// PRC-13
#[test]
fn any_other_program_that_panics_is_reported() {
    Tale::stopped()
        .push(BOX, What::Panic("index out of bounds".into()))
        .box_ends()
        .mu_ends()
        .breaks("PRC-13");
}
