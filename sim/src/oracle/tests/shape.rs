//! What may answer a call about hosts, as the published schema has it.

use serde_json::{Value, json};

use crate::oracle::shape::fits;
use crate::oracle::speech::Outcome;

fn takes(method: &str, result: Value) -> bool {
    fits(method, &Outcome::Result(result))
}

/// HOST-05
#[test]
fn a_host_that_was_made_has_a_handle_and_facts() {
    assert!(takes("host.acquire", json!({ "handle": "vm" })));
    assert!(takes(
        "host.acquire",
        json!({ "handle": "vm", "deadlineAt": 1, "idleReclaimMs": 0, "maxJobs": 3 })
    ));
    for wrong in [json!({}), json!(null), json!({ "handle": "" }), json!({ "handle": "vm", "maxJobs": null })]
    {
        assert!(!takes("host.acquire", wrong.clone()), "{wrong}");
    }
    assert!(!takes("host.acquire", json!({ "handle": "vm", "size": 2 })));
    assert!(!takes("host.acquire", json!({ "handle": "vm", "deadlineAt": 1.5 })));
}

/// HOST-06
#[test]
fn a_lookup_says_one_thing() {
    for right in
        [json!({ "found": { "handle": "vm" } }), json!({ "pending": true }), json!({ "unknown": "x" })]
    {
        assert!(takes("host.lookup", right.clone()), "{right}");
    }
    for wrong in [
        json!({}),
        json!({ "none": false }),
        json!({ "none": true, "pending": true }),
        json!({ "found": {} }),
    ] {
        assert!(!takes("host.lookup", wrong.clone()), "{wrong}");
    }
}

/// HOST-07
#[test]
fn a_status_has_what_its_state_asks_for() {
    let up = json!({ "state": "up", "handle": "vm", "deadlineAt": null });
    let gone = json!({ "state": "gone", "reason": "x" });
    for right in [up, gone, json!({ "state": "needs-human", "remedy": "x" })] {
        assert!(takes("host.status", right.clone()), "{right}");
    }
    let up = json!({ "state": "up" });
    let gone = json!({ "state": "gone", "handle": "vm" });
    for wrong in [up, gone, json!({ "state": "needs-human", "reason": "x" }), json!({ "state": "down" })] {
        assert!(!takes("host.status", wrong.clone()), "{wrong}");
    }
}

/// HOST-08
#[test]
fn a_release_is_answered_by_null() {
    assert!(takes("host.release", json!(null)) && !takes("host.release", json!({})));
}
