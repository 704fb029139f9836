//! The course of one open effect: a row of the journal as it may stand there, then one attempt after another to resolve it,
//! while processes live and die, pids are given away, clocks run and jump, the machine starts anew, the plugin declares
//! something else, and answers come as bytes of a line.
//!
//! No path leads from somebody who lives, or from another instance, to anything asked or sent. A repeat never leaves its
//! window by the true time, an effect is never taken for undone that may still be on its way, and each answer means what the
//! page of rules says.

#![no_main]

use std::cell::OnceCell;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use mu_core::call_error::{CallError, StartError, Unanswered};
use mu_core::invocation::Invocation;
use mu_core::journal::moment::{MARGIN, Moment, Window};
use mu_core::journal::proof::ProvenDead;
use mu_core::journal::reading::{self, Asked, Expected, Question, Reading, WAITED_OUT};
use mu_core::journal::rules::{self, Step};
use mu_core::os::{BootTime, EpochMs, Exit, Pid, ProcessId, Signal};
use mu_core::session::{Cause, Ending, NotSent, StderrLine};
use mu_core::store::effects::{self, Effect, Sent};
use mu_core::store::{Missing, Store, StoreError};
use mu_fuzz::machine::Machine;
use mu_fuzz::{json, schema};
use mu_protocol::declaration::Declaration;
use mu_protocol::envelope::{self, Body, Incoming};
use mu_protocol::messages::error::ErrorKind;
use mu_protocol::messages::method::{AnyResult, Method, parse_result};
use mu_protocol::messages::values::{EpochMillis, Instance, Key};
use mu_protocol::objects::from_json;
use mu_protocol::outgoing::TooLong;
use mu_protocol::schema::SCHEMA_DIGEST;
use rusqlite::types::Value as Cell;
use serde_json::{Value, json};

/// The key of the effect.
const KEY: &str = "k";
/// More would only make runs slow.
const MOST_ATTEMPTS: usize = 12;

#[derive(Arbitrary, Debug)]
enum Input {
    /// It is written into a database and read again.
    Row { born: Born, damage: Option<(u8, Damage)> },
    /// It is to be resolved.
    Course { born: Born, attempts: Vec<Attempt> },
}

/// How the effect stands in the journal.
#[derive(Arbitrary, Debug)]
struct Born {
    method: u8,
    window: Option<Span>,
    in_flight: Option<Span>,
    sends: u8,
    resolver: bool,
    superseded: bool,
}

/// What somebody wrote into one column.
#[derive(Arbitrary, Debug)]
enum Damage {
    Null,
    Number(i64),
    Text(String),
    Word(u8),
}

#[derive(Arbitrary, Debug)]
struct Attempt {
    /// Which of the parties live, a bit for each.
    living: u8,
    /// Whose pid was given to another process, a bit for each.
    recycled: u8,
    passes: Span,
    drift: Drift,
    reboot: bool,
    declared: Declared,
    /// How long it takes from the decision to the write.
    delay: Span,
    answer: Answer,
    /// mu dies right after the answer.
    dies: bool,
}

/// How much more than is true the wall clock shows to have passed, in seconds.
#[derive(Arbitrary, Clone, Copy, Debug)]
enum Drift {
    None,
    Small(i8),
    Large(i16),
}

/// What the plugin declares at the time.
#[derive(Arbitrary, Debug)]
struct Declared {
    other_instance: bool,
    lookup: bool,
    fence: bool,
    dedupe: Option<Span>,
    in_flight: Option<Span>,
    handle: u8,
    at_start: bool,
    receipt: bool,
    /// Seams that it does not have, one value in so many.
    without: u8,
}

/// Spans about the bounds of the rules.
#[derive(Arbitrary, Clone, Copy, Debug)]
enum Span {
    None,
    Ms(u16),
    Window,
    JustTooLate,
    WaitedOut,
    Minute,
    Margin,
    AboutMargin(i8),
    Hour,
    Seconds(u8),
    Days(u8),
}

impl Span {
    fn ms(self) -> u64 {
        match self {
            Span::None => 0,
            Span::Ms(ms) => ms.into(),
            Span::Window => 55_000,
            Span::JustTooLate => 55_001,
            Span::WaitedOut => 10_000,
            Span::Minute => 60_000,
            Span::Margin => 600_000,
            Span::AboutMargin(seconds) => 600_000_u64.saturating_add_signed(i64::from(seconds) * 1_000),
            Span::Hour => 3_600_000,
            Span::Seconds(seconds) => u64::from(seconds) * 1_000,
            Span::Days(days) => u64::from(days) * 86_400_000,
        }
    }
}

/// What comes of asking.
#[derive(Arbitrary, Debug)]
enum Answer {
    /// A line of the plugin's.
    Line(Said),
    /// None: the plugin exits.
    None,
    /// The request could not be written.
    NotSent,
    /// It did not fit into a line.
    TooLong,
    /// The plugin could not be started.
    NoStart,
}

/// What the outcome in a line says.
#[derive(Arbitrary, Debug)]
enum Said {
    Sound { handle: bool, view: bool, runs: Option<u8>, channel: bool, msg_id: Option<bool>, ack: u8 },
    Lookup(u8),
    Receipt { which: u8, same: bool },
    Error(u8),
    Text(String),
}

fuzz_target!(|input: Input| match input {
    Input::Row { born, damage: None } => {
        let effect = born.effect();
        assert_eq!(through_the_store(&effect, None), Ok(Some(effect)), "a row comes back");
    }
    Input::Row { born, damage } => {
        // It is a row that mu could have written, or it is refused.
        if let Ok(Some(read)) = through_the_store(&born.effect(), damage) {
            assert!(read.method.is_effect());
        }
    }
    Input::Course { born, attempts } => {
        let mut course = Course::new(born.effect());
        for attempt in attempts.into_iter().take(MOST_ATTEMPTS) {
            if course.meets(attempt) {
                break;
            }
        }
    }
});

const EFFECTS: [Method; 10] = [
    Method::HostAcquire,
    Method::JobStart,
    Method::HostRelease,
    Method::JobStop,
    Method::ChannelSend,
    Method::ChannelFresh,
    Method::ChannelInterrupt,
    Method::ChannelCommand,
    Method::ChannelAbort,
    Method::ChannelAnswer,
];

fn process(pid: i32, started: u64) -> ProcessId {
    ProcessId { pid: Pid(pid), started, boot: "boot-0".into() }
}

fn params(method: Method) -> String {
    let host = json!({"name": "box"});
    let job = json!({"kind": "k", "key": "j"});
    let agent = json!({"workstream": "w", "name": "a", "incarnation": 1});
    let target = match method.as_str().split_once('.') {
        Some(("host", _)) => json!({"host": host}),
        Some(("job", _)) => json!({"job": job, "host": host}),
        _ => json!({"agent": agent, "job": job, "host": host}),
    };
    let mut params = json!({"target": target});
    let members = match method {
        Method::HostAcquire => json!({"key": KEY, "params": {}}),
        Method::ChannelSend => {
            json!({"text": "t", "msgId": "m1", "mode": "followUp", "force": false, "firstPrompt": false})
        }
        Method::ChannelFresh => json!({"text": "t", "msgId": "m1", "force": false}),
        Method::ChannelInterrupt => json!({"text": "t", "msgId": "m1", "timeoutMs": 1}),
        _ => json!({"key": KEY}),
    };
    for (name, value) in members.as_object().into_iter().flatten() {
        params[name] = value.clone();
    }
    params.to_string()
}

impl Born {
    fn effect(&self) -> Effect {
        let method = EFFECTS[usize::from(self.method) % EFFECTS.len()];
        let boot = BootTime { boot: "boot-0".into(), since: Duration::from_secs(1_000) };
        let begun = Moment { wall: EpochMs(1_000_000_000), boot };
        let sent = |n: u8| Sent {
            request_id: u64::from(n) + 1,
            deadline: EpochMillis::new(1_000_020_000).expect("it is small"),
            group: process(30 + i32::from(n), 3),
            at: begun.wall,
        };
        Effect {
            key: Key::new(KEY).expect("it is not empty"),
            method,
            plugin: "cloud".parse().expect("a name"),
            instance: Instance::new("here").expect("it is short"),
            host: "box".parse().expect("a name"),
            params: params(method),
            writer: process(10, 1),
            resolver: self.resolver.then(|| process(20, 2)),
            quiet: None,
            window_ms: self.window.map(Span::ms),
            in_flight_ms: self.in_flight.map(Span::ms),
            superseded: self.superseded,
            note: None,
            sends: (0..=self.sends % 3).map(sent).collect(),
            begun,
        }
    }
}

thread_local! {
    static STORE: OnceCell<Store<Machine>> = const { OnceCell::new() };
}

/// What a future gives that waits for nothing.
fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("nothing here waits"),
    }
}

/// Writes an effect into a database and reads it again, when somebody has changed a column meanwhile.
fn through_the_store(effect: &Effect, damage: Option<(u8, Damage)>) -> Result<Option<Effect>, StoreError> {
    const COLUMNS: [&str; 22] = [
        "key",
        "method",
        "plugin",
        "instance",
        "host",
        "params",
        "params_sha256",
        "writer_pid",
        "writer_started",
        "writer_boot",
        "resolver_pid",
        "resolver_started",
        "resolver_boot",
        "begun_at",
        "begun_boot",
        "begun_boottime_ms",
        "quiet_at",
        "quiet_boot",
        "quiet_boottime_ms",
        "window_ms",
        "in_flight_ms",
        "superseded",
    ];
    const WORDS: [&str; 6] = ["", "host.status", "job.start", "Box", "{}", "\u{0}"];
    let open = || {
        let invocation = Invocation::new(Machine::new());
        let store = now(Store::open(&invocation, Missing::Empty)).expect("a database in memory");
        let lax = "PRAGMA foreign_keys = OFF; PRAGMA ignore_check_constraints = ON";
        now(store.read(|tx| tx.sql(tx.db.execute_batch(lax)))).expect("two settings");
        store
    };
    STORE.with(|store| {
        let store = store.get_or_init(open);
        let written = store.write(|tx| {
            effects::open(tx, effect)?;
            if let Some(resolver) = &effect.resolver {
                effects::claim(tx, &effect.key, resolver)?;
            }
            let superseded = "UPDATE effects SET superseded = ?1";
            tx.sql(tx.db.execute(superseded, [effect.superseded]))?;
            if let Some((column, damage)) = damage {
                let column = COLUMNS[usize::from(column) % COLUMNS.len()];
                let cell = match damage {
                    Damage::Null => Cell::Null,
                    Damage::Number(number) => Cell::Integer(number),
                    Damage::Text(text) => Cell::Text(text),
                    Damage::Word(word) => Cell::Text(WORDS[usize::from(word) % WORDS.len()].into()),
                };
                // What the table's types do not take stays as it was.
                let _ = tx.db.execute(&format!("UPDATE effects SET {column} = ?1"), [cell]);
            }
            Ok::<_, StoreError>(())
        });
        now(written).expect("the row is written");
        let key =
            now(store.read(|tx| tx.sql(tx.db.query_row("SELECT key FROM effects", [], |row| row.get(0)))));
        let key: String = key.expect("there is a row");
        let read = now(store.read(|tx| effects::find(tx, &key)));
        let clear = "DELETE FROM effects; DELETE FROM effect_sends";
        now(store.write(|tx| tx.sql(tx.db.execute_batch(clear)))).expect("the rows go");
        read
    })
}

/// An open effect, the machine, and the truth about both.
struct Course {
    machine: Machine,
    effect: Effect,
    /// The true time since the intent, in milliseconds.
    truth: u64,
    /// When a party was last known to live, or something was sent.
    lived: u64,
    /// By how much the wall clock is off by now, and was at most, in milliseconds.
    off: i64,
    most_off: u64,
    boots: u32,
    /// The next pid of a mu or a plugin.
    next: i32,
}

impl Course {
    fn new(effect: Effect) -> Course {
        let machine = Machine::new();
        machine.change(|world| {
            world.wall = effect.begun.wall;
            world.boot = effect.begun.boot.clone();
        });
        Course { machine, effect, truth: 0, lived: 0, off: 0, most_off: 0, boots: 0, next: 1_000 }
    }

    /// Time passes.
    fn pass(&mut self, ms: u64) {
        self.truth += ms;
        self.machine.change(|world| {
            world.wall.0 += ms.cast_signed();
            world.boot.since += Duration::from_millis(ms);
        });
    }

    /// Whether the clocks are those of one start of the machine and were never set.
    fn clocks_are_sound(&self) -> bool {
        self.boots == 0 && self.most_off == 0
    }

    /// Whether the clocks are off by no more than they are trusted to be.
    fn clocks_are_trusted(&self) -> bool {
        self.most_off <= MARGIN.as_millis() as u64 / 2
    }

    fn fresh(&mut self) -> ProcessId {
        self.next += 1;
        let boot = self.machine.change(|world| world.boot.boot.clone());
        ProcessId { pid: Pid(self.next), started: self.next as u64, boot }
    }

    /// Changes the world as the attempt has it; whether a party lives now.
    fn turn(&mut self, attempt: &Attempt) -> bool {
        self.pass(attempt.passes.ms());
        let drift = match attempt.drift {
            Drift::None => 0,
            Drift::Small(seconds) => i64::from(seconds) * 1_000,
            Drift::Large(seconds) => i64::from(seconds) * 1_000,
        };
        self.off += drift;
        self.most_off = self.most_off.max(self.off.unsigned_abs());
        self.machine.change(|world| world.wall.0 += drift);
        if attempt.reboot {
            self.boots += 1;
            let boot = BootTime { boot: format!("boot-{}", self.boots), since: Duration::from_secs(1) };
            self.machine.change(|world| world.boot = boot);
        }
        let here = self.machine.change(|world| world.boot.boot.clone());
        let mut mus = vec![self.effect.writer.clone()];
        mus.extend(self.effect.resolver.clone());
        let groups = self.effect.sends.iter().map(|sent| sent.group.clone());
        let bit = |bits: u8, at: usize| bits >> (at % 8) & 1 == 1;
        let mut lives = false;
        let (mut living, mut grouped): (Vec<ProcessId>, Vec<ProcessId>) = (Vec::new(), Vec::new());
        for (at, party) in mus.iter().cloned().chain(groups).enumerate() {
            let stranger = ProcessId { started: party.started + 7, boot: here.clone(), ..party.clone() };
            let is_mu = at < mus.len();
            let list = if is_mu { &mut living } else { &mut grouped };
            if list.iter().any(|known| known.pid == party.pid) {
                continue;
            }
            if bit(attempt.living, at) && party.boot == here {
                lives = true;
                list.push(party);
            } else if bit(attempt.recycled, at) {
                list.push(stranger);
            }
        }
        self.machine.change(|world| (world.living, world.groups) = (living, grouped));
        if lives {
            self.lived = self.truth;
        }
        lives
    }

    /// One attempt to resolve it; whether it has come to an end.
    fn meets(&mut self, attempt: Attempt) -> bool {
        let lives = self.turn(&attempt);
        let me = self.fresh();
        let declared = attempt.declared.declaration();
        let ways = self.effect.ways(&declared);
        let look = ProvenDead::look(&self.machine, &self.effect.parties(), &me);
        assert_eq!(look.is_err(), lives, "A-43: {look:?}");
        if look.is_ok() && self.effect.quiet.is_none() {
            self.effect.quiet = Some(Moment::now(&self.machine));
        }
        let now = Moment::now(&self.machine);
        let step = rules::decide(&self.effect.open(), ways, &declared.instance, look, &now);
        let same = !attempt.declared.other_instance;
        let wanted = self.wanted(&attempt.declared, lives);
        let (question, method, window) = match step {
            Step::Refuse(_) => {
                assert!(lives, "a refusal, and nobody lives");
                return false;
            }
            Step::StopChanged => {
                assert!(!lives && !same, "EFF-07");
                return false;
            }
            Step::Leave(_) => {
                assert!(!lives && same && wanted == "leave", "left, and {wanted} was to be done");
                return false;
            }
            Step::Reissue(_) => {
                assert_eq!(wanted, "reissue");
                (Question::Again, self.effect.method, None)
            }
            Step::Resend { window, .. } => {
                assert_eq!(wanted, "resend");
                (Question::Again, self.effect.method, Some(window))
            }
            Step::LookUp { fenced, .. } => {
                assert_eq!(wanted, "look up");
                assert_eq!(fenced.is_some(), attempt.declared.fence, "A-44");
                let acquire = self.effect.method == Method::HostAcquire;
                (Question::LookUp(fenced), if acquire { Method::HostLookup } else { Method::JobLookup }, None)
            }
            Step::AskForReceipt(_) => {
                assert_eq!(wanted, "receipt");
                (Question::Receipt, Method::ChannelReceipt, None)
            }
        };
        assert!(!lives && same, "EFF-05, EFF-06, EFF-07: something is asked or sent");

        let again = matches!(question, Question::Again);
        let answer = if again { self.sends(&attempt, &me, window) } else { None };
        let at = Moment::now(&self.machine);
        let (answer, said) = answer.unwrap_or_else(|| attempt.answer.comes(method));
        let expected = Expected::of(self.effect.method, &self.effect.params, &declared);
        let fenced = matches!(question, Question::LookUp(Some(_)));
        let quiet = self.effect.quiet.clone().filter(|_| !again);
        let asked = Asked { question, ways, expected: &expected, quiet: quiet.as_ref(), at: &at };
        let reading = reading::read(asked, &answer);
        self.judge(&attempt.declared, &reading, &answer, said.as_ref(), again, fenced);
        if matches!(reading, Reading::Done(..) | Reading::Undone(_)) {
            return true;
        }
        if attempt.dies {
            self.effect.resolver = Some(me);
        } else {
            self.effect.resolver = None;
            self.effect.quiet.get_or_insert(at);
        }
        false
    }

    /// Sends it again, unless its window has closed on the way; then that is the answer.
    fn sends(&mut self, attempt: &Attempt, me: &ProcessId, window: Option<Window>) -> Option<Came> {
        let group = ProcessId { pid: Pid(me.pid.0 + 100_000), ..me.clone() };
        let deadline = self.effect.sends[0].deadline;
        let request_id = self.effect.sends.len() as u64 + 1;
        let at = Moment::now(&self.machine).wall;
        self.effect.sends.push(Sent { request_id, deadline, group, at });
        self.effect.quiet = None;
        self.pass(attempt.delay.ms());
        self.lived = self.truth;
        let is_open = window?.is_open(&Moment::now(&self.machine));
        let then = self.effect.window_ms.zip(attempt.declared.dedupe).map(|(then, now)| then.min(now.ms()));
        let fits = then.is_some_and(|length| self.truth + Window::LEFT.as_millis() as u64 <= length);
        if self.clocks_are_sound() {
            assert_eq!(is_open, fits, "A-77: the window, right before the write");
        }
        if self.clocks_are_trusted() {
            assert!(!is_open || fits, "A-77: a repeat outside of its window");
        }
        let not_sent = CallError::NotSent(self.effect.method, NotSent::WindowOver);
        if is_open { None } else { Some((Err(not_sent), None)) }
    }

    /// What is to be done, by the table of the rules; the window by the true time, or as open when the clocks say so.
    fn wanted(&self, declared: &Declared, lives: bool) -> &'static str {
        if lives {
            return "refuse";
        }
        if declared.other_instance {
            return "stop-changed";
        }
        let (method, window) = (self.effect.method, self.effect.window_ms.zip(declared.dedupe));
        let in_window = || {
            let fits = |length: u64| self.truth + 5_000 <= length;
            let open = window.is_some_and(|(then, now)| fits(then.min(now.ms())));
            if self.clocks_are_sound() {
                return open;
            }
            // The clocks decide, and may be wrong to the safe side alone.
            let length = window.map(|(then, now)| Duration::from_millis(then.min(now.ms())));
            let told = length.is_some_and(|length| {
                Window::new(self.effect.begun.clone(), length).is_open(&Moment::now(&self.machine))
            });
            assert!(!told || open || !self.clocks_are_trusted(), "A-77: open by the clocks, over in truth");
            told
        };
        let (noun, verb) = method.as_str().split_once('.').expect("a method has two words");
        if declared.lacks(noun) {
            return "leave";
        }
        match (noun, verb) {
            ("host", "release") | ("job", "stop") => "reissue",
            ("host", "acquire") | ("job", "start") if declared.lookup => "look up",
            ("job", "start") if declared.at_start() => "leave",
            ("host", "acquire") | ("job", "start") if in_window() => "resend",
            ("channel", "send" | "fresh" | "interrupt") if declared.receipt => "receipt",
            ("channel", "send" | "fresh" | "interrupt") if !self.effect.superseded && in_window() => "resend",
            _ => "leave",
        }
    }

    /// Holds a reading against what was said, by the words of the rules.
    fn judge(
        &self,
        declared: &Declared,
        reading: &Reading,
        answer: &Result<AnyResult, CallError>,
        said: Option<&Value>,
        again: bool,
        fenced: bool,
    ) {
        let method = self.effect.method;
        let context = || format!("{method}: {answer:?}, by {declared:?}");
        let Some(said) = said else {
            // A line that is none, or no line at all: nothing is known that was not known before.
            return assert!(matches!(reading, Reading::Open(_)), "{reading:?} of {}", context());
        };
        if let Some(error) = said.get("error") {
            // A-41: on a repeat, and only there, three kinds vouch for the key.
            let undone = again && error["data"]["kind"] != "unknown-outcome";
            return assert_eq!(matches!(reading, Reading::Undone(_)), undone, "{reading:?} of {}", context());
        }
        let result = &said["result"];
        let is_lookup = matches!(answer, Ok(AnyResult::HostLookup(_) | AnyResult::JobLookup(_)));
        if is_lookup && result.get("none").is_some() {
            return self.judge_none(declared, reading, fenced);
        }
        assert!(
            !matches!(reading, Reading::Undone(_) | Reading::AskAgain(_)),
            "{reading:?} of {}",
            context()
        );
        let took_place = match result.get("found") {
            Some(found) if is_lookup => sound(method, found, declared),
            _ if is_lookup => false,
            _ if again => sound(method, result, declared),
            _ => result["status"] == "accepted" && result["id"] == "m1",
        };
        assert_eq!(matches!(reading, Reading::Done(..)), took_place, "{reading:?} of {}", context());
    }

    /// EFF-12 to EFF-15, A-42: what a lookup that found nothing is worth.
    fn judge_none(&self, declared: &Declared, reading: &Reading, fenced: bool) {
        let none_counts = self.effect.method == Method::HostAcquire || declared.handle() != "file";
        let in_flight = declared.in_flight.map(|now| now.ms().max(self.effect.in_flight_ms.unwrap_or(0)));
        let gone = self.truth - self.lived;
        match reading {
            Reading::Undone(_) => {
                assert!(none_counts, "EFF-14: a none of a kind with a file");
                let landed = in_flight.is_some_and(|ms| gone >= ms);
                assert!(
                    fenced || landed || (in_flight.is_some() && !self.clocks_are_trusted()),
                    "EFF-13: undone {gone} ms after the last sign of life, by {declared:?}"
                );
            }
            Reading::AskAgain(rest) => {
                assert!(none_counts && !fenced && in_flight.is_some(), "asked again for nothing");
                assert!(*rest > Duration::ZERO && *rest <= WAITED_OUT, "{rest:?}");
            }
            Reading::Open(_) => assert!(!(none_counts && fenced), "EFF-15: a fenced none is final"),
            Reading::Done(..) => panic!("done by a none"),
        }
    }
}

/// EFF-19 to EFF-21, EFF-23, SPAWN-14: whether a result that is by the schema agrees with what was asked.
fn sound(method: Method, result: &Value, declared: &Declared) -> bool {
    let own_message = result.get("msgId").is_none_or(|id| id == "m1");
    match method {
        Method::JobStart => {
            let replies = declared.handle() == "reply";
            let complete = result.get("handle").is_some() && result.get("view").is_some();
            (!replies || complete) && (!declared.at_start() || result["baseline"]["runs"] == 0)
        }
        Method::ChannelSend | Method::ChannelFresh => {
            result["channel"] == "c" && own_message && result["ack"] != "unknown"
        }
        Method::ChannelCommand => result["channel"] == "c" && result["ack"] != "unknown",
        Method::ChannelInterrupt => own_message,
        Method::ChannelAnswer => result["ack"] != "unknown",
        _ => true,
    }
}

impl Declared {
    fn handle(&self) -> &'static str {
        if self.at_start() { "reply" } else { ["reply", "pane", "file"][usize::from(self.handle) % 3] }
    }

    fn at_start(&self) -> bool {
        self.at_start
    }

    fn lacks(&self, seam: &str) -> bool {
        match seam {
            "job" => self.without == 1,
            "host" => self.without == 2,
            _ => self.without == 3,
        }
    }

    fn declaration(&self) -> Declaration {
        let dedupe = self.dedupe.map(|span| json!({"exact": true, "windowMs": span.ms()}));
        let mut key = json!({"lookup": self.lookup, "fenceKey": self.fence});
        if let Some(dedupe) = &dedupe {
            key["dedupe"] = dedupe.clone();
        }
        if let Some(span) = self.in_flight {
            key["inFlightMs"] = json!(span.ms());
        }
        let first_turn = if self.at_start() { "at-start" } else { "on-send" };
        let mut seams = json!({
            "job": {"kind": "k", "view": "detached", "handle": self.handle(), "start": key, "checks": [],
                "firstTurn": first_turn},
            "host": {"acquire": key},
            "channel": {"name": "c", "caps": {"fence": "none", "receipt": if self.receipt { "exact" } else { "none" },
                "dedupe": dedupe.unwrap_or(json!("none")), "steer": "none", "interrupt": "native", "fresh": "restart",
                "answer": true, "command": true, "watch": "stream", "settleText": "tail"}},
        });
        seams.as_object_mut().expect("an object").retain(|seam, _| !self.lacks(seam));
        let instance = if self.other_instance { "there" } else { "here" };
        let text = json!({"protocol": 1, "plugin": {"name": "cloud", "version": "1"}, "instance": instance,
            "schema": SCHEMA_DIGEST, "seams": seams});
        Declaration::from_recorded(&text.to_string()).expect("a declaration by the schema")
    }
}

/// What came of a question, and the line that says so, if one does and it is by the schema.
type Came = (Result<AnyResult, CallError>, Option<Value>);

impl Answer {
    /// What comes of a question whose answer is that of `method`.
    fn comes(&self, method: Method) -> Came {
        let error = match self {
            Answer::Line(said) => return said.heard(method),
            Answer::None => unanswered(method),
            Answer::NotSent => CallError::NotSent(method, NotSent::Gone),
            Answer::TooLong => CallError::TooLong(method, TooLong { bytes: 1 }),
            Answer::NoStart => CallError::Start(StartError::Interrupted(Signal::Terminate)),
        };
        (Err(error), None)
    }
}

fn unanswered(method: Method) -> CallError {
    let ending = Ending {
        cause: Cause::LeaderExited,
        exit: Exit::Status(0),
        grace_over: false,
        stdout_bytes: 0,
        late_bytes: 0,
        lines: 0,
        first_bytes: Vec::new(),
        declaration: None,
        unanswered: vec![1],
        stderr: StderrLine::default(),
    };
    let budget = Duration::from_secs(1);
    CallError::Unanswered(Box::new(Unanswered { id: 1, method, budget, ending }))
}

impl Said {
    fn outcome(&self, method: Method) -> String {
        let result = match self {
            Said::Sound { handle, view, runs, channel, msg_id, ack } => {
                let mut result = json!({});
                let whole = json!({"command": "x", "env": {}});
                let channel = if *channel { "c" } else { "d" };
                let ack = ["accepted", "sent", "unknown", "confirmed"][usize::from(*ack) % 4];
                match method {
                    Method::HostAcquire => result = json!({"handle": "h"}),
                    Method::HostRelease | Method::JobStop => result = Value::Null,
                    Method::JobStart => result["view"] = whole.clone(),
                    Method::ChannelSend | Method::ChannelFresh | Method::ChannelCommand => {
                        result = json!({"channel": channel, "ack": ack});
                    }
                    Method::ChannelInterrupt => result = json!({"wasBusy": true, "pending": false}),
                    Method::ChannelAbort => {
                        result = json!({"before": "busy", "after": "idle", "settled": true, "aborted": true, "pending": false});
                    }
                    Method::ChannelAnswer => result = json!({"keys": "y", "ack": ack}),
                    Method::HostLookup => result = json!({"found": {"handle": "h"}}),
                    Method::JobLookup => result = json!({"found": {"handle": "h"}}),
                    _ => {}
                }
                let start = match method {
                    Method::JobLookup => Some(&mut result["found"]),
                    Method::JobStart => Some(&mut result),
                    _ => None,
                };
                if let Some(start) = start {
                    if *handle {
                        start["handle"] = json!("h");
                    }
                    if *view {
                        start["view"] = whole;
                    }
                    if let Some(runs) = runs {
                        start["baseline"] = json!({"runs": runs % 2});
                    }
                }
                let delivery = matches!(
                    method,
                    Method::ChannelSend
                        | Method::ChannelFresh
                        | Method::ChannelCommand
                        | Method::ChannelInterrupt
                );
                if let Some(own) = msg_id.filter(|_| delivery) {
                    result["msgId"] = json!(if own { "m1" } else { "m2" });
                }
                result
            }
            Said::Lookup(which) => match which % 3 {
                0 => json!({"none": true}),
                1 => json!({"pending": true}),
                _ => json!({"unknown": "r"}),
            },
            Said::Receipt { which, same } => {
                let id = if *same { "m1" } else { "m2" };
                match which % 3 {
                    0 => json!({"status": "accepted", "id": id}),
                    1 => json!({"status": "not-accepted", "id": id}),
                    _ => json!({"status": "unreachable", "id": id, "reason": "r"}),
                }
            }
            Said::Error(kind) => {
                let data = match kind % 5 {
                    0 => json!({"kind": "retryable"}),
                    1 => json!({"kind": "permanent"}),
                    2 => json!({"kind": "human", "remedy": "r"}),
                    3 => json!({"kind": "unknown-outcome"}),
                    _ => json!({}),
                };
                return format!("\"error\":{}", json!({"code": 1, "message": "m", "data": data}));
            }
            Said::Text(text) => return format!("\"result\":{text}"),
        };
        format!("\"result\":{result}")
    }

    /// The line as mu reads it, and as the slow opinion does.
    fn heard(&self, method: Method) -> Came {
        let line = format!("{{\"jsonrpc\":\"2.0\",\"id\":1,{}}}", self.outcome(method));
        let none = || (Err(unanswered(method)), None);
        let Ok(Incoming::Reply { body, .. }) = envelope::parse(line.as_bytes()) else { return none() };
        let answer = match body {
            Body::Result(result) => parse_result(method, result).map_err(|_| unanswered(method)),
            Body::Error(error) => Err(match from_json(error.get()) {
                Ok(error) => CallError::Refused(method, error),
                Err(_) => unanswered(method),
            }),
        };
        if matches!(&answer, Err(CallError::Unanswered(_))) {
            return none();
        }
        let value = json::legal(line.as_bytes()).and_then(|legal| legal.value).expect("mu reads it");
        let valid = match &answer {
            Ok(_) => schema::is_valid(&format!("{method}.result"), &value["result"]),
            Err(_) => schema::is_valid("error", &value["error"]),
        };
        assert!(valid, "GEN-04: {line}");
        if let Err(CallError::Refused(_, error)) = &answer {
            let is_unknown = value["error"]["data"]["kind"] == "unknown-outcome";
            assert_eq!(error.kind == ErrorKind::UnknownOutcome, is_unknown);
        }
        (answer, Some(value))
    }
}
