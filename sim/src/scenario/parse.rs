//! Text to scenario. Whatever is wrong, the error says where in the file and what would be right.

use std::ops::Range;

use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::check::{self, At};
use super::format::Scenario;
use crate::fake::catalogue;

/// Why a file is no scenario.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}:{column}: {message}")]
pub struct ScenarioError {
    /// The file as it was named.
    pub file: String,
    /// The line, counted from 1.
    pub line: usize,
    /// The column in characters, counted from 1.
    pub column: usize,
    /// What is wrong there, in one line.
    pub message: String,
}

/// The forms of a `do`.
const ONE_FAULT: &str = "expected one fault: its name, or a table of its name and its value";
/// More alternatives than this are not all listed.
const LISTED: usize = 60;

impl Scenario {
    /// Reads a scenario. `file` is its name in errors; `is_rule` knows the ids of the rules.
    pub fn parse(file: &str, text: &str, is_rule: &dyn Fn(&str) -> bool) -> Result<Scenario, ScenarioError> {
        let (document, scenario) = read::<Scenario>(file, text)?;
        let values = document.get_ref().values();
        if let Some(offset) = values.into_iter().find_map(too_large) {
            let message = format!("a number is at most {}", i64::MAX);
            return Err(ScenarioError::at(file, text, offset, message));
        }
        check::check(&scenario, is_rule).map_err(|refusal| {
            ScenarioError::at(file, text, offset_of(&document, &refusal.at), refusal.reason)
        })?;
        Ok(scenario)
    }
}

impl ScenarioError {
    /// At the byte `offset` of the file whose name and text are given.
    pub(crate) fn at(file: &str, text: &str, offset: usize, message: String) -> ScenarioError {
        let (line, column) = line_and_column(text, offset);
        // It may quote what somebody wrote, line breaks included.
        let message = message
            .chars()
            .map(|char| if char.is_control() { char::REPLACEMENT_CHARACTER } else { char })
            .collect();
        ScenarioError { file: file.to_owned(), line, column, message }
    }
}

/// Reads a TOML file of any kind, and gives its document too. `file` is its name in errors.
pub(crate) fn read<'a, T: Deserialize<'a>>(
    file: &str,
    text: &'a str,
) -> Result<(Spanned<DeTable<'a>>, T), ScenarioError> {
    let of_toml = |failed: toml::de::Error| {
        let span = failed.span().unwrap_or(0..0);
        let mut message =
            of_a_fault(failed.message(), text, &span).unwrap_or_else(|| in_own_words(failed.message()));
        if message == "duplicate key" {
            message = format!("duplicate key `{}`", text[span.clone()].trim_matches(['"', '\'']));
        }
        ScenarioError::at(file, text, span.start, message)
    };
    let document = DeTable::parse(text).map_err(of_toml)?;
    let value = T::deserialize(toml::Deserializer::from(document.clone())).map_err(of_toml)?;
    Ok((document, value))
}

/// Where a number begins that TOML cannot hold for certain, so that no file can be written with it. The library reads larger
/// ones where the type does.
fn too_large(value: &Spanned<DeValue<'_>>) -> Option<usize> {
    match value.get_ref() {
        DeValue::Integer(number) => {
            let fits = i64::from_str_radix(number.as_str(), number.radix()).is_ok();
            (!fits).then_some(value.span().start)
        }
        DeValue::Array(values) => values.iter().find_map(too_large),
        DeValue::Table(values) => values.values().find_map(too_large),
        _ => None,
    }
}

fn line_and_column(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let start = before.rfind('\n').map_or(0, |at| at + 1);
    (before.matches('\n').count() + 1, before[start..].chars().count() + 1)
}

/// Where the place begins in the file; where the file does not go that far, the last that it names on the way.
fn offset_of(document: &Spanned<DeTable<'_>>, at: &[At]) -> usize {
    let mut here: Range<usize> = document.span();
    let mut table = Some(document.get_ref());
    let mut array = None;
    for step in at {
        let value = match step {
            At::Key(key) | At::Name(key) => {
                let Some((name, value)) = table.and_then(|table| table.get_key_value(key.as_str())) else {
                    break;
                };
                if matches!(step, At::Name(_)) {
                    return name.span().start;
                }
                value
            }
            // What may be one or a list is always a list once it is read.
            At::Index(0) if array.is_none() => continue,
            At::Index(index) => {
                let Some(value) = array.and_then(|array: &toml::de::DeArray<'_>| array.get(*index)) else {
                    break;
                };
                value
            }
        };
        here = value.span();
        (table, array) = match value.get_ref() {
            DeValue::Table(table) => (Some(table), None),
            DeValue::Array(array) => (None, Some(array)),
            _ => (None, None),
        };
    }
    here.start
}

/// What is wrong with the form of a `do`, when that is what the TOML library means. `span` is where in the text it looks.
fn of_a_fault(message: &str, text: &str, span: &Range<usize>) -> Option<String> {
    let quotes = ['"', '\''];
    let fault = |name: &str| {
        let name = name.trim_matches(quotes);
        catalogue().into_iter().find(|entry| entry.name == name)
    };
    match message {
        "invalid type: unit variant, expected newtype variant" => {
            let entry = fault(&text[span.clone()])?;
            let example = toml::Value::try_from(&entry.examples[0]).ok()?;
            Some(format!("`{}` takes a value, such as `{example}`", entry.name))
        }
        _ if message.starts_with("expected table, found ") => {
            let key = text[..span.start].trim_end().strip_suffix('=')?.trim_end();
            let name = fault(key.rsplit(['{', ',', ' ', '\t', '\n']).next()?)?.name;
            Some(format!("`{name}` takes no value: `do = \"{name}\"`"))
        }
        "wanted string or table" => Some(ONE_FAULT.into()),
        _ if message.starts_with("wanted exactly 1 element, ") => Some(ONE_FAULT.into()),
        _ => None,
    }
}

/// The message of the TOML library, in the words of a file of keys and values.
fn in_own_words(message: &str) -> String {
    let message = message.replace('\n', " ");
    let message = message
        .replace("unknown field `", "unknown key `")
        .replace("missing field `", "missing key `")
        .replace("unknown variant `", "unknown value `");
    let number = |kind: &str| match kind {
        "u8" => Some("a whole number from 0 to 255"),
        "u32" | "u64" | "usize" => Some("a whole number of 0 or more"),
        "i64" => Some("a whole number"),
        _ => None,
    };
    if let Some((head, kind)) = message.rsplit_once(", expected ")
        && let Some(number) = number(kind)
    {
        return format!("{head}, expected {number}");
    }
    shortened(&message).unwrap_or(message)
}

/// `unknown value …, expected one of …` with the nearest alternatives alone, when there are very many.
fn shortened(message: &str) -> Option<String> {
    let (head, list) = message.split_once(", expected one of ")?;
    let wrong = head.split('`').nth(1)?;
    let mut all: Vec<&str> = list.split('`').skip(1).step_by(2).collect();
    if all.len() <= LISTED {
        return None;
    }
    let count = all.len();
    all.sort_by_key(|name| distance(wrong, name));
    let nearest: Vec<String> = all[..5].iter().map(|name| format!("`{name}`")).collect();
    Some(format!("{head}; nearest: {}; all {count} are in docs/scenarios.md", nearest.join(", ")))
}

/// How many characters must be put in, taken out or replaced to make one word of the other.
pub(crate) fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.chars().count()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, to) in b.chars().enumerate() {
            let changed = diagonal + usize::from(from != to);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.chars().count()]
}
