//! Files that somebody damaged: an error with a place in the file, or a scenario that can be written.

use proptest::prelude::*;

use super::{EVERYTHING, parse};

/// The whole file with one stretch of it replaced.
fn damaged() -> impl Strategy<Value = String> {
    let pieces = prop_oneof![
        "[ -~€\n]{0,6}",
        prop::sample::select(vec![
            "\n",
            "[[steps]]\n",
            "= 1",
            "'",
            "\"",
            "{",
            "}",
            "[",
            "]",
            "\u{feff}",
            "\0",
            "é"
        ])
        .prop_map(str::to_owned),
    ];
    (0..=EVERYTHING.len(), 0..12_usize, pieces).prop_map(|(at, length, piece)| {
        let before = EVERYTHING.get(..at).unwrap_or("");
        let after = EVERYTHING.get(at + length..).unwrap_or("");
        [before, &piece, after].concat()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2_000) })]

    #[test]
    fn damage_is_an_error_within_the_file_or_still_a_scenario(text in damaged()) {
        match parse(&text) {
            Ok(scenario) => prop_assert_eq!(parse(&scenario.to_toml()), Ok(scenario)),
            Err(error) => {
                let line = text.split('\n').nth(error.line - 1);
                prop_assert!(line.is_some_and(|line| error.column <= line.chars().count() + 1), "{}", error);
                prop_assert!(!error.message.is_empty() && !error.message.contains('\n'), "{:?}", error.message);
            }
        }
    }
}
