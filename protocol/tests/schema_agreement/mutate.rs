//! JSON that is nearly right: in every place of a value one thing is changed.

use serde_json::{Map, Number, Value, json};

/// Words and strings that are right somewhere in the protocol, or just beside it.
const STRINGS: &[&str] = &[
    "", "a", "A", "1", ".", "/", "/x", "a/b", "a/b/c", "a/", "name\n", "\u{7}", "\u{85}", "\u{e9}", "idle", "busy",
    "blocked", "unknown", "warn", "up", "gone", "needs-human", "running", "ended", "lost", "accepted", "not-accepted",
    "unreachable", "sent", "confirmed", "followUp", "follow-up", "steer", "full-access", "read-only", "harness",
    "operator", "template", "reach", "agent", "retryable", "permanent", "human", "unknown-outcome", "Idle", "true",
    "null",
];

/// Members that the protocol knows somewhere, and one it knows nowhere.
const MEMBERS: &[&str] = &[
    "extra", "", "deadline", "target", "agent", "job", "host", "name", "handle", "instance", "key", "fence", "params",
    "deadlineAt", "idleReclaimMs", "maxJobs", "found", "pending", "none", "unknown", "state", "status", "reason",
    "remedy", "exit", "signal", "view", "baseline", "command", "env", "cwd", "root", "sockets", "firstPrompt", "spec",
    "text", "msgId", "id", "watchId", "runs", "at", "since", "incarnation", "inc", "expectIncarnation", "afterRuns",
    "initial", "observation", "settled", "options", "prompt", "lastText", "lastTextTruncated", "lastError",
    "instructions", "mode", "force", "ack", "channel", "timeoutMs", "exitCode", "kind", "data", "deadline_at",
];

/// The way from a value to one of its parts.
type Path = Vec<Part>;

#[derive(Clone)]
enum Part {
    Member(String),
    Item(usize),
}

/// A value in which one place at a time is changed, and put right again.
pub(crate) struct Mutants {
    json: Value,
    changes: Vec<(Path, Value)>,
}

impl Mutants {
    pub(crate) fn of(json: &Value) -> Self {
        let mut changes = Vec::new();
        collect(json, &mut Vec::new(), &mut changes);
        Mutants { json: json.clone(), changes }
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.changes.len()
    }

    /// Looks at the value with one change.
    pub(crate) fn with<R>(&mut self, change: usize, look: impl FnOnce(&Value) -> R) -> R {
        let Mutants { json, changes } = self;
        let (path, other) = &mut changes[change];
        std::mem::swap(part(json, path), other);
        let seen = look(json);
        std::mem::swap(part(json, path), other);
        seen
    }
}

fn part<'a>(json: &'a mut Value, path: &[Part]) -> &'a mut Value {
    path.iter().fold(json, |json, part| match part {
        Part::Member(name) => &mut json[name],
        Part::Item(index) => &mut json[*index],
    })
}

/// All changes to `value` and its parts.
fn collect(value: &Value, path: &mut Path, changes: &mut Vec<(Path, Value)>) {
    let here = path.clone();
    let mut others = replaced(value);
    match value {
        Value::Object(members) => others.extend(members_changed(members)),
        Value::Array(items) => {
            others.push(items.iter().chain(items).cloned().collect());
            others.push(items.iter().chain(items.first()).cloned().collect());
            others.push(items.iter().skip(1).cloned().collect());
        }
        _ => {}
    }
    changes.extend(others.into_iter().filter(|other| other != value).map(|other| (here.clone(), other)));
    match value {
        Value::Object(members) => {
            for (name, inner) in members {
                path.push(Part::Member(name.clone()));
                collect(inner, path, changes);
                path.pop();
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                path.push(Part::Item(index));
                collect(item, path, changes);
                path.pop();
            }
        }
        _ => {}
    }
}

fn with(members: &Map<String, Value>, name: &str, value: Value) -> Value {
    let mut members = members.clone();
    members.insert(name.to_owned(), value);
    Value::Object(members)
}

/// Another value in its place.
fn replaced(value: &Value) -> Vec<Value> {
    let mut others = vec![Value::Null, json!(true), json!(false), json!([]), json!({}), json!([value]), json!({ "value": value })];
    others.extend(numbers().map(Value::Number));
    others.extend(STRINGS.iter().map(|text| json!(text)));
    others.extend([1, 2, 31, 32, 33, 39, 40, 41, 63, 64, 65, 128, 129].map(|length| json!("a".repeat(length))));
    others.push(json!("\u{e9}".repeat(128)));
    others.push(json!("A".repeat(40)));
    match value {
        // A struct must not be read from its members' values.
        Value::Object(members) => others.push(members.values().cloned().collect()),
        // A word must not be read from an object of one member.
        Value::String(word) => {
            others.push(json!({ word: null }));
            others.push(json!({ word: true }));
            others.push(json!(format!("{word}\n")));
            others.push(json!(word.to_uppercase()));
        }
        _ => {}
    }
    others
}

fn numbers() -> impl Iterator<Item = Number> {
    let whole = [0, 1, 64, 65, 255, 256, 1 << 31, (1 << 53) - 1, 1 << 53, u64::MAX].into_iter().map(Number::from);
    let negative = [-1, -(1i64 << 31), -(1i64 << 31) - 1, i64::MIN].into_iter().map(Number::from);
    let fractions = [0.5, 1.5, -1.5, 1e300].into_iter().filter_map(Number::from_f64);
    whole.chain(negative).chain(fractions)
}

/// One member less, more, or under another name.
fn members_changed(members: &Map<String, Value>) -> Vec<Value> {
    let mut mutants = Vec::new();
    for (name, value) in members {
        let mut fewer = members.clone();
        fewer.remove(name);
        mutants.push(with(&fewer, &format!("{name}x"), value.clone()));
        mutants.push(with(&fewer, &name.to_uppercase(), value.clone()));
        mutants.push(Value::Object(fewer));
    }
    let values = [Value::Null, json!(true), json!(1), json!("a"), json!("/"), json!({}), json!({ "runs": 1 })];
    for name in MEMBERS.iter().filter(|name| !members.contains_key(**name)) {
        mutants.extend(values.iter().map(|value| with(members, name, value.clone())));
    }
    mutants
}

/// Numbers below a limit, by a fixed sequence.
pub(crate) struct Numbers(u64);

impl Numbers {
    pub(crate) fn new(seed: usize) -> Self {
        Numbers(seed as u64 + 1)
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }
}
