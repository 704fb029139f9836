//! Below the verbs: runs of mu that are code of a test, against the plugins of a scenario.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::future::join_all;
use mu_core::invocation::{Invocation, Start};
use mu_core::start_error::StartError;
use mu_protocol::messages::link::ExecParams;
use mu_protocol::messages::target::{HostRef, Target};
use mu_protocol::messages::values::{Millis, Name, RemotePath};
use mu_sim::play::{self, Finding, Setting};
use mu_sim::scenario::{Scenario, is_rule};
use mu_sim::sim_os::SimOs;

/// Runs `verb` in place of the run of the scenario's step, which must hold with every oracle.
fn run<T: 'static>(
    plugins_and_step: &str,
    verb: impl AsyncFnOnce(Invocation<SimOs>, BTreeMap<String, Start>) -> T + 'static,
) -> Option<T> {
    let text = format!("title = 't'\nrules = ['A-14']\n{plugins_and_step}");
    let scenario = Scenario::parse("s.toml", &text, &is_rule).unwrap();
    let (answer, played) = play::with_verb(&scenario, Setting::default(), verb).unwrap();
    let findings: Vec<String> = played.findings.iter().map(Finding::to_string).collect();
    assert_eq!(findings, [""; 0]);
    answer
}

/// HSK-09, PRC-07
#[test]
fn plugins_that_a_verb_starts_are_stopped_after_it() {
    let step = "[plugins.a]\n[plugins.b]\n[[steps]]\nrun = 'mu'\nexit = 0\nstarts = { a = 1, b = 1 }\n\
                wire = [{ plugin = 'a', methods = ['initialize', 'shutdown'] },\
                        { plugin = 'b', methods = ['initialize', 'shutdown'] }]";
    let names = run(step, async |invocation, starts| {
        let mut names = Vec::new();
        for start in starts.into_values() {
            names.push(invocation.start(start).await.unwrap().plugin.name);
        }
        names
    });
    assert_eq!(names.unwrap(), ["a", "b"]);
}

/// PRC-09, PRC-12
#[test]
fn a_signal_ends_what_a_verb_waits_for() {
    let step = "[plugins.deaf]\n[[faults]]\nplugin = 'deaf'\ndo = 'no-reply'\n\
                [[steps]]\nrun = 'mu'\ndied_of = 'INT'\ntook_ms = [700, 800]\nsignal = { what = 'INT', at_ms = 700 }";
    let ended = run(step, async |invocation, mut starts| {
        invocation.start(starts.remove("deaf").unwrap()).await.unwrap_err()
    });
    assert!(matches!(ended, Some(StartError::Interrupted(_))), "{ended:?}");
}

fn exec(script: String) -> ExecParams {
    let host = HostRef { name: Name::new("far").unwrap(), handle: None, instance: None };
    ExecParams {
        target: Target { agent: None, job: None, host },
        script,
        cwd: RemotePath::new(".").unwrap(),
        timeout_ms: Millis::new(20_000).unwrap(),
    }
}

/// Makes all these calls at once; what each printed, in their order.
async fn all(invocation: &Invocation<SimOs>, start: &Start, scripts: Vec<String>) -> Vec<String> {
    let calls: Vec<ExecParams> = scripts.into_iter().map(exec).collect();
    let budget = Duration::from_secs(25);
    let runs = join_all(calls.iter().map(|call| invocation.call(start, call, budget))).await;
    runs.into_iter().map(|run| run.unwrap().stdout).collect()
}

/// the one that was asked for last is answered first.
#[test]
fn two_to_eight_calls_at_once_are_answered_when_they_are_due() {
    for count in 2..=8 {
        let step = format!(
            "[plugins.box]\nlink.slots = 'self'\n[[steps]]\nrun = 'mu'\nexit = 0\nstarts = {{ box = 1 }}\n\
             took_ms = [{count}00, {count}50]"
        );
        let printed = run(&step, async move |invocation, starts| {
            let scripts = (0..count).map(|n| format!("sleep 0.{}; echo {n}", count - n)).collect();
            all(&invocation, &starts["box"], scripts).await
        });
        let wanted: Vec<String> = (0..count).map(|n| format!("{n}\n")).collect();
        assert_eq!(printed.unwrap(), wanted);
    }
}

/// far more than the pipes hold, in both directions at once.
#[test]
fn sixty_four_calls_of_200_kib_at_once_are_all_answered() {
    let text = |n: usize| format!("{n}-{}", "x".repeat(200 * 1024));
    let step = "[plugins.box]\nlink.slots = 'self'\nlink.maxScriptBytes = 262144\n[[steps]]\nrun = 'mu'\nexit = 0\nwithin_ms = 1000";
    let printed = run(step, async move |invocation, starts| {
        let scripts = (0..64).map(|n| format!("echo {}", text(n))).collect();
        all(&invocation, &starts["box"], scripts).await
    });
    for (n, printed) in printed.unwrap().into_iter().enumerate() {
        assert!(printed == text(n) + "\n", "{n}: {} bytes", printed.len());
    }
}
