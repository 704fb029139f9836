//! The plugin's conversation with the backend: a connection for each question, given up when it does not come to stand or
//! falls silent.

use std::collections::VecDeque;

use serde_json::Value;

use super::{Flow, Process, Step};
use crate::backend::{Answer as Told, Question, Request};
use crate::fake::host::{self, DIAL_MS, Outcome, PING_MS, SILENCE_MS, Silence};
use crate::fake::sys::{Heard, PluginSys};

/// What the backend is to be asked.
#[derive(Debug)]
pub(super) struct Asking {
    pub(super) line: Vec<u8>,
    pub(super) silence: Silence,
}

/// A question on its way to the backend or back.
pub(super) struct Asked {
    /// The number of its connection.
    pub(super) call: u32,
    /// The request that it is for.
    pub(super) id: Option<Value>,
    pub(super) asking: Box<Asking>,
    /// When the connection was begun.
    pub(super) since: u64,
    /// `None` until the connection stands.
    pub(super) life: Option<Life>,
    /// What follows.
    pub(super) steps: VecDeque<Step>,
}

/// The last sign of life of a connection that stands.
#[derive(Clone, Copy)]
pub(super) enum Life {
    /// Something came then.
    Heard(u64),
    /// Another was asked for then.
    AskedFor(u64),
}

impl Asked {
    /// When something is to be done about it.
    pub(super) fn due(&self) -> u64 {
        match self.life {
            None => self.since + DIAL_MS,
            Some(Life::Heard(at)) => at + PING_MS,
            Some(Life::AskedFor(at)) => at + SILENCE_MS,
        }
    }
}

impl<S: PluginSys> Process<'_, S> {
    /// The step that asks.
    pub(super) fn ask(&self, question: Question, silence: Silence) -> Step {
        let instance = self.plan.declaration["instance"].as_str().unwrap_or_default().to_owned();
        Step::Ask(Box::new(Asking { line: Request::Ask { instance, question }.line(), silence }))
    }

    /// Something came over a connection to the backend.
    pub(super) async fn hear(&mut self, call: u32, heard: Heard) -> Flow {
        let Some(index) = self.asked.iter().position(|asked| asked.call == call) else { return Ok(()) };
        let now = self.sys.now_ms();
        let asked = &mut self.asked[index];
        match (heard, asked.life) {
            (Heard::Line(line), life) if line.is_empty() => {
                asked.life = Some(Life::Heard(now));
                if life.is_none() {
                    self.sys.send(call, &asked.asking.line);
                }
                Ok(())
            }
            (Heard::Line(line), Some(_)) => match Told::read(&line) {
                Some(told) => self.resolve(index, Outcome::Answered(told)).await,
                None => self.resolve(index, Outcome::Unanswered("the backend talks nonsense".into())).await,
            },
            (Heard::Line(_), None) => {
                self.resolve(index, Outcome::NotAsked("the backend talks nonsense".into())).await
            }
            (Heard::Lost(reason), None) => self.resolve(index, Outcome::NotAsked(reason)).await,
            (Heard::Lost(reason), Some(_)) => self.resolve(index, Outcome::Unanswered(reason)).await,
        }
    }

    /// Gives up connections that do not come to stand or have fallen silent, and asks the others for signs of life.
    pub(super) async fn lose_patience(&mut self) -> Flow {
        let now = self.sys.now_ms();
        while let Some(index) = self.asked.iter().position(|asked| asked.due() <= now) {
            let asked = &mut self.asked[index];
            match asked.life {
                None => {
                    let reason = "the backend cannot be reached".to_owned();
                    self.resolve(index, Outcome::NotAsked(reason)).await?;
                }
                Some(Life::AskedFor(_)) => {
                    let reason = "the backend has fallen silent".to_owned();
                    self.resolve(index, Outcome::Unanswered(reason)).await?;
                }
                Some(Life::Heard(_)) => {
                    asked.life = Some(Life::AskedFor(now));
                    let call = asked.call;
                    self.sys.send(call, b"\n");
                }
            }
        }
        Ok(())
    }

    /// It is known what comes of a question: what has waited for it goes on.
    async fn resolve(&mut self, index: usize, outcome: Outcome) -> Flow {
        let mut asked = self.asked.remove(index);
        self.sys.hang_up(asked.call);
        let said = host::said(outcome, asked.asking.silence);
        for step in &mut asked.steps {
            match step {
                Step::Answer(answer) => {
                    answer.take(said);
                    if self.last.id == answer.reply.id {
                        self.last = answer.reply.clone();
                    }
                    break;
                }
                Step::Work(call) => {
                    call.failure = said.err();
                    break;
                }
                _ => {}
            }
        }
        self.perform(asked.id.as_ref(), asked.steps).await
    }

    /// Closes the connections of these questions, and drops what waits for them.
    pub(super) fn hang_up(&mut self, these: impl Fn(&Asked) -> bool) {
        for asked in self.asked.extract_if(.., |asked| these(asked)) {
            self.sys.hang_up(asked.call);
        }
    }
}
