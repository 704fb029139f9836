//! Floods of a plugin, and what they cost mu.

use std::time::Duration;

use mu_sim::fake::{Act, Event, Fault, When};

use crate::stage::{Running, Stage, until};

/// What mu may have of memory, in KiB, whatever a plugin writes.
const LIMIT_KIB: u64 = 32 * 1024;

/// The most memory that mu has before its end.
fn peak_until_the_end(running: &Running) -> u64 {
    let mut peak = 0;
    until("mu ends", || {
        peak = peak.max(running.peak_kib());
        running.has_ended().then_some(())
    });
    peak
}

/// TRN-04: the line is refused at its first MiB and not when it ends. The plugin would go on, and mu does not wait for
/// the deadline of the handshake.
#[test]
fn an_endless_line_of_1_gib_is_refused_at_once_within_32_mib() {
    let stage = Stage::new();
    let place = stage.install("box", [Fault::new("box", Act::EndlessLine(1 << 30))]);
    let running = stage.mu(["plugin", "add", "box", "--", &place]).start();
    let peak = peak_until_the_end(&running);
    let ended = running.end();
    let message = ended.fails(5, "plugin-failed")["message"].as_str().unwrap().to_owned();
    assert!(message.contains("1048576"), "{message}");
    #[allow(clippy::disallowed_macros)] // the figure is wanted
    {
        eprintln!("a line of 1 GiB: mu had at most {peak} KiB, and took {:?}", ended.took);
    }
    assert!(0 < peak && peak < LIMIT_KIB, "{peak} KiB");
    assert!(ended.took < Duration::from_secs(9), "{:?}", ended.took);
    stage.assert_nothing_is_left();
}

/// TRN-07: the plugin writes all of it before it answers.
#[test]
fn a_flood_of_10_mib_on_stderr_neither_blocks_nor_is_kept() {
    let stage = Stage::new();
    let place = stage.install("box", [Fault::new("box", Act::StderrFlood(10 << 20))]);
    let running = stage.mu(["plugin", "add", "box", "--", &place]).start();
    let peak = peak_until_the_end(&running);
    let ended = running.end().succeeds();
    assert_eq!(ended.stderr, "");
    assert!(ended.stdout.contains("plugin box"), "{ended:?}");
    assert!(peak < LIMIT_KIB, "{peak} KiB");
    stage.assert_nothing_is_left();
}

/// TRN-07: stdin is blocked by nobody, so the plugin still learns of the stop while it floods.
#[test]
fn a_flood_during_the_stop_is_drained() {
    let stage = Stage::new();
    let flood = Fault { when: Some(When::OnShutdown), ..Fault::new("box", Act::StderrFlood(10 << 20)) };
    let place = stage.install("box", [flood]);
    let ended = stage.mu(["plugin", "add", "box", "--", &place]).end().succeeds();
    assert_eq!(ended.stderr, "");
    assert_eq!(stage.events("box", 1).last(), Some(&Event::Exit(0)));
    stage.assert_nothing_is_left();
}
