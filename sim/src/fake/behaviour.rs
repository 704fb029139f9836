//! What a plugin does: the correct one, and at the moments that its plan names, the faulty one.
//!
//! In: a plan and an operating system. Out: the exit status, and everything done through [`PluginSys`] on the way.
//! One thread: lines are handled one by one, what is due later waits in a queue, so that several calls can be in flight
//! and each is answered when it is due. Bytes are built and mu's lines are
//! read without the host's types, so that one misunderstanding cannot sit on both sides. What it asks its backend is in
//! `backend`.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;

use serde_json::Value;

use super::Plan;
use super::catalogue::{Act, When};
use super::faults::Fault;
use super::host::{self, Said, Silence};
use super::lines::{self, Failure, Piece, Reply};
use super::link;
use super::sys::{Background, Fd, Group, Note, PluginSys, Read, Sig, Until};
use backend::{Asked, Asking};

mod backend;

/// One write of a flood.
const CHUNK: usize = 64 << 10;
/// At most so many bytes are read at once.
const READ: usize = 16 << 10;
/// How long an escaped child lives: longer than mu may wait for anything in a handshake.
const ESCAPED_MS: u64 = 20_000;

/// Runs a plugin until it exits; returns its exit status. Never returns when a signal ends it.
pub async fn run<S: PluginSys>(sys: &mut S, plan: &Plan) -> i32 {
    let start = sys.start();
    let faults = plan.faults.iter().filter(|fault| fault.is_in_start(start)).collect();
    let mut process = Process {
        sys,
        plan,
        faults,
        unfinished: Vec::new(),
        queue: Vec::new(),
        behind: Vec::new(),
        on_cancel: Vec::new(),
        held: Vec::new(),
        asked: Vec::new(),
        calls: 0,
        seen: BTreeMap::new(),
        last: Reply { id: Value::from(1), result: plan.declaration.clone(), timeout_at: 0 },
        reading: true,
        stdout_gone: false,
    };
    match process.live().await {
        Ok(()) => 0,
        Err(Exited(status)) => status,
    }
}

/// The process ends here, with this status.
struct Exited(i32);
type Flow = Result<(), Exited>;

/// A part of what is done at one moment.
#[derive(Debug)]
enum Step {
    /// A fault begins, by its name.
    Begin(&'static str),
    /// Bytes on stdout, and what lies between them.
    Piece(Piece),
    /// Anything else that a fault does.
    Deed(Act),
    /// The steps that follow are not due before this time. A cancel or the end of stdin drops them, unless they are
    /// `firm`.
    Until { at: u64, firm: bool },
    /// These steps are due so much later, those that follow are not delayed.
    Later(u64, Vec<Step>),
    /// The steps that follow wait until another request has been answered.
    Behind,
    /// A file is written.
    File(PathBuf, Vec<u8>),
    /// The backend is asked; the steps that follow wait until it is known what comes of it.
    Ask(Box<Asking>),
    /// A call of the link that the backend has let pass is carried out.
    Work(Box<Call>),
    /// A request is answered.
    Answer(Box<Answer>),
}

/// A request of the link.
#[derive(Debug)]
struct Call {
    method: String,
    nth: u32,
    id: Value,
    params: Value,
    /// Why it is not carried out.
    failure: Option<Failure>,
}

/// A request that was read and not yet answered.
#[derive(Debug)]
struct Answer {
    method: String,
    nth: u32,
    reply: Reply,
    /// The file that is written first, so that the reply is true.
    fetch_head: Option<(PathBuf, Vec<u8>)>,
    /// The error that is answered instead of the result.
    failure: Option<Failure>,
}

/// Steps that wait for their time.
struct Due {
    at: u64,
    /// The request that they answer; `None` for deeds of a fault.
    id: Option<Value>,
    /// Whether neither a cancel nor the end of stdin drops them.
    firm: bool,
    steps: VecDeque<Step>,
}

struct Process<'a, S> {
    sys: &'a mut S,
    plan: &'a Plan,
    /// Those of this start.
    faults: Vec<&'a Fault>,
    /// What was read of a line so far.
    unfinished: Vec<u8>,
    /// In order of arrival; the earliest time goes first, of equal times the earliest arrival.
    queue: Vec<Due>,
    /// What waits for the answer to another request.
    behind: Vec<Due>,
    /// What a cancel of a request sets off.
    on_cancel: Vec<(Value, Vec<Step>)>,
    /// What goes out when stdin ends.
    held: Vec<u8>,
    /// Questions to the backend that have come to no end.
    asked: Vec<Asked>,
    /// How many connections to the backend there have been.
    calls: u32,
    /// How many requests of each method came.
    seen: BTreeMap<String, u32>,
    /// The sound reply to the last request, for faults that no request calls for.
    last: Reply,
    reading: bool,
    stdout_gone: bool,
}

impl<'a, S: PluginSys> Process<'a, S> {
    async fn live(&mut self) -> Flow {
        self.moment(When::OnStart).await?;
        let before_read = self.at(When::BeforeRead, "initialize", 1);
        if !before_read.is_empty() {
            self.sys.stdin_ready().await;
            let steps = self.steps_of(&before_read, &self.last);
            self.perform(None, steps.into()).await?;
        }
        let mut buf = vec![0; READ];
        loop {
            self.run_due().await?;
            let due = self.queue.iter().map(|due| due.at);
            let next = due.chain(self.asked.iter().map(Asked::due)).min();
            let into = self.reading.then_some(&mut buf[..]);
            match self.sys.wait(into, next).await {
                Read::Data(n) => {
                    self.unfinished.extend_from_slice(&buf[..n]);
                    self.handle_lines().await?;
                }
                Read::Backend(call, heard) => self.hear(call, heard).await?,
                // What has come was looked at first: a plugin that was stopped for long finds its answers.
                Read::Timeout => self.lose_patience().await?,
                Read::Eof => return self.end().await,
            }
        }
    }

    /// stdin has ended: what is in flight is dropped, and the process exits unless a fault keeps it.
    async fn end(&mut self) -> Flow {
        self.sys.note(Note::Eof { unfinished: self.unfinished.len() });
        self.queue.retain(|due| due.firm);
        self.behind.clear();
        self.hang_up(|_| true);
        let held = std::mem::take(&mut self.held);
        self.write(Fd::Stdout, &held).await;
        self.moment(When::OnEof).await?;
        while let Some(next) = self.queue.iter().map(|due| due.at).min() {
            self.sys.sleep_until(Some(next)).await;
            self.run_due().await?;
        }
        while !self.reading {
            self.sys.sleep_until(None).await;
        }
        Ok(())
    }

    async fn handle_lines(&mut self) -> Flow {
        while self.reading
            && let Some(end) = self.unfinished.iter().position(|byte| *byte == b'\n')
        {
            let rest = self.unfinished.split_off(end + 1);
            let mut line = std::mem::replace(&mut self.unfinished, rest);
            line.pop();
            self.sys.note(Note::Line(&line));
            // What is no JSON is mu's fault; the watching world sees it, a plugin can do nothing about it.
            if let Ok(message) = serde_json::from_slice::<Value>(&line) {
                self.handle(&message).await?;
            }
        }
        Ok(())
    }

    async fn handle(&mut self, message: &Value) -> Flow {
        let Some(method) = message["method"].as_str() else { return Ok(()) };
        match (method, message.get("id")) {
            ("shutdown", None) => self.moment(When::OnShutdown).await,
            ("$/cancel", None) => self.cancel(&message["params"]["id"]).await,
            (_, None) => Ok(()),
            (method, Some(id)) => self.take(method, id, &message["params"]).await,
        }
    }

    /// Drops what the request has in flight.
    async fn cancel(&mut self, id: &Value) -> Flow {
        let stays = |due: &Due| due.firm || due.id.as_ref() != Some(id);
        self.queue.retain(stays);
        self.behind.retain(stays);
        self.hang_up(|asked| asked.id.as_ref() == Some(id));
        match self.on_cancel.iter().position(|(its, _)| its == id) {
            Some(index) => {
                let (id, steps) = self.on_cancel.remove(index);
                self.perform(Some(&id), steps.into()).await
            }
            None => Ok(()),
        }
    }

    /// Takes a request on: what its faults do before it, its work, its answer, each at its time.
    async fn take(&mut self, method: &str, id: &Value, params: &Value) -> Flow {
        let nth = *self.seen.entry(method.to_owned()).and_modify(|n| *n += 1).or_insert(1);
        let now = self.sys.now_ms();
        let call =
            Call { method: method.to_owned(), nth, id: id.clone(), params: params.clone(), failure: None };
        let question = host::question(self.plan, method, params);
        let is_host = method.starts_with("host.");
        // What the backend will say is not known yet.
        let rest = if is_host { Vec::new() } else { self.work(&call, now) };
        let timeout_at = now + link::timeout(params);
        let reply = match rest.last() {
            Some(Step::Answer(answer)) => answer.reply.clone(),
            _ => Reply { id: id.clone(), result: Value::Null, timeout_at },
        };
        self.last = reply.clone();
        let on_cancel = self.steps_of(&self.at(When::OnCancel, method, nth), &reply);
        if !on_cancel.is_empty() {
            self.on_cancel.push((id.clone(), on_cancel));
        }
        let mut steps = self.steps_of(&self.at(When::BeforeReply, method, nth), &reply);
        steps.extend(match (question, is_host) {
            (None, false) => rest,
            (None, true) => vec![answered(call, reply, Err(Failure::permanent("no such call of a host")))],
            (Some(Err(failure)), false) => vec![answered(call, reply, Err(failure))],
            (Some(Ok((question, silence))), false) => {
                vec![self.ask(question, silence), Step::Work(Box::new(call))]
            }
            (Some(question), true) => self.effect(call, reply, question),
        });
        self.perform(Some(id), steps.into()).await
    }

    /// The work of a call of the link that begins now, and its answer.
    fn work(&self, call: &Call, now: u64) -> Vec<Step> {
        let work = match call.method.as_str() {
            "initialize" => Some(link::Work::at_once(self.plan.declaration.clone())),
            method => link::work(self.plan, method, &call.params),
        };
        let unserved = || Failure::permanent(format!("the fake plugin does not serve {}", call.method));
        let failure = call.failure.clone().or_else(|| work.is_none().then(unserved));
        let work = match (work, &call.failure) {
            (Some(work), None) => work,
            _ => link::Work::at_once(Value::Null),
        };
        let timeout_at = now + link::timeout(&call.params);
        let reply = Reply { id: call.id.clone(), result: work.result, timeout_at };
        let mut steps = Vec::new();
        for (at, path, bytes) in work.files {
            steps.extend([Step::Until { at: now + at, firm: false }, Step::File(path, bytes)]);
        }
        steps.push(Step::Until { at: now.saturating_add(work.takes), firm: false });
        steps.push(Step::Answer(Box::new(Answer {
            method: call.method.clone(),
            nth: call.nth,
            reply,
            fetch_head: work.fetch_head,
            failure,
        })));
        steps
    }

    /// The steps of a request of a host: what comes before its question, the question, what comes after it, the answer.
    fn effect(
        &self,
        call: Call,
        reply: Reply,
        question: Result<(crate::backend::Question, Silence), Failure>,
    ) -> Vec<Step> {
        let at = |when| self.at(when, &call.method, call.nth);
        let (before, after) = (at(When::BeforeEffect), at(When::AfterEffect));
        let mut steps = self.steps_of(&before, &reply);
        if before.iter().any(|fault| fault.act.is_an_answer()) {
            return steps;
        }
        let invents = at(When::Instead).iter().any(|fault| fault.act.asks_nobody());
        let said = match question {
            Err(failure) => Err(failure),
            Ok(_) if invents => Ok(Value::Null),
            Ok((question, silence)) => {
                steps.push(self.ask(question, silence));
                Ok(Value::Null)
            }
        };
        steps.extend(self.steps_of(&after, &reply));
        if !after.iter().any(|fault| fault.act.is_an_answer()) {
            steps.push(answered(call, reply, said));
        }
        steps
    }

    /// The reply of a request that is due now, or what its faults make of it.
    fn answer(&mut self, mut answer: Answer) -> Vec<Step> {
        let at = |when| self.at(when, &answer.method, answer.nth);
        let (mut instead, middle, after) = (at(When::Instead), at(When::MidReply), at(When::AfterReply));
        if answer.failure.is_some() && answer.method.starts_with("host.") {
            // What is spoiled is the reply that all went well, and it did not: a release that failed is not `null`.
            instead.retain(|fault| !fault.act.spoils_the_reply());
        }
        if let Some((path, bytes)) = answer.fetch_head.filter(|_| instead.iter().all(|one| one.act.fetches()))
            && self.sys.write_file(&path, &bytes).is_err()
        {
            answer.reply.result = link::no_repository();
        }
        let reply = &answer.reply;
        let after = self.steps_of(&after, reply);
        if !instead.is_empty() {
            let mut steps = self.steps_of(&instead, reply);
            steps.extend(after);
            return steps;
        }
        let line = match answer.failure {
            Some(failure) => failure.line(&reply.id),
            None => reply.line(),
        };
        let middle = self.steps_of(&middle, reply);
        let half = if middle.is_empty() { 0 } else { line.len() / 2 };
        let mut steps = Vec::new();
        if half > 0 {
            steps.push(Step::Piece(Piece::Out(line[..half].to_vec())));
            steps.extend(middle);
        }
        steps.extend(glued(line[half..].to_vec(), after));
        steps
    }

    fn at(&self, when: When, method: &str, nth: u32) -> Vec<&'a Fault> {
        self.faults.iter().copied().filter(|fault| fault.is_at(when, method, nth)).collect()
    }

    /// One of the moments that belong to the process.
    async fn moment(&mut self, when: When) -> Flow {
        let faults: Vec<&Fault> =
            self.faults.iter().copied().filter(|fault| fault.moment() == when).collect();
        let steps = self.steps_of(&faults, &self.last);
        self.perform(None, steps.into()).await
    }

    fn steps_of(&self, faults: &[&Fault], reply: &Reply) -> Vec<Step> {
        let mut all = Vec::new();
        for fault in faults {
            let mut steps = vec![Step::Begin(fault.act.name())];
            match &fault.act {
                Act::DelayMs(ms) => steps.push(Step::Piece(Piece::Wait(*ms))),
                Act::CancellableDelayMs(ms) => {
                    steps.push(Step::Until { at: self.sys.now_ms() + ms, firm: false });
                }
                Act::AfterTimeoutMs(ms) => {
                    steps.push(Step::Until { at: reply.timeout_at + ms, firm: true });
                }
                Act::BehindNext => steps.push(Step::Behind),
                act => match lines::pieces(act, reply, &|name| self.sys.env(name)) {
                    Some(pieces) => steps.extend(pieces.into_iter().map(Step::Piece)),
                    None => steps.push(Step::Deed(act.clone())),
                },
            }
            match fault.after_ms {
                Some(ms) => all.push(Step::Later(ms, steps)),
                None => all.extend(steps),
            }
        }
        all
    }

    async fn run_due(&mut self) -> Flow {
        let now = self.sys.now_ms();
        loop {
            let due = self.queue.iter().enumerate().filter(|(_, due)| due.at <= now);
            let Some((index, _)) = due.min_by_key(|(index, due)| (due.at, *index)) else { return Ok(()) };
            let due = self.queue.remove(index);
            self.perform(due.id.as_ref(), due.steps).await?;
        }
    }

    async fn perform(&mut self, id: Option<&Value>, mut steps: VecDeque<Step>) -> Flow {
        while let Some(step) = steps.pop_front() {
            match step {
                Step::Begin(name) => self.sys.note(Note::Fault(name)),
                Step::Piece(piece) => self.perform_piece(piece).await?,
                Step::Deed(act) => self.perform_deed(&act).await?,
                Step::Until { at, firm } => {
                    if at > self.sys.now_ms() {
                        self.queue.push(Due { at, id: id.cloned(), firm, steps });
                        return Ok(());
                    }
                }
                Step::Later(ms, steps) => {
                    let at = self.sys.now_ms() + ms;
                    self.queue.push(Due { at, id: None, firm: false, steps: steps.into() });
                }
                Step::Behind => {
                    self.behind.push(Due { at: 0, id: id.cloned(), firm: false, steps });
                    return Ok(());
                }
                // Where a script writes is its own affair.
                Step::File(path, bytes) => drop(self.sys.write_file(&path, &bytes)),
                Step::Ask(asking) => {
                    self.calls += 1;
                    let (call, since) = (self.calls, self.sys.now_ms());
                    self.sys.dial(call);
                    self.asked.push(Asked { call, id: id.cloned(), asking, since, life: None, steps });
                    return Ok(());
                }
                Step::Work(call) => {
                    for step in self.work(&call, self.sys.now_ms()).into_iter().rev() {
                        steps.push_front(step);
                    }
                }
                Step::Answer(answer) => {
                    for step in self.answer(*answer).into_iter().rev() {
                        steps.push_front(step);
                    }
                    self.queue.append(&mut self.behind);
                }
            }
        }
        Ok(())
    }

    async fn perform_piece(&mut self, piece: Piece) -> Flow {
        match piece {
            Piece::Out(bytes) => self.write(Fd::Stdout, &bytes).await,
            Piece::Fill(byte, total) => self.flood(Fd::Stdout, &[byte], total).await,
            Piece::Wait(ms) => {
                let at = self.sys.now_ms() + ms;
                self.sys.sleep_until(Some(at)).await;
            }
            Piece::Hold(bytes) => self.held.extend(bytes),
            Piece::CloseStdout => self.close_stdout(),
            Piece::Exit => return Err(Exited(0)),
        }
        Ok(())
    }

    async fn perform_deed(&mut self, act: &Act) -> Flow {
        match act {
            Act::StdinUnread | Act::IgnoreStop => self.reading = false,
            Act::StdinClosed => {
                self.sys.close(Fd::Stdin);
                self.reading = false;
            }
            Act::StdoutClosed => self.close_stdout(),
            Act::StderrClosed => self.sys.close(Fd::Stderr),
            Act::StderrFlood(total) => {
                let line = [&[b'x'; 99][..], b"\n"].concat();
                self.flood(Fd::Stderr, &line, *total).await;
            }
            Act::StderrNoNewline(total) => self.flood(Fd::Stderr, b"x", *total).await,
            Act::StderrInvalidUtf8 => {
                self.write(Fd::Stderr, b"broken \xff\xfe \xc3\x28 \x1b[31m\x00\x07\r text\n").await;
            }
            Act::StderrText(text) => self.write(Fd::Stderr, format!("{text}\n").as_bytes()).await,
            Act::LeakEnvStderr(name) => {
                let value = self.sys.env(name).unwrap_or_default();
                self.write(Fd::Stderr, &[&value[..], b"\n"].concat()).await;
            }
            Act::Exit(status) => return Err(Exited(i32::from(*status))),
            Act::DieOf(sig) => self.sys.raise(*sig).await,
            Act::ExitLeavingStdoutHeld(status) => {
                let child = Background { holds: vec![Fd::Stdout], ..Background::default() };
                self.sys.spawn_background(&child).await;
                return Err(Exited(i32::from(*status)));
            }
            Act::ExitLeavingEscaped(status) => {
                let until = Until::Ms(ESCAPED_MS);
                let child = Background { group: Group::Setsid, holds: vec![Fd::Stdout], until, forks: 0 };
                self.sys.spawn_background(&child).await;
                return Err(Exited(i32::from(*status)));
            }
            Act::LeaveChild(child) => self.sys.spawn_background(child).await,
            Act::IgnoreSignals => {
                for sig in [Sig::Term, Sig::Int, Sig::Hup] {
                    self.sys.ignore(sig);
                }
            }
            Act::StopSelf => self.sys.raise(Sig::Stop).await,
            Act::KillMu(sig) => self.sys.kill_parent(*sig).await,
            act => unreachable!("`{}` is made of pieces", act.name()),
        }
        Ok(())
    }

    fn close_stdout(&mut self) {
        self.sys.close(Fd::Stdout);
        self.stdout_gone = true;
    }

    async fn flood(&mut self, fd: Fd, pattern: &[u8], total: u64) {
        let chunk = pattern.repeat(CHUNK / pattern.len());
        let mut left = total;
        while left > 0 && !(fd == Fd::Stdout && self.stdout_gone) {
            let size = usize::try_from(left).map_or(chunk.len(), |left| left.min(chunk.len()));
            if !self.write_all(fd, &chunk[..size]).await {
                return;
            }
            left -= size as u64;
        }
    }

    async fn write(&mut self, fd: Fd, bytes: &[u8]) {
        self.write_all(fd, bytes).await;
    }

    /// Whether everything was taken. A pipe that nobody reads is no reason to end: stdin tells what mu wants.
    async fn write_all(&mut self, fd: Fd, mut bytes: &[u8]) -> bool {
        if fd == Fd::Stdout && self.stdout_gone {
            return false;
        }
        while !bytes.is_empty() {
            match self.sys.write(fd, bytes).await {
                Ok(taken) if taken > 0 => bytes = &bytes[taken.min(bytes.len())..],
                _ => {
                    self.stdout_gone |= fd == Fd::Stdout;
                    return false;
                }
            }
        }
        true
    }
}

/// The answer to this call.
fn answered(call: Call, reply: Reply, said: Said) -> Step {
    let Call { method, nth, .. } = call;
    let mut answer = Answer { method, nth, reply, fetch_head: None, failure: None };
    answer.take(said);
    Step::Answer(Box::new(answer))
}

impl Answer {
    fn take(&mut self, said: Said) {
        match said {
            Ok(result) => self.reply.result = result,
            Err(failure) => self.failure = Some(failure),
        }
    }
}

/// The reply and what a fault writes right behind it, as one write.
fn glued(mut line: Vec<u8>, after: Vec<Step>) -> Vec<Step> {
    let (mut before, mut rest) = (Vec::new(), VecDeque::from(after));
    loop {
        match (rest.front(), rest.get(1)) {
            (Some(Step::Begin(_)), Some(Step::Piece(Piece::Out(_)))) => before.extend(rest.pop_front()),
            (Some(Step::Piece(Piece::Out(more))), _) => {
                line.extend_from_slice(more);
                rest.pop_front();
            }
            _ => break,
        }
    }
    before.push(Step::Piece(Piece::Out(line)));
    before.extend(rest);
    before
}
