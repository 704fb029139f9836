//! What mu printed fits how it ended, and the table of errors in `docs/cli.md`: a failure is one envelope
//! on one line of stdout that carries the exit code, `--json` is one envelope, a text is none; each error is one line. A
//! mu that dies of a signal says so on stderr alone.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use mu_core::os::Exit;
use serde_json::{Map, Value};

use super::{Ran, Violation};

/// The names of errors and the exit code of each, from the page that programs rely on.
fn errors() -> &'static BTreeMap<&'static str, i64> {
    static ERRORS: OnceLock<BTreeMap<&str, i64>> = OnceLock::new();
    ERRORS.get_or_init(|| {
        let rows = include_str!("../../../docs/cli.md").lines().filter_map(|line| line.strip_prefix("| `"));
        rows.filter_map(|row| {
            let (name, rest) = row.split_once("` | ")?;
            Some((name, rest.split_once(" | ")?.0.parse().ok()?))
        })
        .collect()
    })
}

/// Adds what is wrong with the answer of one invocation.
pub fn check(ran: &Ran, found: &mut Vec<Violation>) {
    let mut say = |rule, text: String| {
        let text = format!("`{}`: {text}", ran.argv.join(" "));
        found.push(Violation { oracle: "answers", rule, at: None, text });
    };
    if !ran.heard {
        return;
    }
    let status = match ran.exit {
        None | Some(Exit::Signal(9)) => return,
        Some(Exit::Signal(_)) => return died(ran, &mut say),
        Some(Exit::Status(status)) => i64::from(status),
    };
    let Ok(stdout) = std::str::from_utf8(&ran.stdout) else {
        return say("OUT-03", "stdout is not UTF-8".into());
    };
    let json = ran.is_json();
    // Its status and its output are those of the remote command; `remote` knows which.
    let passes_on = ran.is_host("exec");
    let is_envelope = |members: &Map<String, Value>| match passes_on && !json {
        true => ["ok", "error", "exit"].iter().all(|name| members.contains_key(*name)),
        false => members.contains_key("ok"),
    };
    let envelope = match serde_json::from_str(stdout) {
        Ok(Value::Object(members)) if is_envelope(&members) => Some(members),
        _ => None,
    };
    match &envelope {
        Some(envelope) => {
            if !stdout.ends_with('\n') || stdout.lines().count() != 1 {
                say("OUT-01", "the envelope is not one line".into());
            }
            if envelope["ok"] == false {
                failure(envelope, status, &mut say);
            } else if !json {
                say("OUT-03", "a success envelope without --json".into());
            } else {
                success(envelope, status, passes_on, &mut say);
            }
            next(envelope, &mut say);
        }
        // It crashed while it was giving its answer.
        None if status == 1 && ran.crash => {}
        None if passes_on && !json => {}
        None if status != 0 => say("OUT-03", format!("exit {status} without a failure envelope on stdout")),
        None if json => say("OUT-01", "--json, and stdout is not one envelope".into()),
        None => {}
    }
    if !json && let Some(message) = envelope.as_ref().and_then(|envelope| envelope.get("message")?.as_str()) {
        let stderr = String::from_utf8_lossy(&ran.stderr);
        if stderr.lines().filter(|line| *line == format!("mu: {message}")).count() != 1 {
            say("BUD-03", "the text for people does not say on one line what the envelope says".into());
        }
    }
}

type Say<'a> = dyn FnMut(&'static str, String) + 'a;

fn died(ran: &Ran, say: &mut Say<'_>) {
    if !ran.stdout.is_empty() {
        say("OUT-03", "it died of a signal and printed something on stdout".into());
    }
    if String::from_utf8_lossy(&ran.stderr).lines().count() > 1 {
        say("BUD-03", "it died of a signal and printed more than one line on stderr".into());
    }
}

fn failure(envelope: &Map<String, Value>, status: i64, say: &mut Say<'_>) {
    members(envelope, &["ok", "error", "message", "next", "exit"], "OUT-02", say);
    let exit = envelope.get("exit").and_then(Value::as_i64);
    if exit != Some(status) || status == 0 {
        say("OUT-02", format!("the envelope says exit {exit:?}, the process {status}"));
    }
    let error = envelope.get("error").and_then(Value::as_str).unwrap_or_default();
    match errors().get(error) {
        None => say("OUT-02", format!("no documented error is called {error:?}")),
        Some(exit) if *exit != status => {
            say("OUT-02", format!("{error} is documented as exit {exit}, not {status}"))
        }
        Some(_) => {}
    }
    let message = envelope.get("message").and_then(Value::as_str).unwrap_or_default();
    if message.is_empty() || message.contains(char::is_control) {
        say("BUD-03", "the message of a failure is not one line of text".into());
    }
}

/// `passes_on`: the status is that of a remote command, or 1 if that has none.
fn success(envelope: &Map<String, Value>, status: i64, passes_on: bool, say: &mut Say<'_>) {
    members(envelope, &["ok", "data", "next"], "OUT-01", say);
    let due = match envelope.get("data").filter(|_| passes_on).and_then(|data| data.get("exit_code")) {
        Some(code) => code.as_i64().unwrap_or(1),
        None => 0,
    };
    if envelope["ok"] != true || status != due {
        say("OUT-01", format!("the envelope says {}, the process exits with {status}", envelope["ok"]));
    }
}

fn members(envelope: &Map<String, Value>, due: &[&str], rule: &'static str, say: &mut Say<'_>) {
    let keys: Vec<&String> = envelope.keys().collect();
    if keys.len() != due.len() || !due.iter().all(|key| envelope.contains_key(*key)) {
        say(rule, format!("an envelope with the members {keys:?}"));
    }
}

/// OUT-04: nothing, or commands with how to take them.
fn next(envelope: &Map<String, Value>, say: &mut Say<'_>) {
    let fits = match envelope.get("next") {
        None | Some(Value::Null) => true,
        Some(next) => {
            let commands = next["commands"].as_array();
            let is_line =
                |one: &Value| one.as_str().is_some_and(|one| !one.is_empty() && !one.contains('\n'));
            next.as_object().is_some_and(|next| next.len() == 2)
                && matches!(next["mode"].as_str(), Some("seq" | "alt"))
                && commands.is_some_and(|all| !all.is_empty() && all.iter().all(is_line))
        }
    };
    if !fits {
        say("OUT-04", "`next` is not a mode and commands".into());
    }
}
