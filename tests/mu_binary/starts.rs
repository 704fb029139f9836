//! What mu may be started with: signals, closed streams, umasks, descriptors.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use mu_sim::fake::{Act, Event, Fault};

use crate::stage::Stage;

fn mode(path: impl AsRef<Path>) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

fn is_registered(stage: &Stage, name: &str) -> bool {
    let listed = stage.mu(["plugin", "list", "--json"]).end().succeeds();
    listed.stdout.contains(&format!("\"name\":\"{name}\""))
}

/// PRC-17: an ignored SIGCHLD would let the kernel take exits away before mu has seen them.
#[test]
fn a_mu_that_is_started_with_sigchld_ignored_sees_exits() {
    let stage = Stage::new();
    let place = stage.install("box", [Fault { start: Some(1), ..Fault::new("box", Act::Exit(3)) }]);
    let failed = stage.mu(["plugin", "add", "box", "--", &place]).ignoring_sigchld().end();
    let message = failed.fails(5, "plugin-failed")["message"].to_string();
    assert!(message.contains("status 3"), "{message}");
    stage.mu(["plugin", "add", "box", "--", &place]).ignoring_sigchld().end().succeeds();
    stage.assert_nothing_is_left();
}

/// PRC-15: the numbers 0, 1 and 2 that are free must not become pipes of a plugin or the database.
#[test]
fn a_mu_that_is_started_without_any_stream_does_its_work() {
    for closed in ["0<&- 1>&- 2>&-", "0<&-", "1>&-", "2>&-", "0<&- 1>&-", "1>&- 2>&-"] {
        let stage = Stage::new();
        let place = stage.install("box", []);
        let add = stage.mu(["plugin", "add", "box", "--", &place]).after(&format!("exec {closed}"));
        add.end().succeeds();
        assert!(is_registered(&stage, "box"), "{closed}");
        assert_eq!(stage.events("box", 1).last(), Some(&Event::Exit(0)), "{closed}");
        let bytes = fs::read(stage.db()).unwrap();
        assert!(bytes.starts_with(b"SQLite format 3\0"), "{closed}: something was written into the database");
        stage.assert_nothing_is_left();
    }
}

/// OUT-02
#[test]
fn a_mu_that_the_system_does_not_let_start_says_so_like_any_failure() {
    let stage = Stage::new();
    for words in [&["plugin", "list", "--json"][..], &["plugin", "list"]] {
        let ended = stage.mu(words.iter().copied()).after("ulimit -n 5").end();
        assert!(ended.fails(5, "machine-unusable")["message"].to_string().contains("ulimit -n"));
    }
}

/// SIGXFSZ would end mu, and ignored it would stay so in plugins.
#[test]
fn a_file_that_may_not_grow_is_a_failure_and_no_death() {
    let stage = Stage::new();
    let place = stage.install("box", []);
    let limit = "ulimit -S -f 8";
    let ended = stage.mu(["plugin", "add", "box", "--", &place]).after(limit).end();
    let message = ended.fails(5, "database-unusable")["message"].to_string();
    assert!(message.contains("no room"), "{message}");
    let place = stage.register("crate", [Fault { start: Some(2), ..Fault::new("crate", Act::NoReply) }]);
    let running = stage.mu(["plugin", "add", "crate", "--", &place]).start();
    let status = fs::read_to_string(format!("/proc/{}/status", stage.until_asked("crate", 2))).unwrap();
    for kept in ["SigIgn:", "SigCgt:"] {
        let mask = status.lines().find_map(|line| line.strip_prefix(kept)).unwrap().trim();
        assert_eq!(u64::from_str_radix(mask, 16).unwrap() >> 24 & 1, 0, "{status}");
    }
    running.signal(nix::sys::signal::Signal::SIGTERM);
    running.end().died_of(nix::sys::signal::Signal::SIGTERM);
}

#[test]
fn a_reader_of_stdout_that_is_gone_is_a_quiet_end() {
    let stage = Stage::new();
    let place = stage.install("box", []);
    let ended = stage.mu(["plugin", "add", "box", "--", &place]).with_lost_stdout().end().succeeds();
    assert_eq!(ended.stderr, "");
    assert!(is_registered(&stage, "box"));
    // A failure keeps its exit code, and its line on standard error.
    let failed = stage.mu(["plugin", "show", "none"]).with_lost_stdout().end();
    assert_eq!(failed.status.code(), Some(3), "{failed:?}");
    assert_eq!(failed.stderr.lines().count(), 1, "{failed:?}");
}

#[test]
fn the_database_is_for_its_owner_alone_under_any_umask() {
    for umask in ["000", "022", "027", "077"] {
        let stage = Stage::new();
        let place = stage.install("box", []);
        stage.mu(["plugin", "add", "box", "--", &place]).after(&format!("umask {umask}")).end().succeeds();
        assert_eq!(mode(stage.db()), 0o600, "umask {umask}");
        for made in ["home/.local", "home/.local/state", "home/.local/state/mu"] {
            assert_eq!(mode(stage.path(made)), 0o700, "umask {umask}: {made}");
        }
        stage.assert_nothing_is_left();
    }
}

/// PRC-15: what a careless parent leaves open in mu goes no further.
#[test]
fn a_plugin_gets_no_descriptor_that_mu_was_started_with() {
    let stage = Stage::new();
    let place = stage.install("box", [Fault::new("box", Act::NoReply)]);
    let add =
        stage.mu(["plugin", "add", "box", "--", &place]).after("exec 5</dev/zero 6</dev/zero 9</dev/zero");
    let running = add.start();
    let plugin = stage.until_asked("box", 1);
    let opened = fs::read_dir(format!("/proc/{plugin}/fd")).unwrap();
    let mut targets = opened.map(|entry| fs::read_link(entry.unwrap().path()).unwrap());
    assert!(targets.all(|target| target != Path::new("/dev/zero")));
    running.signal(nix::sys::signal::Signal::SIGTERM);
    running.end().died_of(nix::sys::signal::Signal::SIGTERM);
}

/// PRC-09: a script that starts mu with `&` has it ignore SIGINT, `nohup` SIGHUP.
#[test]
fn signals_that_mu_was_told_to_ignore_do_not_end_it() {
    let stage = Stage::new();
    let delayed = Fault::new("box", Act::CancellableDelayMs(300));
    let place = stage.install("box", [delayed]);
    let add = stage.mu(["plugin", "add", "box", "--", &place]).after("trap '' INT HUP");
    let running = add.start();
    stage.until_asked("box", 1);
    running.signal_group(nix::sys::signal::Signal::SIGINT);
    running.signal_group(nix::sys::signal::Signal::SIGHUP);
    running.end().succeeds();
    assert!(is_registered(&stage, "box"));
}
