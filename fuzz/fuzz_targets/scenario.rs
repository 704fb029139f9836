//! Scenario files: whatever the text, it is an error with a place in the file, or a scenario that is written as a file which
//! says the same.

#![no_main]

use libfuzzer_sys::fuzz_target;
use mu_sim::scenario::{Scenario, ScenarioError, is_rule};

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match parse(text) {
        Ok(scenario) => {
            let written = scenario.to_toml();
            assert_eq!(parse(&written).as_ref(), Ok(&scenario), "what was written:\n{written}");
            assert_eq!(parse(&written).expect("it was read").to_toml(), written, "written twice");
            for step in &scenario.steps {
                step.to_toml();
            }
        }
        Err(error) => {
            let line = text.split('\n').nth(error.line - 1).expect("the line is in the file");
            assert!(error.column <= line.chars().count() + 1, "{error} is beyond its line");
            assert!(!error.message.is_empty() && !error.message.contains(char::is_control), "{error:?}");
        }
    }
});

fn parse(text: &str) -> Result<Scenario, ScenarioError> {
    Scenario::parse("s.toml", text, &is_rule)
}
