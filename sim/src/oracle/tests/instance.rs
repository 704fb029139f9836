//! Who is asked about what.

use super::effects::{FENCED, VM, about, acquire, lookup, made, provider, release};
use super::*;

/// The second mu meets a provider of another instance.
fn moved(tale: Tale) -> Tale {
    let tale = tale.mu_starts(200).plugin_starts(200, 201, "box").other_says(&initialize(1));
    let declared = format!("{}\n", provider(FENCED).replace(r#""instance":"i""#, r#""instance":"j""#));
    tale.writes(201, Tale::pipe(201, Std::Out), declared.as_bytes()).reads(200, Tale::pipe(201, Std::Out))
}

/// EFF-24, EFF-07
#[test]
fn a_key_that_goes_to_another_instance_is_reported() {
    let killed = || Tale::provided(FENCED).mu_asks(&acquire(2, "k")).mu_is_killed();
    let none = result(2, r#"{"none":true}"#);
    killed().another(FENCED).other_says(&lookup(2, "k", true)).other_is_answered(&none).passes_all();
    moved(killed()).other_says(&lookup(2, "k", true)).other_is_answered(&none).breaks("EFF-24");
}

/// EFF-24
#[test]
fn a_target_of_another_instance_is_reported() {
    let status = about(3, "host.status", VM, "");
    let up = result(3, r#"{"state":"up","handle":"vm"}"#);
    let tale = || Tale::provided(FENCED).mu_asks(&acquire(2, "k")).answers(&made(2));
    tale().mu_says(BOX, &status).plugin_reads(BOX).answers(&up).done(0).passes_all();
    let released = || tale().done(0);
    let rules = moved(released()).other_says(&status).other_is_answered(&up).rules();
    assert_eq!(rules, ["EFF-24"]);
}

/// HOST-03
#[test]
fn a_host_without_its_handle_or_with_a_strange_one_is_reported() {
    let exec = |target: &str| {
        let line = about(3, "link.exec", target, r#","script":"true","cwd":".","timeoutMs":20000"#);
        let tale = Tale::provided(FENCED).mu_asks(&acquire(2, "k")).answers(&made(2));
        tale.mu_says(BOX, &line).plugin_reads(BOX).answers(&run(3, "0")).done(0)
    };
    exec(VM).passes_all();
    exec("").breaks("HOST-03");
    exec(r#","handle":"vm-9","instance":"i""#).breaks("HOST-03");
    let unknown = Tale::provided(FENCED).mu_asks(&release(2, "r")).answers(&result(2, "null")).done(0);
    unknown.breaks("HOST-03");
}

/// A handle that a lookup has found is told as well.
#[test]
fn a_found_handle_is_known() {
    let tale = Tale::provided(FENCED).mu_asks(&acquire(2, "k")).mu_is_killed().another(FENCED);
    let tale = tale.other_says(&lookup(2, "k", true));
    let found = format!("{}\n", result(2, r#"{"found":{"handle":"vm","maxJobs":3}}"#));
    let tale =
        tale.writes(201, Tale::pipe(201, Std::Out), found.as_bytes()).reads(200, Tale::pipe(201, Std::Out));
    tale.other_asks(&release(3, "r")).other_is_answered(&result(3, "null")).passes_all();
}
