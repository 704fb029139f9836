//! Exit code, envelope and text agree with each other: a failure is one envelope on stdout that carries the exit code,
//! `--json` is one envelope, a text is no half envelope; and each error is one line.

use mu_core::os::Exit;
use serde_json::Value;

use super::{Ran, Violation};

/// Adds what is wrong with the answer of one invocation.
pub fn check(ran: &Ran, found: &mut Vec<Violation>) {
    let Some(Exit::Status(status)) = ran.exit else { return };
    if !ran.heard {
        return;
    }
    let mut say = |rule, text: String| {
        let text = format!("`{}`: {text}", ran.argv.join(" "));
        found.push(Violation { oracle: "answers", rule, at: None, text });
    };
    let Ok(stdout) = std::str::from_utf8(&ran.stdout) else {
        return say("OUT-03", "stdout is not UTF-8".into());
    };
    let before_dashes = ran.argv.iter().take_while(|arg| *arg != "--");
    let json = before_dashes.clone().any(|arg| arg == "--json");
    let envelope: Option<Value> = serde_json::from_str(stdout).ok();
    match (&envelope, status) {
        (Some(Value::Object(members)), _) if members.get("ok") == Some(&Value::Bool(false)) => {
            let keys: Vec<&str> = members.keys().map(String::as_str).collect();
            if !same_set(&keys, &["ok", "error", "message", "next", "exit"]) {
                say("OUT-02", format!("a failure envelope with the members {keys:?}"));
            }
            if members.get("exit").and_then(Value::as_i64) != Some(i64::from(status)) || status == 0 {
                say("OUT-02", format!("the envelope says exit {}, the process {status}", members["exit"]));
            }
            let message = members.get("message").and_then(Value::as_str).unwrap_or_default();
            if message.is_empty() || message.contains('\n') {
                say("BUD-03", "the message of a failure is not one line".into());
            }
        }
        (Some(Value::Object(members)), _) if json => {
            let keys: Vec<&str> = members.keys().map(String::as_str).collect();
            if !same_set(&keys, &["ok", "data", "next"]) || members.get("ok") != Some(&Value::Bool(true)) {
                say("OUT-01", format!("a success envelope with the members {keys:?}"));
            }
        }
        (_, 0) if json => say("OUT-01", "--json, and stdout is not one JSON object".into()),
        (_, 0) => {}
        // It crashed while it was giving its answer.
        (_, 1) if ran.crash => {}
        (_, _) => say("OUT-03", format!("exit {status} without a failure envelope on stdout")),
    }
    if let (false, Some(message)) = (json, envelope.as_ref().and_then(|all| all["message"].as_str())) {
        let stderr = String::from_utf8_lossy(&ran.stderr);
        if status != 0 && stderr.lines().filter(|line| *line == format!("mu: {message}")).count() != 1 {
            say("BUD-03", "the text for people does not say on one line what the envelope says".into());
        }
    }
}

fn same_set(left: &[&str], right: &[&str]) -> bool {
    left.len() == right.len() && left.iter().all(|key| right.contains(key))
}
