//! The events of a run, read once: who lived when and in which group, and every line on every plugin's stdin.

use std::collections::{BTreeMap, BTreeSet};

use mu_core::os::{Exit, Pid};
use serde_json::Value;

use crate::trace::{Event, PipeId, Std, Target, What};

/// Virtual nanoseconds.
pub type Ns = u64;

/// A process, from its start to its end.
#[derive(Clone, Debug)]
pub struct Life {
    /// Who started it.
    pub parent: Pid,
    /// Where in the trace it started.
    pub born: usize,
    /// Where it ended, when, and how.
    pub died: Option<(usize, Ns, Exit)>,
    /// The groups it was in, with the place in the trace from which on.
    pub groups: Vec<(usize, Pid)>,
}

impl Life {
    /// Whether it lived just before event number `at`.
    pub fn lives_at(&self, at: usize) -> bool {
        self.born < at && self.died.is_none_or(|(died, _, _)| died >= at)
    }

    /// Its group just before event number `at`.
    pub fn group_at(&self, at: usize) -> Pid {
        let mut group = self.groups[0].1;
        for (from, next) in &self.groups {
            if *from < at {
                group = *next;
            }
        }
        group
    }
}

/// One line that mu wrote to a plugin.
#[derive(Clone, Debug)]
pub struct Line {
    /// Place in the trace of its first and of its last byte.
    pub begun: usize,
    /// See `begun`.
    pub ended: usize,
    /// When its first byte was written.
    pub at: Ns,
    /// The line without its LF.
    pub bytes: Vec<u8>,
    /// The same, parsed; null when it is no JSON.
    pub json: Value,
}

impl Line {
    /// The method, if it is a request or a notification.
    pub fn method(&self) -> Option<&str> {
        self.json.get("method").and_then(Value::as_str)
    }

    /// The id, if it is a request.
    pub fn request_id(&self) -> Option<u64> {
        self.method().and_then(|_| self.json.get("id")).and_then(Value::as_u64)
    }

    /// The id it cancels, if it is a cancel of a call.
    pub fn cancels(&self) -> Option<u64> {
        (self.method() == Some("$/cancel")).then(|| self.json["params"]["id"].as_u64()).flatten()
    }
}

/// The conversation of one mu with one plugin process.
#[derive(Clone, Debug)]
pub struct Wire {
    /// The mu.
    pub mu: Pid,
    /// The plugin's leader, which is also its group.
    pub plugin: Pid,
    /// Basename of its argv0 without `mu-plugin-`.
    pub name: String,
    /// Whole lines that mu wrote.
    pub lines: Vec<Line>,
    /// Bytes of a line that mu began and did not end, with the place in the trace of the first.
    pub half: Option<(usize, Vec<u8>)>,
    /// Bytes in the pipe that the plugin had not read when mu closed it.
    pub unread_at_close: u64,
    /// Place and time of mu's close of the plugin's stdin.
    pub closed: Option<(usize, Ns)>,
    /// Place of the first write that failed because nobody could read.
    pub broken: Option<usize>,
    /// What the plugin wrote to its stdout: place in the trace and bytes.
    pub said: Vec<(usize, Vec<u8>)>,
    /// SIGKILLs that mu sent to the group: place and time.
    pub kills: Vec<(usize, Ns)>,
    /// Place of the reaping.
    pub reaped: Option<usize>,
}

/// Everything the oracles look at that is in the trace.
#[derive(Clone, Debug)]
pub struct History {
    /// All processes.
    pub lives: BTreeMap<Pid, Life>,
    /// One for each plugin process of each mu.
    pub wires: Vec<Wire>,
    /// Terminating signals that reached a mu: the first of each.
    pub signals: BTreeMap<Pid, (usize, Ns)>,
    /// The mu that were made to panic.
    pub crashed: BTreeSet<Pid>,
    /// Number of events.
    pub len: usize,
    /// Time of the last event.
    pub end: Ns,
}

impl History {
    /// Reads a trace. `mus` are the processes that run mu.
    pub fn read(events: &[Event], mus: &BTreeSet<Pid>) -> History {
        let mut history = History {
            lives: BTreeMap::new(),
            wires: Vec::new(),
            signals: BTreeMap::new(),
            crashed: BTreeSet::new(),
            len: events.len(),
            end: events.last().map_or(0, |event| event.at),
        };
        let mut open: BTreeMap<Pid, usize> = BTreeMap::new();
        let mut written: BTreeMap<PipeId, u64> = BTreeMap::new();
        let mut read: BTreeMap<PipeId, u64> = BTreeMap::new();
        for (place, event) in events.iter().enumerate() {
            let (pid, at) = (event.pid, event.at);
            match &event.what {
                What::Spawn { child, argv, group, .. } => {
                    let life = Life { parent: pid, born: place, died: None, groups: vec![(place, *group)] };
                    history.lives.insert(*child, life);
                    if mus.contains(&pid) {
                        open.insert(*child, history.wires.len());
                        history.wires.push(Wire::new(pid, *child, &argv[0].to_string_lossy()));
                    }
                }
                What::Exit(exit) => {
                    if let Some(life) = history.lives.get_mut(&pid) {
                        life.died = Some((place, at, *exit));
                    }
                }
                What::NewSession => history.join(pid, place, pid),
                What::NewGroup(group) => history.join(pid, place, *group),
                What::Delivered { number: 1 | 2 | 15, .. } if mus.contains(&pid) => {
                    history.signals.entry(pid).or_insert((place, at));
                }
                What::Signal { to: Target::Group(group), number: 9 } if mus.contains(&pid) => {
                    if let Some(wire) = open.get(group) {
                        history.wires[*wire].kills.push((place, at));
                    }
                }
                What::Reap { child } if mus.contains(&pid) => {
                    if let Some(wire) = open.get(child) {
                        history.wires[*wire].reaped = Some(place);
                    }
                }
                What::Write { pipe, bytes } => {
                    *written.entry(pipe.id).or_default() += bytes.len() as u64;
                    let Some(role) = pipe.role else { continue };
                    let Some(wire) = open.get(&role.of) else { continue };
                    let wire = &mut history.wires[*wire];
                    match role.stream {
                        Std::In if pid == wire.mu => wire.heard(place, at, bytes),
                        Std::Out => wire.said.push((place, bytes.to_vec())),
                        _ => {}
                    }
                }
                What::Read { pipe, count, .. } => *read.entry(pipe.id).or_default() += count,
                What::Broken(pipe) => {
                    let Some(role) = pipe.role else { continue };
                    if let (Std::In, Some(wire)) = (role.stream, open.get(&role.of)) {
                        history.wires[*wire].broken.get_or_insert(place);
                    }
                }
                What::CloseWrite(pipe) => {
                    let Some(role) = pipe.role else { continue };
                    if let (Std::In, Some(wire)) = (role.stream, open.get(&role.of)) {
                        let wire = &mut history.wires[*wire];
                        if pid == wire.mu {
                            let of =
                                |counts: &BTreeMap<PipeId, u64>| counts.get(&pipe.id).copied().unwrap_or(0);
                            wire.closed = Some((place, at));
                            wire.unread_at_close = of(&written) - of(&read);
                        }
                    }
                }
                _ => {}
            }
        }
        history
    }

    fn join(&mut self, pid: Pid, place: usize, group: Pid) {
        if let Some(life) = self.lives.get_mut(&pid) {
            life.groups.push((place, group));
        }
    }

    /// The processes of a group that live just before event number `at`.
    pub fn members(&self, group: Pid, at: usize) -> impl Iterator<Item = Pid> + '_ {
        self.lives
            .iter()
            .filter(move |(_, life)| life.lives_at(at) && life.group_at(at) == group)
            .map(|(pid, _)| *pid)
    }

    /// Where and how a process ended.
    pub fn death(&self, pid: Pid) -> Option<(usize, Ns, Exit)> {
        self.lives.get(&pid).and_then(|life| life.died)
    }
}

impl Wire {
    fn new(mu: Pid, plugin: Pid, argv0: &str) -> Wire {
        let base = argv0.rsplit('/').next().unwrap_or(argv0);
        Wire {
            mu,
            plugin,
            name: base.strip_prefix("mu-plugin-").unwrap_or(base).to_owned(),
            lines: Vec::new(),
            half: None,
            unread_at_close: 0,
            closed: None,
            broken: None,
            said: Vec::new(),
            kills: Vec::new(),
            reaped: None,
        }
    }

    fn heard(&mut self, place: usize, at: Ns, bytes: &[u8]) {
        let mut rest = bytes;
        while !rest.is_empty() {
            let (begun, mut line) = self.half.take().unwrap_or((place, Vec::new()));
            match rest.iter().position(|&byte| byte == b'\n') {
                None => {
                    line.extend_from_slice(rest);
                    self.half = Some((begun, line));
                    return;
                }
                Some(end) => {
                    line.extend_from_slice(&rest[..end]);
                    rest = &rest[end + 1..];
                    let json = serde_json::from_slice(&line).unwrap_or(Value::Null);
                    self.lines.push(Line { begun, ended: place, at, bytes: line, json });
                }
            }
        }
    }

    /// Ids of the replies that the plugin had written before event number `at`, as far as they can be read.
    pub fn replied_before(&self, at: usize) -> BTreeSet<u64> {
        let text: Vec<u8> = self
            .said
            .iter()
            .take_while(|(place, _)| *place < at)
            .flat_map(|(_, bytes)| bytes.iter().copied())
            .collect();
        text.split(|&byte| byte == b'\n')
            .filter_map(|line| serde_json::from_slice::<Value>(line).ok())
            .filter_map(|json| json.get("id").and_then(Value::as_u64))
            .collect()
    }
}
