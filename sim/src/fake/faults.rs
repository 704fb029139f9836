//! A fault: which plugin, which process of it, which moment, what; and the check that it is possible at all.

use serde::{Deserialize, Serialize};

use super::catalogue::{Act, Topic, When};
use super::sys::{Fd, Until};

/// The methods that the fake plugin answers, hence those that `on` can name; the handshake first.
pub const METHODS: &[&str] = &[
    "initialize",
    "link.exec",
    "link.fetch",
    "link.push",
    "link.checkSteps",
    "host.acquire",
    "host.lookup",
    "host.status",
    "host.release",
];

/// One thing that goes wrong. Faults of one moment happen in the order of the file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// The plugin that misbehaves.
    pub plugin: String,
    /// The method whose request is met with it; `initialize` when left out. Not for the moments of the process
    /// (`on-start`, `on-shutdown`, `on-eof`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on: Option<String>,
    /// Which request of that method within one process; the first (1) when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nth: Option<u32>,
    /// How many requests in a row, from that one on; 1 when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<u32>,
    /// Which start of the plugin within the scenario, counted from 1; every start when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<u32>,
    /// The moment; the first that the catalogue names for this `do` when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<When>,
    /// Milliseconds from the moment to the deed; the plugin goes on in between, and its end cancels the deed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_ms: Option<u64>,
    /// What happens.
    #[serde(rename = "do")]
    pub act: Act,
}

/// Why a fault cannot happen.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct Impossible {
    /// The key of the fault that is at odds with the others.
    pub key: &'static str,
    /// What is at odds, and what would be possible.
    pub reason: String,
}

impl Fault {
    /// A fault at its natural moment, in every process of the plugin.
    pub fn new(plugin: &str, act: Act) -> Fault {
        Fault {
            plugin: plugin.to_owned(),
            on: None,
            nth: None,
            times: None,
            start: None,
            when: None,
            after_ms: None,
            act,
        }
    }

    /// The method whose request it belongs to; meaningless for the moments of the process.
    pub fn method(&self) -> &str {
        self.on.as_deref().unwrap_or("initialize")
    }

    /// The moment at which it happens.
    pub fn moment(&self) -> When {
        self.when.unwrap_or_else(|| self.act.moments()[0])
    }

    /// Whether it happens in the process that is the `start`-th of its plugin.
    pub fn is_in_start(&self, start: u32) -> bool {
        self.start.is_none_or(|wanted| wanted == start)
    }

    /// Whether it happens at this moment of the `nth` request of `method`.
    pub fn is_at(&self, when: When, method: &str, nth: u32) -> bool {
        let first = self.nth.unwrap_or(1);
        let met = nth.checked_sub(first).is_some_and(|later| later < self.times.unwrap_or(1));
        self.moment() == when && self.method() == method && met
    }

    /// Refuses combinations that no run could show.
    pub fn check(&self) -> Result<(), Impossible> {
        let impossible = |key, reason: String| Err(Impossible { key, reason });
        let (when, name) = (self.moment(), self.act.name());
        if !self.act.moments().contains(&when) {
            let possible: Vec<&str> = self.act.moments().iter().map(|moment| moment.name()).collect();
            let possible = possible.join(", ");
            return impossible("when", format!("`{name}` cannot happen {}, but: {possible}", when.name()));
        }
        if let Some(method) = self.on.as_deref() {
            if !when.is_of_a_request() {
                let reason =
                    format!("{} belongs to the process, not to a request: leave `on` out", when.name());
                return impossible("on", reason);
            }
            if !METHODS.contains(&method) {
                let reason = format!("no request `{method}` to answer; there are: {}", METHODS.join(", "));
                return impossible("on", reason);
            }
        }
        let methods = self.act.methods();
        if when.is_of_a_request() && !methods.contains(&self.method()) {
            let reason = format!("`{name}` is for {}", methods.join(", "));
            return impossible("on", reason);
        }
        if when.is_of_an_effect() && !self.method().starts_with("host.") {
            let hosts: Vec<&str> = METHODS.iter().copied().filter(|one| one.starts_with("host.")).collect();
            let reason =
                format!("{} lies around a question to the backend: {}", when.name(), hosts.join(", "));
            return impossible(if self.on.is_some() { "on" } else { "when" }, reason);
        }
        if when == When::BeforeRead && self.method() != "initialize" {
            let reason = "before-read is for initialize alone: which request comes next is not known unread";
            return impossible("when", reason.to_owned());
        }
        for (key, number) in [("nth", self.nth), ("times", self.times)] {
            match number {
                Some(0) => return impossible(key, "counting begins at 1".to_owned()),
                Some(n) if n > 1 && (!when.is_of_a_request() || self.method() == "initialize") => {
                    let reason = format!("it happens once in a process, there is no number {n}; use `start`");
                    return impossible(key, reason);
                }
                _ => {}
            }
        }
        if self.start == Some(0) {
            return impossible("start", "counting begins at 1".to_owned());
        }
        if self.after_ms.is_some() {
            self.check_after()?;
        }
        self.check_value()
    }

    fn check_after(&self) -> Result<(), Impossible> {
        let topic = self.act.topic();
        let reason = if topic == Topic::Time {
            format!("`{}` is a time itself", self.act.name())
        } else if topic == Topic::Delivery {
            format!("`{}` is about the reply itself; put a `delay-ms` before it", self.act.name())
        } else if !matches!(
            self.moment(),
            When::OnStart | When::Instead | When::AfterReply | When::OnShutdown | When::OnEof
        ) {
            format!(
                "{} lasts no time; a later deed needs on-start, instead, after-reply, on-shutdown or on-eof",
                { self.moment().name() }
            )
        } else {
            return Ok(());
        };
        Err(Impossible { key: "after_ms", reason })
    }

    fn check_value(&self) -> Result<(), Impossible> {
        let reason = match &self.act {
            Act::Nesting(depth) if *depth < 3 || *depth > 500_000 => {
                "the envelope and the result are two levels already: `nesting` takes 3 to 500000".to_owned()
            }
            Act::PaddedString(0) | Act::EndlessLine(0) | Act::StderrFlood(0) | Act::StderrNoNewline(0) => {
                "no bytes, no fault: give at least 1".to_owned()
            }
            Act::EndlessLine(n) | Act::StderrFlood(n) | Act::StderrNoNewline(n) if *n > 4 << 30 => {
                "more than 4 GiB".to_owned()
            }
            Act::Line(text) if text.contains('\n') => "`line` is one line: no newline in it".to_owned(),
            Act::DieOf(sig) if matches!(sig.name(), "CONT" | "STOP") => {
                format!("nobody dies of {}; to stop, use `stop-self`", sig.name())
            }
            Act::LeaveChild(child) if child.until == Until::Eof && !child.holds.contains(&Fd::Stdin) => {
                "`until = \"eof\"` needs `holds` to name stdin".to_owned()
            }
            Act::PaddedString(n) if *n > 64 << 20 => "more than 64 MiB".to_owned(),
            Act::LeaveChild(child) if child.forks > 10_000 => "more than 10000 forks".to_owned(),
            Act::LeakEnvReply(name) | Act::LeakEnvStderr(name)
                if name.is_empty() || name.contains('=') || name.contains('\0') =>
            {
                "not the name of an environment variable".to_owned()
            }
            _ => return Ok(()),
        };
        Err(Impossible { key: "do", reason })
    }
}
