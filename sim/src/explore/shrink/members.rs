//! Keys and elements that are left out, and numbers that become smaller, anywhere in a scenario.
//!
//! It works on the scenario as a table, so that it knows every key there is or will be; what of it is a scenario is told
//! by reading it. What a step expects is never changed but left out: another expectation is another question.

use toml::Value;

use super::cost::played;
use super::{Search, line};
use crate::scenario::{EXPECTATIONS, Scenario};

/// Expectations of several things by key, each of which can be left out.
const BY_KEY: [&str; 2] = ["json", "starts"];
/// Expectations of several things in a list.
const LISTED: [&str; 3] = ["json_absent", "wire", "backend"];
/// Tables and lists whose members are left out as a whole elsewhere.
const CUT: [&str; 3] = ["steps", "faults", "plugins"];

/// A way from the scenario to a value in it.
type Path = Vec<Part>;

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Key(String),
    Index(usize),
}

/// Tries every part, the outer ones first.
pub(super) fn all(search: &mut Search<'_>) {
    let mut at = 0;
    while let Some(path) = paths(&search.best).get(at).cloned() {
        if !is_cut_elsewhere(&path) && !is_someone(&path) && without(search, &path) {
            // The next part has taken its place.
            continue;
        }
        at += 1;
        if is_expected(&path) {
            continue;
        }
        let value = at_path(&Value::Table(played(&search.best)), &path).cloned();
        match value {
            Some(Value::Integer(number)) => {
                least(search, number, |candidate, smaller| put(candidate, &path, Value::Integer(smaller)));
            }
            Some(Value::String(_)) => text(search, &path),
            _ => {}
        }
    }
}

/// A command line, or another text with numbers in it.
fn text(search: &mut Search<'_>, path: &Path) {
    let [Part::Key(list), Part::Index(step), Part::Key(key), ..] = &path[..] else { return };
    if list != "steps" || !(key == "run" || key == "env") {
        return;
    }
    if key == "run" {
        line::simplify(search, *step);
    }
    let now = |search: &Search<'_>| match at_path(&Value::Table(played(&search.best)), path) {
        Some(Value::String(text)) => text.clone(),
        _ => String::new(),
    };
    let mut index = 0;
    while let Some((range, number)) = line::numbers(&now(search)).get(index).cloned() {
        index += 1;
        let text = now(search);
        least(search, number, |candidate, smaller| {
            let smaller = format!("{}{smaller}{}", &text[..range.start], &text[range.end..]);
            put(candidate, path, Value::String(smaller))
        });
    }
}

/// Looks for the number next to zero with which it still fails: as if whatever fails with one failed with every larger one.
fn least(search: &mut Search<'_>, number: i64, put: impl Fn(&Scenario, i64) -> Option<Scenario>) {
    let mut offer = |smaller: i64| match put(&search.best, smaller) {
        Some(candidate) => search.offer(candidate),
        None => false,
    };
    if number == 0 || offer(0) {
        return;
    }
    let (mut holds, mut fails) = (0, number);
    if number.unsigned_abs() > 1 && offer(number.signum()) {
        return;
    }
    while fails.abs_diff(holds) > 1 {
        let middle = holds + (fails - holds) / 2;
        if offer(middle) {
            fails = middle;
        } else {
            holds = middle;
        }
    }
}

fn without(search: &mut Search<'_>, path: &Path) -> bool {
    let Some((last, parents)) = path.split_last() else { return false };
    let mut root = Value::Table(played(&search.best));
    let Some(parent) = at_path_mut(&mut root, parents) else { return false };
    match (parent, last) {
        (Value::Table(table), Part::Key(key)) => drop(table.remove(key)),
        (Value::Array(items), Part::Index(index)) if *index < items.len() => drop(items.remove(*index)),
        _ => return false,
    }
    read(&search.best, root).is_some_and(|candidate| search.offer(candidate))
}

fn put(scenario: &Scenario, path: &Path, value: Value) -> Option<Scenario> {
    let mut root = Value::Table(played(scenario));
    *at_path_mut(&mut root, path)? = value;
    read(scenario, root)
}

/// The scenario that a table says, with the words for readers that it has had.
fn read(scenario: &Scenario, root: Value) -> Option<Scenario> {
    let Value::Table(mut table) = root else { return None };
    table.insert("title".into(), Value::from(scenario.title.as_str()));
    table.insert("rules".into(), Value::from(scenario.rules.clone()));
    let read: Scenario = table.try_into().ok()?;
    let why_not_real = scenario.why_not_real.clone().filter(|_| !read.real);
    Some(Scenario { why: scenario.why.clone(), why_not_real, ..read })
}

fn at_path<'a>(root: &'a Value, path: &[Part]) -> Option<&'a Value> {
    path.iter().try_fold(root, |value, part| match part {
        Part::Key(key) => value.get(key.as_str()),
        Part::Index(index) => value.get(*index),
    })
}

fn at_path_mut<'a>(root: &'a mut Value, path: &[Part]) -> Option<&'a mut Value> {
    path.iter().try_fold(root, |value, part| match part {
        Part::Key(key) => value.get_mut(key.as_str()),
        Part::Index(index) => value.get_mut(*index),
    })
}

/// Every part, a whole before what it holds.
fn paths(scenario: &Scenario) -> Vec<Path> {
    let mut all = Vec::new();
    collect(&Value::Table(played(scenario)), &mut Vec::new(), &mut all);
    all
}

fn collect(value: &Value, path: &mut Path, all: &mut Vec<Path>) {
    let parts: Vec<(Part, &Value)> = match value {
        Value::Table(table) => table.iter().map(|(key, value)| (Part::Key(key.clone()), value)).collect(),
        Value::Array(items) => {
            items.iter().enumerate().map(|(index, item)| (Part::Index(index), item)).collect()
        }
        _ => return,
    };
    for (part, value) in parts {
        path.push(part);
        all.push(path.clone());
        if !is_expected(path) || is_several(path, value) {
            collect(value, path, all);
        }
        path.pop();
    }
}

/// Whether it is something that a step expects, or a part of that.
fn is_expected(path: &Path) -> bool {
    matches!(&path[..], [Part::Key(list), Part::Index(_), Part::Key(key), ..]
        if list == "steps" && EXPECTATIONS.contains(&key.as_str()))
}

/// Whether it holds several expectations. One alone of a list is written without the list.
fn is_several(path: &Path, value: &Value) -> bool {
    matches!(&path[..], [_, _, Part::Key(key)]
        if BY_KEY.contains(&key.as_str()) || LISTED.contains(&key.as_str()) && value.is_array())
}

/// Whether it tells who gets a signal: without it, somebody else would.
fn is_someone(path: &Path) -> bool {
    path.iter().any(|part| *part == Part::Key("signal".into()))
        && path.last() == Some(&Part::Key("to".into()))
}

fn is_cut_elsewhere(path: &Path) -> bool {
    matches!(&path[..], [Part::Key(key)] | [Part::Key(key), _] if CUT.contains(&key.as_str()))
}
