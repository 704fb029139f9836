//! No request of an effect is on the wire before its intent is durable (oracle 2): at its first byte the durable pages of
//! the disk hold its key, its exact parameters with their digest, the plugin's instance, and this send with the group that
//! is to receive it (EFF-02). And no intent outlives a definite reply that mu had read (EFF-03), unless mu died or the disk
//! failed in between.

use sha2::{Digest, Sha256};

use super::effects::Asked;
use super::rows::{EffectRow, Rows};
use super::{History, Observed, Violation};

const ORACLE: &str = "intent";

/// What was durable when a mu wrote the first byte of an effect.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Image {
    /// Place in the trace of the write.
    pub place: usize,
    /// The rows of all databases.
    pub rows: Rows,
}

pub(super) fn check(history: &History, observed: &Observed<'_>, found: &mut Vec<Violation>) {
    let asked = Asked::all(history);
    let mut say = |rule, asked: &Asked, text: String| {
        let text = format!("{}: {text}", asked.name(history));
        found.push(Violation { oracle: ORACLE, rule, at: Some(asked.call.line.at), text });
    };
    for one in asked.iter().filter(|one| one.is_effect()) {
        let image = observed.images.iter().rev().find(|image| image.place == one.place());
        let row = image.and_then(|image| image.rows.effects.iter().find(|row| row.key == one.key));
        match row {
            None => say("EFF-02", one, "it was sent, and its intent was not durable".into()),
            Some(row) => {
                if let Some(wrong) = differs(one, row) {
                    say("EFF-02", one, format!("its durable intent {wrong}"));
                }
            }
        }
    }
    if observed.excuses.disk_fails || observed.excuses.forgets {
        return;
    }
    for row in &observed.rows.effects {
        let mut sends = asked.iter().filter(|one| one.is_effect() && one.key == row.key);
        if let Some(last) = sends.next_back()
            && last.definite().is_some()
            && last.mu_exited(history)
        {
            say("EFF-03", last, "it was answered for certain, and its intent is still there".into());
        }
    }
}

/// In what the intent is not that of the request.
fn differs(one: &Asked, row: &EffectRow) -> Option<String> {
    let params = one.undated().unwrap_or_default();
    let digest: String = Sha256::digest(params.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
    let sent = row.sends.iter().find(|(id, ..)| *id == one.call.id);
    let deadline = one.call.param("deadline").as_u64();
    if row.method != one.call.method {
        Some(format!("is of {}", row.method))
    } else if row.params != params {
        Some("has other parameters".into())
    } else if row.sha256 != digest {
        Some("has another digest".into())
    } else if one.instance().is_some_and(|instance| instance != row.instance) {
        Some(format!("names the instance {}", row.instance))
    } else {
        match sent {
            None => Some("does not know of this send".into()),
            Some((.., group)) if *group != one.wire.group.0 => Some(format!("names the group {group}")),
            Some((_, its, _)) if Some(*its) != deadline => Some(format!("names the deadline {its}")),
            Some(_) => None,
        }
    }
}
