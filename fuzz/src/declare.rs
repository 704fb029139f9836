//! Declarations that are nearly right, drawn from the bytes of an input, and the load rules as the protocol page has them.

use arbitrary::{Result, Unstructured};
use mu_protocol::messages::values::MAX_INTEGER;
use mu_protocol::schema::SCHEMA_DIGEST;
use serde_json::{Map, Value, json};

use crate::schema;

/// A digest that is none of the published schema.
const OTHER_DIGEST: &str = "sha256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

/// A declaration that is legal by the schema.
pub fn declaration(u: &mut Unstructured<'_>) -> Result<Value> {
    let mut seams = Map::new();
    if !u.ratio(1, 8)? {
        seams.insert("link".into(), link(u)?);
    }
    if !u.ratio(1, 8)? {
        seams.insert("job".into(), job(u)?);
    }
    if u.arbitrary()? {
        seams.insert("host".into(), json!({"acquire": key_capabilities(u)?}));
    }
    if !u.ratio(1, 4)? {
        seams.insert("channel".into(), json!({"name": name(u)?, "caps": channel_caps(u)?}));
    }
    let digest = if u.ratio(1, 16)? { OTHER_DIGEST } else { SCHEMA_DIGEST };
    let name = if u.ratio(1, 16)? { "crate" } else { "box" };
    Ok(json!({
        "protocol": 1,
        "plugin": {"name": name, "version": label(u)?},
        "instance": label(u)?,
        "schema": digest,
        "seams": seams,
    }))
}

fn link(u: &mut Unstructured<'_>) -> Result<Value> {
    let mut link = json!({
        "fetch": boolean(u)?,
        "slots": word(u, &["mu", "self"])?,
        "remoteOnTimeout": word(u, &["stopped", "stopping", "unknown"])?,
        "quiescence": word(u, &["provable", "unprovable"])?,
        "maxScriptBytes": integer(u)?,
        "checks": phases(u)?,
    });
    maybe(u, &mut link, "push", boolean)?;
    Ok(link)
}

fn job(u: &mut Unstructured<'_>) -> Result<Value> {
    let mut job = json!({
        "kind": name(u)?,
        "view": word(u, &["bound", "detached"])?,
        "handle": word(u, &["reply", "pane", "file"])?,
        "start": key_capabilities(u)?,
        "checks": phases(u)?,
    });
    maybe(u, &mut job, "channel", name)?;
    maybe(u, &mut job, "firstTurn", |u| word(u, &["on-send", "at-start"]))?;
    maybe(u, &mut job, "outlivesHost", boolean)?;
    maybe(u, &mut job, "honours", |u| {
        let roles = list(u, &["full-access", "read-only"])?;
        Ok(json!({"command": boolean(u)?, "env": boolean(u)?, "sockets": boolean(u)?, "roles": roles}))
    })?;
    Ok(job)
}

fn key_capabilities(u: &mut Unstructured<'_>) -> Result<Value> {
    let mut caps = json!({"lookup": boolean(u)?, "fenceKey": boolean(u)?});
    maybe(u, &mut caps, "dedupe", dedupe)?;
    maybe(u, &mut caps, "inFlightMs", integer)?;
    Ok(caps)
}

fn dedupe(u: &mut Unstructured<'_>) -> Result<Value> {
    Ok(json!({"exact": true, "windowMs": integer(u)?}))
}

fn channel_caps(u: &mut Unstructured<'_>) -> Result<Value> {
    let fence = if u.ratio(1, 16)? { "incarnation" } else { "none" };
    let watch = if u.ratio(1, 16)? { "poll" } else { "stream" };
    let settle_text = if u.ratio(1, 16)? { "none" } else { "tail" };
    Ok(json!({
        "fence": fence,
        "receipt": word(u, &["none", "exact"])?,
        "dedupe": if u.arbitrary()? { dedupe(u)? } else { json!("none") },
        "steer": word(u, &["none", "native"])?,
        "interrupt": word(u, &["none", "native"])?,
        "fresh": word(u, &["none", "in-place", "restart"])?,
        "answer": boolean(u)?,
        "command": boolean(u)?,
        "watch": watch,
        "settleText": settle_text,
    }))
}

fn maybe(
    u: &mut Unstructured<'_>,
    object: &mut Value,
    member: &str,
    value: impl FnOnce(&mut Unstructured<'_>) -> Result<Value>,
) -> Result<()> {
    if u.arbitrary()? {
        object[member] = value(u)?;
    }
    Ok(())
}

fn boolean(u: &mut Unstructured<'_>) -> Result<Value> {
    Ok(json!(u.arbitrary::<bool>()?))
}

fn word(u: &mut Unstructured<'_>, words: &[&str]) -> Result<Value> {
    Ok(json!(u.choose(words)?))
}

fn list(u: &mut Unstructured<'_>, words: &[&str]) -> Result<Value> {
    let length = u.int_in_range(0..=2)?;
    (0..length).map(|_| word(u, words)).collect::<Result<Vec<_>>>().map(Value::from)
}

fn phases(u: &mut Unstructured<'_>) -> Result<Value> {
    list(u, &["template", "reach", "agent"])
}

fn name(u: &mut Unstructured<'_>) -> Result<Value> {
    word(u, &["turns", "turns", "turns", "other", "a", "a-name_of-32-characters-and-no-m0"])
}

fn integer(u: &mut Unstructured<'_>) -> Result<Value> {
    Ok(json!(*u.choose(&[0, 1, 5_000, 60_000, MAX_INTEGER])?))
}

fn label(u: &mut Unstructured<'_>) -> Result<Value> {
    Ok(match u.int_in_range(0..=7)? {
        0 => json!("é".repeat(128)),
        1 => json!("x".repeat(128)),
        2 => json!("\u{a0}"),
        _ => json!("prod"),
    })
}

/// What may be put somewhere into a declaration: right in some places, just beside it in others.
fn pieces() -> Vec<Value> {
    vec![
        Value::Null,
        json!(true),
        json!(false),
        json!(""),
        json!("none"),
        json!("self"),
        json!("at-start"),
        json!("Box"),
        json!("box\n"),
        json!("a".repeat(32)),
        json!("a".repeat(33)),
        json!("x".repeat(129)),
        json!("😀".repeat(128)),
        json!("😀".repeat(129)),
        json!("a\u{1}"),
        json!("a\u{85}"),
        json!(SCHEMA_DIGEST.to_uppercase()),
        json!(format!("{SCHEMA_DIGEST}0")),
        json!(&SCHEMA_DIGEST[7..]),
        json!(0),
        json!(1),
        json!(2),
        json!(-1),
        json!(1.5),
        json!(MAX_INTEGER),
        json!(MAX_INTEGER + 1),
        json!(u64::MAX),
        json!(1e20),
        json!([]),
        json!(["reach", "reach"]),
        json!(["full-access"]),
        json!([null]),
        json!({}),
        json!({"exact": true, "windowMs": 0}),
        json!({"exact": false, "windowMs": 0}),
        json!({"exact": true}),
    ]
}

const NAMES: [&str; 10] =
    ["extra", "push", "dedupe", "inFlightMs", "channel", "honours", "", "Fetch", "link", "vcs"];

/// Changes a few places of a declaration.
pub fn damage(u: &mut Unstructured<'_>, declaration: &mut Value) -> Result<()> {
    for _ in 0..u.int_in_range(0..=3)? {
        let mut places = Vec::new();
        pointers("", declaration, &mut places);
        let place = u.choose(&places)?.clone();
        let piece = match u.arbitrary()? {
            true => u.choose(&pieces())?.clone(),
            false => declaration.pointer(u.choose(&places)?).cloned().unwrap_or_default(),
        };
        let other = *u.choose(&NAMES)?;
        let (object, name) = place.rsplit_once('/').unwrap_or(("", ""));
        match u.int_in_range(0..=3)? {
            0 => drop(members(declaration, object).and_then(|members| members.remove(name))),
            1 => {
                if let Some(members) = members(declaration, object)
                    && let Some(value) = members.remove(name)
                {
                    members.insert(other.to_owned(), value);
                }
            }
            2 => {
                if let Some(members) = members(declaration, &place) {
                    members.insert(other.to_owned(), piece);
                }
            }
            _ => {
                if let Some(value) = declaration.pointer_mut(&place) {
                    *value = piece;
                }
            }
        }
    }
    Ok(())
}

fn members<'a>(value: &'a mut Value, pointer: &str) -> Option<&'a mut Map<String, Value>> {
    value.pointer_mut(pointer).and_then(Value::as_object_mut)
}

/// The pointers to every value in `value`, itself first. None of the names has a slash.
fn pointers(pointer: &str, value: &Value, all: &mut Vec<String>) {
    all.push(pointer.to_owned());
    match value {
        Value::Object(members) => {
            members.iter().for_each(|(name, value)| pointers(&format!("{pointer}/{name}"), value, all));
        }
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(at, value)| pointers(&format!("{pointer}/{at}"), value, all));
        }
        _ => {}
    }
}

/// Writes a value as JSON, now and then in another spelling: escapes, white space, a name twice, an integer with a fraction.
pub fn spell(u: &mut Unstructured<'_>, value: &Value, text: &mut String) -> Result<()> {
    if u.ratio(1, 32)? {
        text.push_str(u.choose(&[" ", "\t", "\r", "  "])?);
    }
    match value {
        Value::Object(members) => {
            text.push('{');
            for (at, (name, value)) in members.iter().enumerate() {
                text.push_str(if at == 0 { "" } else { "," });
                string(u, name, text)?;
                text.push(':');
                spell(u, value, text)?;
                if u.ratio(1, 128)? {
                    text.push(',');
                    string(u, name, text)?;
                    text.push_str(":null");
                }
            }
            text.push('}');
        }
        Value::Array(items) => {
            text.push('[');
            for (at, value) in items.iter().enumerate() {
                text.push_str(if at == 0 { "" } else { "," });
                spell(u, value, text)?;
            }
            text.push(']');
        }
        Value::String(word) => string(u, word, text)?,
        Value::Number(_) if u.ratio(1, 32)? => {
            let end = *u.choose(&[".0", "e0", "E+2", "000000000000000000000"])?;
            text.push_str(&format!("{value}{end}"));
        }
        _ => text.push_str(&value.to_string()),
    }
    Ok(())
}

fn string(u: &mut Unstructured<'_>, word: &str, text: &mut String) -> Result<()> {
    if !u.ratio(1, 32)? {
        text.push_str(&Value::from(word).to_string());
        return Ok(());
    }
    text.push('"');
    word.encode_utf16().for_each(|unit| text.push_str(&format!("\\u{unit:04x}")));
    text.push('"');
    Ok(())
}

/// What a declaration is held to.
#[derive(Clone, Debug)]
pub struct Registered<'a> {
    /// The name under which the plugin is registered.
    pub name: &'a str,
    /// The seams that are needed.
    pub needs: Vec<&'a str>,
    /// The digest of the published schema.
    pub digest: &'a str,
    /// What was recorded.
    pub recorded: Option<Value>,
}

/// What must come of a declaration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It loads.
    Loads,
    /// It is off the schema: one of LOAD-05 to LOAD-07.
    OffSchema,
    /// This rule refuses it.
    Breaks(&'static str),
}

/// Judges by the words of the protocol page. No number of the declaration is spelt oddly.
pub fn verdict(declared: &Value, registered: &Registered<'_>) -> Verdict {
    // One of more digits than serde_json keeps is an integer too.
    let version = declared.is_object().then(|| &declared["protocol"]).filter(|version| version.is_number());
    if version.is_some_and(|version| version.as_u64() != Some(1)) {
        return Verdict::Breaks("LOAD-01");
    }
    if !schema::is_valid("initialize.result", declared) {
        return Verdict::OffSchema;
    }
    match broken(declared, registered) {
        Some(rule) => Verdict::Breaks(rule),
        None => Verdict::Loads,
    }
}

fn broken(declared: &Value, registered: &Registered<'_>) -> Option<&'static str> {
    let seam = |name: &str| declared["seams"].get(name);
    let (job, host, channel) = (seam("job"), seam("host"), seam("channel"));
    let resolves = |key: &Value| key["lookup"] == true || key.get("dedupe").is_some();
    let caps = channel.map(|channel| &channel["caps"]);
    let names_channel = job.and_then(|job| job.get("channel"));
    let replies = job.is_some_and(|job| job["handle"] == "reply");
    let honours_env = job.is_none_or(|job| job.get("honours").is_none_or(|honours| honours["env"] == true));
    let rules = [
        ("LOAD-03", declared["plugin"]["name"] != registered.name),
        ("LOAD-04", declared["schema"] != registered.digest),
        ("LOAD-09", declared["seams"] == json!({})),
        ("LOAD-10", host.is_some() && (job.is_none() || seam("link").is_none())),
        ("LOAD-11", host.is_some_and(|host| !resolves(&host["acquire"]))),
        ("LOAD-12", replies && job.is_some_and(|job| !resolves(&job["start"]))),
        ("LOAD-13", caps.is_some_and(|caps| caps["watch"] != "stream")),
        ("LOAD-14", caps.is_some_and(|caps| caps["settleText"] == "none")),
        ("LOAD-15", caps.is_some_and(|caps| caps["fence"] != "none")),
        ("LOAD-16", names_channel.is_some_and(|name| channel.is_none_or(|channel| channel["name"] != *name))),
        ("LOAD-17", job.is_some_and(|job| job["firstTurn"] == "at-start") && !replies),
        ("LOAD-18", job.is_some() && !honours_env && names_channel.is_none()),
        ("LOAD-08", registered.needs.iter().any(|&needed| seam(needed).is_none())),
        ("LOAD-19", registered.recorded.as_ref().is_some_and(|recorded| recorded != declared)),
    ];
    rules.into_iter().find(|(_, is_broken)| *is_broken).map(|(rule, _)| rule)
}
