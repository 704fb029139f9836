//! Whether what a reply says has the shape that the published schema gives to its method; written down by hand, so that
//! one misunderstanding does not sit on both sides. A method that is not known here fits.

use serde_json::{Map, Value};

use super::speech::Outcome;

/// Whether it may answer a request of this method.
pub(super) fn fits(method: &str, outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Error(error) => is_error(error),
        Outcome::Result(result) => match method {
            "link.exec" | "link.fetch" | "link.push" => is_run(result),
            "link.checkSteps" | "job.checkSteps" => {
                result.as_array().is_some_and(|steps| steps.iter().all(is_step))
            }
            "host.acquire" => is_acquired(result),
            "host.lookup" => is_lookup(result),
            "host.status" => is_status(result),
            "host.release" => result.is_null(),
            _ => true,
        },
    }
}

/// A host that was made: its handle, and facts that are whole numbers.
fn is_acquired(result: &Value) -> bool {
    result.as_object().is_some_and(|host| {
        host.get("handle").is_some_and(is_word)
            && host.iter().all(|(name, value)| name == "handle" || (is_fact(name) && is_whole(value)))
    })
}

fn is_lookup(result: &Value) -> bool {
    let Some(members) = result.as_object().filter(|members| members.len() == 1) else { return false };
    members.iter().all(|(name, value)| match name.as_str() {
        "found" => is_acquired(value),
        "pending" | "none" => *value == true,
        "unknown" => is_word(value),
        _ => false,
    })
}

fn is_status(result: &Value) -> bool {
    match result["state"].as_str() {
        Some("up") => result.as_object().is_some_and(|up| {
            let fits = |(name, value): (&String, &Value)| match name.as_str() {
                "state" => true,
                "handle" => is_word(value),
                name => is_fact(name) && (value.is_null() || is_whole(value)),
            };
            up.contains_key("handle") && up.iter().all(fits)
        }),
        Some("gone" | "unknown") => {
            members(result, &["state", "reason"]).is_some_and(|one| is_word(&one["reason"]))
        }
        Some("needs-human") => {
            members(result, &["state", "remedy"]).is_some_and(|one| is_word(&one["remedy"]))
        }
        _ => false,
    }
}

fn is_fact(name: &str) -> bool {
    matches!(name, "deadlineAt" | "idleReclaimMs" | "maxJobs")
}

/// No further than what every reader of JSON holds exactly.
fn is_whole(value: &Value) -> bool {
    value.as_u64().is_some_and(|number| number < 1 << 53)
}

/// The members of an object that has these and no other.
fn members<'v>(value: &'v Value, names: &[&str]) -> Option<&'v Map<String, Value>> {
    let object = value.as_object()?;
    (object.len() == names.len() && names.iter().all(|name| object.contains_key(*name))).then_some(object)
}

fn is_error(error: &Value) -> bool {
    let Some(error) = members(error, &["code", "message", "data"]) else { return false };
    let data = match error["data"]["kind"].as_str() {
        Some("human") => {
            members(&error["data"], &["kind", "remedy"]).is_some_and(|data| is_word(&data["remedy"]))
        }
        Some("retryable" | "permanent" | "unknown-outcome") => members(&error["data"], &["kind"]).is_some(),
        _ => false,
    };
    let code = error["code"].as_i64().is_some_and(|code| i32::try_from(code).is_ok());
    data && code && error["message"].is_string()
}

fn is_run(result: &Value) -> bool {
    members(result, &["exitCode", "stdout", "stderr", "partial"]).is_some_and(|run| {
        let code = run["exitCode"].is_null() || run["exitCode"].as_u64().is_some_and(|code| code < 256);
        code && run["stdout"].is_string() && run["stderr"].is_string() && run["partial"].is_boolean()
    })
}

fn is_step(step: &Value) -> bool {
    members(step, &["step", "ok", "detail"]).is_some_and(|step| {
        let ok = step["ok"].is_null() || step["ok"].is_boolean() || step["ok"] == "warn";
        ok && is_word(&step["step"]) && step["detail"].is_string()
    })
}

fn is_word(value: &Value) -> bool {
    value.as_str().is_some_and(|word| !word.is_empty())
}
