//! `mu host acquire`, `status` and `release` end as their last answer says: what is definite by its own code, what may have
//! happened by 1 (oracle 9). So do
//! `mu host exec` and `mu host fetch` end as their last answer says (oracle 9): a run's status and output are passed
//! through byte for byte, a run without exit code is exit 1 and says so (ERR-05), what is definite is exit 5, and what is
//! unanswered exit 1 (TMO-09).

use mu_core::os::Exit;
use serde_json::Value;

use super::calls::Call;
use super::speech::Outcome;
use super::{History, Observed, Ran, Violation, shape};

pub(super) fn check(history: &History, observed: &Observed<'_>, found: &mut Vec<Violation>) {
    // What cannot be written down may end a verb in another way.
    let wrote = !observed.excuses.disk_fails;
    for ran in observed.ran {
        let Some(Exit::Status(status)) = ran.exit.filter(|_| ran.heard && !ran.crash) else { continue };
        let mut say = |rule, text: String| {
            let text = format!("`{}`: {text}", ran.argv.join(" "));
            found.push(Violation { oracle: "remote", rule, at: None, text });
        };
        let of = |method| last_answer(history, observed.ran, ran, method);
        match (ran.is_host("exec"), ran.is_host("fetch")) {
            (true, _) => exec(ran, status, of("link.exec"), &mut say),
            (_, true) => fetch(status, of("link.fetch"), &mut say),
            _ if ran.is_host("acquire") && wrote => made(status, of("host.acquire"), &mut say),
            _ if ran.is_host("release") && wrote => ended(status, of("host.release"), &mut say),
            _ if ran.is_host("status") && wrote => seen(ran, status, of("host.status"), &mut say),
            _ => {}
        }
    }
}

/// `mu host acquire`. Its last request may have been that of an earlier one, whose host has the name now.
fn made(status: i32, last: Last<'_>, say: &mut Say<'_>) {
    match last {
        Last::Answered(Outcome::Result(_)) if !matches!(status, 0 | 4) => {
            say("HOST-05", format!("the host was made, and mu ended with {status}"));
        }
        other => failed(status, other, say),
    }
}

fn ended(status: i32, last: Last<'_>, say: &mut Say<'_>) {
    match last {
        Last::Answered(Outcome::Result(_)) if status != 0 => {
            say("HOST-08", format!("the host was released, and mu ended with {status}"));
        }
        other => failed(status, other, say),
    }
}

fn seen(ran: &Ran, status: i32, last: Last<'_>, say: &mut Say<'_>) {
    let Last::Answered(Outcome::Result(state)) = last else { return failed(status, last, say) };
    let envelope: Value = serde_json::from_slice(&ran.stdout).unwrap_or_default();
    let (rule, due): (_, &[i32]) = match state["state"].as_str() {
        // It was asked only to learn whether the host is gone, while a release of it stays open.
        Some("up") if envelope["error"] == "host-not-ready" => ("A-55", &[4]),
        // Its handle may be another one.
        Some("up") => ("HOST-07", &[0, 1]),
        Some("gone") => ("HOST-12", &[4]),
        Some("needs-human") => ("A-66", &[5]),
        _ => ("HOST-16", &[1]),
    };
    if !due.contains(&status) {
        say(rule, format!("its state is {}, and mu ended with {status}", state["state"]));
    }
}

type Say<'a> = dyn FnMut(&'static str, String) + 'a;

/// What became of the last call.
#[derive(Clone, Copy)]
enum Last<'a> {
    /// Nothing was sent.
    Unsent,
    /// It has no answer that counts.
    Unanswered,
    /// It was answered.
    Answered(&'a Outcome),
    /// It is not certain which of the two holds.
    Unclear,
}

fn last_answer<'a>(history: &'a History, all: &[Ran], ran: &Ran, method: &str) -> Last<'a> {
    let is_its =
        |wire: &&super::history::Wire| history.ran(wire, all).is_some_and(|its| std::ptr::eq(its, ran));
    let wires = history.wires.iter().filter(is_its);
    let calls = wires.flat_map(|wire| Call::all(wire).map(move |call| (wire, call)));
    let Some((wire, call)) = calls.filter(|(_, call)| call.method == method).last() else {
        return Last::Unsent;
    };
    match call.answer {
        None => Last::Unanswered,
        Some((_, _, outcome)) if !shape::fits(method, outcome) => Last::Unanswered,
        // What was said before it may have broken the plugin.
        Some((place, ..)) if !wire.answered(call.id, place + 1, true) => Last::Unclear,
        Some((_, _, outcome)) => Last::Answered(outcome),
    }
}

fn exec(ran: &Ran, status: i32, last: Last<'_>, say: &mut Say<'_>) {
    let run = match last {
        Last::Answered(Outcome::Result(run)) => run,
        Last::Unsent if status == 0 => return say("REG-18", "exit 0, and nothing was run".into()),
        other => return failed(status, other, say),
    };
    let due = run["exitCode"].as_i64().unwrap_or(1);
    if i64::from(status) != due {
        return say("LINK-02", format!("the run ended with {}, and mu with {status}", run["exitCode"]));
    }
    let (stdout, stderr) =
        (run["stdout"].as_str().unwrap_or_default(), run["stderr"].as_str().unwrap_or_default());
    if ran.is_json() {
        let envelope: Value = serde_json::from_slice(&ran.stdout).unwrap_or_default();
        let data = &envelope["data"];
        if envelope["ok"] == true && (data["stdout"] != stdout || data["stderr"] != stderr) {
            say("LINK-02", "the envelope holds another output than the run".into());
        }
        return;
    }
    if ran.stdout != stdout.as_bytes() {
        say("LINK-02", "stdout is not that of the run".into());
    }
    if !ran.stderr.starts_with(stderr.as_bytes()) {
        say("LINK-02", "stderr does not begin with that of the run".into());
    }
    if run["exitCode"].is_null() && ran.stderr.len() == stderr.len() {
        say("ERR-05", "a run without exit code, and nobody says so".into());
    }
}

fn fetch(status: i32, last: Last<'_>, say: &mut Say<'_>) {
    match last {
        Last::Answered(Outcome::Result(run)) => {
            if status == 0 && run["exitCode"] != 0 {
                say("LINK-03", format!("the fetch ended with {}, and mu with 0", run["exitCode"]));
            }
        }
        // A host may have a template of its own.
        Last::Unsent => {}
        other => failed(status, other, say),
    }
}

/// The status when there is no result.
fn failed(status: i32, last: Last<'_>, say: &mut Say<'_>) {
    let (rule, due, what): (_, &[i32], _) = match last {
        Last::Unsent | Last::Unclear | Last::Answered(Outcome::Result(_)) => return,
        Last::Unanswered => ("TMO-09", &[1], "it was sent and not answered"),
        Last::Answered(error) => match error.kind() {
            // Before the next repeat the plugin may be gone, and refuse to start again.
            Some("retryable") => ("ERR-01", &[4, 5], "nothing happened"),
            Some("permanent") => ("ERR-02", &[5], "it was refused"),
            Some("human") => ("ERR-03", &[5], "a person has to act first"),
            _ => ("ERR-05", &[1], "it may have happened"),
        },
    };
    if !due.contains(&status) {
        say(rule, format!("{what}, and mu ended with {status}"));
    }
}
