//! Faults of the catalogue, their moments and parameters.

use std::collections::BTreeMap;

use super::swarm::Swarm;
use super::{magnitude, one_of, weighted};
use crate::fake::{Act, Background, Fault, Fd, Group, PluginTable, Sig, Until, catalogue};
use crate::streams::Stream;

/// Spans around which something changes: the grace of 5 s, the deadline of 10 s.
const SPANS_MS: [u64; 9] = [1, 10, 4_999, 5_000, 5_001, 9_999, 10_000, 10_001, 15_001];
/// The requests that the verbs send, as far as a fake plugin answers them.
const CALLED: &[&str] = &["initialize", "link.exec", "link.checkSteps", "link.fetch"];
/// The longest span drawn.
const LONGEST_MS: u64 = 40_000;
/// Bytes of an ordinary flood: more than a pipe holds.
const FLOOD: u64 = 100_000;
/// Bytes of a large one: more than the longest line.
const LARGE_FLOOD: u64 = 3 << 20;
const WORDS: [&str; 6] =
    ["ready", "{}", "[]", "null", "Listening on 127.0.0.1:8080", "{\"jsonrpc\":\"2.0\"}"];

/// Up to three, each of some plugin.
pub(super) fn draw(
    stream: &mut Stream,
    swarm: &Swarm,
    plugins: &BTreeMap<String, PluginTable>,
) -> Vec<Fault> {
    let methods = if swarm.calls { CALLED } else { &CALLED[..1] };
    let mut entries = catalogue();
    entries.retain(|entry| {
        swarm.topics.contains(&entry.topic) && entry.methods.iter().any(|method| methods.contains(method))
    });
    if !swarm.large {
        entries.retain(|entry| !matches!(entry.name, "line-1mib" | "line-1mib-and-1"));
    }
    if entries.is_empty() {
        return Vec::new();
    }
    let names: Vec<&str> = plugins.keys().map(String::as_str).collect();
    let count = weighted(stream, &[(2, 1), (2, 2), (1, 3)]);
    let one = |stream: &mut Stream| {
        let entry = &entries[stream.below(entries.len() as u64) as usize];
        let act = parameter(stream, swarm, entry.examples[0].clone());
        let mut fault = Fault::new(one_of(stream, &names), act);
        let met: Vec<&str> =
            methods.iter().copied().filter(|method| entry.methods.contains(method)).collect();
        let first = Some(one_of(stream, &met)).filter(|method| *method != CALLED[0]);
        if fault.moment().is_of_a_request() {
            fault.on = first.map(str::to_owned);
        }
        if stream.chance(1, 2) {
            let usual = fault.clone();
            let moments: Vec<_> =
                entry.moments.iter().copied().filter(|when| !when.is_of_an_effect()).collect();
            fault.when = Some(one_of(stream, &moments));
            fault.on = first.map(str::to_owned).filter(|_| fault.moment().is_of_a_request());
            if fault.check().is_err() {
                fault = usual;
            }
        }
        if fault.on.is_some() {
            fault.nth = stream.chance(1, 3).then(|| stream.between(2, 4) as u32);
            fault.times = stream.chance(1, 6).then(|| stream.between(2, 6) as u32);
        }
        if stream.chance(1, 3) {
            fault.start = Some(stream.between(1, 2) as u32);
        }
        if stream.chance(1, 8) {
            fault.after_ms = Some(span(stream));
            if fault.check().is_err() {
                fault.after_ms = None;
            }
        }
        fault
    };
    (0..count).map(|_| one(stream)).collect()
}

/// Milliseconds, often close to a bound.
pub(super) fn span(stream: &mut Stream) -> u64 {
    if stream.chance(1, 2) { one_of(stream, &SPANS_MS) } else { magnitude(stream, LONGEST_MS) }
}

/// The same deed with a drawn parameter.
pub(super) fn parameter(stream: &mut Stream, swarm: &Swarm, act: Act) -> Act {
    let flood = if swarm.large { LARGE_FLOOD } else { FLOOD };
    let text = |stream: &mut Stream| one_of(stream, &WORDS).to_owned();
    match act {
        Act::EndlessLine(_) => Act::EndlessLine(magnitude(stream, flood)),
        Act::StderrFlood(_) => Act::StderrFlood(magnitude(stream, flood)),
        Act::StderrNoNewline(_) => Act::StderrNoNewline(magnitude(stream, flood)),
        Act::PaddedString(_) => Act::PaddedString(magnitude(stream, flood) as u32),
        Act::Nesting(_) => {
            let depth = if swarm.large { 100_000 } else { 70 };
            Act::Nesting(2 + magnitude(stream, depth))
        }
        Act::Line(_) => Act::Line(text(stream)),
        Act::StderrText(_) => Act::StderrText(text(stream)),
        Act::DribbleMs(_) => Act::DribbleMs(magnitude(stream, 500)),
        Act::Exit(_) => Act::Exit(status(stream)),
        Act::ExitLeavingStdoutHeld(_) => Act::ExitLeavingStdoutHeld(status(stream)),
        Act::ExitLeavingEscaped(_) => Act::ExitLeavingEscaped(status(stream)),
        Act::DieOf(_) => {
            let signals = [Sig::Hup, Sig::Int, Sig::Abrt, Sig::Kill, Sig::Segv, Sig::Pipe, Sig::Term];
            Act::DieOf(one_of(stream, &signals))
        }
        Act::KillMu(_) => {
            let signals = [Sig::Kill, Sig::Term, Sig::Int, Sig::Hup, Sig::Pipe, Sig::Cont];
            Act::KillMu(one_of(stream, &signals))
        }
        Act::LeaveChild(_) => Act::LeaveChild(child(stream)),
        Act::DelayMs(_) => Act::DelayMs(span(stream)),
        Act::CancellableDelayMs(_) => Act::CancellableDelayMs(span(stream)),
        // Without a parameter, or with one that has but one sensible value.
        act => act,
    }
}

fn status(stream: &mut Stream) -> u8 {
    if stream.chance(1, 2) { 0 } else { stream.below(256) as u8 }
}

fn child(stream: &mut Stream) -> Background {
    let holds: Vec<Fd> =
        [Fd::Stdin, Fd::Stdout, Fd::Stderr].into_iter().filter(|_| stream.chance(1, 2)).collect();
    let until = match stream.below(3) {
        0 => Until::Forever,
        1 if holds.contains(&Fd::Stdin) => Until::Eof,
        _ => Until::Ms(span(stream)),
    };
    let group = if stream.chance(1, 3) { Group::Setsid } else { Group::Same };
    let forks = if stream.chance(1, 8) { magnitude(stream, 100) as u32 } else { 0 };
    Background { group, holds, until, forks }
}
