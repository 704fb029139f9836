//! The command line of the simulator: what is printed, and the exit code.

#![allow(clippy::disallowed_methods)] // starts the program under test

use std::fs;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

const SOUND: &str = "title = 'A plugin is registered'\nrules = ['REG-01']\n[plugins.box]\n\
    [[steps]]\nrun = 'mu plugin add box -- {box}'\nexit = 0\n";
const WRONG: &str = "title = 'Something else is expected'\nrules = ['REG-01', 'HSK-01']\n[plugins.box]\n\
    [[steps]]\nrun = 'mu plugin add box -- {box}'\nexit = 4\n";

fn sim(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mu-sim"));
    command.args(words).stdin(Stdio::null());
    command
}

fn run(words: &[&str]) -> (i32, String, String) {
    shown(sim(words).output().unwrap())
}

fn shown(output: Output) -> (i32, String, String) {
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

fn json(words: &[&str]) -> (i32, Value) {
    let (exit, out, _) = run(words);
    (exit, serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}")))
}

/// A folder with these files, and its path.
fn folder(files: &[(&str, &str)]) -> (TempDir, String) {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in files {
        fs::write(dir.path().join(name), text).unwrap();
    }
    let path = dir.path().to_str().unwrap().to_owned();
    (dir, path)
}

/// One line on standard error, nothing on standard output, exit 2.
fn refused(words: &[&str]) -> String {
    let (exit, out, err) = run(words);
    assert_eq!((exit, out.as_str()), (2, ""), "{err}");
    assert_eq!(err.lines().count(), 1, "{err}");
    err
}

#[test]
fn an_unknown_file_is_refused_with_the_name_that_was_meant() {
    let (_dir, path) = folder(&[("dies-early.toml", SOUND)]);
    let said = refused(&["--scenarios", &path, "run", "dies-erly"]);
    assert!(said.contains("dies-erly: no such scenario; did you mean dies-early?"), "{said}");
    assert!(refused(&["--scenarios", "/no/such/folder"]).contains("/no/such/folder: "));
}

#[test]
fn a_file_that_is_no_scenario_is_refused_with_line_and_column() {
    let wrong = SOUND.replace("exit = 0", "exits = 0");
    let (_dir, path) = folder(&[("sound.toml", SOUND), ("wrong.toml", &wrong)]);
    for words in [&["run"][..], &["run", "--real"], &["replay", "wrong.toml"], &["determinism"]] {
        let said = refused(&[&["--scenarios", &path], words].concat());
        assert!(said.contains("wrong.toml:6:1: unknown key `exits`"), "{words:?}: {said}");
    }
}

#[test]
fn a_file_that_is_not_utf8_is_refused_with_the_byte() {
    let (dir, _) = folder(&[]);
    let file = dir.path().join("x.toml");
    fs::write(&file, b"title = '\xff'").unwrap();
    assert!(refused(&["run", file.to_str().unwrap()]).contains("x.toml: not UTF-8 at byte 9"));
}

#[test]
fn a_bad_seed_is_refused() {
    for words in [&["replay", "9223372036854775808"][..], &["replay", "--", "-1"], &["seeds", "--from", "x"]]
    {
        assert!(
            refused(words).contains("a seed is a whole number from 0 to 9223372036854775807"),
            "{words:?}"
        );
    }
    assert!(refused(&["replay", "47i1"]).contains("47i1: no such scenario"));
}

#[test]
fn a_bad_command_line_is_refused() {
    assert!(refused(&["frobnicate"]).contains("frobnicate"));
    assert!(refused(&["seeds", "--cuont", "3"]).contains("--count"));
    assert!(refused(&["--jobs", "0"]).contains("--jobs"));
    assert!(refused(&["seeds", "--count", "0"]).contains("--count"));
    let (exit, failure) = json(&["--json", "frobnicate"]);
    assert_eq!((exit, &failure["ok"], &failure["exit"]), (2, &Value::Bool(false), &Value::from(2)));
}

#[test]
fn what_was_violated_the_rules_and_the_command_that_replays_it_are_printed() {
    let (_dir, path) = folder(&[("sound.toml", SOUND), ("wrong.toml", WRONG)]);
    let (exit, out, _) = run(&["--scenarios", &path, "run"]);
    assert_eq!(exit, 1);
    assert!(out.contains("ok ") && out.contains("sound.toml\n"), "{out}");
    let violated = "[expectation REG-01, HSK-01] step 1: it ended with status 0, not status 4";
    assert!(out.contains(violated), "{out}");
    assert!(out.contains("\n  kept: target/sim/wrong.html\n"), "{out}");
    let replay = out.lines().find_map(|line| line.trim().strip_prefix("replay: cargo sim ")).unwrap();
    let (exit, again, _) = run(&replay.split(' ').collect::<Vec<_>>());
    assert_eq!(exit, 1);
    assert!(again.contains(violated), "{again}");
}

#[test]
fn a_report_is_one_json_document() {
    let (_dir, path) = folder(&[("sound.toml", SOUND), ("wrong.toml", WRONG)]);
    let (exit, report) = json(&["--scenarios", &path, "run", "--json"]);
    assert_eq!((exit, &report["ok"], &report["scenarios"]), (1, &Value::Bool(false), &Value::from(2)));
    let [finding] = &report["findings"].as_array().unwrap()[..] else { panic!("{report}") };
    assert_eq!((&finding["by"], &finding["rules"][1]), (&Value::from("expectation"), &Value::from("HSK-01")));
    assert!(finding["replay"].as_str().unwrap().ends_with("wrong.toml"));
    assert_eq!((&finding["step"], &finding["kept"][0]), (&1.into(), &"target/sim/wrong.html".into()));
    assert!(report["events"].as_u64().unwrap() > 100);

    let (exit, report) = json(&["seeds", "--count", "20", "--from", "5", "--json"]);
    assert_eq!((exit, &report["ok"], &report["seeds"]), (0, &Value::Bool(true), &Value::from(20)));
    assert!(report["faults"].as_object().unwrap().values().any(|times| times.as_u64() > Some(0)));
}

#[test]
fn a_replay_shows_what_was_drawn_what_happened_and_the_chain() {
    let (exit, out, err) = run(&["replay", "4711"]);
    assert_eq!((exit, err.as_str()), (0, ""), "{out}");
    assert!(out.contains("# seed = 4711\n") && out.contains("# swarm: "), "{out}");
    assert!(out.contains(" starts mu#1 in a group of its own: /bin/mu "), "{out}");
    let end = out.lines().last().unwrap();
    assert!(end.starts_with("chain ") && end.ends_with(" events"), "{end}");
    assert_eq!(run(&["replay", "4711"]).1, out);
}

#[test]
fn the_file_of_a_seed_is_the_same_run() {
    for seed in ["4711", "4712", "4713", "4714"] {
        let (_, drawn) = json(&["replay", seed, "--json"]);
        let (exit, file, _) = run(&["replay", seed, "--toml"]);
        assert_eq!(exit, 0);
        let (_dir, path) = folder(&[("drawn.toml", &file)]);
        let (_, written) = json(&["replay", &format!("{path}/drawn.toml"), "--json"]);
        // What comes too late for its run is a finding about a file alone.
        let found = written["findings"].as_array().unwrap();
        assert!(found.iter().all(|one| one["by"] == "inert"), "{found:?}");
        assert_eq!((&drawn["chain"], &drawn["events"]), (&written["chain"], &written["events"]), "{file}");
    }
}

#[test]
fn two_processes_make_the_same_runs() {
    let (_dir, path) = folder(&[("sound.toml", SOUND)]);
    let (exit, report) = json(&["--scenarios", &path, "determinism", "--count", "10", "--json"]);
    assert_eq!((exit, &report["ok"], &report["items"]), (0, &Value::Bool(true), &Value::from(11)));
}

/// A crash of the simulator is a finding about the run in which it happened, and the others are played all the same.
#[test]
fn a_process_that_dies_while_it_plays_is_a_finding() {
    let mut child = sim(&["seeds", "--count", "300", "--jobs", "1", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let player = loop {
        // The one thread that starts it may be another than the first.
        let threads = fs::read_dir(format!("/proc/{}/task", child.id())).unwrap();
        let of =
            |thread: fs::DirEntry| fs::read_to_string(thread.path().join("children")).unwrap_or_default();
        let all: String = threads.map(|thread| of(thread.unwrap())).collect();
        if let Some(pid) = all.split_whitespace().next() {
            break pid.parse().unwrap();
        }
        assert_eq!(child.try_wait().unwrap(), None, "it ended without playing");
    };
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(player), nix::sys::signal::Signal::SIGKILL).unwrap();
    let (exit, out, _) = shown(child.wait_with_output().unwrap());
    let report: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((exit, &report["seeds"]), (1, &Value::from(300)));
    let [finding] = &report["findings"].as_array().unwrap()[..] else { panic!("{report}") };
    assert_eq!(finding["by"], "crash");
    assert!(finding["text"].as_str().unwrap().ends_with("it died of SIGKILL"), "{finding}");
}

#[test]
fn scenarios_run_on_real_processes_and_those_that_cannot_are_listed() {
    let only_simulated = "title = 't'\nrules = ['A-10']\nreal = false\nwhy_not_real = 'calls are not counted there'\n\
        [[steps]]\nrun = 'mu plugin list'\nkill_at_call = 1\ndied_of = 'KILL'\n";
    let (_dir, path) = folder(&[("a.toml", SOUND), ("b.toml", WRONG), ("c.toml", only_simulated)]);
    // Both programs are there already: cargo made them for this test.
    let (exit, out, err) =
        shown(sim(&["--scenarios", &path, "run", "--real"]).env("CARGO", "true").output().unwrap());
    assert_eq!(exit, 1, "{out}{err}");
    assert!(
        out.contains("a.toml\n") && out.contains("step 1: it ended with status 0, not status 4"),
        "{out}"
    );
    assert!(out.contains("c.toml: calls are not counted there\n"), "{out}");
    assert!(out.contains("scenarios          2\nnot played here    1\n"), "{out}");
}

/// EFF-02, EFF-04, EFF-09, HOST-08, PRC-15: the real mu, ended by SIGKILL at random moments, and the backend's own ledger.
#[test]
fn the_real_mu_is_killed_and_nothing_is_made_twice_or_lost() {
    let kill =
        sim(&["kills", "--count", "25", "--seed", "5", "--json"]).env("CARGO", "true").output().unwrap();
    let (exit, out, err) = shown(kill);
    let report: Value = serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out} {err}"));
    assert_eq!(exit, 0, "{report:#}");
    let kills: u64 = report["kills"].as_object().unwrap().values().map(|count| count.as_u64().unwrap()).sum();
    assert_eq!((kills, report["findings"].as_array().unwrap().len()), (25, 0), "{report:#}");
}

#[test]
fn programs_that_cannot_be_built_are_no_finding() {
    let (_dir, path) = folder(&[("a.toml", SOUND)]);
    let (exit, out, err) =
        shown(sim(&["--scenarios", &path, "run", "--real"]).env("CARGO", "false").output().unwrap());
    assert_eq!((exit, out.as_str()), (3, ""));
    assert!(
        err.ends_with("mu-sim: mu, mu-fake-plugin and mu-fake-backend were not built: exit status: 1\n"),
        "{err}"
    );
}

#[test]
fn a_standard_output_that_takes_nothing_is_a_failure_of_the_simulator() {
    let full = || fs::File::options().write(true).open("/dev/full").unwrap();
    for words in [&["seeds", "--count", "3"][..], &["replay", "1"], &["--help"]] {
        let (exit, _, err) = shown(sim(words).stdout(full()).output().unwrap());
        assert_eq!(exit, 3, "{err}");
        let said = err.lines().last().unwrap();
        assert!(said.starts_with("mu-sim: cannot write to standard output: No space left"), "{err}");
    }
}

/// A file that help names as an example is there; one that a `>` makes need not be.
fn assert_examples_exist(help: &str) {
    let lines = help.lines().filter(|line| !line.contains('>'));
    for file in lines.flat_map(str::split_whitespace).filter(|word| word.starts_with("scenarios/")) {
        assert!(fs::exists(file).unwrap(), "{file} does not exist: {help}");
    }
}

#[test]
fn every_finished_rule_is_shown_by_something() {
    let (exit, out, _) = run(&["rules"]);
    assert_eq!(exit, 0, "{out}");
    assert!(out.starts_with("group ") && out.contains("\nTRN "), "{out}");
    let (exit, report) = json(&["rules", "TRN-05", "--json"]);
    assert_eq!(
        (exit, &report["ok"], &report["rules"][0]["finished"]),
        (0, &Value::Bool(true), &Value::Bool(true))
    );
    let scenarios = report["rules"][0]["scenarios"].as_array().unwrap();
    assert!(scenarios.contains(&Value::from("scenarios/invalid-utf8-anywhere-in-a-line.toml")), "{report}");
}

#[test]
fn a_finished_rule_that_nothing_shows_is_told() {
    let (_dir, path) = folder(&[("sound.toml", SOUND)]);
    let (exit, out, _) = run(&["--scenarios", &path, "rules", "--uncovered", "PRC-06", "PRC-07"]);
    assert_eq!(exit, 1, "{out}");
    assert!(out.starts_with("PRC-06  finished\n") && !out.contains("PRC-07"), "{out}");
    assert!(out.contains("PRC-06 is finished, and no scenario, test or benchmark cites it\n"), "{out}");
    assert!(refused(&["rules", "PRC-99"]).contains("`PRC-99` is no rule and no group of rules"));
}

#[test]
fn a_sweep_tells_its_points_by_sort_and_what_it_could_not_sweep() {
    let idle = "title = 't'\nrules = ['A-10']\n[[steps]]\ndb = 'missing'\n";
    let (_dir, path) = folder(&[("a.toml", SOUND), ("idle.toml", idle)]);
    let (exit, out, err) = run(&["--scenarios", &path, "sweep", "all"]);
    assert_eq!(exit, 0, "{out}{err}");
    assert!(
        out.contains("\nscenarios              1\n") && out.contains("\n  mu is killed         "),
        "{out}"
    );
    assert!(
        out.contains("idle.toml: no step runs mu\n") && out.contains("\nfindings               0\n"),
        "{out}"
    );
    let all = ["sweep", "all", "--also-plugin", "--power", "--disk-errors", "--json"];
    let (exit, report) = json(&[&["--scenarios", path.as_str()], &all[..]].concat());
    assert_eq!((exit, &report["ok"]), (0, &Value::Bool(true)), "{report}");
    let sorts = report["points_by_sort"].as_object().unwrap();
    assert_eq!(sorts.keys().collect::<Vec<_>>(), ["disk-errors", "mu", "plugin", "power"]);
    let sum: u64 = sorts.values().map(|count| count.as_u64().unwrap()).sum();
    assert!(sorts.values().all(|count| *count != 0) && report["points"] == sum, "{report}");
    assert_eq!(report["not_swept"][0]["reason"], "no step runs mu");
}

#[test]
fn a_sample_of_a_sweep_is_chosen_by_a_text() {
    let (_dir, path) = folder(&[("a.toml", SOUND)]);
    let sample =
        |by: &str| json(&["--scenarios", &path, "sweep", "a", "--sample", "7", "--by", by, "--json"]);
    let [(exit, one), (_, again), (_, other)] = [sample("x"), sample("x"), sample("y")];
    assert_eq!((exit, &one["points"]), (0, &Value::from(7)));
    assert_eq!(one["events"], again["events"]);
    assert_ne!(one["events"], other["events"]);
    assert!(refused(&["sweep", "all", "--sample", "7"]).contains("--by"));
    assert!(refused(&["sweep"]).contains("FILE|all"));
}

#[test]
fn a_scenario_that_does_not_hold_by_itself_is_a_finding_of_its_sweep() {
    let (_dir, path) = folder(&[("wrong.toml", WRONG)]);
    let (exit, out, _) = run(&["--scenarios", &path, "sweep", "all", "--sample", "3", "--by", "x"]);
    assert_eq!(exit, 1, "{out}");
    assert!(
        out.contains("as it is, it does not hold: step 1: it ended with status 0, not status 4"),
        "{out}"
    );
}

const LARGE: &str = "title = 'Something else is expected'\nrules = ['REG-01', 'HSK-01']\nseed = 9\n[plugins.box]\n\
    seams = ['link', 'job']\n[plugins.cloud]\n[[faults]]\nplugin = 'cloud'\ndo = 'crlf'\n[[faults]]\nplugin = 'box'\n\
    do = 'bom'\n[[steps]]\nrun = 'mu plugin add cloud -- {cloud}'\nexit = 0\n[[steps]]\nadvance_ms = 5000\n[[steps]]\n\
    run = 'mu plugin add box -- {box} --region eu'\nexit = 0\nstderr = { contains = 'x' }\n[[steps]]\nrun = 'mu plugin list'\n";

#[test]
fn what_fails_becomes_a_small_file_with_its_transcript_that_fails_alike() {
    let (dir, path) = folder(&[("large.toml", LARGE)]);
    let into = format!("{path}/small.toml");
    let (exit, out, err) = run(&["--scenarios", &path, "shrink", "large", "--into", &into]);
    assert_eq!(exit, 0, "{out}{err}");
    assert!(err.contains(" candidates\n"), "{err}");
    let small = fs::read_to_string(&into).unwrap();
    for line in ["rules = [\"REG-01\", \"HSK-01\"]", "[plugins.box]", "do = \"bom\"", "exit = 0"] {
        assert!(small.contains(line), "{line}: {small}");
    }
    assert!(small.starts_with("title = \"An expectation fails: step 1: it ended with status 5"), "{small}");
    assert_eq!((small.matches("[[steps]]").count(), small.matches("[[faults]]").count()), (1, 1), "{small}");
    assert!(
        out.contains("  from 4 steps, 2 faults, 2 plugins\n  to   1 step, 1 fault, 1 plugin, in "),
        "{out}"
    );
    assert!(out.contains(&format!("next:\n  cargo sim replay {into}\n")), "{out}");
    let transcript = fs::read_to_string(dir.path().join("small.snap")).unwrap();
    let (head, body) = transcript.split_at(transcript.match_indices("---\n").nth(1).unwrap().0 + 4);
    assert_eq!(head, "---\nsource: sim/tests/scenarios.rs\n---\n");
    let (exit, again, _) = run(&["replay", &into]);
    assert_eq!(exit, 1);
    assert!(
        again.contains(body) && again.contains("[expectation REG-01, HSK-01] step 1: it ended"),
        "{again}"
    );

    let (exit, report) = json(&["--scenarios", &path, "shrink", "large", "--into", &into, "--json"]);
    assert_eq!((exit, &report["by"], &report["before"]["steps"]), (0, &"expectation".into(), &4.into()));
    assert_eq!((&report["after"]["steps"], &report["after"]["faults"]), (&1.into(), &1.into()));
    assert_eq!(fs::read_to_string(&into).unwrap(), small);
    let spent = ["shrink", "large", "--into", &into, "--candidates", "2", "--json"];
    let (exit, report) = json(&[&["--scenarios", path.as_str()], &spent[..]].concat());
    assert_eq!((exit, &report["spent"], &report["candidates"]), (0, &true.into(), &2.into()));
}

#[test]
fn what_holds_and_what_cannot_be_read_or_written_is_not_shrunk() {
    let wrong = SOUND.replace("exit = 0", "exits = 0");
    let (dir, path) =
        folder(&[("a.toml", SOUND), ("wrong.toml", &wrong), ("fails.toml", WRONG), ("file", "")]);
    let shrink = |what: &str, into: &str| refused(&["--scenarios", &path, "shrink", what, "--into", into]);
    let into = format!("{path}/small.toml");
    assert!(shrink("4711", &into).ends_with(": seed 4711 holds: there is nothing to shrink\n"));
    assert!(shrink("a", &into).ends_with("a.toml holds: there is nothing to shrink\n"));
    assert!(shrink("wrong", &into).contains("wrong.toml:6:1: unknown key `exits`"));
    assert!(shrink("nowhere", &into).contains("nowhere: no such scenario"));
    assert!(shrink("fails", &format!("{path}/file/small.toml")).contains("/file"));
    assert!(shrink("fails", &format!("{path}/small.txt")).contains("ends in .toml"));
    assert!(!fs::exists(&into).unwrap() && !fs::exists(dir.path().join("small.snap")).unwrap());
}

#[test]
fn bugs_that_do_not_exist_are_refused() {
    assert!(refused(&["score", "1", "9999"]).contains("sim/planted.toml: there is no bug 9999"));
    assert!(refused(&["score", "--pick", "5"]).contains("--by"));
    assert!(refused(&["score", "3", "--pick", "5", "--by", "x"]).contains("cannot be used with"));
}

#[test]
fn help_names_every_verb_with_an_example() {
    let (exit, out, _) = run(&["--help"]);
    assert_eq!(exit, 0);
    assert_examples_exist(&out);
    for verb in ["run", "seeds", "sweep", "replay", "shrink", "determinism", "rules", "score"] {
        assert!(out.contains(&format!("  {verb} ")), "{out}");
        let (exit, help, _) = run(&[verb, "--help"]);
        assert_eq!(exit, 0);
        assert!(help.contains(&format!("cargo sim {verb}")), "{help}");
        assert_examples_exist(&help);
    }
}
