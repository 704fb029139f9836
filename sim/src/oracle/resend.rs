//! A call is repeated after `retryable` alone, at most three times (ERR-01), with the same parameters (CALL-03), a new id
//! and a new deadline (CALL-04). Ids are looked after in `ids`.
//!
//! Two requests of one mu to one plugin with the same method and parameters are taken for a call and its repeat. That
//! holds for calls of the link, unless one command names a host twice.

use std::collections::BTreeMap;

use super::calls::Call;
use super::{History, Ran, Violation};

/// The call and its three repeats.
const SENDS: usize = 4;

pub(super) fn check(history: &History, ran: &[Ran], found: &mut Vec<Violation>) {
    for ran in ran.iter().filter(|ran| !names_a_host_twice(ran)) {
        let mut families: BTreeMap<(&str, &str, String), Vec<Call>> = BTreeMap::new();
        for wire in history.wires.iter().filter(|wire| history.mu(wire).pid == ran.pid) {
            for call in Call::all(wire).filter(|call| call.method.starts_with("link.")) {
                let key = (wire.name.as_str(), call.method, call.lasting().to_string());
                families.entry(key).or_default().push(call);
            }
        }
        let mut say = |rule, call: &Call, text: String| {
            let text = format!("`{}`: call {}: {text}", ran.argv.join(" "), call.id);
            found.push(Violation { oracle: "resend", rule, at: Some(call.line.at), text });
        };
        for sends in families.values() {
            if let Some(call) = sends.get(SENDS) {
                say("ERR-01", call, format!("it was sent {} times", sends.len()));
            }
            for pair in sends.windows(2) {
                if let Some((rule, why)) = forbids_a_repeat(&pair[0]) {
                    say(rule, &pair[1], format!("it was sent again although {why}"));
                }
                if pair[0].param("deadline") == pair[1].param("deadline") {
                    say("CALL-04", &pair[1], "it was sent again with the same deadline".into());
                }
            }
        }
        for (verb, method) in [("exec", "link.exec"), ("fetch", "link.fetch")] {
            let mut own = families.iter().filter(|((_, its, _), _)| ran.is_host(verb) && *its == method);
            if let (Some(_), Some((_, sends))) = (own.next(), own.next()) {
                say("CALL-03", &sends[0], "it differs from another send in more than id and deadline".into());
            }
        }
    }
}

fn names_a_host_twice(ran: &Ran) -> bool {
    let words: Vec<&str> = ran.options().filter(|word| !word.starts_with('-')).collect();
    ran.is_host("check") && words.iter().enumerate().any(|(at, word)| words[..at].contains(word))
}

/// Why the call may not be sent again, and by which rule.
fn forbids_a_repeat(call: &Call) -> Option<(&'static str, &'static str)> {
    match (call.answer, call.error_kind()) {
        (_, Some("retryable")) => None,
        (_, Some("permanent")) => Some(("ERR-02", "its error was permanent")),
        (_, Some("human")) => Some(("ERR-03", "a person has to act first")),
        (_, Some(_)) => Some(("ERR-04", "it may have happened")),
        (None, None) => Some(("TMO-09", "it was not answered")),
        (Some(_), None) => Some(("ERR-01", "it had a result")),
    }
}
