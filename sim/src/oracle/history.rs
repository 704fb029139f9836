//! The events of a run, read once: who lived when and in which group, and every line on every plugin's pipes.

use std::collections::{BTreeMap, BTreeSet};

use mu_core::os::{Exit, Pid};
use serde_json::Value;

use super::Ran;
use super::shape;
use super::speech::{Said, Saying, Speech};
use crate::kernel::WALL_START_MS;
use crate::trace::{Effect, Event, OUTSIDE, PipeId, PipeRef, Std, Target, What};

/// Virtual nanoseconds.
pub type Ns = u64;

const NANOS_PER_MS: i64 = 1_000_000;
/// The wall clock when virtual time begins.
const WALL_START: i64 = WALL_START_MS * NANOS_PER_MS;

/// How much of a plugin's stderr is kept.
const STDERR_KEPT: usize = 4096;

/// A process, from its start to its end.
#[derive(Clone, Debug)]
pub struct Life {
    /// Its pid, which another process may have had before.
    pub pid: Pid,
    /// Where in the trace it started.
    pub born: usize,
    /// Where it ended, when, and how.
    pub died: Option<(usize, Ns, Exit)>,
    /// The groups it was in, with the place and time from which on.
    pub groups: Vec<(usize, Ns, Pid)>,
    /// Spans of time in which it was stopped.
    stopped: Vec<(Ns, Ns)>,
    /// Which invocation of mu it is, from 0, if it is one. Two can have the same pid, one after the other.
    pub mu: Option<usize>,
    /// Where a scripted panic took place in it.
    pub crashed: Option<usize>,
    /// Terminating signals that it was told of: where, when, which.
    pub signals: Vec<(usize, Ns, i32)>,
}

impl Life {
    /// Whether it lived just before event number `at`.
    pub fn lives_at(&self, at: usize) -> bool {
        self.born < at && self.died.is_none_or(|(died, _, _)| died >= at)
    }

    /// Its group just before event number `at`.
    pub fn group_at(&self, at: usize) -> Pid {
        let before = self.groups.iter().take_while(|(from, _, _)| *from < at).last();
        before.unwrap_or(&self.groups[0]).2
    }

    /// When it ended or left `group`, in which it is at event number `at`; `never` when it did neither.
    pub fn in_group_until(&self, group: Pid, at: usize, never: Ns) -> Ns {
        let left = self.groups.iter().find(|(from, _, next)| *from >= at && *next != group);
        self.end(never).min(left.map_or(never, |(_, when, _)| *when))
    }

    /// When it ended; `never` when it did not.
    pub fn end(&self, never: Ns) -> Ns {
        self.died.map_or(never, |(_, at, _)| at)
    }

    /// How much of the time between two moments it was not stopped.
    pub fn ran(&self, from: Ns, to: Ns) -> Ns {
        let stopped =
            self.stopped.iter().map(|(begin, end)| (*end).min(to).saturating_sub((*begin).max(from)));
        to.saturating_sub(from) - stopped.sum::<Ns>()
    }
}

/// One line that mu wrote to a plugin.
#[derive(Clone, Debug)]
pub struct Line {
    /// Place in the trace of its first byte.
    pub begun: usize,
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

/// A line that mu began and did not end.
#[derive(Clone, Debug)]
struct Half {
    begun: usize,
    at: Ns,
    bytes: Vec<u8>,
}

/// The conversation of one mu with one plugin process.
#[derive(Clone, Debug)]
pub struct Wire {
    /// The mu, as a place in [`History::lives`].
    pub mu: usize,
    /// The plugin's leader, as a place in [`History::lives`].
    pub plugin: usize,
    /// The leader's pid, which is the number of its group.
    pub group: Pid,
    /// Basename of its argv0 without `mu-plugin-`.
    pub name: String,
    /// When it was started.
    pub since: Ns,
    /// Whole lines that mu wrote.
    pub lines: Vec<Line>,
    half: Option<Half>,
    /// Bytes in the pipe that the plugin had not read when mu closed it.
    pub unread_at_close: u64,
    /// Place and time of mu's close of the plugin's stdin.
    pub closed: Option<(usize, Ns)>,
    /// Place of the first write that failed because nobody could read.
    pub broken: Option<usize>,
    /// What the plugin wrote to its stdout.
    pub speech: Speech,
    /// Place and time at which mu read the end of that.
    pub eof: Option<(usize, Ns)>,
    /// The beginning of its stderr.
    pub stderr: Vec<u8>,
    /// Signals that mu sent to the plugin: place, time, number.
    pub signals: Vec<(usize, Ns, i32)>,
    /// Place of the reaping.
    pub reaped: Option<usize>,
}

impl Wire {
    /// Whether mu had read a reply to request `id` before event number `at`.
    ///
    /// `certain`: it was a sound one, and nothing that may have broken the plugin came before it.
    pub fn answered(&self, id: u64, at: usize, certain: bool) -> bool {
        let mut others = BTreeSet::new();
        for said in self.speech.said() {
            match said.what {
                Saying::Reply { id: its, .. } if its == id && (!certain || self.is_sound(said, its)) => {
                    return said.read.is_some_and(|(place, _)| place < at);
                }
                // Said once more it breaks the plugin (TRN-16).
                Saying::Reply { id: its, .. } if self.is_sound(said, its) && others.insert(its) => {}
                _ if certain => return false,
                _ => {}
            }
        }
        false
    }

    /// Whether a reply may answer the request of this id. Of that to `initialize` the load rules judge what it says.
    pub(super) fn is_sound(&self, said: &Said, id: u64) -> bool {
        let asked = self.lines.iter().find(|line| line.request_id() == Some(id)).and_then(Line::method);
        asked
            .zip(said.outcome.as_ref())
            .is_some_and(|(method, outcome)| method == "initialize" || shape::fits(method, outcome))
    }

    /// Where and when the stop begins, as the plugin sees it: the first cancel, `shutdown`, or the end of its stdin.
    pub fn stop(&self) -> Option<(usize, Ns)> {
        let line = self.lines.iter().find(|line| matches!(line.method(), Some("$/cancel" | "shutdown")));
        line.map(|line| (line.begun, line.at)).into_iter().chain(self.closed).min()
    }

    /// What mu began to write and did not end, with the time of its first byte.
    pub fn half(&self) -> Option<(Ns, &[u8])> {
        self.half.as_ref().map(|half| (half.at, &half.bytes[..]))
    }

    /// Whether mu began a line and did not end it.
    pub fn ends_in_half_a_line(&self) -> bool {
        self.half.is_some()
    }
}

/// Everything the oracles look at that is in the trace.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// All processes, in the order of their start.
    pub lives: Vec<Life>,
    /// One for each plugin process of each mu, in the order of their start.
    pub wires: Vec<Wire>,
    /// Until when the machine was watched.
    pub end: Ns,
    /// How far the wall clock is ahead of virtual time, in nanoseconds, with the place from which on.
    walls: Vec<(usize, i64)>,
    /// Who was ever in a group.
    groups: BTreeMap<Pid, Vec<usize>>,
}

impl History {
    /// Reads a trace, in time linear in its size. `mus` are the processes that run mu; the machine was watched up to
    /// `now`.
    pub fn read(events: &[Event], mus: &BTreeSet<Pid>, now: Ns) -> History {
        let end = events.last().map_or(now, |event| event.at.max(now));
        let mut reader = Reader { history: History { end, ..History::default() }, ..Reader::default() };
        for (place, event) in events.iter().enumerate() {
            reader.event(place, event, mus);
        }
        reader.history
    }

    /// The processes that are in `group` just before event number `at`.
    pub fn members(&self, group: Pid, at: usize) -> impl Iterator<Item = &Life> {
        let ever = self.groups.get(&group).into_iter().flatten().map(|index| &self.lives[*index]);
        ever.filter(move |life| life.lives_at(at) && life.group_at(at) == group)
    }

    /// The mu of a wire.
    pub fn mu(&self, wire: &Wire) -> &Life {
        &self.lives[wire.mu]
    }

    /// The invocation of a wire, of all in the order of their start.
    pub fn ran<'a>(&self, wire: &Wire, all: &'a [Ran]) -> Option<&'a Ran> {
        all.get(self.mu(wire).mu?).filter(|ran| ran.pid == self.mu(wire).pid)
    }

    /// The leader of a wire.
    pub fn leader(&self, wire: &Wire) -> &Life {
        &self.lives[wire.plugin]
    }

    /// The members of the group of a wire just before event number `at`. Once another process has got the number of the
    /// leader, that group is gone, whoever leads one with the number now.
    pub fn left<'a>(&'a self, wire: &'a Wire, at: usize) -> impl Iterator<Item = &'a Life> {
        let leader = self.leader(wire);
        let later = self.lives.iter().filter(|life| life.pid == wire.group && life.born > leader.born);
        let until = later.map(|life| life.born).min().unwrap_or(usize::MAX);
        let joined = move |life: &&Life| {
            life.groups
                .iter()
                .any(|(from, _, group)| *group == wire.group && *from < until && *from >= leader.born)
        };
        self.members(wire.group, at).filter(joined)
    }

    /// The conversation as a report names it.
    pub fn name(&self, wire: &Wire) -> String {
        format!("{}[{}] of mu[{}]", wire.name, wire.group, self.mu(wire).pid)
    }

    /// What the wall clock at least showed at `at`, in milliseconds since 1970, by any of the settings that it had between
    /// the events number `from` and `to`.
    pub fn least_wall(&self, from: usize, to: usize, at: Ns) -> i64 {
        let before = self.walls.iter().rev().find(|(place, _)| *place <= from).map(|(_, ahead)| *ahead);
        let since =
            self.walls.iter().filter(|(place, _)| (from..to).contains(place)).map(|(_, ahead)| *ahead);
        let least = since.fold(before.unwrap_or(WALL_START), i64::min);
        (least + at as i64).div_euclid(NANOS_PER_MS)
    }

    /// When mu could do nothing about this plugin any more: it was gone itself, or the plugin was, or the watch ended.
    pub fn over(&self, wire: &Wire) -> Ns {
        self.mu(wire).end(self.end).min(self.leader(wire).end(self.end))
    }
}

#[derive(Default)]
struct Reader {
    history: History,
    /// The latest process with a pid.
    living: BTreeMap<Pid, usize>,
    /// The latest plugin with a pid.
    wires: BTreeMap<Pid, usize>,
    /// Whose pipe it is.
    pipes: BTreeMap<PipeId, usize>,
    /// Bytes written to, and read from, a plugin's stdin.
    stdin: BTreeMap<PipeId, (u64, u64)>,
    /// Invocations of mu so far.
    mus: usize,
}

impl Reader {
    fn event(&mut self, place: usize, event: &Event, mus: &BTreeSet<Pid>) {
        let (pid, at) = (event.pid, event.at);
        match &event.what {
            What::Spawn { child, argv, group, .. } => {
                let argv0 = argv.first().map(|argv0| argv0.to_string_lossy()).unwrap_or_default();
                let is_mu = pid == OUTSIDE && mus.contains(child);
                self.born(place, at, *child, *group, is_mu);
                let base = argv0.rsplit('/').next().unwrap_or_default();
                if let (Some(mu), Some(name)) = (self.mu(pid), base.strip_prefix("mu-plugin-")) {
                    self.wires.insert(*child, self.history.wires.len());
                    self.history.wires.push(Wire::new(mu, self.living[child], *child, name, at));
                }
            }
            What::WallStep(to) => self.history.walls.push((place, to * NANOS_PER_MS - at as i64)),
            What::Suspend(span) => {
                let ahead = self.history.walls.last().map_or(WALL_START, |(_, ahead)| *ahead);
                self.history.walls.push((place, ahead + *span as i64));
            }
            What::PowerOff => {
                let living = self.history.lives.iter_mut().filter(|life| life.died.is_none());
                living.for_each(|life| life.died = Some((place, at, Exit::Signal(9))));
            }
            What::Exit(exit) => self.life(pid, |life| life.died = Some((place, at, *exit))),
            What::NewSession => self.join(pid, place, at, pid),
            What::NewGroup(group) => self.join(pid, place, at, *group),
            What::Delivered { number: number @ (1 | 2 | 15), effect: Effect::Handled } => {
                self.life(pid, |life| life.signals.push((place, at, *number)));
            }
            What::Delivered { effect: Effect::Stops, .. } => {
                self.life(pid, |life| life.stopped.push((at, Ns::MAX)));
            }
            What::Delivered { effect: Effect::Continues, .. } => {
                self.life(pid, |life| {
                    life.stopped.last_mut().into_iter().for_each(|(_, end)| *end = at.min(*end))
                });
            }
            What::Fault(text) if text.starts_with("panic") => {
                self.life(pid, |life| life.crashed = life.crashed.or(Some(place)));
            }
            What::Signal { to: Target::Group(to) | Target::Process(to), number } if *number != 0 => {
                self.own(pid, *to, |wire| wire.signals.push((place, at, *number)));
            }
            What::Reap { child } => self.own(pid, *child, |wire| wire.reaped = Some(place)),
            What::Write { pipe, bytes } => self.write(place, at, pid, *pipe, bytes),
            What::Read { pipe, offset, count } => match self.stream(*pipe) {
                Some((_, Std::In)) => self.stdin.entry(pipe.id).or_default().1 = offset + count,
                Some((wire, Std::Out)) if self.is_its_mu(wire, pid) => {
                    self.history.wires[wire].speech.read(offset + count, place, at);
                }
                _ => {}
            },
            What::Eof(pipe) => {
                if let Some((wire, Std::Out)) = self.stream(*pipe)
                    && self.is_its_mu(wire, pid)
                {
                    self.history.wires[wire].eof.get_or_insert((place, at));
                }
            }
            What::Broken(pipe) => {
                if let Some((wire, Std::In)) = self.stream(*pipe) {
                    self.history.wires[wire].broken.get_or_insert(place);
                }
            }
            What::CloseWrite(pipe) => {
                if let Some((wire, Std::In)) = self.stream(*pipe)
                    && self.is_its_mu(wire, pid)
                {
                    let (written, read) = self.stdin.get(&pipe.id).copied().unwrap_or_default();
                    let wire = &mut self.history.wires[wire];
                    wire.closed = Some((place, at));
                    wire.unread_at_close = written.saturating_sub(read);
                }
            }
            _ => {}
        }
    }

    fn born(&mut self, place: usize, at: Ns, pid: Pid, group: Pid, is_mu: bool) {
        let index = self.history.lives.len();
        let mu = is_mu.then_some(self.mus);
        self.mus += usize::from(is_mu);
        self.living.insert(pid, index);
        self.history.groups.entry(group).or_default().push(index);
        self.history.lives.push(Life {
            pid,
            born: place,
            died: None,
            groups: vec![(place, at, group)],
            stopped: Vec::new(),
            mu,
            crashed: None,
            signals: Vec::new(),
        });
    }

    fn join(&mut self, pid: Pid, place: usize, at: Ns, group: Pid) {
        self.life(pid, |life| life.groups.push((place, at, group)));
        if let Some(index) = self.living.get(&pid) {
            self.history.groups.entry(group).or_default().push(*index);
        }
    }

    fn write(&mut self, place: usize, at: Ns, pid: Pid, pipe: PipeRef, bytes: &[u8]) {
        match self.stream(pipe) {
            Some((wire, Std::In)) => {
                self.stdin.entry(pipe.id).or_default().0 += bytes.len() as u64;
                if self.is_its_mu(wire, pid) {
                    self.history.wires[wire].heard(place, at, bytes);
                }
            }
            Some((wire, Std::Out)) => self.history.wires[wire].speech.write(bytes),
            Some((wire, Std::Err)) => {
                let stderr = &mut self.history.wires[wire].stderr;
                stderr.extend_from_slice(&bytes[..bytes.len().min(STDERR_KEPT - stderr.len())]);
            }
            None => {}
        }
    }

    /// The place of the process, if it is a mu.
    fn mu(&self, pid: Pid) -> Option<usize> {
        self.living.get(&pid).copied().filter(|index| self.history.lives[*index].mu.is_some())
    }

    fn life(&mut self, pid: Pid, f: impl FnOnce(&mut Life)) {
        if let Some(index) = self.living.get(&pid) {
            f(&mut self.history.lives[*index]);
        }
    }

    /// The plugin that leads this group, if it is one of this mu.
    fn own(&mut self, mu: Pid, group: Pid, f: impl FnOnce(&mut Wire)) {
        if let Some(wire) = self.wires.get(&group).copied()
            && self.is_its_mu(wire, mu)
        {
            f(&mut self.history.wires[wire]);
        }
    }

    fn is_its_mu(&self, wire: usize, pid: Pid) -> bool {
        self.living.get(&pid) == Some(&self.history.wires[wire].mu)
    }

    /// Which plugin's stream a pipe is. The number of the pipe decides once it was seen: its plugin's pid may pass on.
    fn stream(&mut self, pipe: PipeRef) -> Option<(usize, Std)> {
        let role = pipe.role?;
        let wire = match self.pipes.get(&pipe.id) {
            Some(wire) => *wire,
            None => *self.pipes.entry(pipe.id).or_insert(*self.wires.get(&role.of)?),
        };
        Some((wire, role.stream))
    }
}

impl Wire {
    fn new(mu: usize, plugin: usize, group: Pid, name: &str, since: Ns) -> Wire {
        Wire {
            mu,
            plugin,
            group,
            name: name.to_owned(),
            since,
            lines: Vec::new(),
            half: None,
            unread_at_close: 0,
            closed: None,
            broken: None,
            speech: Speech::default(),
            eof: None,
            stderr: Vec::new(),
            signals: Vec::new(),
            reaped: None,
        }
    }

    fn heard(&mut self, place: usize, at: Ns, bytes: &[u8]) {
        let mut rest = bytes;
        while !rest.is_empty() {
            let half = self.half.take().unwrap_or(Half { begun: place, at, bytes: Vec::new() });
            let Half { begun, at, mut bytes } = half;
            match memchr::memchr(b'\n', rest) {
                None => {
                    bytes.extend_from_slice(rest);
                    self.half = Some(Half { begun, at, bytes });
                    return;
                }
                Some(end) => {
                    bytes.extend_from_slice(&rest[..end]);
                    rest = &rest[end + 1..];
                    let json = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
                    self.lines.push(Line { begun, at, bytes, json });
                }
            }
        }
    }
}
