//! `cargo sim replay --html` and its sisters: files on a disk, and what stands in them. Whether the page can be read on a
//! small screen is for `scripts/test-replay-page`.

#![allow(clippy::disallowed_methods)] // starts the program under test

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

const FAULTS: &str = "scenarios/the-power-goes-while-an-acquire-waits.toml";
const WRONG: &str = "title = 'Something else is expected'\nrules = ['REG-01', 'HSK-01']\n[plugins.box]\n\
    [[faults]]\nplugin = 'box'\ndo = 'no-reply'\n\
    [[faults]]\nplugin = 'box'\ndo = 'ignore-stop'\n\
    [[steps]]\nrun = 'mu plugin add box -- {box}'\nexit = 0\n";
const CANNOT: &str = "title = 't'\nrules = ['REG-01']\n[plugins.box]\nfile.kind = 'missing'\n\
    [[steps]]\nchmod = { box = '0700' }\nrun = 'mu plugin list'\n";

fn run(words: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mu-sim"));
    let output = command.args(words).stdin(Stdio::null()).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

fn utf8(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// The page of a scenario, what was printed beside it, and the exit code.
fn page(what: &str) -> (String, String, i32) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.html");
    let (exit, out, err) = run(&["replay", what, "--html", utf8(&path)]);
    assert_eq!(err, "", "{out}");
    assert!(out.ends_with(&format!("page {}\n", path.display())), "{out}");
    (fs::read_to_string(path).unwrap(), out, exit)
}

fn holds(page: &str, wanted: &[&str]) {
    for text in wanted {
        assert!(page.contains(text), "{text}: {page}");
    }
    for text in ["<script", "http", "src="] {
        assert!(!page.contains(text), "{text}: {page}");
    }
}

#[test]
fn the_page_of_a_scenario_with_faults_shows_lanes_faults_leaps_and_rows() {
    let (page, out, exit) = page(FAULTS);
    assert_eq!(exit, 0, "{out}");
    let chain = out.lines().find_map(|line| line.strip_prefix("chain ")?.split(',').next()).unwrap();
    let lanes = ["<b>world</b>", "<b>mu#1</b>", "<b>cloud#1</b>", "<b>backend</b>", "<b>disk</b>"];
    holds(&page, &lanes);
    holds(
        &page,
        &[chain, "all held", "cargo sim replay scenarios/the-power-goes-while-an-acquire-waits.toml"],
    );
    holds(&page, &["class=\"row power\"", "power loss</span>", "class=\"row killed\"", " of virtual time"]);
    holds(&page, &["acquiring, of cloud (test)", "host.acquire box", "ready, vm-1 of cloud (test)"]);
}

#[test]
fn the_page_of_a_failure_shows_what_did_not_hold_at_the_top_and_at_the_end_of_its_step() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("wrong.toml");
    fs::write(&file, WRONG).unwrap();
    let (page, out, exit) = page(utf8(&file));
    assert_eq!(exit, 1);
    let text = "step 1: it ended with status 5, not status 0";
    assert!(out.contains(text), "{out}");
    assert_eq!(page.matches(text).count(), 2, "{page}");
    holds(&page, &["1 finding", "about rules REG-01, HSK-01", "href=\"#finding-1\"", "id=\"finding-1\""]);
    holds(
        &page,
        &["fault</span> <b class=\"who\">box#1</b> no-reply", "class=\"row signal\"", "<b>+10.000 s</b>"],
    );
    assert!(page.find("dies of SIGKILL").unwrap() < page.find("id=\"finding-1\"").unwrap(), "{page}");
}

#[test]
fn the_page_of_a_seed_shows_what_was_drawn() {
    let (page, ..) = page("4711");
    holds(&page, &["seed 4711", "Drawn for this seed", "Left out:", "cargo sim replay 4711", "seed = 4711"]);
}

#[test]
fn a_page_that_cannot_be_written_is_told_before_the_run() {
    let dir = tempfile::tempdir().unwrap();
    let nowhere = dir.path().join("no/such/folder/run.html");
    let into_a_file = dir.path().join("file/run.html");
    fs::write(dir.path().join("file"), "").unwrap();
    let reasons = [
        (&nowhere, "No such file"),
        (&into_a_file, "Not a directory"),
        (&dir.path().to_owned(), "Is a directory"),
    ];
    for (path, reason) in reasons {
        let (exit, out, err) = run(&["replay", FAULTS, "--html", utf8(path)]);
        assert_eq!((exit, out.as_str(), err.lines().count()), (2, "", 1), "{err}");
        assert!(err.starts_with(&format!("mu-sim: {}: {reason}", path.display())), "{err}");
    }
    let full = "/dev/full";
    let (exit, _, err) = run(&["replay", FAULTS, "--html", full]);
    assert_eq!(exit, 3);
    assert!(err.starts_with("mu-sim: /dev/full: No space left"), "{err}");
}

#[test]
fn a_page_that_is_there_stays_until_another_is_whole() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.html");
    fs::write(&path, "the page of before").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    let wrong = dir.path().join("wrong.toml");
    fs::write(&wrong, WRONG.replace("exit", "exits")).unwrap();
    let (exit, out, err) = run(&["replay", utf8(&wrong), "--html", utf8(&path)]);
    assert_eq!((exit, out.as_str()), (2, ""));
    assert!(err.contains("wrong.toml:12:1: unknown key `exits`"), "{err}");
    assert_eq!(run(&["replay", "no-such-file", "--html", utf8(&path)]).0, 2);
    assert_eq!(fs::read_to_string(&path).unwrap(), "the page of before");

    // What it asks of the world cannot be done, which shows in the run alone.
    fs::write(&wrong, CANNOT).unwrap();
    let (exit, out, _) = run(&["replay", utf8(&wrong), "--html", utf8(&path)]);
    assert_eq!(exit, 1);
    assert!(
        out.contains("it cannot be played: No such file") && out.ends_with("page none: there was no run\n"),
        "{out}"
    );
    assert_eq!(fs::read_to_string(&path).unwrap(), "the page of before");

    assert_eq!(run(&["replay", FAULTS, "--html", utf8(&path)]).0, 0);
    assert!(fs::read_to_string(&path).unwrap().starts_with("<!DOCTYPE html>"));
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
    let mut left: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|one| one.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["run.html", "wrong.toml"]);
}

#[test]
fn a_link_is_followed_and_not_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let (page, link) = (dir.path().join("run.html"), dir.path().join("latest.html"));
    fs::write(&page, "").unwrap();
    std::os::unix::fs::symlink("run.html", &link).unwrap();
    assert_eq!(run(&["replay", FAULTS, "--html", utf8(&link)]).0, 0);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert!(fs::read_to_string(&page).unwrap().starts_with("<!DOCTYPE html>"));
}

#[test]
fn forms_that_exclude_each_other_are_refused() {
    let pairs = [&["--toml", "--mermaid"][..], &["--toml", "--html", "x"], &["--html", "x", "--mermaid"]];
    for pair in pairs {
        let (exit, out, err) = run(&[&["replay", "1"], pair].concat());
        assert_eq!((exit, out.as_str(), err.lines().count()), (2, "", 1), "{pair:?}: {err}");
        assert!(err.contains("cannot be used with"), "{err}");
    }
    assert!(!Path::new("x").exists());
    let (exit, out, err) = run(&["replay", "1", "--json", "--mermaid"]);
    assert_eq!((exit, err.as_str()), (2, "mu-sim: `--mermaid` cannot be used with `--json`\n"));
    assert!(out.starts_with("{\"error\":"), "{out}");
}

#[test]
fn a_diagram_has_a_participant_for_each_lane_and_one_line_for_each_entry() {
    let (exit, out, err) = run(&["replay", FAULTS, "--mermaid"]);
    assert_eq!((exit, err.as_str()), (0, ""));
    assert!(out.starts_with("sequenceDiagram\n    participant p0 as world\n"), "{out}");
    for wanted in
        ["as mu#35;1\n", "as cloud#35;1\n", "as backend\n", "as disk\n", ": the power fails\n", ": +"]
    {
        assert!(out.contains(wanted), "{wanted}: {out}");
    }
    let shapes = ["participant ", "Note over ", "rect ", "end", "p"];
    let odd =
        out.lines().skip(1).find(|line| !shapes.iter().any(|shape| line.trim_start().starts_with(shape)));
    assert_eq!(odd, None);
}

#[test]
fn the_timeline_in_json_is_the_transcript_and_what_happened_on_the_disk() {
    let (exit, out, _) = run(&["replay", FAULTS, "--json"]);
    assert_eq!(exit, 0);
    let report: Value = serde_json::from_str(&out).unwrap();
    let entries = report["timeline"].as_array().unwrap();
    let is_told = |entry: &&Value| entry["kind"] != "disk" && entry["kind"] != "journal";
    let repeats = entries.iter().filter(|entry| is_told(entry) && entry["again"] != 0).count();
    let told = entries.iter().filter(is_told).count() + repeats;
    assert_eq!(told, report["transcript"].as_array().unwrap().len());
    let first = &entries[0];
    assert_eq!((&first["at_ns"], &first["who"], &first["to"]), (&0.into(), &"world".into(), &"mu#1".into()));
    assert!(
        first["what"].as_str().unwrap().starts_with("starts mu#1 ") && first["kind"] == "start",
        "{first}"
    );
    let rows = entries.iter().filter(|entry| entry["kind"] == "journal").map(|entry| &entry["rows"]);
    let states: Vec<&Value> =
        rows.flat_map(|rows| rows.as_array().unwrap()).filter(|row| row["about"] == "host").collect();
    assert!(
        states.iter().any(|row| row["says"] == "acquiring, of cloud (test)" && row["change"] == "new"),
        "{states:?}"
    );
}
