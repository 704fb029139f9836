//! A scenario that orders something which never comes to pass shows nothing, so it fails.

use mu_sim::play::{self, Finding, Setting};
use mu_sim::scenario::{Scenario, is_rule};

/// A run that lasts 50 ms, with this in its step.
fn scenario(order: &str) -> Scenario {
    let text = format!(
        "title = 'Something is ordered'\nrules = ['REG-01']\nreal = false\nwhy_not_real = 'calls are counted'\n\
         [plugins.box]\n[[faults]]\nplugin = 'box'\ndo = {{ delay-ms = 50 }}\n[[steps]]\nrun = 'mu plugin add box -- {{box}}'\n{order}\n"
    );
    Scenario::parse("test", &text, &is_rule).unwrap()
}

fn missed(order: &str) -> Vec<String> {
    let played = play::simulated(&scenario(order), Setting::default()).unwrap();
    let told = played.findings.into_iter().filter_map(|finding| match finding {
        Finding::Missed { step: 1, text } => Some(text),
        _ => None,
    });
    told.collect()
}

#[test]
fn what_comes_too_late_is_told() {
    for (order, told) in [
        ("kill_at_call = 100000", "mu is killed at call 100000, and there were "),
        ("panic_at_call = 100000", "mu panics at call 100000, and there were "),
        ("power_at_call = 100000", "the power fails at call 100000, and there were "),
        ("kill_at_disk = 100000", "mu is killed at operation on the disk 100000, and there were "),
        ("power_at_disk = 100000", "the power fails at operation on the disk 100000, and there were "),
        (
            "disk_error = { at = 100000, errno = 'ENOSPC' }",
            "ENOSPC at operation on the disk 100000, and there were ",
        ),
        ("kill_plugin_at = { box = 100000 }", "box is killed at its act 100000, and there were "),
        ("signal = { what = 'TERM', to = 'mu', at_ms = 60000 }", "mu gets signal 15 after 60000 ms"),
        ("signal = { what = 'KILL', to = 'box', at_ms = 60000 }", "box gets signal 9 after 60000 ms"),
        ("world = { at_ms = 60000, wall_step_ms = 5 }", "the wall clock steps by 5 ms after 60000 ms"),
        ("world = { at_ms = 60000, suspend_ms = 5 }", "the machine sleeps 5 ms after 60000 ms"),
        (
            "world = { at_ms = 60000, lock_ms = 5 }",
            "another process holds the database for 5 ms after 60000 ms",
        ),
    ] {
        let all = missed(order);
        assert!(matches!(&all[..], [one] if one.starts_with(told)), "{order}: {all:?}");
    }
}

#[test]
fn what_comes_in_time_is_no_finding() {
    for order in [
        "kill_at_call = 10",
        "panic_at_call = 10",
        "power_at_call = 10",
        "kill_at_disk = 10",
        "power_at_disk = 10",
        "disk_error = { at = 10, errno = 'EIO' }",
        "kill_plugin_at = { box = 1 }",
        "signal = { what = 'TERM', to = 'mu', at_ms = 10 }",
        "signal = { what = 'KILL', to = 'box', at_ms = 10 }",
        "world = { at_ms = 10, wall_step_ms = 5 }",
        "world = { at_ms = 10, suspend_ms = 5 }",
        "world = { at_ms = 10, lock_ms = 5 }",
    ] {
        assert_eq!(missed(order), [""; 0], "{order}");
    }
}
