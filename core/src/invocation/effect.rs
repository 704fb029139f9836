//! Sending an effect: whoever keeps the journal is asked to make each send durable before anything of it is written.

use std::time::Duration;

use mu_protocol::messages::error::ErrorKind;
use mu_protocol::messages::method::{AnyResult, Method};
use mu_protocol::messages::values::EpochMillis;
use mu_protocol::outgoing;

use super::{Invocation, RETRY_PAUSES_MS, Start};
use crate::call_error::CallError;
use crate::journal::moment::{Moment, Window};
use crate::os::{Os, ProcessId};
use crate::reached;
use crate::session::{Cause, NotSent, Request, Status};
use crate::store::effects::Sent;

/// An effect to be sent.
#[derive(Clone, Debug)]
pub struct Sending<'a> {
    /// The plugin that it goes to.
    pub start: &'a Start,
    /// What is to be done.
    pub method: Method,
    /// Its parameters without their deadline, byte for byte.
    pub params: &'a str,
    /// How long an answer is waited for.
    pub budget: Duration,
    /// The time in which it may be written at all; a first send has none.
    pub window: Option<&'a Window>,
    /// Deadlines that earlier sends had; a new one differs (CALL-04).
    pub had: Vec<EpochMillis>,
}

/// Why an effect has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EffectError<E> {
    /// The call has none.
    Call(CallError),
    /// The send could not be made durable, so it was not written; whatever was sent before had done nothing.
    Record(E),
}

impl<E> From<CallError> for EffectError<E> {
    fn from(error: CallError) -> Self {
        EffectError::Call(error)
    }
}

impl<O: Os> Invocation<O> {
    /// Sends an effect and waits for the end of the call; as [`Invocation::call`] repeats it after `retryable`. Each send
    /// is handed to `record` first, which returns once it is durable (EFF-02); only then, and unless a signal came or the
    /// plugin's process is another by then, is it written.
    ///
    /// # Errors
    /// As [`Invocation::call`], and what `record` fails with.
    pub async fn effect<E>(
        &self,
        sending: Sending<'_>,
        mut record: impl AsyncFnMut(Sent) -> Result<(), E>,
    ) -> Result<AnyResult, EffectError<E>> {
        let Sending { start, method, params, budget, window, mut had } = sending;
        // What cannot fit with the shortest of ids needs no plugin.
        self.line(1, method, params, budget)?;
        let mut pauses = RETRY_PAUSES_MS.iter();
        loop {
            self.start(start.clone()).await.map_err(CallError::Start)?;
            let name = start.name.as_str();
            let Some(group) = self.ready_group(name) else {
                return Err(CallError::NotSent(method, NotSent::Gone).into());
            };
            let (now, id) = (self.os.now(), self.inner.borrow_mut().fresh_id());
            let deadline = self.wire_deadline(budget, &had);
            had.push(deadline);
            let params = mu_protocol::messages::dated::with_deadline(params, deadline);
            let line = outgoing::request(id, method.as_str(), &params)
                .map_err(|error| CallError::TooLong(method, error))?;
            let sent = Sent { request_id: id, deadline, group: group.clone(), at: self.os.wall() };
            record(sent).await.map_err(EffectError::Record)?;
            let not_sent = |why| Err(CallError::NotSent(method, why).into());
            if let Err(signal) = self.look_for_signals().await {
                reached!("PRC-12 an effect is not sent: a signal came");
                return not_sent(NotSent::Stopped(Box::new(Cause::Signal(signal))));
            }
            // Making it durable may have taken long; a plugin may refuse what comes after its deadline, and mu would not wait.
            if self.os.now() >= now + budget {
                reached!("TMO-08 an effect is not sent: its time is over");
                return not_sent(NotSent::Overdue);
            }
            if window.is_some_and(|window| !window.is_open(&Moment::now(&self.os))) {
                reached!("A-77 an effect is not sent: its window is over by now");
                return not_sent(NotSent::WindowOver);
            }
            // The process that was recorded is the one that gets it.
            if self.ready_group(name).as_ref() != Some(&group) {
                reached!("EFF-02 an effect is not sent: its plugin is gone");
                return not_sent(NotSent::Gone);
            }
            let request = Request { method, line, deadline: now + budget };
            let error = match self.ask(name, id, request, budget).await? {
                Ok(result) => return Ok(result),
                Err(error) => error,
            };
            let pause = if error.kind == ErrorKind::Retryable { pauses.next() } else { None };
            let Some(pause) = pause else { return Err(CallError::Refused(method, error).into()) };
            reached!("ERR-01 an effect is repeated");
            if self.sleep_until(self.os.now() + Duration::from_millis(*pause)).await.is_err() {
                return Err(CallError::Refused(method, error).into());
            }
        }
    }

    /// Ids up to this one were used for an effect by an earlier run: its resend must have another (CALL-04).
    pub fn skip_ids(&self, used: u64) {
        let mut inner = self.inner.borrow_mut();
        inner.next_id = inner.next_id.max(used.saturating_add(1));
    }

    /// The group of a plugin that is ready.
    fn ready_group(&self, name: &str) -> Option<ProcessId> {
        self.with(name, |plugin| {
            let process = plugin.process.as_mut()?;
            let group = process.group().clone();
            matches!(process.session().status(), Status::Ready(_)).then_some(group)
        })
    }

    /// A deadline on the wire that no earlier send had.
    fn wire_deadline(&self, budget: Duration, had: &[EpochMillis]) -> EpochMillis {
        let mut deadline = self.deadline(budget);
        while had.contains(&deadline) {
            deadline = EpochMillis::new(deadline.value() + 1).unwrap_or(EpochMillis::new(0).expect("it is"));
        }
        deadline
    }
}
