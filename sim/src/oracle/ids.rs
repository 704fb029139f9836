//! Request ids are never used twice within an invocation, restarts and other plugins included.

use std::collections::BTreeSet;

use super::{History, Violation};

pub(super) fn check(history: &History, found: &mut Vec<Violation>) {
    let mut seen = BTreeSet::new();
    for wire in &history.wires {
        for line in &wire.lines {
            if let Some(id) = line.request_id()
                && !seen.insert((wire.mu, id))
            {
                let text = format!("{}: request id {id} was used before", history.name(wire));
                found.push(Violation { oracle: "ids", rule: "CALL-04", at: Some(line.at), text });
            }
        }
    }
}
