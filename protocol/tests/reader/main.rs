//! From the bytes of a plugin to an envelope, and mu's own lines.
//!
//! `line` cuts, `strict` and `agreement` check the strict pass (by cases, and against a slow second opinion), `envelope`
//! reads replies and notifications, `stream` cuts what comes at any place, `published` holds it to the schema, `traps`
//! shows how serde_json alone would be fooled.

mod agreement;
mod envelope;
mod first_line;
mod json;
mod line;
mod outgoing;
mod published;
mod stream;
mod strict;
mod traps;

use proptest::prelude::ProptestConfig;
use proptest::test_runner::RngSeed;

/// One test for each line that must be refused: `name: line => byte, why;`.
macro_rules! refused {
    ($read:path; $($(#[$doc:meta])+ $name:ident: $line:expr => $at:expr, $why:ident;)+) => {$(
        $(#[$doc])+
        #[test]
        fn $name() {
            let line = $line;
            let line: &[u8] = line.as_ref();
            let refusal = $read(line).map(drop).unwrap_err();
            assert_eq!((refusal.at, refusal.why), ($at, mu_protocol::invalid::Why::$why));
        }
    )+};
}
use refused;

/// The same cases in every run.
fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(1),
        ..ProptestConfig::default()
    }
}
