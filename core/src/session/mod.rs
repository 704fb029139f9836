//! One plugin process as a state machine without IO.
//!
//! What happens comes in as method calls that carry `now`: bytes of its stdout, the pipe's answers to writes, the
//! leader's exit, the group seen empty, a timer. What is to be done goes out through [`Session::action`] and
//! [`Session::transmit`]. The machine reads no clock and owns no descriptor, so every race of the protocol page is a
//! table of calls. `drive` is the one place that joins it to a real or simulated process.
//!
//! ```text
//! start ── Handshaking ── valid answer ──> Ready ── stop, break, EOF, deadline ──> Stopping ── group empty ──> Ended
//!              └──── refusal, break, EOF, deadline, stop ─────────────────────────────^
//! ```
//!
//! Calls are made while it is ready, any number at once, and answered in any order. Each ends exactly once: with what
//! the plugin answered, as not sent, or as unanswered, which is known when the group is empty.
//!
//! - `call`: what is asked for, and how it ends
//! - `outbox`: whole lines waiting for the pipe; knows which of them were begun
//! - `timer`: what fires when
//! - `ending`: why and how a process ended
//! - `drive`: the loop over an [`crate::os::Child`]

mod call;
mod drive;
mod ending;
mod outbox;
mod timer;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use mu_protocol::declaration::Declaration;
use mu_protocol::envelope::{self, Body, Incoming};
use mu_protocol::line::LineSplitter;
use mu_protocol::load::{self, Registration, Seam};
use mu_protocol::messages::method::Method;
use mu_protocol::outgoing;

use crate::os::{Exit, Mono};
use crate::reached;

pub use call::{Answer, NotSent, Request};
pub use drive::Process;
pub use ending::{Break, BreakReason, Cause, Ending, StderrLine};
use outbox::Outbox;
use timer::{Timer, Timers};

/// How long a plugin may take from the end of its stdin to an empty group (PRC-07).
pub const GRACE: Duration = Duration::from_secs(5);
/// How long a plugin may take to answer `initialize` (HSK-08).
pub const HANDSHAKE: Duration = Duration::from_secs(10);
/// How much of the first output is kept to explain a failed start.
const FIRST_BYTES: usize = 64;

/// What the handshake is judged by.
#[derive(Clone, Debug)]
pub struct Expected {
    /// The registered name (LOAD-03).
    pub name: String,
    /// Seams that the verb at hand needs (LOAD-08).
    pub needs: Vec<Seam>,
    /// Digest of the published schema (LOAD-04).
    pub schema_digest: &'static str,
    /// What `plugin add` recorded; `None` at `add`'s own start (LOAD-19).
    pub recorded: Option<Declaration>,
}

/// What the driver must do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Close the plugin's stdin.
    CloseStdin,
    /// SIGKILL to the group.
    KillGroup,
    /// Read what the pipes hold now, without waiting for more; then call [`Session::drained`].
    Drain,
    /// Collect the leader's status. Nothing follows.
    Reap,
}

/// Where the session stands, as its user sees it.
#[derive(Debug)]
pub enum Status<'a> {
    /// No valid answer to `initialize` yet.
    Handshaking,
    /// The declaration passed the load rules, and the process runs.
    Ready(&'a Declaration),
    /// The stop sequence runs.
    Stopping,
    /// The group is empty.
    Ended(&'a Ending),
}

#[derive(Debug)]
enum State {
    Handshaking,
    Ready,
    /// Lines of the stop sequence may still be offered to the pipe.
    Farewell(Cause),
    /// Stdin is closed; the group has until the grace timer.
    Grace(Cause),
    /// SIGKILL was sent.
    Killed(Cause),
    Ended(Box<Ending>),
}

/// A request that has no answer yet.
#[derive(Clone, Copy, Debug)]
enum Pending {
    Initialize,
    Call { method: Method, deadline: Mono },
}

/// The machine. See the module's text for how it is used.
#[derive(Debug)]
pub struct Session {
    state: State,
    expected: Expected,
    declaration: Option<Declaration>,
    splitter: LineSplitter,
    outbox: Outbox,
    pending: BTreeMap<u64, Pending>,
    answers: VecDeque<(u64, Answer)>,
    timers: Timers,
    actions: VecDeque<Action>,
    stdin_open: bool,
    exit: Option<Exit>,
    group_empty: bool,
    drained: bool,
    grace_over: bool,
    lines: u64,
    stdout_bytes: u64,
    late_bytes: u64,
    first_bytes: Vec<u8>,
}

impl Session {
    /// A session whose process has just been started. `id` is the request id of `initialize`; it must be unused in
    /// this invocation.
    pub fn start(now: Mono, id: u64, expected: Expected) -> Session {
        let mut outbox = Outbox::default();
        outbox.push(Some(id), outgoing::initialize(id));
        let mut timers = Timers::default();
        timers.set(Timer::Handshake, now + HANDSHAKE);
        Session {
            state: State::Handshaking,
            expected,
            declaration: None,
            splitter: LineSplitter::new(),
            outbox,
            pending: BTreeMap::from([(id, Pending::Initialize)]),
            answers: VecDeque::new(),
            timers,
            actions: VecDeque::new(),
            stdin_open: true,
            exit: None,
            group_empty: false,
            drained: false,
            grace_over: false,
            lines: 0,
            stdout_bytes: 0,
            late_bytes: 0,
            first_bytes: Vec::new(),
        }
    }

    /// Where it stands.
    pub fn status(&self) -> Status<'_> {
        match &self.state {
            State::Handshaking => Status::Handshaking,
            State::Ready => {
                Status::Ready(self.declaration.as_ref().expect("a ready session has a declaration"))
            }
            State::Farewell(_) | State::Grace(_) | State::Killed(_) => Status::Stopping,
            State::Ended(ending) => Status::Ended(ending),
        }
    }

    /// The next thing to do, in order. `None`: nothing until the next event.
    pub fn action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// Bytes to offer to the plugin's stdin now: what is left of one line. One write must not span two lines, so that
    /// a short line is taken whole or not at all.
    pub fn transmit(&self) -> Option<&[u8]> {
        if self.stdin_open { self.outbox.front() } else { None }
    }

    /// When to call [`Session::timeout`] at the latest.
    pub fn wake_at(&self) -> Option<Mono> {
        self.timers.next()
    }

    /// The pipe took `count` bytes of what [`Session::transmit`] offered.
    pub fn written(&mut self, count: usize) {
        self.outbox.advance(count);
        if self.outbox.is_empty() && matches!(self.state, State::Farewell(_)) {
            self.end_farewell();
        }
    }

    /// The pipe takes nothing now. During the stop sequence that drops what is left of it (A-73).
    pub fn write_blocked(&mut self) {
        if matches!(self.state, State::Farewell(_)) {
            self.end_farewell();
        }
    }

    /// Nobody reads the plugin's stdin any more. What was begun stays sent and unanswered (A-73), what was not is never
    /// sent.
    pub fn write_failed(&mut self) {
        reached!("A-73 nobody reads stdin any more");
        let unsent = self.outbox.clear();
        self.never_sent(&unsent, &NotSent::StdinClosed);
        if matches!(self.state, State::Farewell(_)) {
            self.end_farewell();
        }
    }

    /// Bytes came from the plugin's stdout.
    pub fn stdout(&mut self, now: Mono, bytes: &[u8]) {
        let count = if self.stdin_open { &mut self.stdout_bytes } else { &mut self.late_bytes };
        *count += bytes.len() as u64;
        let room = FIRST_BYTES - self.first_bytes.len();
        self.first_bytes.extend_from_slice(&bytes[..room.min(bytes.len())]);

        let mut rest = bytes;
        // While it stops, a plugin may write what it likes; it is read so that the plugin does not block (A-03).
        while matches!(self.state, State::Handshaking | State::Ready) {
            let read = match self.splitter.next(&mut rest) {
                None => return,
                Some(Err(invalid)) => Err(BreakReason::Invalid(invalid)),
                Some(Ok(line)) => envelope::parse(line).map_err(BreakReason::Invalid).and_then(|message| {
                    match message {
                        Incoming::Notification { .. } => Err(BreakReason::NoSuchWatch),
                        Incoming::Reply { id, body } => {
                            // A request that still waits for the pipe cannot have an answer (TRN-16).
                            let pending = self.pending.get(&id).filter(|_| !self.outbox.holds_unsent(id));
                            match pending {
                                None => Err(BreakReason::NoSuchCall { id }),
                                Some(Pending::Initialize) => {
                                    Ok((id, Read::Judged(judge(&self.expected, &body))))
                                }
                                Some(Pending::Call { method, .. }) => {
                                    call::read(*method, line, &body).map(|answer| (id, Read::Answer(answer)))
                                }
                            }
                        }
                    }
                }),
            };
            self.lines += 1;
            match read {
                Ok((id, read)) => {
                    self.pending.remove(&id);
                    match read {
                        Read::Answer(answer) => self.answers.push_back((id, answer)),
                        Read::Judged(Ok(declaration)) => {
                            self.declaration = Some(declaration);
                            self.state = State::Ready;
                        }
                        Read::Judged(Err(refusal)) => self.begin_stop(now, Cause::Refused(refusal)),
                    }
                    self.watch_deadlines();
                }
                Err(reason) => {
                    let line = self.lines;
                    self.begin_stop(now, Cause::Broken(Break { line, reason }));
                }
            }
        }
    }

    /// Asks the plugin. `id` must be unused in this invocation. The answer comes through [`Session::answers`], at once
    /// when the plugin is not ready.
    pub fn call(&mut self, id: u64, request: Request) {
        if !matches!(self.state, State::Ready) {
            self.answers.push_back((id, Answer::NotSent(NotSent::Gone)));
            return;
        }
        self.pending.insert(id, Pending::Call { method: request.method, deadline: request.deadline });
        self.outbox.push(Some(id), request.line);
        self.watch_deadlines();
    }

    /// Gives up a call. One of which nothing was written is never sent (TMO-08); one that was stops the plugin (TMO-04);
    /// one that has ended stays as it is.
    pub fn cancel(&mut self, now: Mono, id: u64) {
        let Some(Pending::Call { method, .. }) = self.pending.get(&id).copied() else { return };
        if self.outbox.remove_unsent(id) {
            reached!("TMO-08 given up before it was written");
            self.never_sent(&[id], &NotSent::Cancelled);
        } else {
            self.stop(now, Cause::Cancelled { id, method });
        }
    }

    /// Calls that have ended since the last time, in order. Those that have no answer when the group is empty are named by
    /// [`Ending::unanswered`].
    pub fn answers(&mut self) -> impl Iterator<Item = (u64, Answer)> {
        self.answers.drain(..)
    }

    /// The plugin closed its stdout (A-72).
    pub fn stdout_closed(&mut self, now: Mono) {
        if matches!(self.state, State::Handshaking | State::Ready) && self.exit.is_none() {
            self.begin_stop(now, Cause::StdoutClosed);
        }
    }

    /// The leader has ended: the rest of its group goes at once, what it had written counts (A-04, PRC-17).
    pub fn leader_exited(&mut self, exit: Exit) {
        self.exit = Some(exit);
        self.actions.push_back(Action::KillGroup);
        self.actions.push_back(Action::Drain);
    }

    /// The pipes held nothing more.
    pub fn drained(&mut self, now: Mono) {
        self.drained = true;
        if matches!(self.state, State::Handshaking | State::Ready) {
            self.begin_stop(now, Cause::LeaderExited);
        }
        self.end_farewell();
        if let State::Grace(cause) = &mut self.state {
            self.state = State::Killed(std::mem::replace(cause, Cause::Done));
        }
        self.timers.clear(Timer::Grace);
        self.finish();
    }

    /// No process of the group lives.
    pub fn group_empty(&mut self) {
        self.group_empty = true;
        self.finish();
    }

    /// A timer may have run out.
    pub fn timeout(&mut self, now: Mono) {
        while let Some(timer) = self.timers.expired(now) {
            self.timers.clear(timer);
            match timer {
                Timer::Handshake => self.begin_stop(now, Cause::HandshakeDeadline),
                Timer::Deadline => self.give_up_overdue(now),
                Timer::Grace => {
                    self.end_farewell();
                    if let State::Grace(cause) = &mut self.state {
                        self.state = State::Killed(std::mem::replace(cause, Cause::Done));
                        reached!("PRC-07 killed: the grace is over");
                        self.grace_over = true;
                        self.actions.push_back(Action::KillGroup);
                    }
                }
            }
        }
    }

    /// Begins the stop sequence, unless it has begun already: the first cause stands (PRC-08).
    pub fn stop(&mut self, now: Mono, cause: Cause) {
        if matches!(self.state, State::Handshaking | State::Ready) {
            self.begin_stop(now, cause);
        }
    }

    /// Calls whose deadline has passed: those of which nothing was written are never sent (TMO-08), any other stops the
    /// plugin (TMO-04).
    fn give_up_overdue(&mut self, now: Mono) {
        let overdue: Vec<(u64, Method)> = self
            .pending
            .iter()
            .filter_map(|(id, pending)| match pending {
                Pending::Call { method, deadline } if *deadline <= now => Some((*id, *method)),
                _ => None,
            })
            .collect();
        for (id, method) in overdue {
            if self.outbox.remove_unsent(id) {
                reached!("TMO-08 overdue before it was written");
                self.never_sent(&[id], &NotSent::Overdue);
            } else {
                self.stop(now, Cause::Deadline { id, method });
            }
        }
        self.watch_deadlines();
    }

    /// None of these can have an answer any more (TRN-16), `initialize` neither; what it was for ends with its deadline.
    fn never_sent(&mut self, ids: &[u64], why: &NotSent) {
        for id in ids {
            if let Some(Pending::Call { .. }) = self.pending.remove(id) {
                self.answers.push_back((*id, Answer::NotSent(why.clone())));
            }
        }
        self.watch_deadlines();
    }

    /// Sets the timers by what is pending.
    fn watch_deadlines(&mut self) {
        if !matches!(self.state, State::Handshaking) {
            self.timers.clear(Timer::Handshake);
        }
        let deadlines = self.pending.values().filter_map(|pending| match pending {
            Pending::Call { deadline, .. } => Some(*deadline),
            Pending::Initialize => None,
        });
        match deadlines.min() {
            Some(at) if matches!(self.state, State::Ready) => self.timers.set(Timer::Deadline, at),
            _ => self.timers.clear(Timer::Deadline),
        }
    }

    /// PRC-07: a cancel for each pending call, `shutdown`, the end of stdin, one grace, the kill. The call that is the
    /// cause is cancelled first (TMO-04).
    fn begin_stop(&mut self, now: Mono, cause: Cause) {
        cause.mark();
        let first = cause.call();
        let half_a_line = self.outbox.front_is_begun();
        let unsent = self.outbox.clear();
        self.never_sent(&unsent, &NotSent::Stopped(Box::new(cause.clone())));
        self.timers.set(Timer::Grace, now + GRACE);
        self.state = State::Farewell(cause);
        self.watch_deadlines();
        if half_a_line || !self.stdin_open {
            reached!("A-73 nothing is written behind half a line");
            self.end_farewell(); // A-73: nothing is written behind half a line
            return;
        }
        let others = self.pending.keys().copied().filter(|id| Some(*id) != first);
        for id in first.into_iter().chain(others) {
            self.outbox.push(None, outgoing::cancel(id));
        }
        self.outbox.push(None, outgoing::shutdown());
    }

    fn end_farewell(&mut self) {
        if let State::Farewell(cause) = &mut self.state {
            self.state = State::Grace(std::mem::replace(cause, Cause::Done));
            self.outbox.clear();
            self.stdin_open = false;
            self.actions.push_back(Action::CloseStdin);
        }
    }

    /// The end is reached when the leader's last words are read and its group is empty.
    fn finish(&mut self) {
        let (Some(exit), true, true) = (self.exit, self.group_empty, self.drained) else { return };
        let State::Killed(cause) = &mut self.state else { return };
        let cause = std::mem::replace(cause, Cause::Done);
        self.actions.push_back(Action::Reap);
        self.state = State::Ended(Box::new(Ending {
            cause,
            exit,
            grace_over: self.grace_over,
            stdout_bytes: self.stdout_bytes,
            late_bytes: self.late_bytes,
            lines: self.lines,
            first_bytes: std::mem::take(&mut self.first_bytes),
            declaration: self.declaration.take(),
            unanswered: std::mem::take(&mut self.pending).into_keys().collect(),
            stderr: StderrLine::default(),
        }));
    }
}

/// A valid reply, to `initialize` or to a call.
enum Read {
    Judged(Result<Declaration, load::LoadRefusal>),
    Answer(Answer),
}

fn judge(expected: &Expected, body: &Body<'_>) -> Result<Declaration, load::LoadRefusal> {
    let registration = Registration { name: &expected.name, needs: &expected.needs };
    load::load(body, &registration, expected.schema_digest, expected.recorded.as_ref())
}
