//! Nobody panics who was not made to: neither mu, which answers a panic of its own with the failure `internal` (PRC-13),
//! nor any other program of the machine.

use serde_json::Value;

use super::{Observed, Violation};
use crate::trace::What;

const ORACLE: &str = "crash";

pub(super) fn check(observed: &Observed<'_>, found: &mut Vec<Violation>) {
    let mut say = |at, text| found.push(Violation { oracle: ORACLE, rule: "PRC-13", at, text });
    for ran in observed.ran.iter().filter(|ran| !ran.crash) {
        let envelope: Option<Value> = serde_json::from_slice(&ran.stdout).ok();
        let failure = envelope.filter(|envelope| envelope["error"] == "internal");
        if let Some(failure) = failure {
            say(None, format!("`{}` panicked: {}", ran.argv.join(" "), failure["message"]));
        }
    }
    for event in observed.events {
        let made_to = || observed.ran.iter().any(|ran| ran.pid == event.pid && ran.crash);
        if let What::Panic(text) = &event.what
            && !made_to()
        {
            say(Some(event.at), format!("process {} panicked: {text}", event.pid));
        }
    }
}
