//! Once faults stop and the verbs are run again, mu's rows and the backend agree and the journal is empty, or the one named
//! reason why it may not be holds (oracle 3).

use serde_json::Value;

use super::Excuses;
use super::ledger::Books;
use super::rows::{EffectRow, PluginRow, Rows};

/// The longest time in flight that anybody waits for, in milliseconds: eight days.
const AWAITED_MS: u64 = 8 * 86_400_000;

/// Why an effect may stay open for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reason {
    /// The plugin is another one now (EFF-07), or was not added again (LOAD-19).
    StopChanged,
    /// Nothing can be asked or sent (EFF-11), or nothing that is answered counts (EFF-13).
    NoWay,
}

/// What does not agree, a sentence each. `declares` are the declarations that the plugins would make now.
pub fn check(rows: &Rows, books: &Books, declares: &[(String, Value)], excuses: Excuses) -> Vec<String> {
    let mut found = Vec::new();
    let changed = |plugin: &str, instance: &str| {
        let recorded = rows.plugins.iter().find(|row| row.name == plugin);
        let now = declares.iter().find(|(name, _)| name == plugin).map(|(_, declaration)| declaration);
        recorded.is_none_or(|row| row.instance != instance || now != Some(&row.declaration))
    };
    for row in &rows.effects {
        let plugin = rows.plugins.iter().find(|plugin| plugin.name == row.plugin);
        let reason = match plugin {
            _ if changed(&row.plugin, &row.instance) => Some(Reason::StopChanged),
            Some(plugin) => no_way(row, plugin, books),
            None => None,
        };
        if reason.is_none() {
            let EffectRow { method, key, host, .. } = row;
            found.push(format!("the {method} of {host}, key {key}, is still open"));
        }
    }
    let is_due = |host: &str| !excuses.cover(rows, host);
    let is_open = |host: &str| rows.effects.iter().any(|row| row.host == host);
    let settled = |name: &str| is_due(name) && !is_open(name);
    for row in rows.hosts.iter().filter(|row| !changed(&row.plugin, &row.instance) && settled(&row.name)) {
        let machine = books.machines.iter().find(|one| {
            let its = row.handle.as_ref().is_some_and(|handle| one.handles.contains(handle));
            one.host == row.name && one.instance == row.instance && its
        });
        let lives = machine.is_some_and(|machine| machine.gone_ms.is_none());
        match (row.state.as_str(), lives) {
            ("ready", true) | ("lost", false) => {}
            (state, true) => found.push(format!("host {} is {state}, and its machine exists", row.name)),
            (state, false) => {
                found.push(format!("host {} is {state}, and its machine does not exist", row.name))
            }
        }
    }
    let living = books.machines.iter().filter(|machine| machine.gone_ms.is_none());
    for machine in living.filter(|machine| is_due(&machine.host)) {
        let known = rows.hosts.iter().any(|row| {
            let its = row.handle.as_ref().is_some_and(|handle| machine.handles.contains(handle));
            row.name == machine.host && row.instance == machine.instance && its
        });
        let open = rows.effects.iter().any(|row| row.key == machine.key);
        if !known && !open {
            found.push(format!("a machine of {} exists, and mu has no host of it", machine.host));
        }
    }
    found
}

/// Whether the plugin's declaration leaves an effect open.
fn no_way(row: &EffectRow, plugin: &PluginRow, books: &Books) -> Option<Reason> {
    let host = plugin.declaration["seams"].get("host");
    let Some(acquire) = host.map(|host| &host["acquire"]) else { return Some(Reason::NoWay) };
    if row.method != "host.acquire" {
        return None;
    }
    let made = books.machines.iter().any(|one| one.key == row.key && one.instance == row.instance);
    let in_flight = acquire["inFlightMs"].as_u64();
    let counts = acquire["fenceKey"] == true || in_flight.is_some_and(|ms| ms <= AWAITED_MS);
    match acquire["lookup"] == true {
        // A `none` that never counts; what exists is found.
        true => (!made && !counts).then_some(Reason::NoWay),
        // The window may be over, and without one nothing is sent again.
        false => Some(Reason::NoWay),
    }
}
