//! Scenarios on real processes: the real `mu`, the real fake plugin and its real backend, built first.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, mpsc};
use std::time::Instant;

use super::campaign::{Report, Style};
use super::item::{Item, Outcome};
use super::{Failure, Place, files, tell, worker};
use crate::play;
use crate::scenario::Scenario;
use crate::world::{Cannot, Executables, Real};

/// Plays the named files, or all, so many at once; answers with the exit code.
pub(crate) fn run(place: &Place, names: &[PathBuf], jobs: usize, json: bool) -> Result<u8, Failure> {
    let all = files::scenarios(place, names)?;
    let executables = build(&place.root)?;
    let begun = Instant::now();
    let mut report = Report::new(all.len(), Style { each: true, json, whole: false });
    let left = Mutex::new(all.iter());
    let (results, told) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..jobs.min(all.len()) {
            let (left, results, executables) = (&left, results.clone(), &executables);
            scope.spawn(move || {
                let next = || left.lock().expect("no job panics while it takes a scenario").next();
                while let Some((item, scenario)) = next() {
                    // Nobody listens any more only when the whole run is over.
                    let _ = results.send((item.clone(), play(item, scenario, executables)));
                }
            });
        }
        drop(results);
        for (item, result) in told {
            match result {
                Ok(outcome) => report.add(outcome),
                Err(Cannot(reason)) => report.skip(item, reason),
            }
        }
    });
    let left = Real::left_behind();
    if !left.is_empty() {
        report.add(Outcome::crash(Item::Real, format!("processes {left:?} are left behind")));
    }
    Ok(report.end(begun))
}

fn play(item: &Item, scenario: &Scenario, executables: &Executables) -> Result<Outcome, Cannot> {
    match &scenario.why_not_real {
        Some(reason) => Err(Cannot(reason.clone())),
        None => item.play_with(scenario, || play::real(scenario, executables)),
    }
}

/// Builds the programs in the profile of this one; they come to lie beside it.
pub(super) fn build(root: &Path) -> Result<Executables, Failure> {
    let own = worker::own_program()?;
    let folder = own.parent().unwrap_or(Path::new("/"));
    let mut command = super::cargo(root);
    command.args(["build", "--quiet", "--features", "sim"]);
    command.args(["--bin", "mu", "--bin", "mu-fake-plugin", "--bin", "mu-fake-backend"]);
    match folder.file_name().and_then(|name| name.to_str()) {
        Some("debug") | None => {}
        Some(profile) => drop(command.args(["--profile", profile])),
    }
    tell("building mu, mu-fake-plugin and mu-fake-backend\n");
    match command.status() {
        Ok(status) if status.success() => {}
        Ok(status) => {
            return Err(Failure::Broken(format!(
                "mu, mu-fake-plugin and mu-fake-backend were not built: {status}"
            )));
        }
        Err(error) => return Err(Failure::broken("cargo, to build mu and its fakes", error)),
    }
    let executables = Executables {
        mu: folder.join("mu"),
        plugin: folder.join("mu-fake-plugin"),
        backend: folder.join("mu-fake-backend"),
    };
    for built in [&executables.mu, &executables.plugin, &executables.backend] {
        if !built.is_file() {
            return Err(Failure::Broken(format!("{}: it was built, and is not there", built.display())));
        }
    }
    Ok(executables)
}
