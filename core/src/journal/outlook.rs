//! What can be said of an open effect without asking anybody: why it is open, and what would resolve it.

use crate::journal::Refusal;
use crate::journal::failure;
use crate::journal::moment::Moment;
use crate::journal::proof::ProvenDead;
use crate::journal::rules::{self, Left, Step};
use crate::os::Os;
use crate::store::effects::Effect;
use crate::store::plugins::Plugin;

/// Two sentences for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outlook {
    /// Why it is open.
    pub why: String,
    /// What would resolve it.
    pub resolved_by: String,
}

/// Of this effect, now, with its plugin as it is registered; `None` for one that mu cannot read.
pub fn of<O: Os>(os: &O, effect: &Effect, plugin: Option<&Plugin>) -> Outlook {
    let by_hand = format!("your word: mu effect resolve {} --as done|undone --because TEXT", effect.key);
    let Some(plugin) = plugin else {
        return Outlook { why: "its plugin's row cannot be read".into(), resolved_by: by_hand };
    };
    let me = os.identify(os.env().pid).expect("mu itself lives");
    let dead = ProvenDead::look(os, &effect.parties(), &me);
    let declared = &plugin.declaration;
    let step =
        rules::decide(&effect.open(), effect.ways(declared), &declared.instance, dead, &Moment::now(os));
    let heard = effect.note.clone().unwrap_or_else(|| "no definite answer came".into());
    let resolve = |what: &str| format!("mu effect resolve {} {what}", effect.key);
    let (why, resolved_by) = match step {
        Step::Refuse(living) => {
            (living.to_string(), format!("the end of process {}; then: {}", living.pid(), resolve("")))
        }
        Step::StopChanged => {
            let why = failure::reason(&Refusal::StopChanged(declared.instance.clone()), effect);
            (why, format!("registering instance {} again, or {by_hand}", effect.instance))
        }
        Step::Reissue(_) => (heard, resolve("sends it again")),
        Step::LookUp { .. } => (heard, resolve("asks the plugin about its key")),
        Step::Resend { .. } => (heard, resolve("sends it again, as long as the plugin recognises a repeat")),
        Step::AskForReceipt(_) => (heard, resolve("asks for the receipt")),
        Step::Leave(left @ (Left::NoWay | Left::WindowOver | Left::Superseded)) => {
            (left.to_string(), by_hand)
        }
    };
    Outlook { why, resolved_by: resolved_by.trim_end().to_owned() }
}
