//! How large a scenario is.

use toml::{Table, Value};

use crate::scenario::Scenario;

/// What is compared first stands first: a scenario with fewer steps is smaller, whatever is in them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cost {
    /// Steps.
    pub steps: usize,
    /// Faults.
    pub faults: usize,
    /// Plugins.
    pub plugins: usize,
    /// Keys, elements of lists and words of command lines.
    parts: u128,
    /// The sum of all numbers and of the lengths of all texts.
    amount: u128,
}

impl Cost {
    /// Of all that is played; the title and what else is for readers alone costs nothing.
    pub fn of(scenario: &Scenario) -> Cost {
        let (parts, amount) = of_table(&played(scenario));
        let (steps, faults, plugins) = (scenario.steps.len(), scenario.faults.len(), scenario.plugins.len());
        Cost { steps, faults, plugins, parts, amount }
    }
}

/// The keys of a scenario that are about what is played.
pub(super) fn played(scenario: &Scenario) -> Table {
    let mut table = Table::try_from(scenario).expect("a scenario is a table, and its seed fits");
    for key in ["title", "why", "rules", "why_not_real"] {
        table.remove(key);
    }
    let plugins = |table: Option<&mut Value>| table.and_then(Value::as_table_mut).map(seams_unsaid);
    plugins(table.get_mut("plugins"));
    for step in table.get_mut("steps").and_then(Value::as_array_mut).into_iter().flatten() {
        plugins(step.get_mut("plan"));
    }
    table
}

/// A link alone is what a plugin declares that is given nothing.
fn seams_unsaid(plugins: &mut Table) {
    let alone = Value::Array(vec![Value::from("link")]);
    for plugin in plugins.iter_mut().filter_map(|(_, plugin)| plugin.as_table_mut()) {
        if plugin.get("seams") == Some(&alone) {
            plugin.remove("seams");
        }
    }
}

fn of_table(table: &Table) -> (u128, u128) {
    sum(table.values().map(of_value))
}

fn of_value(value: &Value) -> (u128, u128) {
    match value {
        Value::Table(table) => of_table(table),
        Value::Array(items) => sum(items.iter().map(of_value)),
        Value::String(text) => (text.split_whitespace().count() as u128, of_text(text)),
        Value::Integer(number) => (0, u128::from(number.unsigned_abs())),
        _ => (0, 0),
    }
}

/// Each part counts as one beside what is in it.
fn sum(parts: impl Iterator<Item = (u128, u128)>) -> (u128, u128) {
    parts.fold((0, 0), |(parts, amount), (more, larger)| (parts + 1 + more, amount.saturating_add(larger)))
}

/// Numbers within a text count as numbers.
fn of_text(text: &str) -> u128 {
    let numbers = text.split(|c: char| !c.is_ascii_digit()).filter_map(|digits| digits.parse::<u64>().ok());
    numbers.map(u128::from).sum::<u128>() + text.len() as u128
}
