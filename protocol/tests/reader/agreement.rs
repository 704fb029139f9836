//! The strict pass and a slow second opinion agree on everything.

use mu_protocol::envelope;
use mu_protocol::invalid::Why;
use mu_protocol::strict::check;
use proptest::prelude::*;

use crate::json::{mutate, mutations, object, slow_opinion};

proptest! {
    #![proptest_config(crate::cases(2000))]

    /// TRN-14
    #[test]
    fn the_strict_pass_accepts_exactly_what_the_slow_opinion_accepts(
        line in object(),
        mutations in mutations(),
    ) {
        let line = mutate(&line, &mutations);
        if let Some(legal) = slow_opinion(&line) {
            prop_assert_eq!(check(&line).is_ok(), legal, "{:?}", String::from_utf8_lossy(&line));
        }
    }

    /// TRN-05
    #[test]
    fn any_bytes_at_all_are_judged_alike(line in proptest::collection::vec(any::<u8>(), 0..64)) {
        prop_assert_eq!(Some(check(&line).is_ok()), slow_opinion(&line));
    }
}

proptest! {
    #![proptest_config(crate::cases(256))]

    /// TRN-14
    #[test]
    fn a_refusal_points_into_the_line_and_at_nothing_before_it(line in object(), mutations in mutations()) {
        let line = mutate(&line, &mutations);
        if let Err(refusal) = check(&line) {
            prop_assert!(refusal.at <= line.len());
            // What stands before the place is not what is wrong: cut there, the line is merely unfinished.
            let before = check(&line[..refusal.at]).map_err(|refusal| refusal.why);
            let legal = matches!(before, Ok(_) | Err(Why::Unfinished | Why::Blank));
            let in_the_middle = matches!(refusal.why, Why::NotUtf8);
            prop_assert!(legal || in_the_middle, "{before:?} before {refusal}");
        }
    }

    #[test]
    fn the_envelope_never_panics_and_never_accepts_what_the_strict_pass_refuses(
        line in object(),
        mutations in mutations(),
    ) {
        let line = mutate(&line, &mutations);
        match (check(&line), envelope::parse(&line)) {
            (Err(strict), Err(envelope)) => prop_assert_eq!(strict, envelope),
            (Err(_), Ok(_)) => prop_assert!(false, "accepted"),
            (Ok(_), _) => {}
        }
    }
}
