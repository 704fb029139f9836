//! `mu host exec <host> -- <script>`: runs a script on a host and passes on its output, byte for byte, and its status.

use std::time::Duration;

use mu_protocol::messages::values::RemotePath;
use serde_json::json;

use crate::cli::failure::Failure;
use crate::cli::output::{Data, Output, Passed, Row};
use crate::invocation::Invocation;
use crate::link::{Link, Ran};
use crate::os::Os;
use crate::store::{Missing, Store};
use crate::verbs::name::HostName;

/// Runs the script in `cwd` there, for at most `timeout`. Data: `{host, exit_code, stdout, stderr, partial,
/// may_still_run}`. A run without an exit status exits 1 and says so.
///
/// # Errors
/// Nobody has that name (exit 3); the plugin may not be started (exit 4); nothing was run (exit 5); it was sent and has no
/// answer (exit 1).
pub async fn run<O: Os>(
    invocation: &Invocation<O>,
    name: &HostName,
    script: &str,
    cwd: &RemotePath,
    timeout: Duration,
) -> Result<Output, Failure> {
    let store = Store::open(invocation, Missing::Empty).await?;
    let link = Link::open(invocation, &store, name).await?;
    let ran = link.exec(script, cwd, timeout).await.map_err(|error| link.failure(&error))?;
    Ok(passed_on(name, ran, timeout))
}

fn passed_on(name: &HostName, ran: Ran, timeout: Duration) -> Output {
    let Ran { run, may_still_run, said } = ran;
    let row = Row::new([
        ("host", json!(name.as_str())),
        ("exit_code", json!(run.exit_code)),
        ("stdout", json!(run.stdout)),
        ("stderr", json!(run.stderr)),
        ("partial", json!(run.partial)),
        ("may_still_run", json!(may_still_run)),
    ]);
    let mut notes = Vec::new();
    if run.exit_code.is_none() {
        let why = match &said {
            Some(said) => format!("how it ended is not known; the plugin says: {said}"),
            None => format!("it was cut off after {} s", timeout.as_secs_f64()),
        };
        let rest = if may_still_run { "it may still be running" } else { "nothing of it runs any more" };
        notes.push(format!("host {name}: the script has no exit status: {why}; {rest}"));
    } else if run.partial {
        notes.push(format!("host {name}: the output was cut"));
    }
    let summary = match run.exit_code {
        Some(status) => format!("the script on {name} ended with status {status}"),
        None => format!("the script on {name} has no exit status"),
    };
    // 1 is the exit code of an outcome that is not known.
    let passed = Passed { stdout: run.stdout, stderr: run.stderr, status: run.exit_code.unwrap_or(1) };
    Output { notes, summary: Some(summary), ..Output::new(Data::Passed(row, passed)) }
}
