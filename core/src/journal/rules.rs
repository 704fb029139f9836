//! The rule table: what is to be done about an effect that has no definite answer (EFF-04 to EFF-17).
//!
//! In: the effect, what its plugin declares now, who lives, the time. Out: one [`Step`]. Nothing happens here.

use std::fmt;
use std::time::Duration;

use mu_protocol::declaration::{Declaration, Dedupe, FirstTurn, HandleSource, KeyCapabilities, ReceiptKind};
use mu_protocol::messages::method::Method;

use super::moment::{Moment, Window};
use super::proof::{Fenced, Living, Permit, ProvenDead};
use crate::reached;

/// What of an open effect matters here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Open<'a> {
    /// What was to be done.
    pub method: Method,
    /// The instance that it was sent to.
    pub instance: &'a str,
    /// When its intent was committed.
    pub begun: &'a Moment,
    /// A later delivery to the same agent was written.
    pub superseded: bool,
}

/// What a plugin's declaration offers for an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ways {
    /// It may be sent again at any time: releases and stops (EFF-08).
    Repeat,
    /// Its key can be asked about, or a repeat is recognised by it: acquires and starts (EFF-09, EFF-10).
    Key {
        /// What the seam declares.
        caps: KeyCapabilities,
        /// A `none` is acted upon; not for a kind whose handle is a file (EFF-14).
        none_counts: bool,
        /// It may be sent again inside the window; not when the first turn is in the start (SPAWN-22, A-76).
        resends: bool,
    },
    /// A delivery with an id (EFF-16, EFF-17).
    Delivery {
        /// Its receipt can be asked for.
        receipt: bool,
        /// How long a repeat is recognised.
        dedupe: Option<Duration>,
    },
    /// There is none: a delivery without an id, or a seam that the plugin no longer has.
    None,
}

impl Ways {
    /// Those of a method.
    pub fn of(method: Method, declared: &Declaration) -> Ways {
        let seams = &declared.seams;
        let ways = match method {
            Method::HostRelease => seams.host.as_ref().map(|_| Ways::Repeat),
            Method::JobStop => seams.job.as_ref().map(|_| Ways::Repeat),
            Method::HostAcquire => seams.host.as_ref().map(|host| Ways::Key {
                caps: host.acquire,
                none_counts: true,
                resends: true,
            }),
            Method::JobStart => seams.job.as_ref().map(|job| Ways::Key {
                caps: job.start,
                none_counts: job.handle != HandleSource::File,
                resends: job.begins() != FirstTurn::AtStart,
            }),
            Method::ChannelSend | Method::ChannelFresh | Method::ChannelInterrupt => {
                seams.channel.as_ref().map(|channel| Ways::Delivery {
                    receipt: channel.caps.receipt == ReceiptKind::Exact,
                    dedupe: channel.caps.dedupe.map(|dedupe| Duration::from_millis(dedupe.window_ms)),
                })
            }
            _ => None,
        };
        ways.unwrap_or(Ways::None)
    }

    /// How long a repeat is recognised, and how long an effect may be on its way, in milliseconds: what an intent keeps.
    pub fn spans(self) -> (Option<u64>, Option<u64>) {
        let ms = |span: Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
        match self {
            Ways::Key { caps, .. } => (caps.dedupe.map(|dedupe| dedupe.window_ms), caps.in_flight_ms),
            Ways::Delivery { dedupe, .. } => (dedupe.map(ms), None),
            Ways::Repeat | Ways::None => (None, None),
        }
    }

    /// Held to what was declared when the effect was sent as well: a key that was taken in then is recognised no longer than
    /// was said then, and may be on its way as long as either says.
    pub fn held_to(self, (window_ms, in_flight_ms): (Option<u64>, Option<u64>)) -> Ways {
        let shorter = |now: u64| window_ms.map(|then| then.min(now));
        match self {
            Ways::Key { caps, none_counts, resends } => {
                let dedupe = caps.dedupe.and_then(|now| shorter(now.window_ms));
                let caps = KeyCapabilities {
                    dedupe: dedupe.map(|window_ms| Dedupe { window_ms }),
                    in_flight_ms: caps.in_flight_ms.map(|now| now.max(in_flight_ms.unwrap_or(0))),
                    ..caps
                };
                Ways::Key { caps, none_counts, resends }
            }
            Ways::Delivery { receipt, dedupe } => {
                let then = window_ms.map(Duration::from_millis);
                let dedupe = dedupe.and_then(|now| then.map(|then| then.min(now)));
                Ways::Delivery { receipt, dedupe }
            }
            Ways::Repeat | Ways::None => self,
        }
    }
}

/// What is to be done. Whatever asks or sends carries a permit.
#[derive(Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing: somebody lives who may still bring it about (EFF-05, EFF-06, A-78).
    Refuse(Living),
    /// Nothing: the plugin is another one than the one it was sent to (EFF-07).
    StopChanged,
    /// Send it again (EFF-08).
    Reissue(Permit),
    /// Ask what became of its key (EFF-09).
    LookUp {
        /// Bar the key when there is nothing.
        fenced: Option<Fenced>,
        /// The right to ask.
        permit: Permit,
    },
    /// Send it again, as long as the window is open (EFF-10, EFF-17, A-77).
    Resend {
        /// The window, to be asked once more right before the write.
        window: Window,
        /// The right to send.
        permit: Permit,
    },
    /// Ask whether the agent has it (EFF-16).
    AskForReceipt(Permit),
    /// Nothing can be asked or sent (EFF-11).
    Leave(Left),
}

/// Why an effect is left as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// The plugin offers no way to tell.
    NoWay,
    /// The time in which a repeat is recognised is over.
    WindowOver,
    /// A newer delivery was written since.
    Superseded,
}

impl fmt::Display for Left {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Left::NoWay => "its plugin offers no way to find out",
            Left::WindowOver => "the time is over in which its plugin recognises a repeat",
            Left::Superseded => "a newer delivery to the agent was written since",
        })
    }
}

fn refused(living: Living) {
    match living {
        Living::Writer(_) => reached!("EFF-05 refused: its writer lives"),
        Living::Resolver(_) => reached!("EFF-06 refused: another mu resolves it"),
        Living::Group(_) => reached!("EFF-12 refused: a group that was sent it lives"),
    }
}

/// Decides. `dead` is what a look at all parties found, `instance` what the plugin declares now.
pub fn decide(
    open: &Open<'_>,
    ways: Ways,
    instance: &str,
    dead: Result<ProvenDead, Living>,
    now: &Moment,
) -> Step {
    let dead = match dead {
        Ok(dead) => dead,
        Err(living) => {
            refused(living);
            return Step::Refuse(living);
        }
    };
    let Some(permit) = Permit::new(dead, open.instance, instance) else {
        reached!("EFF-07 refused: the plugin became another instance");
        return Step::StopChanged;
    };
    let resend = |length: Duration, permit| {
        let window = Window::new(open.begun.clone(), length);
        if window.is_open(now) {
            reached!("EFF-10 sent again: its window is open");
            Step::Resend { window, permit }
        } else {
            reached!("EFF-11 left: its window is over");
            Step::Leave(Left::WindowOver)
        }
    };
    match ways {
        Ways::Repeat => {
            reached!("EFF-08 sent again: a repeat does no harm");
            Step::Reissue(permit)
        }
        Ways::Key { caps, .. } if caps.lookup => {
            reached!("EFF-09 looked up");
            Step::LookUp { fenced: Fenced::by(&permit, caps.fence_key), permit }
        }
        Ways::Key { caps: KeyCapabilities { dedupe: Some(dedupe), .. }, resends: true, .. } => {
            resend(Duration::from_millis(dedupe.window_ms), permit)
        }
        Ways::Delivery { receipt: true, .. } => Step::AskForReceipt(permit),
        Ways::Delivery { .. } if open.superseded => Step::Leave(Left::Superseded),
        Ways::Delivery { dedupe: Some(length), .. } => resend(length, permit),
        Ways::Key { .. } | Ways::Delivery { .. } | Ways::None => {
            reached!("EFF-11 left: its plugin offers no way");
            Step::Leave(Left::NoWay)
        }
    }
}

#[cfg(test)]
mod tests;
