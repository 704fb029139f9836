//! `cargo sim sweep`: scenarios, ended at each of their points in turn.
//!
//! A scenario is played once here to learn its points. They are played in worker processes, many in one go; a scenario
//! file is written for what is found, so that it can be replayed.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::item::{Found, Item, Outcome};
use super::progress::Progress;
use super::tally::{grouped, span};
use super::{FOUND, Failure, HELD, Place, files, keep, say, tell, worker};
use crate::explore::sweep::{self, Point, Sort};
use crate::play::{self, Finding, Setting};
use crate::scenario::Scenario;
use crate::world::Cannot;

/// Points that a worker is given at once: reading a file anew for each would take as long as playing it.
const AT_ONCE: usize = 32;
/// Files that are written for what is found among so many points; more would say the same.
const WRITTEN: usize = 2;
/// Findings that are printed; more are only counted, and listed with `--json`.
const SHOWN: usize = 40;

/// What is swept.
pub(crate) struct Asked {
    /// The scenarios; all of the folder when it holds none.
    pub(crate) files: Vec<PathBuf>,
    pub(crate) sorts: Vec<Sort>,
    pub(crate) sample: Option<Sample>,
}

/// So many points, chosen by a text.
pub(crate) struct Sample {
    pub(crate) count: usize,
    pub(crate) by: String,
}

/// What the scenarios have.
#[derive(Default)]
struct Plan {
    items: Vec<Item>,
    points: BTreeMap<Sort, u64>,
    /// Of how many they were chosen.
    all: u64,
    /// Left out because the point before is the same world.
    same: u64,
    swept: u64,
    unswept: Vec<(String, String)>,
}

/// What came of them.
#[derive(Default)]
struct Sum {
    events: u64,
    virtual_ns: u128,
    /// Points that were found to be the same world as the one before them.
    same: u64,
    found: Vec<(Item, Found)>,
    /// What was printed, without its numbers.
    said: BTreeSet<String>,
}

/// Plays all points in `jobs` processes; answers with the exit code.
pub(crate) fn run(place: &Place, asked: &Asked, jobs: usize, json: bool) -> Result<u8, Failure> {
    let begun = Instant::now();
    let mut sum = Sum::default();
    let into = place.root.join("target/sim");
    let mut all = Vec::new();
    let mut plan = Plan::default();
    for (item, scenario) in files::scenarios(place, &asked.files)? {
        plan.learn(&item, &scenario, asked, &mut all, &mut sum);
    }
    plan.all = all.len() as u64;
    if let Some(sample) = &asked.sample {
        sample.choose(&mut all);
    }
    plan.cut(&all, &into);
    if !json {
        let count: u64 = plan.points.values().sum();
        tell(&format!("{} points of {} scenarios\n", grouped(count), plan.swept));
    }
    let mut progress = Progress::new("points", all.len(), json);
    sum.found.iter().for_each(|(item, found)| progress.say(&failure(item, found)));
    play(&plan.items, jobs, &mut progress, &mut sum)?;
    progress.end();
    let took = begun.elapsed();
    say(&if json { format!("{}\n", plan.json(&sum, took)) } else { plan.table(&sum, took) });
    Ok(if sum.found.is_empty() { HELD } else { FOUND })
}

fn play(items: &[Item], jobs: usize, progress: &mut Progress, sum: &mut Sum) -> Result<(), Failure> {
    let own = worker::own_program()?;
    // What ended its process takes the points beside it along: they are played alone then.
    let mut alone = Vec::new();
    worker::play_all(&own, items, jobs, |outcome| {
        match outcome.item.points() {
            points if points.len() > 1 && outcome.is_crash() => alone.extend(outcome.item.each()),
            points => {
                progress.steps(points.len(), outcome.found.len());
                sum.add(outcome, progress);
            }
        }
        ControlFlow::Continue(())
    })?;
    worker::play_all(&own, &alone, jobs, |outcome| {
        progress.steps(1, outcome.found.len());
        sum.add(outcome, progress);
        ControlFlow::Continue(())
    })
}

impl Plan {
    /// Plays a scenario as it is, to learn its points.
    fn learn(
        &mut self,
        item: &Item,
        scenario: &Scenario,
        asked: &Asked,
        all: &mut Vec<(Item, Point)>,
        sum: &mut Sum,
    ) {
        let setting = Setting { courses: true, ..Setting::default() };
        let mut courses = Vec::new();
        let outcome = item.play_with(scenario, || {
            let mut played = play::simulated(scenario, setting)?;
            courses = std::mem::take(&mut played.courses);
            Ok(played)
        });
        let outcome = match outcome {
            Ok(outcome) => outcome,
            Err(Cannot(reason)) => return self.unswept.push((item.name(), reason)),
        };
        let is_crash = outcome.is_crash();
        for found in outcome.found {
            let text = format!("as it is, it does not hold: {}", found.text);
            let replay = Some(item.replay());
            sum.found.push((item.clone(), Found { text, replay, ..found }));
        }
        if is_crash {
            return self.unswept.push((item.name(), "it does not come to its end".into()));
        }
        if let Some(reason) = sweep::unswept(scenario, &courses) {
            return self.unswept.push((item.name(), reason.into()));
        }
        let points = sweep::points(scenario, &courses, &asked.sorts);
        self.same += points.same;
        all.extend(points.points.into_iter().map(|point| (item.clone(), point)));
    }

    /// Cuts the points into pieces for the workers.
    fn cut(&mut self, all: &[(Item, Point)], into: &Path) {
        self.swept = all.iter().map(|(item, _)| item.name()).collect::<BTreeSet<_>>().len() as u64;
        for (_, point) in all {
            *self.points.entry(point.sort()).or_default() += 1;
        }
        for of_one in all.chunk_by(|(one, _), (other, _)| one == other) {
            let Item::File { path, shown } = &of_one[0].0 else { continue };
            for some in of_one.chunks(AT_ONCE) {
                self.items.push(Item::Points {
                    path: path.clone(),
                    shown: shown.clone(),
                    points: some.iter().map(|(_, point)| point.clone()).collect(),
                    into: into.to_owned(),
                });
            }
        }
    }

    fn table(&self, sum: &Sum, took: Duration) -> String {
        let points: u64 = self.points.values().sum();
        let seconds = took.as_secs_f64();
        let mut rows = vec![("scenarios".to_owned(), grouped(self.swept))];
        rows.push(("not swept".to_owned(), grouped(self.unswept.len() as u64)));
        let of = if self.all > points { format!(" of {}", grouped(self.all)) } else { String::new() };
        rows.push(("points".to_owned(), grouped(points) + &of));
        rows.extend(self.points.iter().map(|(sort, count)| (format!("  {}", sort.text()), grouped(*count))));
        rows.push(("the same world".to_owned(), grouped(self.same + sum.same)));
        rows.push(("events".to_owned(), grouped(sum.events)));
        rows.push(("virtual time".to_owned(), span(sum.virtual_ns)));
        let rate = points as f64 / seconds.max(0.001);
        rows.push(("wall time".to_owned(), format!("{seconds:.1} s, {rate:.0} points a second")));
        rows.push(("findings".to_owned(), grouped(sum.found.len() as u64)));
        let mut text: String = rows.iter().map(|(name, value)| format!("{name:<22} {value}\n")).collect();
        for (name, reason) in &self.unswept {
            text += &format!("not swept: {name}: {reason}\n");
        }
        format!("\n{text}")
    }

    fn json(&self, sum: &Sum, took: Duration) -> Value {
        let unswept = |(name, reason): &(String, String)| json!({ "item": name, "reason": reason });
        let found = |(item, found): &(Item, Found)| {
            json!({
                "item": item.name(),
                "by": found.by,
                "rules": found.rules,
                "text": found.text,
                "replay": found.replay.clone().unwrap_or_else(|| item.replay()),
            })
        };
        json!({
            "ok": sum.found.is_empty(),
            "scenarios": self.swept,
            "not_swept": self.unswept.iter().map(unswept).collect::<Vec<_>>(),
            "points": self.points.values().sum::<u64>(),
            "points_by_sort": self.points,
            "points_in_all": self.all,
            "same_world": self.same + sum.same,
            "events": sum.events,
            "virtual_ms": u64::try_from(sum.virtual_ns / 1_000_000).unwrap_or(u64::MAX),
            "wall_ms": took.as_millis() as u64,
            "findings": sum.found.iter().map(found).collect::<Vec<_>>(),
        })
    }
}

impl Sample {
    /// Leaves only those that are chosen, in their order.
    fn choose(&self, all: &mut Vec<(Item, Point)>) {
        let lot = |(item, point): &(Item, Point)| {
            Sha256::digest(format!("{} {} {}", self.by, item.name(), point.text()).as_bytes())
        };
        let mut lots: Vec<_> = all.iter().map(lot).zip(0..).collect();
        lots.sort();
        let chosen: BTreeSet<usize> = lots.into_iter().take(self.count).map(|(_, index)| index).collect();
        let mut index = 0..;
        all.retain(|_| index.next().is_some_and(|index| chosen.contains(&index)));
    }
}

impl Sum {
    fn add(&mut self, outcome: Outcome, progress: &mut Progress) {
        self.events += outcome.events;
        self.virtual_ns += u128::from(outcome.virtual_ns);
        self.same += outcome.same;
        for found in outcome.found {
            // The same words about another point of the same file are said once.
            let words: String = found.text.chars().filter(|c| !c.is_ascii_digit()).collect();
            let words = words.split_once(": ").map_or("", |(_, words)| words).to_owned();
            let is_new = self.said.insert(format!("{} {} {words}", outcome.item.name(), found.by));
            if is_new && self.said.len() <= SHOWN {
                progress.say(&failure(&outcome.item, &found));
            } else if is_new && self.said.len() == SHOWN + 1 {
                progress.say("more failures are counted only; --json lists them all\n");
            }
            self.found.push((outcome.item.clone(), found));
        }
    }
}

fn failure(item: &Item, found: &Found) -> String {
    let rules = if found.rules.is_empty() { String::new() } else { format!(" {}", found.rules.join(", ")) };
    let replay = found.replay.as_ref().map_or_else(String::new, |replay| format!("  replay: {replay}\n"));
    format!("FAILED {} {}\n  [{}{rules}]\n{replay}", item.name(), found.text, found.by)
}

/// Plays the points of a scenario one after the other, in a worker.
pub(crate) fn play_points(item: &Item) -> Outcome {
    let Item::Points { path, shown, points, into } = item else {
        unreachable!("only points are played here")
    };
    let scenario = match files::read(path, shown) {
        Ok(scenario) => scenario,
        Err(reason) => return Outcome::crash(item.clone(), reason),
    };
    let mut sum = Outcome {
        item: item.clone(),
        found: Vec::new(),
        chain: None,
        events: 0,
        virtual_ns: 0,
        fired: BTreeMap::new(),
        reached: Vec::new(),
        kept: Vec::new(),
        same: 0,
    };
    let mut alone: Option<&Point> = None;
    let mut written = 0;
    for point in points {
        // An error that stays, where nothing behind the first one could fail, is one that came once.
        if alone.is_some_and(|before| before.stays_as(point)) {
            sum.same += 1;
            continue;
        }
        let mut failed_alone = false;
        let ended = sweep::ended_at(&scenario, point);
        let mut inert = Vec::new();
        let outcome = item.play_with(&ended, || {
            let mut played = play::simulated(&ended, Setting::default())?;
            failed_alone = played.failed_alone;
            played.findings.retain(|finding| match finding {
                Finding::Inert { .. } => {
                    inert.push(finding.clone());
                    false
                }
                Finding::Missed { .. } => false,
                _ => true,
            });
            Ok(played)
        });
        let outcome = outcome.unwrap_or_else(|Cannot(reason)| {
            Outcome::crash(item.clone(), format!("it cannot be played: {reason}"))
        });
        alone = failed_alone.then_some(point);
        sum.events += outcome.events;
        sum.virtual_ns += outcome.virtual_ns;
        let mut replay = None;
        if !outcome.found.is_empty() && written < WRITTEN {
            written += 1;
            let stem = path.file_stem().unwrap_or_default().to_string_lossy();
            let path = into.join(format!("{stem}-{}.toml", point.slug()));
            let wrote = keep::write_scenario(&ended, &inert, &path);
            replay = wrote.ok().map(|()| format!("cargo sim replay {}", path.display()));
        }
        let found = outcome.found.into_iter();
        let named = |found: Found| Found {
            text: format!("{}: {}", point.text(), found.text),
            replay: replay.clone(),
            ..found
        };
        sum.found.extend(found.map(named));
    }
    sum
}
