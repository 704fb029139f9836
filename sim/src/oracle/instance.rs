//! Nothing about a recorded host or effect is sent to another instance than the one recorded with it (oracle 8, EFF-24):
//! what a key was first sent to is its instance, and a target that names an instance is for that alone. A host that a
//! plugin provides is named with its handle and instance (HOST-03), and with no handle that nobody has told.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::calls::{Call, declared};
use super::effects::Asked;
use super::{History, Ran, Violation, shape};

const ORACLE: &str = "instance";

pub(super) fn check(history: &History, ran: &[Ran], found: &mut Vec<Violation>) {
    keys(history, found);
    targets(history, ran, found);
}

fn keys(history: &History, found: &mut Vec<Violation>) {
    let mut first: BTreeMap<&str, &str> = BTreeMap::new();
    for one in Asked::all(history) {
        let Some(instance) = one.instance() else { continue };
        let its = *first.entry(one.key).or_insert(instance);
        if its != instance {
            let text =
                format!("{}: it went to {instance}, and the effect is one of {its}", one.name(history));
            let rule = if one.is_effect() { "EFF-07" } else { "EFF-24" };
            found.push(Violation { oracle: ORACLE, rule, at: Some(one.call.line.at), text });
        }
    }
}

fn targets(history: &History, ran: &[Ran], found: &mut Vec<Violation>) {
    // Profiles and hosts of providers share their names; one that was both in the same run is not judged.
    let profiles: BTreeSet<&str> =
        ran.iter().filter(|ran| ran.is_host("add")).flat_map(|ran| ran.options()).collect();
    let mut told: BTreeMap<&str, BTreeSet<(&str, &str)>> = BTreeMap::new();
    let mut calls: Vec<_> =
        history.wires.iter().flat_map(|wire| Call::all(wire).map(move |call| (wire, call))).collect();
    calls.sort_by_key(|(_, call)| call.line.begun);
    for (wire, call) in &calls {
        if let (Some(name), Some(handle), Some(instance)) =
            (call.host(), handle_of(call), declared(wire).and_then(|all| all["instance"].as_str()))
        {
            told.entry(name).or_default().insert((handle, instance));
        }
    }
    for (wire, call) in &calls {
        let Some(name) = call.host() else { continue };
        let mut say = |rule, text: String| {
            let text = format!("{}: call {} ({}): {text}", history.name(wire), call.id, call.method);
            found.push(Violation { oracle: ORACLE, rule, at: Some(call.line.at), text });
        };
        let host = &call.param("target")["host"];
        let (handle, instance) = (host["handle"].as_str(), host["instance"].as_str());
        let declared = declared(wire).and_then(|all| all["instance"].as_str());
        if let (Some(instance), Some(declared)) = (instance, declared)
            && instance != declared
        {
            say("EFF-24", format!("its target is of {instance}, and the plugin is {declared}"));
        }
        let names_it = match call.method {
            "host.acquire" | "host.lookup" => continue,
            "host.status" | "host.release" => true,
            _ => told.contains_key(name) && !profiles.contains(name),
        };
        match (handle, instance) {
            (Some(handle), Some(instance)) => {
                // An operator may have said so.
                let said = ran.iter().any(|ran| ran.option("--handle") == Some(handle));
                if !said && !told.get(name).is_some_and(|told| told.contains(&(handle, instance))) {
                    say("HOST-03", format!("nobody has told that {name} is {handle} of {instance}"));
                }
            }
            _ if names_it => {
                say("HOST-03", format!("it does not name the handle and the instance of {name}"))
            }
            _ => {}
        }
    }
}

/// The handle that an answer told of a new host.
fn handle_of<'a>(call: &Call<'a>) -> Option<&'a str> {
    let (_, _, outcome) = call.answer?;
    let result = call.result().filter(|_| shape::fits(call.method, outcome))?;
    let acquired: &Value = match call.method {
        "host.acquire" => result,
        "host.lookup" => result.get("found")?,
        _ => return None,
    };
    acquired["handle"].as_str()
}
