//! Below the verbs: runs of mu that are code of a test, against the plugins of a scenario.

use std::collections::BTreeMap;

use mu_core::invocation::{Invocation, Start};
use mu_core::start_error::StartError;
use mu_sim::play::{self, Finding, Setting};
use mu_sim::scenario::{Scenario, is_rule};
use mu_sim::sim_os::SimOs;

/// Runs `verb` in place of the run of the scenario's step, which must hold with every oracle.
fn run<T: 'static>(
    plugins_and_step: &str,
    verb: impl AsyncFnOnce(Invocation<SimOs>, BTreeMap<String, Start>) -> T + 'static,
) -> Option<T> {
    let text = format!("title = 't'\nrules = ['A-10']\n{plugins_and_step}");
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
