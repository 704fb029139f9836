//! Names on the command line to scenario files. What is wrong with one is known before anything is played.

use std::fs;
use std::path::{Path, PathBuf};

use super::item::Item;
use super::{Failure, Place};
use crate::scenario::{Scenario, is_rule};

/// The named files, or all of the folder in the order of their names; each was read and is sound.
///
/// # Errors
/// There is no such file, it cannot be read, or it is no scenario: one line with file, line and column.
pub(crate) fn items(place: &Place, names: &[PathBuf]) -> Result<Vec<Item>, Failure> {
    scenarios(place, names).map(|all| all.into_iter().map(|(item, _)| item).collect())
}

/// The same, with the scenarios.
pub(crate) fn scenarios(place: &Place, names: &[PathBuf]) -> Result<Vec<(Item, Scenario)>, Failure> {
    let paths = match names {
        [] => all(&place.scenarios)?,
        names => names.iter().map(|name| find(place, name)).collect::<Result<_, _>>()?,
    };
    let read = |path: PathBuf| {
        let scenario = read(&path, &shown(&place.root, &path)).map_err(Failure::Input)?;
        Ok((Item::File { shown: shown(&place.root, &path), path }, scenario))
    };
    paths.into_iter().map(read).collect()
}

/// Reads one file; the error is one line.
pub(crate) fn read(path: &Path, shown: &str) -> Result<Scenario, String> {
    let text = fs::read(path).map_err(|error| format!("{shown}: {error}"))?;
    let text = String::from_utf8(text)
        .map_err(|error| format!("{shown}: not UTF-8 at byte {}", error.utf8_error().valid_up_to()))?;
    Scenario::parse(shown, &text, &is_rule).map_err(|error| error.to_string())
}

/// The name that people see, and that the command line takes again: within the workspace, relative to it.
pub(crate) fn shown(root: &Path, path: &Path) -> String {
    let absolute = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
    absolute.strip_prefix(root).unwrap_or(path).display().to_string()
}

fn all(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let wrong = |error| Failure::Input(format!("{}: {error}", folder.display()));
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).map_err(wrong)? {
        paths.push(entry.map_err(wrong)?.path());
    }
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    paths.sort();
    if paths.is_empty() {
        return Err(Failure::Input(format!("{}: no scenario in it", folder.display())));
    }
    Ok(paths)
}

/// A file by its path from here or from the workspace, or by its name in the folder of the scenarios.
fn find(place: &Place, name: &Path) -> Result<PathBuf, Failure> {
    let toml = PathBuf::from(format!("{}.toml", name.display()));
    let candidates =
        [name.to_owned(), place.root.join(name), place.scenarios.join(name), place.scenarios.join(toml)];
    candidates.into_iter().find(|path| path.is_file()).ok_or_else(|| {
        let near = near(place, name).map_or_else(String::new, |near| format!("; did you mean {near}?"));
        Failure::Input(format!("{}: no such scenario{near}", name.display()))
    })
}

/// The scenario whose name is most like this one, if any is like it at all.
fn near(place: &Place, name: &Path) -> Option<String> {
    let wanted = name.file_stem()?.to_string_lossy().into_owned();
    let stems = all(&place.scenarios).ok()?;
    let stems = stems.iter().filter_map(|path| Some(path.file_stem()?.to_string_lossy().into_owned()));
    let (distance, stem) = stems.map(|stem| (crate::scenario::distance(&wanted, &stem), stem)).min()?;
    (distance <= 1 + wanted.chars().count() / 3).then_some(stem)
}
