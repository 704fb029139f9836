//! Changes of a scenario to the world around mu: the repository, the machine's clocks.

use mu_sim::play::{self, Finding, Setting};
use mu_sim::scenario::{Scenario, is_rule};

fn findings(text: &str) -> Vec<String> {
    let text = format!("title = 't'\nrules = ['A-10']\nreal = false\nwhy_not_real = 'a test'\n{text}");
    let scenario = Scenario::parse("s.toml", &text, &is_rule).unwrap();
    let played = play::simulated(&scenario, Setting::default()).unwrap();
    played.findings.iter().map(Finding::sentence).collect()
}

#[test]
fn the_repository_is_there_from_the_first_step_on() {
    let step = |lines: &str| {
        format!("[[steps]]\nrun = 'mu plugin list'\n[[steps]]\nrun = 'mu plugin list'\n{lines}")
    };
    assert_eq!(findings(&step("fetch_head = 'absent'")), [""; 0]);
    assert_eq!(findings(&step("repo = { fetch_head = 'old' }\nfetch_head = 'old'")), [""; 0]);
    assert_eq!(
        findings(&step("repo = { fetch_head = 'old' }\nfetch_head = 'new'")),
        ["step 2: FETCH_HEAD holds \"old\", and lacks \"new\""]
    );
}

/// Ten seconds, whatever the other clocks do meanwhile.
const DEAF: &str = "[plugins.deaf]\n[[faults]]\nplugin = 'deaf'\ndo = 'no-reply'\n\
                    [[steps]]\nrun = 'mu plugin add deaf -- {deaf}'\nexit = 5\ntook_ms = [10000, 10100]\n";

/// HSK-08
#[test]
fn a_deadline_is_kept_when_the_wall_clock_steps() {
    for by in [3_600_000, -3_600_000, 86_400_000_000_i64, -86_400_000_000] {
        assert_eq!(
            findings(&format!("{DEAF}world = {{ wall_step_ms = {by}, at_ms = 500 }}")),
            [""; 0],
            "{by}"
        );
    }
}

/// HSK-08
#[test]
fn a_deadline_does_not_count_the_sleep_of_the_machine() {
    for ms in [1, 9_000, 60_000, 86_400_000] {
        let world =
            format!("world = [{{ suspend_ms = {ms}, at_ms = 500 }}, {{ suspend_ms = {ms}, at_ms = 9999 }}]");
        assert_eq!(findings(&format!("{DEAF}{world}")), [""; 0], "{ms}");
    }
}

/// PRC-09, PRC-11: two signals, also in one instant, and changes of the clocks between them.
#[test]
fn signals_and_clocks_change_in_one_run() {
    for second in [500, 501, 3_000, 5_499] {
        let run =
            "[[steps]]\nrun = 'mu plugin add deaf -- {deaf}'\ndied_of = 'TERM'\ntook_ms = [5500, 5600]\n";
        let fault = "[[faults]]\nplugin = 'deaf'\ndo = 'ignore-stop'\n";
        let start = DEAF.split("[[steps]]").next().unwrap();
        let change = format!(
            "signal = [{{ what = 'TERM', at_ms = 500 }}, {{ what = 'INT', at_ms = {second} }}]\n\
             world = [{{ wall_step_ms = -1000, at_ms = 600 }}, {{ suspend_ms = 60000, at_ms = 700 }}]"
        );
        assert_eq!(findings(&format!("{start}{fault}{run}{change}")), [""; 0], "{second}");
    }
}
