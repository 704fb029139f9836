//! `mu host check <host>…`: checks hosts side by side, each step by step. It changes nothing here.

use futures_util::future::join_all;
use mu_protocol::messages::checks::StepOk;
use mu_protocol::messages::values::Name;
use serde_json::json;

use crate::cli::failure::Failure;
use crate::cli::output::{Data, Output, Row};
use crate::cli::text::{command, escape};
use crate::invocation::Invocation;
use crate::link::{Link, Report, Shown};
use crate::os::Os;
use crate::store::{Missing, Store, hosts};
use crate::verbs::name::HostName;

/// Checks the hosts. A list of rows `{host, step, ok, detail}` when all are sound; `ok` is true, null for a step that was
/// skipped, or `"warn"` (LINK-12).
///
/// # Errors
/// Nobody has one of the names (exit 3, nothing is started). Of hosts that are not sound, the failure of the first, which
/// counts them; every step is a line on standard error.
pub async fn run<O: Os>(
    invocation: &Invocation<O>,
    names: &[HostName],
    agent: Option<&Name>,
    full: bool,
) -> Result<Output, Failure> {
    let store = Store::open(invocation, Missing::Empty).await?;
    for name in names {
        if !store.read(|tx| hosts::is_known(tx, name)).await? {
            return Err(name.unknown(&store.read(hosts::names).await?));
        }
    }
    // One after the other: an effect that is open on a host is resolved first, which may stop a plugin that others use.
    let mut links = Vec::new();
    for name in names {
        links.push(Link::open(invocation, &store, name).await);
    }
    let check = async |link: &Result<Link<'_, O>, Failure>| match link {
        Ok(link) => link.check(agent).await,
        Err(failure) => Report { steps: Vec::new(), failure: Some(failure.clone()) },
    };
    let reports = join_all(links.iter().map(check)).await;
    let results: Vec<_> = names.iter().zip(reports).collect();
    match first_failure(&results, agent) {
        Some(failure) => Err(failure),
        None => Ok(passed(&results, agent, full)),
    }
}

/// The command that checks these hosts.
fn again(names: &[&str], agent: Option<&Name>, full: bool) -> String {
    let mut words = vec!["mu", "host", "check"];
    words.extend(names);
    if let Some(agent) = agent {
        words.extend(["--agent", agent.as_str()]);
    }
    words.extend(full.then_some("--full"));
    command(words)
}

/// The failure of the first host that has one; with several, its message counts them.
fn first_failure(results: &[(&HostName, Report)], agent: Option<&Name>) -> Option<Failure> {
    let failed = results.iter().filter(|(_, report)| report.failure.is_some());
    let failed: Vec<&str> = failed.map(|(name, _)| name.as_str()).collect();
    let first = results.iter().find_map(|(_, report)| report.failure.as_ref())?;
    let mut failure = match failed.as_slice() {
        [_] => first.clone(),
        _ => {
            let (count, all, names) = (failed.len(), results.len(), failed.join(", "));
            let message = format!("{} ({count} of {all} hosts fail: {names})", first.message);
            Failure::new(first.kind, message)
        }
    };
    if failure.next.is_none() {
        failure = failure.or_else(failed.iter().map(|name| again(&[name], agent, false)));
    }
    failure.notes = results
        .iter()
        .flat_map(|(name, report)| report.steps.iter().map(move |step| line(name, step)))
        .collect();
    Some(failure)
}

/// A step on one line.
fn line(name: &HostName, Shown { step, ok, detail }: &Shown) -> String {
    let word = match ok {
        Some(StepOk::Passed) => "ok",
        Some(StepOk::Failed) => "failed",
        Some(StepOk::Skipped) => "skipped",
        Some(StepOk::Warn) => "warn",
        None => "unknown",
    };
    let line = format!("{name}: {word} {step}: {detail}");
    escape(line.trim_end_matches([':', ' '])).into_owned()
}

fn passed(results: &[(&HostName, Report)], agent: Option<&Name>, full: bool) -> Output {
    let row = |name: &HostName, Shown { step, ok, detail }: &Shown| {
        Row::new([
            ("host", json!(name.as_str())),
            ("step", json!(step)),
            ("ok", json!(ok)),
            ("detail", json!(detail)),
        ])
    };
    let rows = results
        .iter()
        .flat_map(|(name, report)| report.steps.iter().map(move |step| row(name, step)))
        .collect();
    let data = Data::List { table: "steps", rows, more: 0, cut: false };
    let names: Vec<&str> = results.iter().map(|(name, _)| name.as_str()).collect();
    let uncut = again(&names, agent, true);
    Output { uncut: (!full).then_some(uncut), ..Output::new(data) }
}
