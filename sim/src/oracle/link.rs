//! The link as an outside observer sees it: nothing is asked that was not declared (LINK-04, LINK-20, SEAM-08, REG-18), no
//! host has more calls than it may have at once (SEAM-04), and a run that is still stopping is sat out (LINK-18).

use std::collections::BTreeMap;

use mu_core::os::Exit;
use serde_json::Value;

use super::calls::{Call, declared_link};
use super::history::Wire;
use super::{History, Ns, Ran, SECOND, Violation};

const ORACLE: &str = "link";
/// How long a run that is `stopping` may go on after its answer.
const STOPPING: Ns = 5 * SECOND;
/// The `timeoutMs` of a call for which nobody says another (TMO-01).
const TIMEOUT_MS: u64 = 20_000;
/// The calls at once of a host for which nobody says another number.
const SESSIONS: usize = 1;

/// A moment, and its place among those of the same time.
type Moment = (Ns, usize);

pub(super) fn check(history: &History, ran: &[Ran], found: &mut Vec<Violation>) {
    let mut held: BTreeMap<&str, Vec<(Moment, Moment)>> = BTreeMap::new();
    for wire in &history.wires {
        let Some(link) = declared_link(wire) else { continue };
        let own = history.ran(wire, ran);
        for call in Call::all(wire).filter(|call| call.method.starts_with("link.")) {
            let mut say = |rule, text: String| {
                let text = format!("{}: call {}: {text}", history.name(wire), call.id);
                found.push(Violation { oracle: ORACLE, rule, at: Some(call.line.at), text });
            };
            undeclared(&call, link, &mut say);
            if let Some(own) = own {
                default_timeout(&call, own, &mut say);
            }
            // Behind what may have broken the plugin no answer is certain to have been one.
            let is_heard = call.answer.is_some_and(|(place, ..)| wire.answered(call.id, place + 1, true));
            let stopping = is_heard && call.was_cut() && link["remoteOnTimeout"] == "stopping";
            if stopping {
                hand_out(history, wire, &call, &mut say);
            }
            if let Some(host) = call.host().filter(|_| link["slots"] == "mu") {
                let end = end_of(history, wire, &call, stopping);
                held.entry(host).or_default().push(((call.line.at, call.line.begun), end));
            }
        }
    }
    for (host, calls) in held {
        let sessions = sessions(ran, host);
        for (since, _) in &calls {
            let at_once = calls.iter().filter(|(begin, end)| begin <= since && since < end).count();
            if at_once > sessions {
                let text = format!("{at_once} calls at once on {host}, which has {sessions} channels");
                found.push(Violation { oracle: ORACLE, rule: "SEAM-04", at: Some(since.0), text });
                break;
            }
        }
    }
}

fn undeclared(call: &Call, link: &Value, say: &mut dyn FnMut(&'static str, String)) {
    let declares = |name: &str| link[name] == true;
    match call.method {
        "link.push" if !declares("push") => say("LINK-04", "a push, which the link does not declare".into()),
        "link.fetch" if !declares("fetch") => {
            say("REG-18", "a fetch, which the link does not declare".into())
        }
        "link.checkSteps" => {
            let phase = call.param("phase");
            if !link["checks"].as_array().is_some_and(|checks| checks.contains(phase)) {
                say("SEAM-08", format!("steps of the phase {phase}, which the link does not declare"));
            }
        }
        "link.exec" => {
            let bytes = call.param("script").as_str().unwrap_or_default().len() as u64;
            if link["maxScriptBytes"].as_u64().is_some_and(|most| bytes > most) {
                say("LINK-20", format!("a script of {bytes} bytes, more than the link takes"));
            }
        }
        _ => {}
    }
}

fn default_timeout(call: &Call, own: &Ran, say: &mut dyn FnMut(&'static str, String)) {
    let is_own = (own.is_host("exec") && call.method == "link.exec")
        || (own.is_host("fetch") && call.method == "link.fetch");
    let timeout = call.param("timeoutMs");
    if is_own && own.option("--timeout").is_none() && *timeout != TIMEOUT_MS {
        say("TMO-01", format!("timeoutMs is {timeout}, and nobody asked for that"));
    }
}

/// mu hands a run that is still stopping to its caller once the five seconds are over.
fn hand_out(history: &History, wire: &Wire, call: &Call, say: &mut dyn FnMut(&'static str, String)) {
    let (mu, Some((_, answered, _))) = (history.mu(wire), call.answer) else { return };
    if let Some((_, ended, exit)) = mu.died
        && exit != Exit::Signal(9)
        && ended < answered.saturating_add(STOPPING)
        && mu.crashed.is_none()
    {
        say("LINK-18", "its run may still be stopping, and mu has ended".into());
    }
}

/// Until when the call holds its channel.
fn end_of(history: &History, wire: &Wire, call: &Call, stopping: bool) -> Moment {
    // A mu that could not do anything about it holds nothing; one that ended in its own way has sat the wait out.
    let killed = history.mu(wire).died.filter(|(_, _, exit)| !stopping || *exit == Exit::Signal(9));
    let mu = killed.map_or((history.end, usize::MAX), |(place, at, _)| (at, place));
    let answer = match call.answer {
        Some((_, at, _)) if stopping => (at.saturating_add(STOPPING), 0),
        Some((place, at, _)) => (at, place),
        None => history.leader(wire).died.map_or(mu, |(place, at, _)| (at, place)),
    };
    answer.min(mu)
}

/// The most calls at once that a host was ever given.
fn sessions(ran: &[Ran], host: &str) -> usize {
    let adds = ran.iter().filter(|ran| ran.is_host("add") && ran.options().any(|word| word == host));
    adds.filter_map(|add| add.option("--max-sessions")?.parse().ok()).fold(SESSIONS, usize::max)
}
