//! Every file of `scenarios/`, played on the simulated machine: all that it expects holds, every oracle is content, and
//! the transcript beside it is what happened.

use std::fs;
use std::path::{Path, PathBuf};

use mu_sim::play::{self, Setting, Show};
use mu_sim::scenario::{Scenario, is_rule};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenarios")
}

fn files() -> Vec<PathBuf> {
    let entries = fs::read_dir(folder()).expect("the scenarios are beside this crate");
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "toml"));
    files.sort();
    files
}

fn read(file: &Path) -> Scenario {
    let name = file.file_name().unwrap().to_string_lossy();
    let text = fs::read_to_string(file).unwrap();
    Scenario::parse(&name, &text, &is_rule).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn every_scenario_holds_and_its_transcript_is_what_happened() {
    let mut wrong = Vec::new();
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(folder().canonicalize().unwrap());
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    let _bound = settings.bind_to_scope();
    for file in files() {
        let scenario = read(&file);
        let name = file.file_stem().unwrap().to_string_lossy().into_owned();
        let shown = Setting { show: Show::Transcript, ..Setting::default() };
        let played = play::simulated(&scenario, shown).unwrap_or_else(|cannot| panic!("{name}: {cannot}"));
        wrong.extend(played.findings.iter().map(|finding| format!("{name}: {finding}")));
        let transcript = played.transcript.expect("it was asked for");
        let same = std::panic::catch_unwind(|| insta::assert_snapshot!(name.clone(), transcript));
        if same.is_err() {
            wrong.push(format!("{name}: the transcript differs from {name}.snap"));
        }
    }
    assert!(wrong.is_empty(), "{} findings:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn a_scenario_written_back_and_read_again_is_the_same() {
    for file in files() {
        let scenario = read(&file);
        let again = Scenario::parse("again", &scenario.to_toml(), &is_rule);
        assert_eq!(again.as_ref(), Ok(&scenario), "{}", file.display());
    }
}

/// The page of a run looks into mu's database all the time. A run that it changed would not be the run that failed.
#[test]
fn looking_at_the_rows_changes_no_run() {
    for file in files().into_iter().step_by(4) {
        let scenario = read(&file);
        let played = |journal| {
            let show = if journal { Show::Timeline } else { Show::Transcript };
            play::simulated(&scenario, Setting { show, journal, ..Setting::default() }).unwrap()
        };
        let (plain, looked_at) = (played(false), played(true));
        let of = |one: &play::Played| (one.chain, one.events, one.findings.clone(), one.virtual_time);
        assert_eq!(of(&plain), of(&looked_at), "{}", file.display());
        let timeline = looked_at.timeline.expect("it was asked for");
        assert_eq!(plain.transcript, Some(timeline.transcript()), "{}", file.display());
    }
}
