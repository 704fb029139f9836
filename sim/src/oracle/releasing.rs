//! While a living mu is about to release a machine, no other mu begins to use it, and none says that its host is
//! lost: beside a release that somebody may still bring to its end a `gone` is not recorded (HOST-12, A-80).

use serde_json::Value;

use super::calls::{Call, declared_link};
use super::effects::Asked;
use super::history::{Line, Wire};
use super::{History, Ns, Ran, SLACK, Violation};

const ORACLE: &str = "releasing";

pub(super) fn check(history: &History, ran: &[Ran], found: &mut Vec<Violation>) {
    let releases: Vec<Asked> =
        Asked::all(history).into_iter().filter(|one| one.call.method == "host.release").collect();
    if releases.is_empty() {
        return;
    }
    let mut say = |rule, wire: &Wire, call: &Call, text: String| {
        let text = format!("{}: call {} ({}): {text}", history.name(wire), call.id, call.method);
        found.push(Violation { oracle: ORACLE, rule, at: Some(call.line.at), text });
    };
    for wire in &history.wires {
        for call in Call::all(wire) {
            let others = || releases.iter().filter(|one| is_of(one, wire, &call));
            let begun = call.line.begun;
            if call.method.starts_with("link.")
                && let Some(release) =
                    others().find(|one| is_open(history, one, begun) && is_before(one, wire, &call))
                && !is_repeat(history, wire, &call)
            {
                let mu = release.mu(history).0;
                say(
                    "A-78",
                    wire,
                    &call,
                    format!("mu[{mu}] has asked for the release of that machine, and lives"),
                );
            }
            // Between the answer and the end of the verb nobody was told how that release ended.
            if let Some((answered, ended)) = calls_lost(history, wire, &call, ran)
                && let Some(release) =
                    others().find(|one| one.place() < answered && is_open(history, one, ended))
            {
                let mu = release.mu(history).0;
                say(
                    "HOST-12",
                    wire,
                    &call,
                    format!("`host-lost`, and mu[{mu}] is still about to release it"),
                );
            }
        }
    }
}

/// Whether it is about the machine that another mu asks to release.
fn is_of(release: &Asked, wire: &Wire, call: &Call) -> bool {
    let is_its = || call.machine().is_some_and(|machine| release.call.machine() == Some(machine));
    release.wire.mu != wire.mu && release.wire.name == wire.name && is_its()
}

/// Whether a release was sent and not yet answered for certain just before event number `place`, and whoever sent it
/// lives.
fn is_open(history: &History, release: &Asked, place: usize) -> bool {
    let answer = release.call.answer.filter(|(read, ..)| *read < place);
    let uncertain = answer.is_none_or(|(.., outcome)| outcome.kind() == Some("unknown-outcome"));
    release.place() < place && uncertain && history.mu(release.wire).lives_at(place)
}

/// Whether mu can have known of the release when it looked at the host for this call. With a channel in its hand it knows:
/// nobody releases a host of which one is held. Without channels it looks, and a handshake may follow.
fn is_before(release: &Asked, wire: &Wire, call: &Call) -> bool {
    let first = wire.lines.iter().filter_map(Line::request_id).nth(1);
    let looked: Ns = if first == Some(call.id) { wire.since } else { call.line.at };
    declared_link(wire).is_some_and(|link| link["slots"] == "mu") || release.call.line.at + SLACK < looked
}

/// Whether the same mu has asked for the same before: it goes on with what it had begun.
fn is_repeat(history: &History, wire: &Wire, call: &Call) -> bool {
    let own =
        history.wires.iter().filter(|one| one.mu == wire.mu && one.name == wire.name).flat_map(Call::all);
    let mut before = own.filter(|one| one.line.begun < call.line.begun && one.method == call.method);
    before.any(|one| one.lasting() == call.lasting())
}

/// If `mu host status` was told by this call that the machine is gone, and says that its host is lost: where it was told, and
/// where it ended.
fn calls_lost(history: &History, wire: &Wire, call: &Call, all: &[Ran]) -> Option<(usize, usize)> {
    let own = history.ran(wire, all).filter(|ran| ran.is_host("status") && call.method == "host.status")?;
    let (answered, ..) = call.answer?;
    let envelope: Value = serde_json::from_slice(&own.stdout).ok()?;
    let (ended, ..) = history.mu(wire).died?;
    (call.result()?["state"] == "gone" && envelope["error"] == "host-lost").then_some((answered, ended))
}
