//! The declaration: its defaults, and every change that a scenario can make.

use serde_json::{Value, json};

use super::super::{PluginTable, Seam, schema_digest};

fn table(text: &str) -> PluginTable {
    toml::from_str(text).expect("a plugin table")
}

fn declared(text: &str) -> Value {
    table(text).declaration("box", "sha256:00").expect("a declaration")
}

/// Where and why there is none.
fn refused(text: &str) -> (String, String) {
    let error = table(text).declaration("box", "sha256:00").expect_err("no declaration");
    (error.at.join("/"), error.reason)
}

/// LOAD-09
#[test]
fn an_empty_table_declares_a_link_alone() {
    let seams = &declared("")["seams"];
    assert_eq!(seams.as_object().unwrap().keys().collect::<Vec<_>>(), ["link"]);
}

/// SEAM-01
#[test]
fn each_seam_has_its_mandatory_members() {
    let all = declared("seams = ['link', 'host', 'job', 'channel']");
    let members =
        |path: &str| all.pointer(path).unwrap().as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    let link = ["checks", "fetch", "maxScriptBytes", "quiescence", "remoteOnTimeout", "slots"];
    assert_eq!(members("/seams/link"), link);
    assert_eq!(members("/seams/host"), ["acquire"]);
    assert_eq!(members("/seams/job"), ["channel", "checks", "handle", "kind", "start", "view"]);
    assert_eq!(members("/seams/channel"), ["caps", "name"]);
    let caps = [
        "answer",
        "command",
        "dedupe",
        "fence",
        "fresh",
        "interrupt",
        "receipt",
        "settleText",
        "steer",
        "watch",
    ];
    assert_eq!(members("/seams/channel/caps"), caps);
    assert_eq!(Seam::ALL.map(Seam::name), ["link", "host", "job", "channel"]);
}

/// LOAD-16
#[test]
fn a_job_names_the_channel_only_beside_a_channel_seam() {
    assert_eq!(declared("seams = ['job', 'channel']")["seams"]["job"]["channel"], "box");
    assert!(declared("seams = ['job']")["seams"]["job"].get("channel").is_none());
}

/// LOAD-09
#[test]
fn no_seam_at_all_can_be_declared() {
    assert_eq!(declared("seams = []")["seams"], json!({}));
}

#[test]
fn members_of_a_seam_are_changed_at_any_depth() {
    let job = &declared("seams = ['job']\njob.start.lookup = false\njob.view = 'bound'")["seams"]["job"];
    assert_eq!(job["start"], json!({ "lookup": false, "fenceKey": true }));
    assert_eq!(job["view"], "bound");
}

#[test]
fn members_of_the_declaration_are_changed() {
    let all = declared("declare.instance = 'x'\ndeclare.plugin.name = 'crate'\ndeclare.protocol = 2");
    assert_eq!((&all["instance"], &all["protocol"]), (&json!("x"), &json!(2)));
    assert_eq!(all["plugin"], json!({ "name": "crate", "version": "0.1.0" }));
}

/// LOAD-05
#[test]
fn dropped_members_are_gone() {
    let all = declared("drop = ['seams.link.slots', 'instance']");
    assert!(all.get("instance").is_none() && all["seams"]["link"].get("slots").is_none());
}

/// LOAD-06
#[test]
fn set_members_are_there_known_or_not() {
    let all = declared("set = { 'seams.vcs' = {}, 'seams.link.checks' = ['reach', 1.5, true] }");
    assert_eq!(all["seams"]["vcs"], json!({}));
    assert_eq!(all["seams"]["link"]["checks"], json!(["reach", 1.5, true]));
}

#[test]
fn null_members_are_null() {
    assert_eq!(declared("null = ['instance']").get("instance"), Some(&Value::Null));
}

#[test]
fn a_change_of_a_seam_that_is_not_declared_is_refused() {
    assert_eq!(refused("host.acquire = {}").0, "host");
}

#[test]
fn a_path_that_leads_nowhere_is_refused_where_it_stands() {
    assert_eq!(refused("drop = ['instance', 'seams.link.nothing']").0, "drop/1");
    assert_eq!(refused("set = { 'seams.job.kind' = 1 }").0, "set/seams.job.kind");
    assert_eq!(refused("null = ['instance.x']").0, "null/0");
    assert_eq!(refused("drop = ['']").0, "drop/0");
}

#[test]
fn what_json_cannot_say_is_refused() {
    assert_eq!(refused("declare.instance = 2026-01-01").0, "declare/instance");
    assert_eq!(refused("link.maxScriptBytes = inf").0, "link/maxScriptBytes");
}

/// HSK-07
#[test]
fn the_digest_is_that_of_the_exact_bytes() {
    let empty = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    assert_eq!(schema_digest(b""), empty);
    assert_ne!(schema_digest(b"{}"), schema_digest(b"{ }"));
}
