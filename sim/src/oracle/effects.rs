//! What was asked of plugins about effects: every request that carries the key of one.

use std::fmt;

use mu_core::os::{Exit, Pid};
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use super::calls::{Call, declared};
use super::history::Wire;
use super::{History, Ns};

/// The effects of which the tests can tell the subject.
const OF_HOSTS: [&str; 2] = ["host.acquire", "host.release"];

/// A request about an effect.
pub(super) struct Asked<'a> {
    pub wire: &'a Wire,
    pub call: Call<'a>,
    pub key: &'a str,
}

impl<'a> Asked<'a> {
    /// All of a run, in the order of their first bytes.
    pub(super) fn all(history: &'a History) -> Vec<Asked<'a>> {
        let mut all: Vec<Asked<'a>> = Vec::new();
        for wire in &history.wires {
            for call in Call::all(wire) {
                let of_a_host = call.method.starts_with("host.");
                if let Some(key) = call.line.json["params"]["key"].as_str().filter(|_| of_a_host) {
                    all.push(Asked { wire, call, key });
                }
            }
        }
        all.sort_by_key(|asked| asked.call.line.begun);
        all
    }

    /// Whether it asks for the effect itself, and not what became of it.
    pub(super) fn is_effect(&self) -> bool {
        OF_HOSTS.contains(&self.call.method)
    }

    /// The place of its first byte.
    pub(super) fn place(&self) -> usize {
        self.call.line.begun
    }

    /// The pid of the mu that asked.
    pub(super) fn mu(&self, history: &History) -> Pid {
        history.mu(self.wire).pid
    }

    /// What the plugin declared as its instance, as far as mu had read it.
    pub(super) fn instance(&self) -> Option<&'a str> {
        declared(self.wire)?["instance"].as_str()
    }

    /// How a report names it.
    pub(super) fn name(&self, history: &History) -> String {
        format!("{}: call {} ({}, key {})", history.name(self.wire), self.call.id, self.call.method, self.key)
    }

    /// Its parameters byte for byte, without the deadline.
    pub(super) fn undated(&self) -> Option<String> {
        undated(&self.call.line.bytes)
    }

    /// Whether the mu that asked came to an end of its own.
    pub(super) fn mu_exited(&self, history: &History) -> bool {
        let mu = history.mu(self.wire);
        mu.crashed.is_none() && mu.died.is_some_and(|(_, _, exit)| matches!(exit, Exit::Status(_)))
    }

    /// Whether the plugin's answer is definite, was read by a mu that may believe it, and is the last word about the
    /// request: a result, or an error after which nothing has happened.
    pub(super) fn definite(&self) -> Option<Ns> {
        let (place, at, outcome) = self.call.answer?;
        let is_definite = match outcome.kind() {
            Some(kind) => kind != "unknown-outcome",
            None => true,
        };
        let is_sound = super::shape::fits(self.call.method, outcome)
            && self.wire.answered(self.call.id, place + 1, true);
        (is_definite && is_sound).then_some(at)
    }
}

/// The members of an object in their order, each with its text.
struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visit;
        impl<'de> Visitor<'de> for Visit {
            type Value = Members<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Visit)
    }
}

/// The parameters of a request, byte for byte as they stand in its line, but for the member `deadline`.
pub(super) fn undated(line: &[u8]) -> Option<String> {
    let Members(all) = serde_json::from_slice(line).ok()?;
    let (_, params) = all.into_iter().find(|(name, _)| name == "params")?;
    let Members(members) = serde_json::from_str(params.get()).ok()?;
    let members = members.iter().filter(|(name, _)| name != "deadline");
    let text = members.map(|(name, value)| format!("{}:{}", Value::from(name.as_str()), value.get()));
    Some(format!("{{{}}}", text.collect::<Vec<_>>().join(",")))
}

/// Whether a line asks for one of the ten effects.
pub fn is_effect(line: &[u8]) -> bool {
    const EFFECTS: [&str; 10] = [
        "host.acquire",
        "host.release",
        "job.start",
        "job.stop",
        "channel.send",
        "channel.fresh",
        "channel.command",
        "channel.interrupt",
        "channel.abort",
        "channel.answer",
    ];
    #[derive(serde::Deserialize)]
    struct Request {
        method: Option<String>,
        #[serde(default)]
        id: Option<IgnoredAny>,
    }
    let line = line.split(|byte| *byte == b'\n').next().unwrap_or_default();
    // Most lines are none, and are not worth parsing.
    if !EFFECTS.iter().any(|name| memchr::memmem::find(line, name.as_bytes()).is_some()) {
        return false;
    }
    let request: Option<Request> = serde_json::from_slice(line).ok();
    request.is_some_and(|request| {
        request.id.is_some() && request.method.is_some_and(|method| EFFECTS.contains(&method.as_str()))
    })
}
