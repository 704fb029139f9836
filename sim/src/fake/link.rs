//! The link seam of a correct plugin: what each call does, how long that takes, what it answers.
//!
//! In: the plan and a request. Out: the work of that request, to be done at its times. Nothing happens here.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Plan;
use crate::programs::script::{self, Op, To};

/// The commit that a host's HEAD is at when the plugin table names none.
const HEAD: &str = "5eed5eed5eed5eed5eed5eed5eed5eed5eed5eed";
/// The host has no limit of its own; a call without a sound `timeoutMs` is cut after this many milliseconds.
const NO_TIMEOUT_MS: u64 = 20_000;

/// What a call of the link does.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Work {
    /// Files that are written on the way: milliseconds from the call, path, contents.
    pub files: Vec<(u64, PathBuf, Vec<u8>)>,
    /// Milliseconds from the call to its answer.
    pub takes: u64,
    /// The file that must have been written before `result` is true.
    pub fetch_head: Option<(PathBuf, Vec<u8>)>,
    /// The answer.
    pub result: Value,
}

impl Work {
    /// This answer, and nothing beside it.
    pub(crate) fn at_once(result: Value) -> Work {
        Work { files: Vec::new(), takes: 0, fetch_head: None, result }
    }
}

/// Which part of `mu host check` a step belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Before the host is reached.
    Template,
    /// The way to the host.
    Reach,
    /// The agent's harness on it.
    Agent,
}

impl Phase {
    /// All of them, in their order.
    pub const ALL: [Phase; 3] = [Phase::Template, Phase::Reach, Phase::Agent];

    /// Its name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Template => "template",
            Phase::Reach => "reach",
            Phase::Agent => "agent",
        }
    }
}

/// How a step came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, expecting = "how a step came out is true, false, \"skip\" or \"warn\"")]
pub enum StepOk {
    /// It passed, or it failed.
    Passed(bool),
    /// Anything else.
    Else(Otherwise),
}

/// A step that neither passed nor failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Otherwise {
    /// It was skipped: null on the wire.
    Skip,
    /// It passed with a warning.
    Warn,
}

/// A step that `link.checkSteps` answers: `[[plugins.<name>.steps]]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckStep {
    /// The phase in which it is told.
    pub phase: Phase,
    /// Its name.
    pub step: String,
    /// How it came out; it passed when left out.
    #[serde(default = "passed", skip_serializing_if = "has_passed")]
    pub ok: StepOk,
    /// What there is to say about it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub detail: String,
}

fn passed() -> StepOk {
    StepOk::Passed(true)
}

fn has_passed(ok: &StepOk) -> bool {
    *ok == passed()
}

impl CheckStep {
    fn on_the_wire(&self) -> Value {
        let ok = match self.ok {
            StepOk::Passed(passed) => Value::from(passed),
            StepOk::Else(Otherwise::Skip) => Value::Null,
            StepOk::Else(Otherwise::Warn) => Value::from("warn"),
        };
        json!({ "step": self.step, "ok": ok, "detail": self.detail })
    }
}

/// The work of a call; `None` when the link has no such method.
pub(crate) fn work(plan: &Plan, method: &str, params: &Value) -> Option<Work> {
    match method {
        "link.exec" => Some(exec(params)),
        "link.fetch" => {
            let remote = params["remoteCwd"].as_str().unwrap_or_default();
            let line = format!("{}\t\t{remote} of {}\n", plan.head.as_deref().unwrap_or(HEAD), plan.name);
            let repo = Path::new(params["localRepo"].as_str().unwrap_or_default());
            let fetch_head = Some((repo.join(".git/FETCH_HEAD"), line.into_bytes()));
            Some(Work { fetch_head, ..Work::at_once(run(Some(0), "", "", false)) })
        }
        "link.push" => Some(Work::at_once(run(Some(0), "", "", false))),
        "link.checkSteps" => Some(Work::at_once(steps(plan, params["phase"].as_str().unwrap_or_default()))),
        _ => None,
    }
}

/// When the call's own timeout is over, in milliseconds from its arrival; 0 for a call that has none.
pub(crate) fn timeout(params: &Value) -> u64 {
    params["timeoutMs"].as_u64().unwrap_or(0)
}

/// What a fetch into something else than a repository answers.
pub(crate) fn no_repository() -> Value {
    run(Some(128), "", "fatal: not a git repository\n", false)
}

/// A script that runs until its end, or until its timeout; then it is cut.
fn exec(params: &Value) -> Work {
    let limit = params["timeoutMs"].as_u64().unwrap_or(NO_TIMEOUT_MS);
    let folder = Path::new(params["cwd"].as_str().unwrap_or("."));
    let (mut out, mut err, mut files) = (Vec::new(), Vec::new(), Vec::new());
    let (mut at, mut status, mut cut) = (0_u64, 0, false);
    for step in script::read("sh", params["script"].as_str().unwrap_or_default()) {
        if step.and && status != 0 {
            continue;
        }
        match step.op {
            Op::Write { to, bytes, status: its } => {
                match to {
                    To::Out => out.extend(bytes),
                    To::Err => err.extend(bytes),
                    To::File(path) => files.push((at, folder.join(path), bytes)),
                }
                status = its;
            }
            Op::Sleep(span) => {
                at = at.saturating_add(span.as_millis() as u64);
                status = 0;
            }
            Op::Exit(its) => {
                status = its.unwrap_or(status);
                break;
            }
        }
        if at > limit {
            (at, cut) = (limit, true);
            break;
        }
    }
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let result = run((!cut).then_some(status), &text(&out), &text(&err), cut);
    Work { files, takes: at, fetch_head: None, result }
}

fn run(exit_code: Option<u8>, stdout: &str, stderr: &str, partial: bool) -> Value {
    json!({ "exitCode": exit_code, "stdout": stdout, "stderr": stderr, "partial": partial })
}

/// The steps of the plugin table for this phase; without a table one that passed.
fn steps(plan: &Plan, phase: &str) -> Value {
    if plan.steps.is_empty() {
        return json!([{ "step": phase, "ok": true, "detail": format!("{} is fine", plan.name) }]);
    }
    plan.steps.iter().filter(|step| step.phase.name() == phase).map(CheckStep::on_the_wire).collect()
}
