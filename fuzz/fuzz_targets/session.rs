//! Any sequence of events into the state machine of one plugin process, as a driver may bring them: bytes in any pieces, a
//! pipe that takes little, blocks or breaks, exits, signals, deadlines, calls. However they come, ids on the wire are
//! unique, the stop is bounded and in order, nothing follows the end, and every call ends exactly once.

#![no_main]

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use mu_core::os::{Exit, Mono, Signal};
use mu_core::session::{
    Action, Answer, Cause, Ending, Expected, GRACE, HANDSHAKE, NotSent, Request, Session, Status,
};
use mu_protocol::messages::method::Method;
use mu_protocol::outgoing;
use mu_protocol::schema::SCHEMA_DIGEST;
use serde_json::{Value, json};

/// The id of `initialize`.
const FIRST: u64 = 7;
/// More would only make runs slow.
const MOST_EVENTS: usize = 200;

/// What happens.
#[derive(Arbitrary, Debug)]
enum Event {
    /// So many milliseconds pass; the timer is looked at, or not yet.
    Time { ms: Span, looks: bool },
    /// The pipe takes at most so many bytes of the line on offer.
    Takes(u8),
    /// The pipe takes all lines on offer.
    TakesAll,
    /// The pipe takes nothing now.
    Blocks,
    /// Nobody reads the pipe any more.
    Breaks,
    /// The plugin writes to its stdout.
    Says(Saying),
    /// mu reads at most so many bytes of that.
    Reads(u8),
    /// mu reads all of it.
    ReadsAll,
    /// The plugin closes its stdout.
    Closes,
    /// The leader exits.
    Exits(bool),
    /// The group becomes empty, if the leader has exited.
    Empties,
    /// The driver does what it was told.
    Does,
    /// A verb calls.
    Calls { method: u8, ms: Span },
    /// A verb gives up a call.
    GivesUp(u8),
    /// mu stops the plugin.
    Stops(u8),
}

/// Spans about the bounds of the protocol.
#[derive(Arbitrary, Clone, Copy, Debug)]
enum Span {
    None,
    Short(u8),
    BeforeGrace,
    Grace,
    Handshake,
    Long(u16),
}

impl Span {
    fn ms(self) -> u64 {
        match self {
            Span::None => 0,
            Span::Short(ms) => u64::from(ms),
            Span::BeforeGrace => 4_999,
            Span::Grace => 5_000,
            Span::Handshake => 10_000,
            Span::Long(ms) => u64::from(ms),
        }
    }
}

/// What a plugin writes.
#[derive(Arbitrary, Debug)]
enum Saying {
    /// A declaration that loads, or one of another name, in answer to `initialize`.
    Declares { sound: bool },
    /// A reply to one of the requests so far, or to none.
    Replies { to: u8, what: What },
    /// A notification.
    Notifies,
    /// Any bytes.
    Bytes(Vec<u8>),
    /// Much without a line feed.
    Floods,
    /// The end of a line.
    LineFeed,
}

/// What a reply says.
#[derive(Arbitrary, Clone, Copy, Debug)]
enum What {
    Sound,
    Null,
    OffSchema,
    Error(u8),
}

const METHODS: [(Method, &str); 4] = [
    (Method::LinkExec, r#"{"exitCode":0,"stdout":"","stderr":"","partial":false}"#),
    (Method::LinkCheckSteps, "[]"),
    (Method::HostStatus, r#"{"state":"gone","reason":"r"}"#),
    (Method::JobStop, "null"),
];

fuzz_target!(|events: Vec<Event>| {
    let mut run = Run::new();
    for event in events.into_iter().take(MOST_EVENTS) {
        run.meets(event);
        run.holds();
    }
    run.ends();
});

/// A call that was made.
#[derive(Debug)]
struct Called {
    method: Method,
    deadline: Mono,
    ended: bool,
}

/// A session with its pipes and its clock, and what is known of it from outside.
struct Run {
    session: Session,
    now: Mono,
    start: Mono,
    /// What the plugin has written and mu not read.
    stdout: Vec<u8>,
    stdout_open: bool,
    flooded: usize,
    exited: bool,
    empty: bool,
    /// What the session asked for and the driver has not done.
    todo: Vec<Action>,
    seen: Vec<Action>,
    calls: BTreeMap<u64, Called>,
    /// Requests of which the pipe has at least one byte.
    begun: BTreeSet<u64>,
    /// Nobody reads the pipe.
    broken: bool,
    /// How much of the line on offer the pipe has.
    written: usize,
    cancelled: BTreeSet<u64>,
    said_shutdown: bool,
    /// When the stop began.
    stopped: Option<Mono>,
    ending: Option<Ending>,
}

impl Run {
    fn new() -> Run {
        let now = Mono(Duration::from_secs(100));
        let expected =
            Expected { name: "box".into(), needs: vec![], schema_digest: SCHEMA_DIGEST, recorded: None };
        Run {
            session: Session::start(now, FIRST, expected),
            now,
            start: now,
            stdout: Vec::new(),
            stdout_open: true,
            flooded: 0,
            exited: false,
            empty: false,
            todo: Vec::new(),
            seen: Vec::new(),
            calls: BTreeMap::new(),
            begun: BTreeSet::new(),
            broken: false,
            written: 0,
            cancelled: BTreeSet::new(),
            said_shutdown: false,
            stopped: None,
            ending: None,
        }
    }

    fn meets(&mut self, event: Event) {
        match event {
            Event::Time { ms, looks } => {
                self.now = self.now + Duration::from_millis(ms.ms());
                if looks {
                    self.looks();
                }
            }
            Event::Takes(count) => self.takes(usize::from(count)),
            Event::TakesAll => self.takes_all(),
            Event::Blocks if self.offers() => self.session.write_blocked(),
            Event::Breaks => {
                self.broken = true;
                self.takes(1);
            }
            Event::Says(saying) => self.says(saying),
            Event::Reads(count) => self.reads(usize::from(count)),
            Event::ReadsAll => self.reads(usize::MAX),
            Event::Closes if self.stdout_open => {
                self.reads(usize::MAX);
                self.stdout_open = false;
                self.session.stdout_closed(self.now);
            }
            Event::Exits(clean) if !self.exited => {
                self.exited = true;
                self.session.leader_exited(if clean { Exit::Status(0) } else { Exit::Signal(9) });
            }
            Event::Empties if self.exited && !self.empty => {
                self.empty = true;
                self.session.group_empty();
            }
            Event::Does => self.does(),
            Event::Calls { method, ms } => self.calls(method, ms),
            Event::GivesUp(which) => {
                if let Some(id) = self.id(which) {
                    self.session.cancel(self.now, id);
                }
            }
            Event::Stops(cause) => {
                let cause = if cause % 2 == 0 { Cause::Done } else { Cause::Signal(Signal::Terminate) };
                self.session.stop(self.now, cause);
            }
            Event::Blocks | Event::Closes | Event::Exits(_) | Event::Empties => {}
        }
    }

    /// TMO-04, HSK-08: once the timer was looked at, nothing that is due is still to come.
    fn looks(&mut self) {
        self.session.timeout(self.now);
        assert!(self.session.wake_at().is_none_or(|at| at > self.now), "a timer that is due for ever");
        self.hears_answers();
        match self.session.status() {
            Status::Handshaking => assert!(self.now < self.start + HANDSHAKE, "HSK-08"),
            Status::Ready(_) => {
                let overdue = |call: &Called| !call.ended && call.deadline <= self.now;
                assert!(!self.calls.values().any(overdue), "TMO-04: a call outlives its deadline");
            }
            Status::Stopping | Status::Ended(_) => {}
        }
    }

    /// Whether a line is offered to a pipe that somebody reads.
    fn offers(&self) -> bool {
        self.session.transmit().is_some() && !self.broken
    }

    /// The pipe takes a part of the line on offer, at least one byte; or fails for good.
    fn takes(&mut self, count: usize) {
        let Some(rest) = self.session.transmit() else { return };
        if self.broken {
            self.written = 0;
            return self.session.write_failed();
        }
        let count = count.clamp(1, rest.len());
        let is_whole = count == rest.len();
        if self.written == 0 {
            let line = rest.strip_suffix(b"\n").expect("an offer ends with its line");
            let message: Value = serde_json::from_slice(line).expect("mu writes JSON");
            self.begins(&message);
        }
        self.written = if is_whole { 0 } else { self.written + count };
        self.session.written(count);
    }

    fn takes_all(&mut self) {
        while self.session.transmit().is_some() {
            self.takes(usize::MAX);
        }
    }

    /// The first byte of a line goes into the pipe.
    fn begins(&mut self, message: &Value) {
        assert!(!self.said_shutdown, "PRC-07: something follows shutdown: {message}");
        match (message["id"].as_u64(), message["method"].as_str()) {
            (Some(id), Some(method)) => {
                assert_eq!(self.stopped, None, "PRC-10: a request during the stop: {message}");
                assert!(self.begun.insert(id), "CALL-03: id {id} is used twice");
                let wanted = self.calls.get(&id).map_or("initialize", |call| call.method.as_str());
                assert_eq!(method, wanted, "id {id}");
                assert!(id == FIRST || !self.calls[&id].ended, "a request that has ended: {message}");
            }
            (None, Some("$/cancel")) => {
                let id = message["params"]["id"].as_u64().expect("a cancel has an id");
                assert!(self.stopped.is_some(), "a cancel outside of the stop");
                assert!(self.begun.contains(&id), "TMO-08: a cancel of what was never written: {id}");
                assert!(self.cancelled.insert(id), "TMO-04: a second cancel of {id}");
                assert!(id == FIRST || !self.calls[&id].ended, "a cancel of what was answered: {id}");
            }
            (None, Some("shutdown")) => {
                assert!(self.stopped.is_some(), "a shutdown outside of the stop");
                self.said_shutdown = true;
                let asked = |id: &&u64| self.calls.get(id).is_some_and(|call| !call.ended);
                let left = self.begun.iter().filter(asked).find(|id| !self.cancelled.contains(id));
                assert_eq!(left, None, "PRC-07: a pending call is not cancelled");
            }
            _ => panic!("neither a request nor a notification of mu's: {message}"),
        }
    }

    fn says(&mut self, saying: Saying) {
        let text = match saying {
            Saying::Declares { sound } => {
                let name = if sound { "box" } else { "crate" };
                let link = json!({"fetch": true, "slots": "self", "remoteOnTimeout": "stopped", "quiescence": "provable",
                    "maxScriptBytes": 1000, "checks": []});
                let result = json!({"protocol": 1, "plugin": {"name": name, "version": "1"}, "instance": "i",
                    "schema": SCHEMA_DIGEST, "seams": {"link": link}});
                format!("{}\n", json!({"jsonrpc": "2.0", "id": FIRST, "result": result}))
            }
            Saying::Replies { to, what } => self.reply(to, what),
            Saying::Notifies => {
                let params = json!({"watchId": "w", "incarnation": "i"});
                format!("{}\n", json!({"jsonrpc": "2.0", "method": "watch/restarted", "params": params}))
            }
            Saying::Bytes(bytes) => return self.stdout.extend(bytes),
            Saying::Floods if self.flooded < 20 => {
                self.flooded += 1;
                "x".repeat(65_536)
            }
            Saying::Floods => String::new(),
            Saying::LineFeed => "\n".into(),
        };
        self.stdout.extend_from_slice(text.as_bytes());
    }

    fn reply(&self, to: u8, what: What) -> String {
        let id = self.id(to).unwrap_or(FIRST);
        let method = self.calls.get(&id).map_or(METHODS[0].0, |call| call.method);
        let sound = METHODS.iter().find(|(known, _)| *known == method).map_or("null", |(_, result)| result);
        let error = |kind: &str| format!("\"error\":{{\"code\":1,\"message\":\"m\",\"data\":{{{kind}}}}}");
        let outcome = match what {
            What::Sound => format!("\"result\":{sound}"),
            What::Null => "\"result\":null".into(),
            What::OffSchema => "\"result\":{\"more\":1}".into(),
            What::Error(kind) => match kind % 4 {
                0 => error("\"kind\":\"retryable\""),
                1 => error("\"kind\":\"unknown-outcome\""),
                2 => error("\"kind\":\"human\",\"remedy\":\"r\""),
                _ => error(""),
            },
        };
        format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},{outcome}}}\n")
    }

    /// One of the ids so far, or one that was never given out.
    fn id(&self, which: u8) -> Option<u64> {
        let ids: Vec<u64> = std::iter::once(FIRST).chain(self.calls.keys().copied()).collect();
        if which == u8::MAX { Some(1 << 40) } else { ids.get(usize::from(which) % ids.len()).copied() }
    }

    fn reads(&mut self, count: usize) {
        if self.stdout_open && !self.stdout.is_empty() {
            let count = count.clamp(1, self.stdout.len());
            let bytes: Vec<u8> = self.stdout.drain(..count).collect();
            self.session.stdout(self.now, &bytes);
        }
    }

    fn calls(&mut self, method: u8, ms: Span) {
        let id = FIRST + 1 + self.calls.len() as u64;
        let (method, _) = METHODS[usize::from(method) % METHODS.len()];
        let line = outgoing::request(id, method.as_str(), "{}").expect("it is short");
        let deadline = self.now + Duration::from_millis(ms.ms());
        self.calls.insert(id, Called { method, deadline, ended: false });
        self.session.call(id, Request { method, line, deadline });
    }

    /// The driver does what it was told.
    fn does(&mut self) {
        for action in std::mem::take(&mut self.todo) {
            if action == Action::Drain {
                self.reads(usize::MAX);
                self.session.drained(self.now);
            }
        }
    }

    fn hears_answers(&mut self) {
        let answers: Vec<(u64, Answer)> = self.session.answers().collect();
        for (id, answer) in answers {
            let call = self.calls.get_mut(&id).unwrap_or_else(|| panic!("an answer to no call: {id}"));
            assert!(!std::mem::replace(&mut call.ended, true), "call {id} ends twice: {answer:?}");
            match answer {
                Answer::Result(result) => assert_eq!(result.method(), call.method, "call {id}"),
                Answer::Error(_) => {}
                Answer::NotSent(why) => {
                    assert!(!self.begun.contains(&id), "A-73: {id} was sent, and is told not to be");
                    assert!(self.ending.is_none() || why == NotSent::Gone, "{id}: {why:?}");
                    continue;
                }
            }
            assert!(self.begun.contains(&id), "TRN-16: {id} was answered before it was sent");
            assert_eq!(self.ending, None, "an answer after the end");
        }
    }

    /// What is true after every event.
    fn holds(&mut self) {
        self.hears_answers();
        while let Some(action) = self.session.action() {
            assert_eq!(self.ending, None, "{action:?} after the end");
            assert!(!self.seen.contains(&Action::Reap), "{action:?} after the reaping");
            match action {
                Action::CloseStdin => assert!(!self.seen.contains(&action), "stdin is closed twice"),
                Action::KillGroup => {
                    let over = self.stopped.is_some_and(|at| self.now >= at + GRACE);
                    assert!(self.exited || over, "PRC-07: killed within the grace");
                }
                Action::Reap => assert!(self.exited && self.empty, "PRC-16: reaped too early"),
                Action::Drain => assert!(self.exited, "drained before the leader's exit"),
            }
            self.seen.push(action);
            self.todo.push(action);
        }
        let closed = self.seen.contains(&Action::CloseStdin);
        assert!(!closed || self.session.transmit().is_none(), "something is written to a closed stdin");
        match self.session.status() {
            Status::Handshaking | Status::Ready(_) => {
                assert_eq!(self.stopped, None, "a stop that was begun is taken back");
                let ready = matches!(self.session.status(), Status::Ready(_));
                assert!(!ready || self.begun.contains(&FIRST), "TRN-16: ready before it was asked");
                assert!(
                    self.session.wake_at().is_some() || self.nothing_pending(),
                    "nobody looks at a deadline"
                );
            }
            Status::Stopping => {
                let began = *self.stopped.get_or_insert(self.now);
                // PRC-07, PRC-08: one grace, whatever comes meanwhile.
                let killed = self.seen.contains(&Action::KillGroup);
                let due = if killed { self.session.wake_at() } else { Some(began + GRACE) };
                assert_eq!(self.session.wake_at(), due, "the grace");
            }
            Status::Ended(ending) => {
                assert!(closed && self.seen.contains(&Action::Reap), "ended without an end");
                assert_eq!(self.session.wake_at(), None, "a timer after the end");
                let first = self.ending.get_or_insert_with(|| ending.clone());
                assert_eq!(first, ending, "the ending changes");
            }
        }
    }

    fn nothing_pending(&self) -> bool {
        self.calls.values().all(|call| call.ended)
    }

    /// Whatever has come: a stop ends after one grace, and all calls with it.
    fn ends(&mut self) {
        self.session.stop(self.now, Cause::Done);
        self.holds();
        if self.ending.is_none() {
            if let Some(at) = self.session.wake_at() {
                self.now = self.now.max(at);
            }
            self.looks();
            self.holds();
            assert!(self.seen.contains(&Action::KillGroup), "PRC-07: nobody kills the group");
            self.meets(Event::Exits(false));
            self.holds();
            self.does();
            self.holds();
            self.meets(Event::Empties);
            self.holds();
        }
        let ending = self.ending.clone().expect("PRC-16: it ends when its group is empty");
        for id in &ending.unanswered {
            assert!(self.begun.contains(id), "TMO-08: {id} was never sent, and is told to be unanswered");
            let call = self.calls.get_mut(id);
            let twice = call.is_some_and(|call| std::mem::replace(&mut call.ended, true));
            assert!(!twice, "call {id} ends twice");
        }
        assert!(self.nothing_pending(), "a call without an end: {:?}", self.calls);
        self.stays_ended();
    }

    /// Nothing follows the end.
    fn stays_ended(&mut self) {
        for event in [
            Event::Says(Saying::Declares { sound: true }),
            Event::ReadsAll,
            Event::Calls { method: 0, ms: Span::Grace },
            Event::GivesUp(0),
            Event::Stops(1),
            Event::Time { ms: Span::Handshake, looks: true },
            Event::Closes,
        ] {
            self.meets(event);
            self.holds();
            assert_eq!(self.session.transmit(), None, "a line after the end");
        }
        assert!(self.nothing_pending(), "a call after the end is not sent");
    }
}
