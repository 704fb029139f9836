//! How mu ends, by itself or by signals, and what its plugins notice of it.

use std::os::unix::process::ExitStatusExt;

use mu_sim::fake::{Act, Event, Fault};
use nix::sys::signal::Signal;

use crate::stage::{GRACE, Stage, Watch};

/// The plugin never answers; only when it is started again.
fn silent_at_the_second_start() -> Fault {
    Fault { start: Some(2), ..Fault::new("", Act::NoReply) }
}

fn silent() -> Fault {
    Fault::new("", Act::NoReply)
}

/// Whether a plugin was stopped as it should be: asked, then the end of its stdin, and nothing else.
pub(crate) fn was_asked_to_stop(events: &[Event]) -> bool {
    let [.., Event::Line(shutdown), Event::Eof(0), Event::Exit(0)] = events else { return false };
    shutdown == r#"{"jsonrpc":"2.0","method":"shutdown"}"#
        && !events.iter().any(|event| matches!(event, Event::Signal(_)))
}

/// PRC-15: the end of its stdin is all that a plugin gets, and no sibling holds the other end of it.
#[test]
fn when_mu_is_killed_while_two_plugins_run_both_see_the_end_and_are_gone() {
    let stage = Stage::new();
    let names = ["box", "cart"];
    for name in names {
        stage.register(name, [silent_at_the_second_start()]);
    }
    let running = stage.mu(["plugin", "check"]).start();
    let plugins = names.map(|name| Watch::new(stage.until_asked(name, 2)));
    running.signal(Signal::SIGKILL);
    assert_eq!(running.end().status.signal(), Some(9));
    for (name, plugin) in names.iter().zip(&plugins) {
        assert!(plugin.ends_within(GRACE), "{name} lives on as {}", plugin.pid());
        assert_eq!(
            stage.events(name, 2)[2..],
            [Event::Fault("no-reply".into()), Event::Eof(0), Event::Exit(0)]
        );
    }
    assert_eq!(stage.living(), [0; 0]);
    // And nobody needs to clean up.
    stage.mu(["plugin", "check"]).end().succeeds();
    stage.assert_nothing_is_left();
}

/// PRC-15: a plugin that ignores the end of its stdin, whether it was started before the others or after them, holds
/// nothing that would keep the end from another one.
#[test]
fn when_mu_is_killed_a_plugin_that_lives_on_keeps_no_other_one_alive() {
    let stage = Stage::new();
    let deaf = || Fault { start: Some(2), ..Fault::new("", Act::IgnoreStop) };
    for name in ["ant", "zebra"] {
        stage.register(name, [silent_at_the_second_start(), deaf()]);
    }
    stage.register("box", [silent_at_the_second_start()]);
    let running = stage.mu(["plugin", "check"]).start();
    let [ant, plugin, zebra] = ["ant", "box", "zebra"].map(|name| Watch::new(stage.until_asked(name, 2)));
    running.signal(Signal::SIGKILL);
    assert_eq!(running.end().status.signal(), Some(9));
    assert!(plugin.ends_within(GRACE), "{} lives on", plugin.pid());
    let mut left = stage.living();
    left.sort_unstable();
    let mut deaf = [ant.pid(), zebra.pid()];
    deaf.sort_unstable();
    assert_eq!(left, deaf);
}

/// PRC-08, PRC-12
#[test]
fn a_terminating_signal_during_a_silent_handshake_is_what_mu_dies_of() {
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP] {
        let stage = Stage::new();
        let place = stage.install("box", [silent()]);
        let running = stage.mu(["plugin", "add", "box", "--", &place]).start();
        stage.until_asked("box", 1);
        running.signal(signal);
        let ended = running.end();
        ended.died_of(signal);
        assert!(ended.stderr.contains(signal.as_str()), "{ended:?}");
        let events = stage.events("box", 1);
        assert!(was_asked_to_stop(&events), "{events:?}");
        stage.assert_nothing_is_left();
    }
}

/// PRC-02: the terminal sends Ctrl-C to the group in the foreground, which is mu alone.
#[test]
fn ctrl_c_reaches_mu_and_none_of_its_plugins() {
    let stage = Stage::new();
    let names = ["box", "cart"];
    for name in names {
        stage.register(name, [silent_at_the_second_start()]);
    }
    let running = stage.mu(["plugin", "check"]).start();
    for name in names {
        stage.until_asked(name, 2);
    }
    running.signal_group(Signal::SIGINT);
    running.end().died_of(Signal::SIGINT);
    for name in names {
        let events = stage.events(name, 2);
        assert!(was_asked_to_stop(&events), "{name}: {events:?}");
    }
    stage.assert_nothing_is_left();
}

/// PRC-11
#[test]
fn a_second_ctrl_c_does_not_shorten_the_grace() {
    let stage = Stage::new();
    let deaf = Fault::new("", Act::IgnoreStop);
    let place = stage.install("box", [silent(), deaf]);
    let running = stage.mu(["plugin", "add", "box", "--", &place]).start();
    let plugin = Watch::new(stage.until_asked("box", 1));
    running.signal_group(Signal::SIGINT);
    // The plugin has got everything that mu can do short of the kill.
    crate::stage::until("stdin of box ends", || {
        stage.events("box", 1).contains(&Event::Eof(0)).then_some(())
    });
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        running.signal_group(signal);
    }
    let ended = running.end();
    ended.died_of(Signal::SIGINT);
    assert!(ended.took >= GRACE, "{:?}", ended.took);
    assert!(plugin.ends_within(std::time::Duration::ZERO));
    stage.assert_nothing_is_left();
}

/// PRC-03
#[test]
fn sixty_starts_and_stops_leave_nothing_behind() {
    let stage = Stage::new();
    stage.register("box", []);
    for _ in 0..60 {
        let ended = stage.mu(["plugin", "check", "box", "--json"]).end().succeeds();
        assert_eq!(ended.stderr, "");
    }
    assert_eq!(stage.log("box").last().unwrap().start, 61);
    assert!((1..=61).all(|start| was_asked_to_stop(&stage.events("box", start))));
    stage.assert_nothing_is_left();
}

/// PRC-17
#[test]
fn a_helper_that_a_plugin_leaves_behind_goes_with_it() {
    let stage = Stage::new();
    let leave = Fault::new("", Act::ExitLeavingStdoutHeld(3));
    let place = stage.install("box", [leave]);
    let ended = stage.mu(["plugin", "add", "box", "--", &place]).end();
    ended.fails(5, "plugin-failed");
    assert!(ended.took < GRACE, "{:?}", ended.took);
    assert!(stage.events("box", 1).iter().any(|event| matches!(event, Event::Child(_))));
    stage.assert_nothing_is_left();
}
