//! JSON that is nearly right: in every place of a value one thing is changed.

use serde_json::{Map, Number, Value, json};

/// Words and strings that are right somewhere in the protocol, or just beside it.
const STRINGS: &[&str] = &[
    "",
    "a",
    "A",
    "1",
    ".",
    "/",
    "/x",
    "a/b",
    "a/b/c",
    "a/",
    "name\n",
    "\u{7}",
    "\u{85}",
    "\u{e9}",
    "idle",
    "busy",
    "blocked",
    "unknown",
    "warn",
    "up",
    "gone",
    "needs-human",
    "running",
    "ended",
    "lost",
    "accepted",
    "not-accepted",
    "unreachable",
    "sent",
    "confirmed",
    "followUp",
    "follow-up",
    "steer",
    "full-access",
    "read-only",
    "harness",
    "operator",
    "template",
    "reach",
    "agent",
    "retryable",
    "permanent",
    "human",
    "unknown-outcome",
    "Idle",
    "true",
    "null",
];

/// Members that the protocol knows somewhere, and one it knows nowhere.
const MEMBERS: &[&str] = &[
    "extra",
    "",
    "deadline",
    "target",
    "agent",
    "job",
    "host",
    "name",
    "handle",
    "instance",
    "key",
    "fence",
    "params",
    "deadlineAt",
    "idleReclaimMs",
    "maxJobs",
    "found",
    "pending",
    "none",
    "unknown",
    "state",
    "status",
    "reason",
    "remedy",
    "exit",
    "signal",
    "view",
    "baseline",
    "command",
    "env",
    "cwd",
    "root",
    "sockets",
    "firstPrompt",
    "spec",
    "text",
    "msgId",
    "id",
    "watchId",
    "runs",
    "at",
    "since",
    "incarnation",
    "inc",
    "expectIncarnation",
    "afterRuns",
    "initial",
    "observation",
    "settled",
    "options",
    "prompt",
    "lastText",
    "lastTextTruncated",
    "lastError",
    "instructions",
    "mode",
    "force",
    "ack",
    "channel",
    "timeoutMs",
    "exitCode",
    "kind",
    "data",
    "deadline_at",
];

/// One thing to change in a value.
enum Change {
    /// Another value in its place.
    Replace(Value),
    /// One member less.
    Remove(String),
    /// A member under another name.
    Rename(String, String),
    /// One member more.
    Add(&'static str, Value),
}

#[derive(Clone)]
enum Part {
    Member(String),
    Item(usize),
}

/// A value in which one place at a time is changed, and put right again.
pub(crate) struct Mutants {
    json: Value,
    /// The ways to all parts of the value, itself included.
    paths: Vec<Vec<Part>>,
    /// Each with the index of the path to the part it changes.
    changes: Vec<(usize, Change)>,
}

impl Mutants {
    /// All changes in all places.
    pub(crate) fn of(json: &Value) -> Self {
        let paths = paths(json);
        let changes = paths
            .iter()
            .enumerate()
            .flat_map(|(index, path)| {
                changes(part(json, path)).into_iter().map(move |change| (index, change))
            })
            .collect();
        Mutants { json: json.clone(), paths, changes }
    }

    /// All changes in one place.
    pub(crate) fn somewhere(json: &Value, numbers: &mut Numbers) -> Self {
        let mut paths = paths(json);
        let path = paths.swap_remove(numbers.below(paths.len()));
        let changes = changes(part(json, &path)).into_iter().map(|change| (0, change)).collect();
        Mutants { json: json.clone(), paths: vec![path], changes }
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.changes.len()
    }

    /// Looks at the value with one change.
    pub(crate) fn with<R>(&mut self, change: usize, look: impl FnOnce(&Value) -> R) -> R {
        let (path, change) = &self.changes[change];
        let path = &self.paths[*path];
        let before = part(&self.json, path).clone();
        apply(part_mut(&mut self.json, path), change);
        let seen = look(&self.json);
        *part_mut(&mut self.json, path) = before;
        seen
    }
}

fn paths(json: &Value) -> Vec<Vec<Part>> {
    let inner: Vec<(Part, &Value)> = match json {
        Value::Object(members) => members.iter().map(|(name, v)| (Part::Member(name.clone()), v)).collect(),
        Value::Array(items) => items.iter().enumerate().map(|(index, v)| (Part::Item(index), v)).collect(),
        _ => Vec::new(),
    };
    let mut all = vec![Vec::new()];
    for (part, value) in inner {
        for rest in paths(value) {
            all.push(std::iter::once(part.clone()).chain(rest).collect());
        }
    }
    all
}

fn part<'a>(json: &'a Value, path: &[Part]) -> &'a Value {
    path.iter().fold(json, |json, part| match part {
        Part::Member(name) => &json[name],
        Part::Item(index) => &json[index],
    })
}

fn part_mut<'a>(json: &'a mut Value, path: &[Part]) -> &'a mut Value {
    path.iter().fold(json, |json, part| match part {
        Part::Member(name) => &mut json[name],
        Part::Item(index) => &mut json[index],
    })
}

fn apply(json: &mut Value, change: &Change) {
    let members = json.as_object_mut();
    match (change, members) {
        (Change::Remove(name), Some(members)) => {
            members.remove(name);
        }
        (Change::Rename(from, to), Some(members)) => {
            let value = members.remove(from).expect("a member");
            members.insert(to.clone(), value);
        }
        (Change::Add(name, value), Some(members)) => {
            members.insert((*name).to_owned(), value.clone());
        }
        (Change::Replace(other), _) => *json = other.clone(),
        (_, None) => unreachable!("only objects have members"),
    }
}

fn changes(value: &Value) -> Vec<Change> {
    let mut changes: Vec<Change> =
        replacements(value).into_iter().filter(|other| other != value).map(Change::Replace).collect();
    if let Value::Object(members) = value {
        changes.extend(in_members(members));
    }
    changes
}

fn replacements(value: &Value) -> Vec<Value> {
    let mut others = vec![Value::Null, json!(true), json!(false), json!([]), json!({}), json!([value])];
    others.extend(numbers().map(Value::Number));
    others.extend(STRINGS.iter().map(|text| json!(text)));
    others
        .extend([1, 2, 31, 32, 33, 39, 40, 41, 63, 64, 65, 128, 129].map(|length| json!("a".repeat(length))));
    others.push(json!("\u{e9}".repeat(128)));
    others.push(json!("A".repeat(40)));
    match value {
        // A struct must not be read from its members' values.
        Value::Object(members) => others.push(members.values().cloned().collect()),
        Value::Array(items) => {
            others.push(items.iter().chain(items).cloned().collect());
            others.push(items.iter().chain(items.first()).cloned().collect());
            others.push(items.iter().skip(1).cloned().collect());
        }
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

fn in_members(members: &Map<String, Value>) -> Vec<Change> {
    let mut changes = Vec::new();
    for name in members.keys() {
        changes.push(Change::Remove(name.clone()));
        changes.push(Change::Rename(name.clone(), format!("{name}x")));
        changes.push(Change::Rename(name.clone(), name.to_uppercase()));
    }
    let values =
        [Value::Null, json!(true), json!(1), json!("a"), json!("/"), json!({}), json!({ "runs": 1 })];
    for name in MEMBERS.iter().filter(|name| !members.contains_key(**name)) {
        changes.extend(values.iter().map(|value| Change::Add(name, value.clone())));
    }
    changes
}

fn numbers() -> impl Iterator<Item = Number> {
    let whole =
        [0, 1, 64, 65, 255, 256, 1 << 31, (1 << 53) - 1, 1 << 53, u64::MAX].into_iter().map(Number::from);
    let negative = [-1, -(1i64 << 31), -(1i64 << 31) - 1, i64::MIN].into_iter().map(Number::from);
    let fractions = [0.5, 1.5, -1.5, 1e300].into_iter().filter_map(Number::from_f64);
    whole.chain(negative).chain(fractions)
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
