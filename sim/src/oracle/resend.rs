//! A call is repeated after `retryable` alone, at most three times (ERR-01), with the same parameters (CALL-03), a new id
//! and a new deadline (CALL-04). Ids are looked after in `ids`.
//!
//! An effect is known by its key, in every mu: each send of it has the very bytes of the first but for id and deadline,
//! which no earlier one had. One mu repeats it after `retryable` alone; another resolves it by the rules: a release is sent
//! again (EFF-08), an acquire is looked up where that is declared (EFF-09), and sent again only where a repeat is recognised
//! and as long as it is (EFF-10), never after a definite answer (EFF-03).
//!
//! Two requests of one mu to one plugin with the same method and parameters are taken for a call and its repeat. That
//! holds for calls of the link, unless one command names a host twice.

use std::collections::BTreeMap;

use super::calls::{Call, declared};
use super::effects::Asked;
use super::history::Wire;
use super::{Excuses, History, Ns, Observed, Ran, SECOND, Violation};

/// The call and its three repeats.
const SENDS: usize = 4;

pub(super) fn check(history: &History, observed: &Observed<'_>, found: &mut Vec<Violation>) {
    effects(history, observed.excuses, found);
    let all = observed.ran;
    for ran in all.iter().filter(|ran| !names_a_host_twice(ran)) {
        let mut families: BTreeMap<(&str, &str, String), Vec<Call>> = BTreeMap::new();
        let is_its = |wire: &&Wire| history.ran(wire, all).is_some_and(|its| std::ptr::eq(its, ran));
        for wire in history.wires.iter().filter(is_its) {
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

fn effects(history: &History, excuses: Excuses, found: &mut Vec<Violation>) {
    let mut families: BTreeMap<&str, Vec<&Asked>> = BTreeMap::new();
    let asked = Asked::all(history);
    for one in &asked {
        let mut say = |rule, text: &str| {
            let text = format!("{}: {text}", one.name(history));
            found.push(Violation { oracle: "resend", rule, at: Some(one.call.line.at), text });
        };
        if !one.is_effect() {
            let fence_key = host_seam(one).is_some_and(|host| host["acquire"]["fenceKey"] == true);
            if *one.call.param("fence") == true && !fence_key {
                say("A-44", "it asks for a fence, which is not declared");
            }
            continue;
        }
        let sends = families.entry(one.key).or_default();
        if sends.iter().any(|before| before.undated() != one.undated()) {
            say("CALL-03", "it differs from an earlier send in more than id and deadline");
        }
        if sends.iter().any(|before| before.call.id == one.call.id) {
            say("CALL-04", "an earlier send has the same id");
        }
        if sends.iter().any(|before| before.call.param("deadline") == one.call.param("deadline")) {
            say("CALL-04", "an earlier send has the same deadline");
        }
        if sends.iter().filter(|before| before.wire.mu == one.wire.mu).count() >= SENDS {
            say("ERR-01", "one mu has sent it four times already");
        }
        match sends.last() {
            Some(before) if before.wire.mu == one.wire.mu => {
                if let Some((rule, why)) = forbids_a_repeat(&before.call) {
                    say(rule, &format!("it was sent again although {why}"));
                }
            }
            Some(before) => {
                let is_closed = before.definite().is_some() && before.mu_exited(history);
                if is_closed && !excuses.disk_fails && !excuses.forgets {
                    say("EFF-03", "it was answered for certain before");
                }
                if let Some((rule, why)) = forbids_a_resend(one, sends[0].call.line.at) {
                    say(rule, why);
                }
            }
            None => {}
        }
        sends.push(one);
    }
}

fn host_seam<'a>(asked: &Asked<'a>) -> Option<&'a serde_json::Value> {
    declared(asked.wire)?["seams"].get("host")
}

/// Why another mu may not send an effect once more that was sent first at this time.
fn forbids_a_resend(one: &Asked, first: Ns) -> Option<(&'static str, &'static str)> {
    let host = host_seam(one).filter(|_| one.call.method == "host.acquire")?;
    let acquire = &host["acquire"];
    if acquire["lookup"] == true {
        return Some(("EFF-09", "it was sent again although its key can be looked up"));
    }
    let window = acquire["dedupe"]["windowMs"].as_u64().map(|ms| ms.saturating_mul(SECOND / 1_000));
    match window {
        None => Some(("EFF-11", "it was sent again although no repeat is recognised")),
        Some(window) if one.call.line.at - first > window => {
            Some(("EFF-10", "it was sent again after its window"))
        }
        Some(_) => None,
    }
}
