//! The stop sequence: cancels for what is pending, `shutdown`, the end of stdin, at most five seconds, the kill
//! (PRC-07, PRC-08). It begins at once when there is cause; the group is not killed before its time (PRC-13) and at once
//! when its leader is gone (PRC-17). After a terminating signal nothing starts and no request is sent (PRC-09, PRC-10),
//! and mu dies of it (PRC-12).

use std::collections::BTreeSet;

use mu_core::os::Exit;

use super::history::{Line, Wire};
use super::{History, Ns, Ran, SECOND, SLACK, Violation, start};

const ORACLE: &str = "stopping";
/// What a pipe holds.
const PIPE: u64 = 65_536;
/// From the end of stdin to the kill (PRC-07).
const GRACE: Ns = 5 * SECOND;
const SIGKILL: i32 = 9;

type Say<'a> = dyn FnMut(&'static str, Option<Ns>, String) + 'a;

pub(super) fn check(history: &History, ran: &[Ran], found: &mut Vec<Violation>) {
    for wire in &history.wires {
        let mut say = |rule, at: Option<Ns>, text: String| {
            let text = format!("{}: {text}", history.name(wire));
            found.push(Violation { oracle: ORACLE, rule, at, text });
        };
        order(wire, &mut say);
        end_of_stdin(history, wire, &mut say);
        beginning(history, wire, &mut say);
        kills(history, wire, &mut say);
        grace(history, wire, &mut say);
        group(history, wire, &mut say);
        signals(history, wire, ran, &mut say);
    }
}

fn requests(wire: &Wire) -> impl Iterator<Item = (u64, &Line)> {
    wire.lines.iter().filter_map(|line| line.request_id().map(|id| (id, line)))
}

fn cancels(wire: &Wire) -> impl Iterator<Item = (u64, &Line)> {
    wire.lines.iter().filter_map(|line| line.cancels().map(|id| (id, line)))
}

fn shutdown(wire: &Wire) -> Option<&Line> {
    wire.lines.iter().find(|line| line.method() == Some("shutdown"))
}

/// Each line in its place.
fn order(wire: &Wire, say: &mut Say<'_>) {
    let shutdown_at = shutdown(wire).map_or(usize::MAX, |line| line.begun);
    let mut asked = BTreeSet::new();
    let mut cancelled = BTreeSet::new();
    let mut is_over = false;
    for line in &wire.lines {
        let at = Some(line.at);
        if is_over {
            say("PRC-07", at, format!("{:?} was written after shutdown", line.method()));
        }
        is_over |= line.method() == Some("shutdown");
        if let Some(id) = line.request_id() {
            asked.insert(id);
            if !cancelled.is_empty() {
                say("TMO-04", at, format!("request {id} was sent after a cancel, which begins the stop"));
            }
        }
        if let Some(id) = line.cancels() {
            if !asked.contains(&id) || wire.answered(id, line.begun, true) {
                say("PRC-07", at, format!("a cancel for id {id}, which is not pending"));
            }
            if !cancelled.insert(id) {
                say("A-05", at, format!("a second cancel for id {id}"));
            }
        }
    }
    if let Some(shutdown) = shutdown(wire) {
        for id in asked.iter().filter(|id| !cancelled.contains(id)) {
            if !wire.answered(*id, shutdown_at, false) {
                let text = format!("call {id} was pending and got no cancel before shutdown");
                say("PRC-07", Some(shutdown.at), text);
            }
        }
    }
}

/// stdin is closed, behind a shutdown and without delay.
fn end_of_stdin(history: &History, wire: &Wire, say: &mut Say<'_>) {
    let (mu, leader) = (history.mu(wire), history.leader(wire));
    let Some((mu_died, _, exit)) = mu.died else { return };
    if mu.crashed.is_some() || (exit == Exit::Signal(SIGKILL) && wire.closed.is_none()) {
        return; // the kernel closed it
    }
    let Some((closed, at)) = wire.closed else {
        if leader.died.is_none_or(|(died, _, _)| died > mu_died) {
            say("PRC-07", None, "its stdin was never closed".into());
        }
        return;
    };
    let leader_gone = leader.died.is_some_and(|(died, _, _)| died < closed);
    // A line of the stop sequence has less than 256 bytes. What the pipe does not take at once is dropped.
    let no_room = wire.unread_at_close + 256 > PIPE || wire.ends_in_half_a_line() || wire.broken.is_some();
    if shutdown(wire).is_none() && !leader_gone && !no_room {
        say("PRC-08", Some(at), "its stdin was closed without a shutdown before it".into());
    }
    let first = cancels(wire).map(|(_, line)| line).chain(shutdown(wire)).map(|line| line.at).min();
    if first.is_some_and(|first| mu.ran(first, at) > SLACK) {
        say("PRC-07", Some(at), "its stdin stayed open after the stop had begun".into());
    }
}

/// The stop begins when there is cause.
fn beginning(history: &History, wire: &Wire, say: &mut Say<'_>) {
    let (mu, leader) = (history.mu(wire), history.leader(wire));
    let signal =
        mu.signals.iter().find(|(place, _, _)| *place > leader.born).map(|(place, at, _)| (*place, *at));
    let causes = [
        ("PRC-08", "a terminating signal", signal),
        ("TRN-18", "an invalid line", start::broke(wire)),
        ("A-72", "the end of its stdout", wire.eof),
    ];
    let until = wire.closed.map_or(Ns::MAX, |(_, at)| at).min(history.over(wire));
    for (rule, what, cause) in causes {
        if let Some((_, at)) = cause
            && mu.ran(at, until) > SLACK
        {
            say(rule, Some(at), format!("{what} did not begin the stop"));
        }
    }
}

/// mu kills when the grace is over, when the leader is gone, or when it crashes itself; and sends no other signal.
fn kills(history: &History, wire: &Wire, say: &mut Say<'_>) {
    if let Some((_, at, number)) = wire.signals.iter().find(|(_, _, number)| *number != SIGKILL) {
        say("PRC-07", Some(*at), format!("mu sent signal {number}, which is no part of the stop"));
    }
    let Some((kill, at, _)) = wire.signals.iter().find(|(_, _, number)| *number == SIGKILL) else { return };
    let before = |place: Option<usize>| place.is_some_and(|place| place < *kill);
    if before(history.leader(wire).died.map(|(place, _, _)| place)) || before(history.mu(wire).crashed) {
        return;
    }
    match wire.closed {
        Some((closed, since)) if closed < *kill => {
            if *at < since + GRACE {
                say("PRC-13", Some(*at), "its group was killed before the grace was over".into());
            }
        }
        _ => say("PRC-13", Some(*at), "its group was killed without the stop sequence".into()),
    }
}

/// Nobody outlives the grace.
fn grace(history: &History, wire: &Wire, say: &mut Say<'_>) {
    let Some((_, closed)) = wire.closed else { return };
    if history.mu(wire).ran(closed, history.over(wire)) > GRACE + SLACK {
        say(
            "PRC-07",
            Some(closed + GRACE),
            "it lives more than five seconds after the end of its stdin".into(),
        );
    }
}

/// Nobody of the group outlives the leader while mu can do something about it.
fn group(history: &History, wire: &Wire, say: &mut Say<'_>) {
    let Some((place, at, _)) = history.leader(wire).died else { return };
    let mu = history.mu(wire);
    if !mu.lives_at(place) {
        return;
    }
    for life in history.members(wire.group, place).filter(|life| life.pid != wire.group) {
        let until = life.in_group_until(wire.group, place, history.end).min(mu.end(history.end));
        if mu.ran(at, until) > SLACK {
            say("PRC-17", Some(at), format!("process {} of its group outlived its leader", life.pid));
        }
    }
}

fn signals(history: &History, wire: &Wire, ran: &[Ran], say: &mut Say<'_>) {
    let mu = history.mu(wire);
    let Some((signal, at, _)) = mu.signals.first() else { return };
    if history.leader(wire).born > *signal {
        say("PRC-09", Some(wire.since), "it was started after a terminating signal".into());
    }
    for (id, line) in requests(wire).filter(|(_, line)| line.begun > *signal) {
        say("PRC-10", Some(line.at), format!("request {id} was sent after a terminating signal"));
    }
    // A signal that comes when no plugin is left may meet a mu that is about to exit.
    if wire.reaped.is_some_and(|reaped| reaped < *signal) || mu.crashed.is_some() {
        return;
    }
    let handled =
        history.ran(wire, ran).is_some_and(|ran| ran.argv.get(1).is_some_and(|verb| verb == "wait"));
    let fits = |exit| match exit {
        Exit::Signal(number) => number == SIGKILL || mu.signals.iter().any(|(_, _, one)| *one == number),
        Exit::Status(status) => handled && status == 130,
    };
    if mu.died.is_some_and(|(_, _, exit)| !fits(exit)) {
        say("PRC-12", Some(*at), "mu did not die of the terminating signal that it got".into());
    }
}
