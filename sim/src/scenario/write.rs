//! A scenario to text, in the form in which people write one: tables for plugins, faults and steps, one line a key.

use toml::{Table, Value};

use super::format::{Scenario, Step};

const SCENARIO_KEYS: &[&str] =
    &["title", "why", "rules", "seed", "short_io", "used", "pooled", "real", "why_not_real"];
const FAULT_KEYS: &[&str] = &["plugin", "on", "nth", "times", "start", "when", "after_ms", "do"];
const STEP_KEYS: &[&str] = &[
    "chmod",
    "file",
    "plan",
    "db",
    "advance_ms",
    "wall_step_ms",
    "repo",
    "backend_set",
    "backend_do",
    "net",
    "reboot",
    "recycle",
    "calm",
    "end_all",
    "run",
    "env",
    "overlap",
    "signal",
    "world",
    "kill_at_call",
    "panic_at_call",
    "kill_at_disk",
    "power_at_call",
    "power_at_disk",
    "disk_error",
    "kill_plugin_at",
    "stdout_closed",
];
/// What a step expects.
pub(crate) const EXPECTATIONS: &[&str] = &[
    "exit",
    "died_of",
    "error",
    "json",
    "json_absent",
    "stdout",
    "stderr",
    "within_ms",
    "took_ms",
    "wire",
    "starts",
    "fetch_head",
    "backend",
    "effects",
    "records",
    "converged",
];

impl Scenario {
    /// The file that says this. Reading it gives an equal scenario.
    ///
    /// # Panics
    ///
    /// If a number does not fit into TOML's signed 64 bits; none that was read from a file is like that.
    pub fn to_toml(&self) -> String {
        let mut table = Table::try_from(self).expect("a scenario is a table, and its numbers fit");
        let (plugins, backend) = (table.remove("plugins"), table.remove("backend"));
        let (faults, steps) = (table.remove("faults"), table.remove("steps"));
        let mut text = String::new();
        lines(&mut text, &table, SCENARIO_KEYS);
        for (name, plugin) in plugins.iter().filter_map(Value::as_table).flatten() {
            text.push_str(&format!("\n[plugins.{}]\n", key(name)));
            lines(&mut text, plugin.as_table().expect("a plugin is a table"), &["seams"]);
        }
        if let Some(backend) = backend.as_ref().and_then(Value::as_table) {
            text.push_str("\n[backend]\n");
            lines(&mut text, backend, &[]);
        }
        for (name, list, order) in
            [("faults", faults, FAULT_KEYS), ("steps", steps, &[STEP_KEYS, EXPECTATIONS].concat())]
        {
            for item in list.iter().filter_map(Value::as_array).flatten() {
                text.push_str(&format!("\n[[{name}]]\n"));
                lines(&mut text, item.as_table().expect("faults and steps are tables"), order);
            }
        }
        text
    }
}

impl Step {
    /// Its keys as lines of a file.
    pub fn to_toml(&self) -> String {
        let mut text = String::new();
        lines(&mut text, &Table::try_from(self).expect("a step is a table"), STEP_KEYS);
        text
    }
}

/// The keys of a table: those of `order` first, the rest behind them.
fn lines(text: &mut String, table: &Table, order: &[&str]) {
    let rest = table.keys().map(String::as_str).filter(|key| !order.contains(key));
    for name in order.iter().copied().chain(rest) {
        if let Some(value) = table.get(name) {
            text.push_str(&format!("{} = {value}\n", key(name)));
        }
    }
}

fn key(name: &str) -> String {
    let bare = !name.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    if bare { name.to_owned() } else { Value::from(name).to_string() }
}
