//! Request ids are never used twice within an invocation, restarts and other plugins included.

use std::collections::{BTreeMap, BTreeSet};

use mu_core::os::Pid;

use super::{History, Violation};

pub(super) fn check(history: &History, found: &mut Vec<Violation>) {
    let mut seen: BTreeMap<Pid, BTreeSet<u64>> = BTreeMap::new();
    for wire in &history.wires {
        for line in &wire.lines {
            if let Some(id) = line.request_id()
                && !seen.entry(wire.mu).or_default().insert(id)
            {
                let text = format!("mu[{}] used request id {id} again, to {}", wire.mu, wire.name);
                found.push(Violation { oracle: "ids", rule: "CALL-04", at: Some(line.at), text });
            }
        }
    }
}
