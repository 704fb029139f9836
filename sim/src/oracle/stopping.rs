//! The stop sequence: cancels for what is pending, `shutdown`, the end of stdin, at most five seconds, the kill
//! (PRC-07, PRC-08). The group is not killed before its time (PRC-13) and at once when its leader is gone (PRC-17).
//! After a terminating signal nothing starts and no request is sent (PRC-09, PRC-10).

use std::collections::BTreeSet;

use mu_core::os::Exit;

use super::history::Wire;
use super::{History, Ns, SECOND, Violation};

const ORACLE: &str = "stopping";
/// What a pipe holds.
const PIPE: u64 = 65_536;
/// Virtual time that a step of mu may take when it only has to notice something.
const SLACK: Ns = SECOND / 100;

pub(super) fn check(history: &History, found: &mut Vec<Violation>) {
    for wire in &history.wires {
        let mut say = |rule, at: Option<Ns>, text: String| {
            let text = format!("{}[{}] of mu[{}]: {text}", wire.name, wire.plugin, wire.mu);
            found.push(Violation { oracle: ORACLE, rule, at, text });
        };
        order(history, wire, &mut say);
        bound(history, wire, &mut say);
        signals(history, wire, &mut say);
    }
}

type Say<'a> = dyn FnMut(&'static str, Option<Ns>, String) + 'a;

fn order(history: &History, wire: &Wire, say: &mut Say<'_>) {
    let mut pending: BTreeSet<u64> = BTreeSet::new();
    let mut cancelled: BTreeSet<u64> = BTreeSet::new();
    let mut shutdown = None;
    for line in &wire.lines {
        if shutdown.is_some() {
            say("PRC-07", Some(line.at), format!("{:?} was written after shutdown", line.method()));
        }
        if let Some(id) = line.request_id() {
            pending.insert(id);
        }
        if let Some(id) = line.cancels() {
            if !pending.contains(&id) {
                say("PRC-07", Some(line.at), format!("a cancel for id {id}, which is not pending"));
            }
            if !cancelled.insert(id) {
                say("A-05", Some(line.at), format!("a second cancel for id {id}"));
            }
        }
        if line.method() == Some("shutdown") {
            shutdown = Some(line.begun);
        }
    }
    let killed = history.death(wire.mu).is_some_and(|(_, _, exit)| exit == Exit::Signal(9));
    let Some((closed, at)) = wire.closed else {
        if !killed && history.death(wire.mu).is_some() && history.death(wire.plugin).is_none() {
            say("PRC-07", None, "its stdin was never closed".into());
        }
        return;
    };
    if killed && history.death(wire.mu).is_some_and(|(place, _, _)| place <= closed) {
        return; // the kernel closed it
    }
    let leader_gone = history.death(wire.plugin).is_some_and(|(place, _, _)| place < closed);
    let crashed = history.crashed.contains(&wire.mu);
    let no_room = wire.unread_at_close + 256 > PIPE || wire.half.is_some() || wire.broken.is_some();
    if shutdown.is_none() && !leader_gone && !crashed && !no_room {
        say("PRC-08", Some(at), "its stdin was closed without a shutdown before it".into());
    }
    if let Some(shutdown) = shutdown {
        let answered = wire.replied_before(shutdown);
        for id in pending.iter().filter(|id| !answered.contains(id) && !cancelled.contains(id)) {
            say("PRC-07", Some(at), format!("call {id} was pending and got no cancel before shutdown"));
        }
    }
}

fn bound(history: &History, wire: &Wire, say: &mut Say<'_>) {
    let Some((_, closed_at)) = wire.closed else { return };
    let leader = history.death(wire.plugin);
    if let Some((_, kill_at)) = wire.kills.first() {
        let early = *kill_at < closed_at + 5 * SECOND;
        let after_leader = leader.is_some_and(|(_, at, exit)| at <= *kill_at && exit != Exit::Signal(9))
            || leader.is_some_and(|(place, _, _)| place < wire.kills[0].0);
        if early && !after_leader && !history.crashed.contains(&wire.mu) {
            say("PRC-13", Some(*kill_at), "its group was killed before the grace was over".into());
        }
    }
    if let Some((leader_place, leader_at, _)) = leader
        && history.lives[&wire.mu].lives_at(leader_place)
    {
        for (pid, life) in &history.lives {
            let in_group = life.lives_at(leader_place)
                && life.group_at(leader_place) == wire.plugin
                && *pid != wire.plugin;
            let died = life.died.map_or(history.end, |(_, at, _)| at);
            let mu_gone = history.death(wire.mu).map_or(Ns::MAX, |(_, at, _)| at);
            if in_group && died.min(mu_gone) > leader_at + SLACK {
                say("PRC-17", Some(leader_at), format!("process {pid} of its group outlived its leader"));
            }
        }
    }
    let over = closed_at + 5 * SECOND + SLACK;
    if leader.is_none_or(|(_, at, _)| at > over) && history.death(wire.mu).is_none_or(|(_, at, _)| at > over)
    {
        say("PRC-07", Some(over), "it lives more than five seconds after the end of its stdin".into());
    }
}

fn signals(history: &History, wire: &Wire, say: &mut Say<'_>) {
    let Some((signal, at)) = history.signals.get(&wire.mu) else { return };
    if history.lives[&wire.plugin].born > *signal {
        say("PRC-09", Some(*at), "it was started after a terminating signal".into());
    }
    for line in &wire.lines {
        if line.request_id().is_some() && line.begun > *signal {
            say("PRC-10", Some(line.at), "a request was sent after a terminating signal".into());
        }
    }
}
