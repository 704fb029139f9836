//! Failures that are kept as files in `target/sim`: the scenario of a seed, and a page for each run.

use std::io;
use std::path::{Path, PathBuf};

use super::item::{Item, Outcome};
use super::{Failure, Place, files, replay};
use crate::play::{self, Finding};
use crate::scenario::Scenario;

/// Pages that one campaign writes; more would hardly be read.
const PAGES: usize = 10;

/// Writes the files of one campaign.
pub(crate) struct Keeper {
    root: PathBuf,
    into: PathBuf,
    left: usize,
}

impl Keeper {
    /// For the campaigns of this place.
    pub(crate) fn new(place: &Place) -> Keeper {
        Keeper { root: place.root.clone(), into: place.root.join("target/sim"), left: PAGES }
    }

    /// Writes the files of an item that did not hold, as long as there are few, and names them in its outcome.
    pub(crate) fn keep(&mut self, outcome: &mut Outcome) {
        if self.left == 0 {
            return;
        }
        self.left -= 1;
        match self.write(outcome) {
            Ok(paths) => outcome.kept = paths.iter().map(|path| files::shown(&self.root, path)).collect(),
            Err(failure) => outcome.kept = vec![format!("nothing, {failure}")],
        }
    }

    fn write(&self, outcome: &Outcome) -> Result<Vec<PathBuf>, Failure> {
        let stem = match &outcome.item {
            Item::Seed(seed) => format!("seed-{seed}"),
            Item::File { path, .. } => path.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
            Item::Text(_) | Item::Points { .. } | Item::Real => return Ok(Vec::new()),
        };
        let scenario = outcome.item.scenario().map_err(Failure::Input)?;
        // What ended the simulator once would end it again.
        let run = (!outcome.is_crash()).then(|| replay::play(&outcome.item, &scenario));
        let (timeline, findings) = run.map(|run| (run.timeline, run.findings)).unwrap_or_default();
        let mut paths = Vec::new();
        if let Item::Seed(_) = outcome.item {
            let path = self.into.join(format!("{stem}.toml"));
            write_scenario(&scenario, &findings, &path).map_err(|error| cannot(&path, &error))?;
            paths.push(path);
        }
        let path = self.into.join(format!("{stem}.html"));
        let page = replay::page(&scenario, outcome, &timeline);
        write(&path, &page).map_err(|error| cannot(&path, &error))?;
        paths.push(path);
        Ok(paths)
    }
}

fn cannot(path: &Path, error: &io::Error) -> Failure {
    Failure::broken(&path.display().to_string(), error)
}

/// Writes the file that plays a scenario again, without the faults of which `findings` say that they never took effect.
pub(crate) fn write_scenario(scenario: &Scenario, findings: &[Finding], path: &Path) -> io::Result<()> {
    let mut scenario = scenario.clone();
    play::drop_inert(&mut scenario, findings);
    write(path, &scenario.to_toml())
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
    std::fs::write(path, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::item::Found;

    fn failed(item: Item) -> Outcome {
        let at = Some(0);
        let (by, text) = ("start".to_owned(), "box[101] of mu[100] was made up <b>here</b>".to_owned());
        let found = Found { by, rules: vec!["PRC-03".into()], text, at, step: None, replay: None };
        Outcome { found: vec![found], events: 1, ..Outcome::crash(item, String::new()) }
    }

    fn keeper(root: &Path) -> Keeper {
        Keeper::new(&Place { root: root.to_owned(), scenarios: root.to_owned() })
    }

    #[test]
    fn the_scenario_and_the_page_of_a_failed_seed_are_kept_and_named() {
        let dir = tempfile::tempdir().unwrap();
        let mut outcome = failed(Item::Seed(4711));
        keeper(dir.path()).keep(&mut outcome);
        assert_eq!(outcome.kept, ["target/sim/seed-4711.toml", "target/sim/seed-4711.html"]);
        let toml = std::fs::read_to_string(dir.path().join(&outcome.kept[0])).unwrap();
        assert!(Scenario::parse("kept", &toml, &crate::scenario::is_rule).is_ok(), "{toml}");
        let page = std::fs::read_to_string(dir.path().join(&outcome.kept[1])).unwrap();
        assert!(
            page.contains("cargo sim replay 4711") && page.contains("was made up &lt;b&gt;here"),
            "{page}"
        );
        let said = crate::cli::tally::failure(&outcome);
        assert!(said.contains("  kept: target/sim/seed-4711.toml, target/sim/seed-4711.html\n"), "{said}");
    }

    #[test]
    fn a_seed_that_ended_the_simulator_is_not_played_again_and_kept_all_the_same() {
        let dir = tempfile::tempdir().unwrap();
        let mut outcome = Outcome::crash(Item::Seed(5), "it died of SIGKILL".into());
        keeper(dir.path()).keep(&mut outcome);
        let page = std::fs::read_to_string(dir.path().join(&outcome.kept[1])).unwrap();
        assert!(
            page.contains("it died of SIGKILL")
                && page.contains("There is no diagram")
                && !page.contains("id=\"step-1\""),
            "{page}"
        );
    }

    #[test]
    fn only_the_first_failures_of_a_campaign_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        let mut keeper = keeper(dir.path());
        let mut all: Vec<Outcome> = (0..12).map(|seed| failed(Item::Seed(seed))).collect();
        all.iter_mut().for_each(|outcome| keeper.keep(outcome));
        assert_eq!(all.iter().filter(|outcome| !outcome.kept.is_empty()).count(), PAGES);
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_told_and_no_failure() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("target"), "").unwrap();
        let mut outcome = failed(Item::Seed(1));
        keeper(dir.path()).keep(&mut outcome);
        assert!(
            outcome.kept[0].starts_with("nothing, ") && outcome.kept[0].contains("seed-1.toml"),
            "{:?}",
            outcome.kept
        );
    }
}
