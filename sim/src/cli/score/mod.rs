//! `cargo sim score`: whether scenarios and seeds catch the bugs that are planted, one at a time, in a copy of the tree.
//!
//! In: the table `sim/planted.toml` and a choice from it. Out: what caught each bug and after how many runs, as a table or
//! as JSON; exit 0 only if every one was caught.
//!
//! - `planted`: the table; `copy`: the copy of the tree and its build
//! - `shrunk`: whether what a seed finds of a bug becomes small

mod copy;
mod planted;
mod shrunk;

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use self::copy::{Copy, Unbuilt};
use self::planted::{Bug, Watch};
use super::item::{Item, Outcome};
use super::{FOUND, Failure, HELD, Place, files, say, tally, tell, worker};

pub(crate) use self::planted::Which;

/// Columns of the table that stand to the left.
const HEADINGS: [&str; 5] = ["bug", "rules", "caught by", "in", "runs"];

/// Characters of a finding that are shown.
const SHOWN: usize = 200;

/// What came of one bug.
struct Score {
    bug: Bug,
    verdict: Verdict,
    took: Duration,
}

enum Verdict {
    Caught(Box<Catch>),
    /// Clippy refuses it, or two processes do not play the same: the first thing that is said.
    Noticed(&'static str, String),
    /// Nothing failed.
    Missed,
    /// The tree does not compile with it.
    Unbuilt(String),
}

/// What failed because of a bug.
struct Catch {
    /// The first in the order in which items are played.
    first: Outcome,
    /// Its place in that order, from 1.
    runs: usize,
    /// All scenarios that failed.
    scenarios: Vec<String>,
}

/// What is played on a bug: all scenarios, then seeds until one fails.
struct Game {
    scenarios: Vec<Item>,
    seeds: Vec<Item>,
    jobs: usize,
}

/// Plants the bugs that are meant and plays; answers with the exit code.
pub(crate) fn run(place: &Place, which: &Which, seeds: u64, jobs: usize, json: bool) -> Result<u8, Failure> {
    let bugs = which.of(planted::read(&place.root)?)?;
    let scenarios = files::items(place, &[])?;
    let game = Game { scenarios, seeds: (0..seeds).map(Item::Seed).collect(), jobs };
    let copy = Copy::of(&place.root)?;
    let begun = Instant::now();
    tell("building the tree without a bug\n");
    let program = copy.build().map_err(|unbuilt| match unbuilt {
        Unbuilt::Wrong(error) => Failure::Broken(format!("the tree without a bug is not built: {error}")),
        Unbuilt::Failed(failure) => failure,
    })?;
    if let Some(catch) = game.play(&program)? {
        let failure = tally::failure(&catch.first);
        return Err(Failure::Broken(format!(
            "without a bug it fails as well: {}",
            failure.trim_end().replace('\n', ";")
        )));
    }
    tell(&format!("without a bug all held, {:.0} s\n", begun.elapsed().as_secs_f64()));
    let mut scores = Vec::new();
    for bug in bugs {
        tell(&format!("bug {}: {}\n", bug.number, bug.bug));
        let score = score(&copy, &game, bug)?;
        tell(&format!("  {}, {:.0} s\n", score.verdict.text(), score.took.as_secs_f64()));
        scores.push(score);
    }
    say(&if json { format!("{}\n", document(&scores)) } else { table(&scores) });
    Ok(if scores.iter().all(Score::caught) { HELD } else { FOUND })
}

/// Plants the bugs that are meant, and shrinks the first seed that catches each; answers with the exit code.
pub(crate) fn shrink(
    place: &Place,
    which: &Which,
    seeds: u64,
    jobs: usize,
    json: bool,
) -> Result<u8, Failure> {
    shrunk::run(place, which.of(planted::read(&place.root)?)?, seeds, jobs, json)
}

/// Plants one bug, builds, plays, and takes the bug out again.
fn score(copy: &Copy, game: &Game, bug: Bug) -> Result<Score, Failure> {
    let begun = Instant::now();
    let planted = bug.planted(copy.tree()).map_err(Failure::Broken)?;
    let sound = copy.exchange(&bug.file, &planted)?;
    let verdict = watched(copy, game, &bug);
    copy.exchange(&bug.file, &sound)?;
    Ok(Score { bug, verdict: verdict?, took: begun.elapsed() })
}

/// What whoever must notice the planted bug says of it.
fn watched(copy: &Copy, game: &Game, bug: &Bug) -> Result<Verdict, Failure> {
    let unbuilt = |unbuilt| match unbuilt {
        Unbuilt::Wrong(error) => Ok(Verdict::Unbuilt(error)),
        Unbuilt::Failed(failure) => Err(failure),
    };
    if bug.watch == Watch::Lint {
        let noticed = |said| Verdict::Noticed("clippy", said);
        return copy.lint().map(|said| said.map_or(Verdict::Missed, noticed)).or_else(unbuilt);
    }
    let program = match copy.build() {
        Ok(program) => program,
        Err(error) => return unbuilt(error),
    };
    if bug.watch == Watch::Determinism {
        let said = copy.differs(&program)?;
        return Ok(said.map_or(Verdict::Missed, |said| Verdict::Noticed("determinism", said)));
    }
    Ok(game.play(&program)?.map_or(Verdict::Missed, |catch| Verdict::Caught(Box::new(catch))))
}

impl Game {
    /// Plays with `program` until something fails.
    fn play(&self, program: &Path) -> Result<Option<Catch>, Failure> {
        let mut failed = BTreeMap::new();
        let place = |item: &Item| self.scenarios.iter().position(|one| one == item);
        worker::play_all(program, &self.scenarios, self.jobs, |outcome| {
            if let (false, Some(place)) = (outcome.found.is_empty(), place(&outcome.item)) {
                failed.insert(place, outcome);
            }
            ControlFlow::Continue(())
        })?;
        let scenarios = failed.values().map(|outcome| outcome.item.name()).collect();
        if failed.is_empty() {
            // Seeds are given out in their order, so the least that failed is the first.
            worker::play_all(program, &self.seeds, self.jobs, |outcome| match outcome.item {
                Item::Seed(seed) if !outcome.found.is_empty() => {
                    failed.insert(self.scenarios.len() + seed as usize, outcome);
                    ControlFlow::Break(())
                }
                _ => ControlFlow::Continue(()),
            })?;
        }
        Ok(failed.pop_first().map(|(place, first)| Catch { first, runs: place + 1, scenarios }))
    }
}

impl Score {
    fn caught(&self) -> bool {
        matches!(self.verdict, Verdict::Caught(_) | Verdict::Noticed(..))
    }

    fn json(&self) -> Value {
        let caught = match &self.verdict {
            Verdict::Caught(catch) => json!({
                "findings": tally::findings_json(&catch.first),
                "runs": catch.runs,
                "scenarios": catch.scenarios,
            }),
            Verdict::Noticed(by, said) => json!({ "by": by, "said": said }),
            _ => Value::Null,
        };
        let error = if let Verdict::Unbuilt(error) = &self.verdict { Some(error) } else { None };
        json!({
            "number": self.bug.number,
            "rules": self.bug.rules,
            "bug": self.bug.bug,
            "caught": caught,
            "build_error": error,
            "wall_ms": self.took.as_millis() as u64,
        })
    }

    /// The cells of its row.
    fn row(&self) -> [String; 5] {
        let [by, within, runs] = match &self.verdict {
            Verdict::Caught(catch) => [catch.by(), catch.first.item.name(), catch.runs.to_string()],
            Verdict::Noticed(by, said) => [(*by).to_owned(), said.clone(), String::new()],
            Verdict::Missed => ["NOTHING".into(), String::new(), String::new()],
            Verdict::Unbuilt(error) => ["DOES NOT COMPILE".into(), error.clone(), String::new()],
        };
        [self.bug.number.to_string(), self.bug.rules.join(", "), by, within, runs]
    }
}

impl Catch {
    /// Who said what first, and of which rules.
    fn by(&self) -> String {
        let found = &self.first.found[0];
        match found.by.as_str() {
            // Its rules are all those of the scenario.
            "expectation" | "inert" => found.by.clone(),
            oracle => format!("{oracle} {}", found.rules.join(", ")).trim_end().to_owned(),
        }
    }
}

impl Verdict {
    fn text(&self) -> String {
        match self {
            Verdict::Caught(catch) => format!(
                "caught by {} in {}, run {}; scenarios that fail: {}\n  {}",
                catch.by(),
                catch.first.item.name(),
                catch.runs,
                catch.scenarios.len(),
                catch.first.found[0].text.chars().take(SHOWN).collect::<String>()
            ),
            Verdict::Noticed(by, said) => {
                format!("caught by {by}: {}", said.chars().take(SHOWN).collect::<String>())
            }
            Verdict::Missed => "NOT caught".into(),
            Verdict::Unbuilt(error) => format!("it does NOT compile: {error}"),
        }
    }
}

fn document(scores: &[Score]) -> Value {
    let bugs: Vec<Value> = scores.iter().map(Score::json).collect();
    json!({ "ok": scores.iter().all(Score::caught), "bugs": bugs })
}

fn table(scores: &[Score]) -> String {
    let mut rows = vec![HEADINGS.map(str::to_owned)];
    rows.extend(scores.iter().map(Score::row));
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths = [0, 1, 2, 3, 4].map(width);
    let line = |row: &[String; 5]| {
        let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}"));
        format!("{}\n", cells.collect::<Vec<_>>().join("  ").trim_end())
    };
    let caught = scores.iter().filter(|score| score.caught()).count();
    format!("{}{caught} of {} bugs are caught\n", rows.iter().map(line).collect::<String>(), scores.len())
}
