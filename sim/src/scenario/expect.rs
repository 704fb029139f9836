//! What a step expects, held against what came. Every mismatch is one sentence.

use std::collections::BTreeMap;

use serde_json::Value;

use super::format::{Step, Text};

/// The word for a FETCH_HEAD that is not there.
const ABSENT: &str = "absent";

/// A part of a path into JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Key(String),
    Index(usize),
    /// The number of elements or members.
    Length,
}

/// `data.plugins[0].name`, `data.plugins.#`.
fn parts(path: &str) -> Result<Vec<Part>, String> {
    let mut parts = Vec::new();
    for (n, segment) in path.split('.').enumerate() {
        let (key, mut rest) = segment.split_at(segment.find('[').unwrap_or(segment.len()));
        match key {
            "" if n > 0 || rest.is_empty() => return Err(format!("`{path}` has an empty part")),
            "" => {}
            "#" => parts.push(Part::Length),
            key => parts.push(Part::Key(key.to_owned())),
        }
        while !rest.is_empty() {
            let index = rest.strip_prefix('[').and_then(|rest| rest.split_once(']'));
            let index = index.and_then(|(index, rest)| Some((index.parse().ok()?, rest)));
            let Some((index, after)) = index else {
                return Err(format!("`{path}` has brackets without a number in them"));
            };
            parts.push(Part::Index(index));
            rest = after;
        }
    }
    match parts.iter().position(|part| *part == Part::Length) {
        Some(at) if at + 1 < parts.len() => {
            Err(format!("in `{path}` something follows `#`, which is a number"))
        }
        _ => Ok(parts),
    }
}

/// Refuses a path that cannot be followed in any value.
pub(crate) fn check_path(path: &str) -> Result<(), String> {
    parts(path).map(drop)
}

/// What a value holds at a path; `None` when there is nothing.
pub(crate) fn find(root: &Value, path: &str) -> Option<Value> {
    let mut value = root;
    for part in parts(path).ok()? {
        value = match part {
            Part::Key(key) => value.get(key)?,
            Part::Index(index) => value.get(index)?,
            Part::Length => {
                let length = value.as_array().map(Vec::len).or_else(|| Some(value.as_object()?.len()))?;
                return Some(Value::from(length));
            }
        };
    }
    Some(value.clone())
}

/// Whether the JSON value says what the TOML value says. A table asks for its own members only, a list for all.
fn agrees(expected: &toml::Value, actual: &Value) -> bool {
    match expected {
        toml::Value::String(text) => actual.as_str() == Some(text),
        toml::Value::Integer(number) => actual.as_i64() == Some(*number),
        toml::Value::Float(number) => actual.is_f64() && actual.as_f64() == Some(*number),
        toml::Value::Boolean(flag) => actual.as_bool() == Some(*flag),
        toml::Value::Datetime(_) => false,
        toml::Value::Array(items) => actual.as_array().is_some_and(|actual| {
            actual.len() == items.len() && items.iter().zip(actual).all(|(item, actual)| agrees(item, actual))
        }),
        toml::Value::Table(table) => {
            table.iter().all(|(key, value)| actual.get(key).is_some_and(|actual| agrees(value, actual)))
        }
    }
}

impl Step {
    /// Whether the step looks into the envelope, so that there must be one.
    pub fn expects_json(&self) -> bool {
        self.error.is_some() || !self.json.is_empty() || !self.json_absent.is_empty()
    }

    /// Where the envelope on stdout differs from what `error`, `json` and `json_absent` ask for.
    pub fn json_mismatches(&self, envelope: &Value) -> Vec<String> {
        let mut all = Vec::new();
        if let Some(name) = &self.error
            && envelope["error"].as_str() != Some(name)
        {
            all.push(format!("the error is {}, not \"{name}\"", envelope["error"]));
        }
        for (path, expected) in &self.json {
            match find(envelope, path) {
                Some(actual) if agrees(expected, &actual) => {}
                Some(actual) => all.push(format!("{path} is {actual}, not {expected}")),
                None => all.push(format!("{path} is not there, and should be {expected}")),
            }
        }
        for path in &self.json_absent {
            if let Some(actual) = find(envelope, path).filter(|actual| !actual.is_null()) {
                all.push(format!("{path} is {actual}, and should not be there"));
            }
        }
        all
    }

    /// How long mu took, if that is not what `within_ms` and `took_ms` allow.
    pub fn time_mismatches(&self, took_ms: u64) -> Vec<String> {
        let mut all = Vec::new();
        if let Some(limit) = self.within_ms.filter(|limit| took_ms > *limit) {
            all.push(format!("it took {took_ms} ms, more than {limit}"));
        }
        if let Some((least, most)) = self.took_ms.filter(|(least, most)| took_ms < *least || took_ms > *most)
        {
            all.push(format!("it took {took_ms} ms, not {least} to {most}"));
        }
        all
    }

    /// Whether it asks what stands at the backend or in mu's tables.
    pub fn expects_state(&self) -> bool {
        !self.backend.is_empty() || self.effects.is_some() || self.records.is_some()
    }

    /// Where mu's tables differ from what `effects` and `records` ask for. In: the keys of the open effects, and the states
    /// of the hosts that plugins provide, by name.
    pub fn row_mismatches(&self, effects: &[String], records: &BTreeMap<String, String>) -> Vec<String> {
        let mut all = Vec::new();
        if let Some(wanted) = self.effects.filter(|wanted| *wanted as usize != effects.len()) {
            all.push(format!("there are {} open effects, not {wanted}", effects.len()));
        }
        if let Some(wanted) = &self.records {
            for (name, state) in wanted {
                match records.get(name) {
                    Some(its) if its == state.name() => {}
                    Some(its) => all.push(format!("the record of {name} is {its}, not {}", state.name())),
                    None => all.push(format!("{name} has no record, and should be {}", state.name())),
                }
            }
            for (name, its) in records.iter().filter(|(name, _)| !wanted.contains_key(*name)) {
                all.push(format!("{name} has a record, {its}, and should have none"));
            }
        }
        all
    }

    /// The repository's FETCH_HEAD, if it is not what `fetch_head` asks for.
    pub fn fetch_head_mismatch(&self, held: Option<&str>) -> Option<String> {
        match (self.fetch_head.as_deref()?, held) {
            (ABSENT, None) => None,
            (ABSENT, Some(held)) => Some(format!("FETCH_HEAD holds {held:?}, and should not be there")),
            (wanted, None) => Some(format!("FETCH_HEAD is not there, and should hold {wanted:?}")),
            (wanted, Some(held)) => {
                (!held.contains(wanted)).then(|| format!("FETCH_HEAD holds {held:?}, and lacks {wanted:?}"))
            }
        }
    }
}

impl Text {
    /// Where a stream's text differs; `stream` names it in the sentences.
    pub fn mismatches(&self, stream: &str, text: &str) -> Vec<String> {
        let mut all = Vec::new();
        for part in self.contains.iter().filter(|part| !text.contains(part.as_str())) {
            all.push(format!("{stream} lacks {part:?}"));
        }
        for part in self.not_contains.iter().filter(|part| text.contains(part.as_str())) {
            all.push(format!("{stream} holds {part:?}"));
        }
        let lines = text.lines().count();
        if let Some(wanted) = self.lines.filter(|wanted| *wanted != lines) {
            all.push(format!("{stream} has {lines} lines, not {wanted}"));
        }
        all
    }
}
