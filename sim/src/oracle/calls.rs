//! The calls of a conversation: each request, until when it may last, and what became of it.

use serde_json::Value;

use super::history::{Line, Wire};
use super::speech::{Outcome, Saying};
use super::{Ns, SECOND};

/// What a read may take, the handshake included (TMO-03, HSK-08).
const READ: Ns = 10 * SECOND;
/// What an effect may take that needs no machine.
const EFFECT: Ns = 60 * SECOND;
/// What the making of a machine may take.
const ACQUIRE: Ns = 600 * SECOND;
/// What is given to a call beyond the time that it takes itself (TMO-02).
const BEYOND: Ns = 5 * SECOND;

/// A request of mu.
pub(super) struct Call<'a> {
    pub id: u64,
    pub method: &'a str,
    pub line: &'a Line,
    /// The answer that mu had read before it began to stop the plugin, with place and time.
    pub answer: Option<(usize, Ns, &'a Outcome)>,
}

impl<'a> Call<'a> {
    /// All requests, in their order.
    pub(super) fn all(wire: &'a Wire) -> impl Iterator<Item = Call<'a>> {
        wire.lines.iter().filter_map(move |line| {
            let (id, method) = (line.request_id()?, line.method()?);
            let stop = wire.stop().map_or(usize::MAX, |(place, _)| place);
            Some(Call { id, method, line, answer: answered(wire, id, stop) })
        })
    }

    /// A parameter.
    pub(super) fn param(&self, name: &str) -> &'a Value {
        &self.line.json["params"][name]
    }

    /// The name of the host that it is about.
    pub(super) fn host(&self) -> Option<&'a str> {
        self.param("target")["host"]["name"].as_str()
    }

    /// The machine that it is about, if it names one: mu's name of the host, its handle, and the instance of that.
    pub(super) fn machine(&self) -> Option<[&'a str; 3]> {
        let host = &self.param("target")["host"];
        Some([host["name"].as_str()?, host["handle"].as_str()?, host["instance"].as_str()?])
    }

    /// Its parameters without the deadline.
    pub(super) fn lasting(&self) -> Value {
        let mut params = self.line.json["params"].clone();
        params.as_object_mut().map(|params| params.remove("deadline"));
        params
    }

    /// How long mu may wait for its answer; `None` when that is not known here.
    pub(super) fn budget(&self) -> Option<Ns> {
        budget(self.method, self.param("timeoutMs").as_u64())
    }

    /// The kind of the error that answered it.
    pub(super) fn error_kind(&self) -> Option<&'a str> {
        self.answer.and_then(|(_, _, outcome)| outcome.kind())
    }

    /// The result that answered it.
    pub(super) fn result(&self) -> Option<&'a Value> {
        match self.answer {
            Some((_, _, Outcome::Result(result))) => Some(result),
            _ => None,
        }
    }

    /// Whether it was answered by a run that was cut off at its timeout.
    pub(super) fn was_cut(&self) -> bool {
        self.result().and_then(|run| run.get("exitCode")).is_some_and(Value::is_null)
    }
}

/// What a plugin has declared, once mu has read that.
pub(super) fn declared(wire: &Wire) -> Option<&Value> {
    Call::all(wire).find(|call| call.method == "initialize")?.result()
}

/// The link of it.
pub(super) fn declared_link(wire: &Wire) -> Option<&Value> {
    declared(wire)?.get("seams")?.get("link")
}

pub(super) fn budget(method: &str, timeout_ms: Option<u64>) -> Option<Ns> {
    match (method, timeout_ms) {
        ("link.exec" | "link.fetch" | "link.push", Some(ms)) => {
            Some(ms.saturating_mul(SECOND / 1_000) + BEYOND)
        }
        ("initialize" | "link.checkSteps" | "host.lookup" | "host.status", _) => Some(READ),
        ("host.acquire", _) => Some(ACQUIRE),
        ("host.release", _) => Some(EFFECT),
        _ => None,
    }
}

/// The first reply to a request, if mu had read it before event number `before` and it is a clean one.
fn answered(wire: &Wire, id: u64, before: usize) -> Option<(usize, Ns, &Outcome)> {
    let said = wire
        .speech
        .said()
        .iter()
        .find(|said| matches!(said.what, Saying::Reply { id: its, .. } if its == id))?;
    let (place, at) = said.read.filter(|(place, _)| *place < before)?;
    Some((place, at, said.outcome.as_ref()?))
}
