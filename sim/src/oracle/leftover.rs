//! No process of a plugin's group lives when its mu has exited. A mu that was killed leaves only plugins that die of
//! the end of their stdin within five seconds, unless a script makes them ignore it.

use mu_core::os::Exit;

use super::{History, Observed, SECOND, Violation};

const ORACLE: &str = "leftover";

pub(super) fn check(history: &History, observed: &Observed<'_>, found: &mut Vec<Violation>) {
    for wire in &history.wires {
        let Some((place, at, exit)) = history.death(wire.mu) else { continue };
        if exit != Exit::Signal(9) {
            for pid in history.members(wire.plugin, place) {
                let text =
                    format!("mu[{}] ended while process {pid} of {}'s group lives", wire.mu, wire.name);
                found.push(Violation { oracle: ORACLE, rule: "PRC-03", at: Some(at), text });
            }
            // A mu that has crashed waits for nobody; init reaps what it killed.
            if wire.reaped.is_none() && !history.crashed.contains(&wire.mu) {
                let text = format!("mu[{}] ended without reaping {}[{}]", wire.mu, wire.name, wire.plugin);
                found.push(Violation { oracle: ORACLE, rule: "TRN-18", at: Some(at), text });
            }
        } else if !observed.stubborn.contains(&wire.name) {
            for (pid, life) in &history.lives {
                let in_group = life.lives_at(place) && life.group_at(place) == wire.plugin;
                let gone = life.died.map_or(history.end, |(_, died, _)| died);
                if in_group && gone > at + 5 * SECOND {
                    let text = format!(
                        "process {pid} of {}'s group lived on 5 s after mu[{}] was killed: its stdin did not end",
                        wire.name, wire.mu
                    );
                    found.push(Violation { oracle: ORACLE, rule: "PRC-15", at: Some(at), text });
                }
            }
        }
    }
}
