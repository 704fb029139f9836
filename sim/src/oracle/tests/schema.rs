//! The lines that mu writes.

use super::*;

fn says(line: &str) -> Tale {
    Tale::started().mu_says(BOX, line).ends(BOX, Exit::Status(0)).mu_kills(BOX).mu_reaps(BOX).mu_ends()
}

/// GEN-04, HSK-01
#[test]
fn a_line_that_the_schema_refuses_is_reported() {
    says(&initialize(1)).passes_all();
    for line in [initialize(1).replace("\"5\"", "5"), initialize(1).replace("\"mu\"", "\"more\":1,\"mu\"")] {
        assert_eq!(says(&line).rules(), ["HSK-01", "GEN-04"], "{line}");
    }
}

/// TRN-02
#[test]
fn a_line_that_is_no_object_or_has_a_member_twice_is_reported() {
    for line in [initialize(1).replacen('{', "{\"jsonrpc\":\"2.0\",", 1), "[]".into(), String::new()] {
        assert!(says(&line).rules().contains(&"TRN-02"), "{line}");
    }
}

/// TRN-04
#[test]
fn a_line_of_more_than_one_mebibyte_is_reported() {
    let fill = |bytes: usize| format!("{}{}", initialize(1), " ".repeat(bytes - initialize(1).len()));
    says(&fill(1_048_576)).passes_all();
    says(&fill(1_048_577)).breaks("TRN-04");
}
