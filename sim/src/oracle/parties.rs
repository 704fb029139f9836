//! While somebody lives who may still bring an effect about, no other mu sends anything about it: the mu that wrote or
//! resolves it (EFF-05, EFF-06), and whoever is left of a group that was sent it (EFF-12). A stopped process lives.

use super::effects::Asked;
use super::{History, Violation};

pub(super) fn check(history: &History, found: &mut Vec<Violation>) {
    let asked = Asked::all(history);
    for (index, one) in asked.iter().enumerate() {
        let place = one.place();
        let mut say = |rule, text: String| {
            let text = format!("{}: {text}", one.name(history));
            found.push(Violation { oracle: "parties", rule, at: Some(one.call.line.at), text });
        };
        for before in asked[..index].iter().filter(|before| before.key == one.key) {
            let other = before.wire.mu != one.wire.mu;
            if other && history.mu(before.wire).lives_at(place) {
                let rule = if before.is_effect() { "EFF-05" } else { "EFF-06" };
                say(rule, format!("mu[{}] lives, which has sent it as well", before.mu(history).0));
                break;
            }
            let is_same = before.wire.plugin == one.wire.plugin;
            if !is_same
                && before.is_effect()
                && let Some(life) = history.left(before.wire, place).next()
            {
                say("EFF-12", format!("process {} lives, whose group was sent it", life.pid.0));
                break;
            }
        }
    }
}
