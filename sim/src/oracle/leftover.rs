//! No process of a plugin's group lives when its mu has exited, and its leader is reaped. A mu that was killed leaves only
//! plugins that die of the end of their stdin within five seconds, unless a script makes them ignore it.

use mu_core::os::Exit;

use super::{History, Ns, Observed, SECOND, Violation};

pub(super) fn check(history: &History, observed: &Observed<'_>, found: &mut Vec<Violation>) {
    for wire in &history.wires {
        let mu = history.mu(wire);
        let Some((place, at, exit)) = mu.died else { continue };
        let mut say = |rule, text: String| {
            let text = format!("{}: {text}", history.name(wire));
            found.push(Violation { oracle: "leftover", rule, at: Some(at), text });
        };
        if exit != Exit::Signal(9) {
            for life in history.members(wire.group, place) {
                say("PRC-03", format!("mu ended while process {} of its group lives", life.pid));
            }
            // A crash kills without waiting for the end (PRC-13).
            if wire.reaped.is_none() && mu.crashed.is_none() {
                say("TRN-18", "mu ended without reaping it".into());
            }
        } else if !observed.stubborn.contains(&wire.name) {
            for life in history.members(wire.group, place) {
                // Those that live for ever are seen to live as long as somebody watches.
                if life.in_group_until(wire.group, place, Ns::MAX) > at + 5 * SECOND
                    && (life.died.is_some() || history.end > at + 5 * SECOND)
                {
                    let pid = life.pid;
                    say("PRC-15", format!("process {pid} of its group lived on 5 s after mu was killed"));
                }
            }
        }
    }
}
