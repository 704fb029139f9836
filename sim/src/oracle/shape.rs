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
            _ => true,
        },
    }
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
