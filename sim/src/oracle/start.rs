//! How a plugin begins: leader of its own group, one at a time, `initialize` first and alone until it is answered, ten
//! seconds for that, and never again once it has broken.

use std::collections::BTreeSet;

use serde_json::json;

use super::history::Wire;
use super::speech::Saying;
use super::{History, Ns, SECOND, SLACK, Violation};

/// What the handshake may take (HSK-08).
const HANDSHAKE: Ns = 10 * SECOND;

pub(super) fn check(history: &History, found: &mut Vec<Violation>) {
    for (index, wire) in history.wires.iter().enumerate() {
        let mut say = |rule, at: Option<Ns>, text: &str| {
            let text = format!("{}: {text}", history.name(wire));
            found.push(Violation { oracle: "start", rule, at, text });
        };
        if history.leader(wire).groups[0].2 != wire.group {
            say("PRC-02", Some(wire.since), "it was started in a group that it does not lead");
        }
        let earlier = history.wires[..index].iter().filter(|one| one.mu == wire.mu && one.name == wire.name);
        for one in earlier {
            let born = history.leader(wire).born;
            if one.reaped.is_none_or(|reaped| reaped > born) {
                say("PRC-03", Some(wire.since), "it was started while the one before was not reaped");
            }
            if broke(one).is_some() {
                say("TRN-20", Some(wire.since), "it was started again after it had sent an invalid line");
            }
        }
        handshake(history, wire, &mut say);
    }
}

/// Where and when mu read a line that no plugin may send, before it had begun to stop the plugin: no message at all, a
/// reply to nothing or to what was answered already (TRN-16), or one off its schema. Of the reply to
/// `initialize` the load rules judge what it says.
pub(super) fn broke(wire: &Wire) -> Option<(usize, Ns)> {
    let stop = wire.stop().map_or(usize::MAX, |(place, _)| place);
    let mut answered = BTreeSet::new();
    for said in wire.speech.said() {
        let (place, at) = said.read.filter(|(place, _)| *place < stop)?;
        let invalid = match said.what {
            Saying::Garbage => true,
            Saying::Other => false,
            Saying::Reply { id, .. } => {
                let asked = wire.lines.iter().any(|line| line.request_id() == Some(id) && line.begun < place);
                !asked || !answered.insert(id) || !wire.is_sound(said, id)
            }
        };
        if invalid {
            return Some((place, at));
        }
    }
    None
}

/// Whether there is a cause to end a plugin that was not even greeted: a signal, a panic, or the plugin itself.
fn is_ended(history: &History, wire: &Wire, place: usize) -> bool {
    let mu = history.mu(wire);
    mu.crashed.is_some()
        || mu.signals.first().is_some_and(|(told, ..)| *told < place)
        || !wire.speech.said().is_empty()
        || wire.eof.is_some_and(|(ended, _)| ended < place)
        || history.leader(wire).died.is_some_and(|(died, ..)| died < place)
}

fn handshake(history: &History, wire: &Wire, say: &mut dyn FnMut(&'static str, Option<Ns>, &str)) {
    let mut asked = None;
    for (index, line) in wire.lines.iter().enumerate() {
        let is_initialize = line.method() == Some("initialize");
        match (index, asked, line.request_id()) {
            (0, _, Some(id)) if is_initialize => {
                asked = Some((id, line));
                if line.json["params"] != json!({ "protocol": { "min": 1, "max": 1 }, "mu": "5" }) {
                    say("HSK-01", Some(line.at), "initialize has other params than the page gives it");
                }
            }
            // The stop may begin before anything was asked, if somebody wants it.
            (0, _, None) if line.method() == Some("shutdown") && is_ended(history, wire, line.begun) => {}
            (0, _, None) if line.method() == Some("shutdown") => {
                say("HSK-01", Some(line.at), "it was started, and told to end before anything was asked");
            }
            (0, ..) => say("HSK-01", Some(line.at), "the first line is not the request initialize"),
            _ if is_initialize => say("HSK-01", Some(line.at), "it was asked to initialize again"),
            (_, Some((id, _)), Some(_)) if !wire.answered(id, line.begun, true) => {
                say("HSK-09", Some(line.at), "a request was sent before initialize was answered");
            }
            _ => {}
        }
    }
    let Some((id, line)) = asked else { return };
    let answered = wire
        .speech
        .said()
        .iter()
        .find(|said| matches!(said.what, Saying::Reply { id: its, .. } if its == id));
    let answered = answered.and_then(|said| said.read).map(|(_, at)| at);
    let until =
        [answered, wire.closed.map(|(_, at)| at)].into_iter().flatten().fold(history.over(wire), Ns::min);
    if history.mu(wire).ran(line.at, until) > HANDSHAKE + SLACK {
        say(
            "HSK-08",
            Some(line.at + HANDSHAKE),
            "initialize had no answer in time and nothing was done about it",
        );
    }
}
