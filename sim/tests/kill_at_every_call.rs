//! mu is killed by SIGKILL at each of its calls to the operating system in turn, and made to panic at each, first while
//! it adds a plugin and then while it checks two. Every oracle holds, and the same verbs run again come out right.

use mu_sim::play::{self, Finding, Setting, Show};
use mu_sim::scenario::{Scenario, is_rule};

fn scenario(end: &str, add_at: u64, check_at: u64) -> Scenario {
    let text = format!(
        r#"
title = "mu ends at a call"
rules = ["PRC-13", "PRC-15", "REG-09", "REG-10"]
real = false
why_not_real = "calls are counted on the simulated machine"
[plugins.box]
[plugins.cart]
[[steps]]
run = "mu plugin add cart -- {{cart}}"
exit = 0
[[steps]]
run = "mu plugin add box -- {{box}}"
{end} = {add_at}
[[steps]]
run = "mu plugin add box -- {{box}}"
exit = 0
[[steps]]
run = "mu plugin check"
{end} = {check_at}
[[steps]]
run = "mu plugin check --json"
exit = 0
json = {{ "data.plugins.#" = 2 }}
"#
    );
    Scenario::parse("sweep", &text, &is_rule).unwrap_or_else(|error| panic!("{error}"))
}

/// PRC-13, PRC-15
fn sweep(end: &str) {
    let mut at = 0;
    loop {
        at += 1;
        let played =
            play::simulated(&scenario(end, at, at), Setting { show: Show::Transcript, ..Setting::default() })
                .expect("the machine can do that");
        let transcript = played.transcript.expect("it was asked for");
        // Either verb is told of that has no such call; when both are, the sweep is through.
        let (late, found): (Vec<_>, Vec<_>) =
            played.findings.iter().partition(|finding| matches!(finding, Finding::Missed { .. }));
        assert!(found.is_empty(), "{end} = {at}: {found:#?}\n{transcript}");
        let word = if end == "kill_at_call" { "FAULT SIGKILL at call" } else { "FAULT panic at call" };
        assert_eq!(late.len() == 2, !transcript.contains(word), "{end} = {at}: {late:#?}\n{transcript}");
        if late.len() == 2 {
            break;
        }
    }
    assert!(at > 50, "{at} calls are not all that mu makes");
}

/// PRC-15
#[test]
fn mu_may_be_killed_at_any_call() {
    sweep("kill_at_call");
}

/// PRC-13
#[test]
fn mu_may_panic_at_any_call() {
    sweep("panic_at_call");
}
