//! A declaration from its text, member by member.
//!
//! It works on the text itself and not on a tree of serde_json: there 2^64 would be a float and 1e-400 zero.

use std::fmt;

use super::*;
use crate::messages::values::{BadText, Instance, Label, MAX_INTEGER, Name, SchemaDigest};
use crate::strict::{Checked, Member};

/// The first place at which a declaration is off the schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flaw {
    /// LOAD-05 (missing), LOAD-06 (unknown member) or LOAD-07 (unknown seam, wrong type or value).
    pub rule: &'static str,
    /// The path of the member, as in `seams.link.checks[0]`; `result` for the whole.
    pub field: String,
    /// How it is wrong, as the rest of a sentence that starts with the path.
    pub reason: String,
}

impl Flaw {
    /// The text is not even JSON.
    pub(super) fn no_json() -> Self {
        Flaw { rule: "LOAD-07", field: "result".to_owned(), reason: "is not JSON".to_owned() }
    }
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} ({})", self.field, self.reason, self.rule)
    }
}

impl std::error::Error for Flaw {}

type Read<T> = Result<T, Flaw>;

/// The whole declaration. At each object missing members come first, then unknown ones, then values in the schema's order.
pub(crate) fn declaration(json: Checked<'_>) -> Read<Declaration> {
    let whole = Field { path: String::new(), value: json };
    let whole = whole.object(&["protocol", "plugin", "instance", "schema", "seams"], &[])?;
    Ok(Declaration {
        protocol: whole.get("protocol")?.integer()?,
        plugin: program(&whole.get("plugin")?)?,
        instance: whole.get("instance")?.checked(Instance::new)?,
        schema: whole.get("schema")?.checked(SchemaDigest::new)?,
        seams: seams(&whole.get("seams")?)?,
    })
}

/// The answered version as it is written, if it is an integer, whatever the rest of the declaration: a later version may
/// look different altogether.
pub(crate) fn protocol(json: Checked<'_>) -> Option<&str> {
    let members = json.members()?;
    let protocol = members.iter().find(|member| member.name.is("protocol"))?.value.get();
    let digits = protocol.strip_prefix('-').unwrap_or(protocol);
    digits.bytes().all(|byte| byte.is_ascii_digit()).then_some(protocol)
}

fn program(field: &Field<'_>) -> Read<Program> {
    let program = field.object(&["name", "version"], &[])?;
    Ok(Program { name: program.get("name")?.name()?, version: program.get("version")?.checked(Label::new)? })
}

fn seams(field: &Field<'_>) -> Read<Seams> {
    let known: Vec<&str> = Seam::ALL.iter().map(|seam| seam.name()).collect();
    let seams = field.members()?;
    if let Some(member) = seams.unknown(&known) {
        let field = seams.path_of(&shown(&member.name.decode()));
        return Err(Flaw {
            rule: "LOAD-07",
            field,
            reason: format!("is no seam: known are {}", list(&known)),
        });
    }
    Ok(Seams {
        link: seams.optional("link", link)?,
        job: seams.optional("job", job)?,
        host: seams.optional("host", host)?,
        channel: seams.optional("channel", channel)?,
    })
}

fn link(field: &Field<'_>) -> Read<Link> {
    let link = field.object(
        &["fetch", "slots", "remoteOnTimeout", "quiescence", "maxScriptBytes", "checks"],
        &["push"],
    )?;
    Ok(Link {
        fetch: link.get("fetch")?.boolean()?,
        push: link.optional("push", Field::boolean)?,
        slots: link.get("slots")?.word()?,
        remote_on_timeout: link.get("remoteOnTimeout")?.word()?,
        quiescence: link.get("quiescence")?.word()?,
        max_script_bytes: link.get("maxScriptBytes")?.integer()?,
        checks: link.get("checks")?.words()?,
    })
}

fn job(field: &Field<'_>) -> Read<Job> {
    let job = field.object(
        &["kind", "view", "handle", "start", "checks"],
        &["channel", "firstTurn", "outlivesHost", "honours"],
    )?;
    Ok(Job {
        kind: job.get("kind")?.name()?,
        view: job.get("view")?.word()?,
        handle: job.get("handle")?.word()?,
        start: key_capabilities(&job.get("start")?)?,
        channel: job.optional("channel", Field::name)?,
        checks: job.get("checks")?.words()?,
        first_turn: job.optional("firstTurn", Field::word)?,
        outlives_host: job.optional("outlivesHost", Field::boolean)?,
        honours: job.optional("honours", honours)?,
    })
}

fn honours(field: &Field<'_>) -> Read<Honours> {
    let honours = field.object(&["command", "env", "sockets", "roles"], &[])?;
    Ok(Honours {
        command: honours.get("command")?.boolean()?,
        env: honours.get("env")?.boolean()?,
        sockets: honours.get("sockets")?.boolean()?,
        roles: honours.get("roles")?.words()?,
    })
}

fn host(field: &Field<'_>) -> Read<Host> {
    let host = field.object(&["acquire"], &[])?;
    Ok(Host { acquire: key_capabilities(&host.get("acquire")?)? })
}

fn key_capabilities(field: &Field<'_>) -> Read<KeyCapabilities> {
    let key = field.object(&["lookup", "fenceKey"], &["dedupe", "inFlightMs"])?;
    Ok(KeyCapabilities {
        lookup: key.get("lookup")?.boolean()?,
        fence_key: key.get("fenceKey")?.boolean()?,
        dedupe: key.optional("dedupe", dedupe)?,
        in_flight_ms: key.optional("inFlightMs", Field::integer)?,
    })
}

fn dedupe(field: &Field<'_>) -> Read<Dedupe> {
    let dedupe = field.object(&["exact", "windowMs"], &[])?;
    let exact = dedupe.get("exact")?;
    match exact.boolean()? {
        true => Ok(Dedupe { window_ms: dedupe.get("windowMs")?.integer()? }),
        false => Err(exact.wrong("is not true: there is no other kind of deduplication")),
    }
}

fn channel(field: &Field<'_>) -> Read<Channel> {
    let channel = field.object(&["name", "caps"], &[])?;
    Ok(Channel { name: channel.get("name")?.name()?, caps: channel_caps(&channel.get("caps")?)? })
}

fn channel_caps(field: &Field<'_>) -> Read<ChannelCaps> {
    let caps = field.object(
        &[
            "fence",
            "receipt",
            "dedupe",
            "steer",
            "interrupt",
            "fresh",
            "answer",
            "command",
            "watch",
            "settleText",
        ],
        &[],
    )?;
    Ok(ChannelCaps {
        fence: caps.get("fence")?.word()?,
        receipt: caps.get("receipt")?.word()?,
        dedupe: dedupe_or_none(&caps.get("dedupe")?)?,
        steer: caps.get("steer")?.word()?,
        interrupt: caps.get("interrupt")?.word()?,
        fresh: caps.get("fresh")?.word()?,
        answer: caps.get("answer")?.boolean()?,
        command: caps.get("command")?.boolean()?,
        watch: caps.get("watch")?.word()?,
        settle_text: caps.get("settleText")?.word()?,
    })
}

fn dedupe_or_none(field: &Field<'_>) -> Read<Option<Dedupe>> {
    match field.value.string() {
        Some(word) if word.is("none") => Ok(None),
        Some(_) => Err(field.wrong("is neither `none` nor an object with `exact` and `windowMs`")),
        None => dedupe(field).map(Some),
    }
}

/// A value and where it stands.
struct Field<'a> {
    path: String,
    value: Checked<'a>,
}

impl<'a> Field<'a> {
    fn wrong(&self, reason: impl Into<String>) -> Flaw {
        let field = if self.path.is_empty() { "result".to_owned() } else { self.path.clone() };
        Flaw { rule: "LOAD-07", field, reason: reason.into() }
    }

    fn members(&self) -> Read<Members<'a>> {
        match self.value.members() {
            Some(members) => Ok(Members { path: self.path.clone(), members }),
            None => Err(self.wrong("is not an object")),
        }
    }

    /// A closed object: all of `required`, some of `optional`, nothing else.
    fn object(&self, required: &[&str], optional: &[&str]) -> Read<Members<'a>> {
        let object = self.members()?;
        for name in required {
            object.get(name)?;
        }
        match object.unknown(&[required, optional].concat()) {
            None => Ok(object),
            Some(member) => Err(Flaw {
                rule: "LOAD-06",
                field: object.path_of(&shown(&member.name.decode())),
                reason: "is unknown to the schema".to_owned(),
            }),
        }
    }

    fn boolean(&self) -> Read<bool> {
        match self.value.get() {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err(self.wrong("is neither true nor false")),
        }
    }

    /// Read from the digits: `1.0`, `1e3` and `-0` are not how the protocol writes integers.
    fn integer(&self) -> Read<u64> {
        let text = self.value.get();
        let digits = text.bytes().all(|byte| byte.is_ascii_digit());
        match text.parse() {
            Ok(number) if digits && number <= MAX_INTEGER => Ok(number),
            _ => Err(self.wrong("is not an integer from 0 to 2^53-1, written as digits")),
        }
    }

    /// A string with a rule of its own.
    fn checked<T: Into<String>>(&self, rule: impl Fn(String) -> Result<T, BadText>) -> Read<String> {
        let Some(text) = self.value.string() else { return Err(self.wrong("is not a string")) };
        rule(text.decode().into_owned()).map(T::into).map_err(|bad| self.wrong(bad.to_string()))
    }

    ///
    fn name(&self) -> Read<String> {
        self.checked(Name::new)
    }

    fn word<W: Vocabulary>(&self) -> Read<W> {
        let text = self.value.string();
        let word = text.and_then(|text| W::ALL.iter().find(|word| text.is(word.name())));
        word.copied().ok_or_else(|| {
            let known: Vec<&str> = W::ALL.iter().map(|word| word.name()).collect();
            self.wrong(format!("is none of {}", list(&known)))
        })
    }

    fn words<W: Vocabulary>(&self) -> Read<Vec<W>> {
        let Some(values) = self.value.elements() else { return Err(self.wrong("is not a list")) };
        let word = |(place, value)| Field { path: format!("{}[{place}]", self.path), value }.word();
        values.into_iter().enumerate().map(word).collect()
    }
}

/// The members of an object and where it stands.
struct Members<'a> {
    path: String,
    members: Vec<Member<'a>>,
}

impl<'a> Members<'a> {
    fn path_of(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }

    fn find(&self, name: &str) -> Option<Field<'a>> {
        let member = self.members.iter().find(|member| member.name.is(name))?;
        Some(Field { path: self.path_of(name), value: member.value })
    }

    fn get(&self, name: &str) -> Read<Field<'a>> {
        self.find(name).ok_or_else(|| Flaw {
            rule: "LOAD-05",
            field: self.path_of(name),
            reason: "is missing".to_owned(),
        })
    }

    fn optional<T>(&self, name: &str, read: impl Fn(&Field<'a>) -> Read<T>) -> Read<Option<T>> {
        self.find(name).as_ref().map(read).transpose()
    }

    /// The first member that is none of `known`.
    fn unknown(&self, known: &[&str]) -> Option<&Member<'a>> {
        self.members.iter().find(|member| !known.iter().any(|name| member.name.is(name)))
    }
}

fn list(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    quoted.join(", ")
}

/// An identifier that the plugin chose, for one line of text: at most 40 characters, anything unprintable escaped.
pub(crate) fn shown(identifier: &str) -> String {
    let cut: String = identifier.chars().take(40).flat_map(char::escape_debug).collect();
    if identifier.chars().nth(40).is_some() { cut + "…" } else { cut }
}
