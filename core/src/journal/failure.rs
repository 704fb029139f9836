//! How a verb tells of an effect that stays open: which, why, and what would end it.

use crate::call_error::CallError;
use crate::cli::failure::{Failure, Kind};
use crate::invocation::StartError;
use crate::journal::reading::Why;
use crate::journal::{Ended, Outcome, Refusal};
use crate::store::effects::Effect;
use crate::store::plugins::Plugin;

/// What the verb has to do with the effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Concern {
    /// It performs or resolves that very effect: an end that is not known is the verb's own (exit 1).
    Own,
    /// It needs the host that the effect is about: it is refused until the effect has ended (exit 4).
    Host,
}

/// Why nothing was asked or sent, in one line.
pub fn reason(refusal: &Refusal, effect: &Effect) -> String {
    match refusal {
        Refusal::Lives(living) => living.to_string(),
        Refusal::StopChanged(now) => {
            format!("stop-changed: it was sent to instance {}, and the plugin is {now} now", effect.instance)
        }
        Refusal::Left(left) => left.to_string(),
    }
}

/// What is kept of why an effect is open: typed, or the first line of an error's message, and nothing of stderr (TRN-08).
pub fn note(why: &Why, error: Option<&CallError>) -> String {
    match error {
        Some(CallError::Refused(method, error)) if *why == Why::NoAnswer => {
            let said = error.message.lines().next().unwrap_or_default();
            match said.is_empty() {
                true => format!("the plugin does not know what became of {method}"),
                false => format!("the plugin answers {method}: {said}"),
            }
        }
        _ => why.to_string(),
    }
}

fn subject(effect: &Effect) -> String {
    format!("host {}: {} {}", effect.host, effect.method, effect.key)
}

fn commands(effect: &Effect) -> [String; 2] {
    [format!("mu effect resolve {}", effect.key), format!("mu effect show {}", effect.key)]
}

/// The failure of a verb that may not touch an open effect.
pub fn refused(effect: &Effect, refusal: &Refusal, concern: Concern) -> Failure {
    let (subject, reason) = (subject(effect), reason(refusal, effect));
    match (refusal, concern) {
        (Refusal::Lives(living), _) => {
            let what =
                format!("{subject} has no answer yet: {reason}; nothing was sent; try again once it is gone");
            let pid = living.pid();
            let look = format!("ps -o pid,pgid,stat,args -p {pid}");
            Failure::new(Kind::EffectBusy, what).or_else([format!("mu effect show {}", effect.key), look])
        }
        (Refusal::StopChanged(_), _) => {
            let what = format!(
                "{subject} has no answer: {reason}; nothing was sent; register the plugin that has it"
            );
            Failure::new(Kind::StopChanged, what).or_else([
                format!("mu plugin show {}", effect.plugin),
                format!("mu effect show {}", effect.key),
            ])
        }
        (Refusal::Left(_), Concern::Own) => {
            let what =
                format!("{subject} may have happened or not: {reason}; see for yourself, then say which");
            Failure::new(Kind::OutcomeUnknown, what).or_else(verdicts(effect))
        }
        (Refusal::Left(_), Concern::Host) => {
            let what = format!("{subject} may have happened or not: {reason}; nothing was sent");
            Failure::new(Kind::HostNotReady, what).or_else(commands(effect))
        }
    }
}

/// The commands with which an operator says how an effect ended.
fn verdicts(effect: &Effect) -> [String; 2] {
    let resolve = format!("mu effect resolve {}", effect.key);
    let handle = match effect.method {
        mu_protocol::messages::method::Method::HostAcquire => " --handle HANDLE",
        _ => "",
    };
    [format!("{resolve} --as done{handle} --because TEXT"), format!("{resolve} --as undone --because TEXT")]
}

/// The failure of a verb when the effect has no definite end, or one that is not what the verb wants.
pub fn ended(effect: &Effect, plugin: &Plugin, ended: &Ended, concern: Concern) -> Failure {
    let subject = subject(effect);
    let Outcome::Open(why) = &ended.outcome else {
        return match &ended.error {
            Some(error) => Failure::call(&format!("host {}", effect.host), &plugin.name, &plugin.argv, error),
            None => Failure::new(Kind::UnknownHost, format!("{subject} never happened, and never will")),
        };
    };
    match &ended.error {
        Some(CallError::Start(StartError::Refused(refusal))) if refusal.other_instance.is_some() => {
            let now = refusal.other_instance.as_deref().unwrap_or_default();
            let what = format!(
                "{subject} has no answer: stop-changed: it was sent to instance {}, and the plugin is {now} now, which is not \
                 what was registered; nothing was sent ({})",
                effect.instance, refusal.rule
            );
            return Failure::new(Kind::StopChanged, what).or_else(commands(effect));
        }
        Some(error @ (CallError::Start(_) | CallError::TooLong(..))) => {
            let failure = Failure::call(&format!("host {}", effect.host), &plugin.name, &plugin.argv, error);
            let message = format!("{}; {subject} stays open", failure.message);
            return Failure { next: failure.next.clone(), ..Failure::new(failure.kind, message) };
        }
        Some(CallError::NotSent(..))
            if ended.error.as_ref().is_some_and(|error| error.signal().is_none()) => {}
        Some(error) if error.is_definite() => {
            let failure = Failure::call(&subject, &plugin.name, &plugin.argv, error);
            let message = format!("{}; it stays open", failure.message);
            return Failure::new(failure.kind, message).or_else(commands(effect));
        }
        _ => {}
    }
    let said = match (&ended.error, why) {
        (Some(CallError::Refused(..)), Why::NoAnswer) => note(why, ended.error.as_ref()),
        (Some(error), Why::NoAnswer | Why::NotAsked) => error.to_string(),
        _ => why.to_string(),
    };
    match concern {
        Concern::Own => {
            let what = format!("{subject} may have happened or not: {said}");
            Failure::new(Kind::OutcomeUnknown, what).or_else(commands(effect))
        }
        Concern::Host => {
            let what = format!("{subject} has no definite answer: {said}; the host can be used once it has");
            Failure::new(Kind::HostNotReady, what).or_else(commands(effect))
        }
    }
}
