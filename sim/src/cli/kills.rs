//! Real runs of mu that are killed at random moments: `cargo sim kills`.
//!
//! In: how many kills, and the seed of what is drawn. The real mu acquires, asks about and releases hosts of the real fake
//! plugin, behind which a backend process keeps the ledger; SIGKILL comes at a random moment of each run. Then mu is run
//! again until nothing is open, and its rows are held against the ledger: no machine twice, none lost from sight, and no
//! process left behind. Real processes take real time, so the same seed draws the same moments and meets others.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use mu_core::os::Exit;
use serde_json::{Value, json};

use super::{FOUND, Failure, HELD, Place, real, say, tell};
use crate::backend::BackendTable;
use crate::fake::{Plan, PluginTable, schema_digest};
use crate::oracle::Leak;
use crate::streams::Stream;
use crate::world::{Cannot, Executables, Real, Run, World};

/// So many kills happen in one world, with one database.
const KILLS_IN_A_WORLD: u64 = 25;
/// The hosts of a world.
const NAMES: [&str; 3] = ["a", "b", "c"];
/// How often mu is run at most to bring one host to an end.
const PATIENCE: usize = 8;
/// How often a moment is drawn at which mu has ended already before that is taken for a defect.
const MISSES: u64 = 50;
/// So many of the latest runs are told with a finding.
const REMEMBERED: usize = 16;
/// What a provider of hosts can say of its keys; each world has one of these.
const PROVIDERS: [(&str, &str); 3] = [
    ("lookup and fence", "acquire = { lookup = true, fenceKey = true }"),
    ("lookup, nothing fenced", "acquire = { lookup = true, fenceKey = false, inFlightMs = 400 }"),
    (
        "repeats are recognised",
        "acquire = { lookup = false, fenceKey = false, dedupe = { exact = true, windowMs = 3600000 } }",
    ),
];

/// What was asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    /// How many runs of mu are killed.
    pub(crate) count: u64,
    /// The seed of what is drawn.
    pub(crate) seed: u64,
}

/// What happened.
#[derive(Clone, Debug, Default)]
struct Tally {
    /// Kills by verb.
    kills: BTreeMap<&'static str, u64>,
    /// Moments at which mu had ended already.
    missed: u64,
    /// Runs of mu that were left alone.
    runs: u64,
    /// Runs that began while another one was being killed.
    beside: u64,
    /// Machines that were made, that were released, and keys that were barred.
    machines: u64,
    released: u64,
    barred: u64,
    /// Effects that a kill left open.
    left_open: u64,
    /// What did not hold.
    findings: Vec<String>,
}

impl Tally {
    fn add(&mut self, other: Tally) {
        for (verb, count) in other.kills {
            *self.kills.entry(verb).or_default() += count;
        }
        self.missed += other.missed;
        self.runs += other.runs;
        self.beside += other.beside;
        self.machines += other.machines;
        self.released += other.released;
        self.barred += other.barred;
        self.left_open += other.left_open;
        self.findings.extend(other.findings);
    }

    fn killed(&self) -> u64 {
        self.kills.values().sum()
    }
}

/// Kills, so many worlds at once; answers with the exit code.
pub(crate) fn run(place: &Place, asked: Asked, jobs: usize, json: bool) -> Result<u8, Failure> {
    let executables = real::build(&place.root)?;
    let begun = Instant::now();
    let worlds = asked.count.div_ceil(KILLS_IN_A_WORLD);
    let next = AtomicU64::new(0);
    let total = Mutex::new(Tally::default());
    let broken = Mutex::new(None);
    std::thread::scope(|scope| {
        for _ in 0..jobs.min(usize::try_from(worlds).unwrap_or(usize::MAX)) {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Relaxed);
                    if number >= worlds {
                        return;
                    }
                    let kills = KILLS_IN_A_WORLD.min(asked.count - number * KILLS_IN_A_WORLD);
                    let mut stage = match Stage::new(&executables, asked.seed, number) {
                        Ok(stage) => stage,
                        Err(Cannot(reason)) => {
                            *broken.lock().expect("nobody panics with it") = Some(reason);
                            return;
                        }
                    };
                    let tally = stage.play(kills);
                    let mut total = total.lock().expect("nobody panics with it");
                    total.add(tally);
                    tell(&format!("{} of {} kills\n", total.killed(), asked.count));
                }
            });
        }
    });
    if let Some(reason) = broken.into_inner().expect("nobody panicked with it") {
        return Err(Failure::Broken(reason));
    }
    let mut total = total.into_inner().expect("nobody panicked with it");
    let left = Real::left_behind();
    if !left.is_empty() {
        total.findings.push(format!("processes {left:?} are left behind"));
    }
    report(&total, asked, begun.elapsed(), json);
    Ok(if total.findings.is_empty() { HELD } else { FOUND })
}

fn report(total: &Tally, asked: Asked, took: Duration, json: bool) {
    if json {
        let document = json!({ "ok": total.findings.is_empty(), "kills": total.kills, "missed": total.missed,
            "runs": total.runs, "beside": total.beside, "left_open": total.left_open, "machines": total.machines,
            "released": total.released, "barred": total.barred, "findings": total.findings, "seed": asked.seed,
            "seconds": took.as_secs() });
        return say(&format!("{document}\n"));
    }
    let by_verb: Vec<String> = total.kills.iter().map(|(verb, count)| format!("{verb} {count}")).collect();
    say(&format!(
        "\nkills              {} ({})\nended before       {}\nruns left alone    {}\nruns beside        {}\n\
         effects left open  {}\nmachines made      {}\nmachines released  {}\nkeys barred        {}\n\
         wall time          {} s, seed {}\nfindings           {}\n",
        total.killed(),
        by_verb.join(", "),
        total.missed,
        total.runs,
        total.beside,
        total.left_open,
        total.machines,
        total.released,
        total.barred,
        took.as_secs(),
        asked.seed,
        total.findings.len(),
    ));
    for finding in &total.findings {
        say(&format!("  {finding}\n"));
    }
}

/// One world: its processes, and what is drawn.
struct Stage {
    world: Real,
    name: String,
    draw: Stream,
    tally: Tally,
    /// The latest runs, for a finding.
    latest: VecDeque<String>,
    /// How long each verb takes when it is left alone, by what was seen last.
    usual: BTreeMap<&'static str, Duration>,
}

impl Stage {
    fn new(executables: &Executables, seed: u64, number: u64) -> Result<Stage, Cannot> {
        let mut draw = Stream::new(seed, &format!("kills/{number}"));
        let (provider, host) = PROVIDERS[draw.below(PROVIDERS.len() as u64) as usize];
        let text = format!("seams = [\"link\", \"host\", \"job\"]\n[host]\n{host}\n");
        let table: PluginTable = toml::from_str(&text).expect("the tables above are plugins");
        let schema = schema_digest(mu_protocol::schema::SCHEMA.as_bytes());
        let plan = Plan::new("cloud", &table, &[], &schema).map_err(|error| Cannot(error.to_string()))?;
        let mut world = Real::new(executables.clone()).map_err(|error| Cannot(error.to_string()))?;
        world.install("cloud", &table.file)?;
        world.set_plan("cloud", plan)?;
        let late = draw.chance(1, 2);
        world.set_backend(&BackendTable {
            acquire_ms: Some(draw.between(0, 15)),
            release_ms: Some(draw.between(0, 10)),
            land_ms: Some(if late { draw.between(1, 200) } else { 0 }),
            ..BackendTable::default()
        })?;
        let name = format!("world {number} ({provider})");
        let (latest, usual) = (VecDeque::new(), BTreeMap::new());
        let mut stage = Stage { world, name, draw, tally: Tally::default(), latest, usual };
        let path = stage.world.place("cloud");
        match stage.mu(&["plugin", "add", "cloud", "--", &path]) {
            (0, _) => Ok(stage),
            (exit, _) => Err(Cannot(format!("the plugin cannot be added: exit {exit}"))),
        }
    }

    fn play(&mut self, kills: u64) -> Tally {
        let mut misses = 0;
        while self.tally.killed() < kills && self.tally.findings.is_empty() {
            if self.kill_one() {
                misses = 0;
            } else {
                misses += 1;
                if misses == MISSES {
                    self.found("mu ends before it can be killed, again and again");
                }
            }
            // Some kills follow each other; the others are recovered from at once.
            if self.draw.chance(2, 3) {
                self.recover();
                self.compare();
            }
        }
        self.recover();
        self.compare();
        for name in NAMES {
            self.mu(&["host", "release", name]);
        }
        self.recover();
        self.compare();
        let violations = self.world.judge(&BTreeSet::new(), Leak::Nothing, false);
        let violations: Vec<String> =
            violations.iter().map(|one| format!("oracle {}: {}", one.oracle, one.text)).collect();
        violations.iter().for_each(|text| self.found(text));
        if let Ok(books) = self.world.books() {
            for ledger in books.ledgers.values() {
                self.tally.machines += ledger.machines.len() as u64;
                self.tally.released +=
                    ledger.machines.iter().filter(|machine| !machine.lives()).count() as u64;
                self.tally.barred += ledger.fenced.len() as u64;
            }
        }
        std::mem::take(&mut self.tally)
    }

    fn found(&mut self, text: &str) {
        let latest: Vec<&str> = self.latest.iter().map(String::as_str).collect();
        let text = format!("{}: {text}; before that: {}", self.name, latest.join(", "));
        self.tally.findings.push(text);
    }

    /// Remembers how a run ended.
    fn remember(&mut self, words: &[&str], how: &str) {
        if self.latest.len() == REMEMBERED {
            self.latest.pop_front();
        }
        self.latest.push_back(format!("`mu {}` {how}", words.join(" ")));
    }

    /// Runs mu and waits for it: its exit code, and what it printed.
    fn mu(&mut self, words: &[&str]) -> (i32, Vec<u8>) {
        self.tally.runs += 1;
        let started = self.world.start(&run_of(words, None));
        match started.map_err(|Cannot(reason)| reason).and_then(|started| self.world.finish(started)) {
            Ok(outcome) => {
                if let Some(verb) = verb_of(words) {
                    self.usual.insert(verb, outcome.took);
                }
                let said = String::from_utf8_lossy(&outcome.stderr).trim_end().to_owned();
                self.remember(words, &format!("{} {said}", outcome.exit));
                match outcome.exit {
                    Exit::Status(status) => (status, outcome.stdout),
                    Exit::Signal(number) => {
                        self.found(&format!("`mu {}` ended by signal {number}", words.join(" ")));
                        (128 + number, outcome.stdout)
                    }
                }
            }
            Err(reason) => {
                self.found(&format!("`mu {}`: {reason}", words.join(" ")));
                (-1, Vec::new())
            }
        }
    }

    fn states(&mut self) -> BTreeMap<String, String> {
        match self.world.rows() {
            Ok(rows) => rows.records,
            Err(reason) => {
                self.found(&reason);
                BTreeMap::new()
            }
        }
    }

    /// One run of mu that is killed; whether it still ran when the signal came. Sometimes another run begins beside it.
    fn kill_one(&mut self) -> bool {
        let name = NAMES[self.draw.below(3) as usize];
        let states = self.states();
        let verb = match states.get(name).map(String::as_str) {
            None => "acquire",
            Some("acquiring") => ["acquire", "acquire", "status"][self.draw.below(3) as usize],
            Some("releasing") => ["release", "release", "status"][self.draw.below(3) as usize],
            Some(_) => ["status", "release", "release"][self.draw.below(3) as usize],
        };
        let usual = self.usual.get(verb).copied().unwrap_or(Duration::from_millis(60));
        let most = usual.as_micros() as u64 * 5 / 4;
        let after = Duration::from_micros(self.draw.below(most.max(1)));
        let words = words_of(verb, name);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let started = self.world.start(&run_of(&words, Some(after)));
        let beside = self.draw.chance(1, 6).then(|| {
            let words = words_of(["acquire", "status", "release"][self.draw.below(3) as usize], name);
            let started = {
                let words: Vec<&str> = words.iter().map(String::as_str).collect();
                self.world.start(&run_of(&words, None))
            };
            self.tally.beside += 1;
            (started, words)
        });
        let ended = started.map_err(|Cannot(reason)| reason).and_then(|started| self.world.finish(started));
        if let Ok(outcome) = &ended {
            self.remember(&words, &format!("meant to be killed after {after:?}: {}", outcome.exit));
        }
        if let Some((beside, words)) = beside {
            match beside.map_err(|Cannot(reason)| reason).and_then(|beside| self.world.finish(beside)) {
                Err(reason) => self.found(&format!("a run beside a killed one: {reason}")),
                Ok(outcome) => {
                    let words: Vec<&str> = words.iter().map(String::as_str).collect();
                    let said = String::from_utf8_lossy(&outcome.stderr).trim_end().to_owned();
                    self.remember(&words, &format!("beside that: {} {said}", outcome.exit));
                }
            }
        }
        match ended {
            Ok(outcome) if outcome.exit == Exit::Signal(9) => {
                *self.tally.kills.entry(verb).or_default() += 1;
                if let Ok(rows) = self.world.rows() {
                    self.tally.left_open += rows.effects.len() as u64;
                }
                true
            }
            Ok(_) => {
                self.tally.missed += 1;
                false
            }
            Err(reason) => {
                self.found(&reason);
                false
            }
        }
    }

    /// Runs mu until no host has an open effect.
    fn recover(&mut self) {
        for name in NAMES {
            let mut exits = Vec::new();
            for _ in 0..PATIENCE {
                let verb = match self.states().get(name).map(String::as_str) {
                    Some("acquiring") => "acquire",
                    Some("releasing") => "release",
                    _ => break,
                };
                let words = words_of(verb, name);
                let words: Vec<&str> = words.iter().map(String::as_str).collect();
                exits.push(self.mu(&words).0);
            }
            if exits.len() == PATIENCE {
                self.found(&format!("host {name} comes to no end: mu exited with {exits:?}"));
            }
        }
    }

    /// Holds mu's rows against the ledger, once nothing is open.
    fn compare(&mut self) {
        let (exit, listed) = self.mu(&["host", "list", "--full", "--json"]);
        let listed: Value = serde_json::from_slice(&listed).unwrap_or(Value::Null);
        let rows = listed["data"]["hosts"].as_array().cloned().unwrap_or_default();
        if exit != 0 {
            self.found(&format!("`mu host list` exited with {exit}"));
        }
        let open = self.world.rows().map(|rows| rows.effects).unwrap_or_default();
        if !open.is_empty() {
            self.found(&format!("effects {open:?} are open, and no host is"));
        }
        let books = match self.world.books() {
            Ok(books) => books,
            Err(Cannot(reason)) => return self.found(&format!("the backend does not answer: {reason}")),
        };
        let mut known = there(&rows);
        let mut wrong = Vec::new();
        for ledger in books.ledgers.values() {
            let mut keys = BTreeSet::new();
            for machine in &ledger.machines {
                if !keys.insert(&machine.key) {
                    wrong.push(format!(
                        "key {} made two machines, {} the second",
                        machine.key,
                        machine.handle()
                    ));
                }
                let one = (machine.host.clone(), machine.handle().to_owned());
                if machine.lives() && !known.remove(&one) {
                    wrong.push(format!(
                        "machine {} of host {} lives, and mu knows nothing of it",
                        one.1, one.0
                    ));
                }
            }
        }
        wrong.extend(
            known.iter().map(|(name, handle)| format!("host {name} is {handle}, and no such machine lives")),
        );
        wrong.iter().for_each(|text| self.found(text));
    }
}

fn words_of(verb: &str, name: &str) -> Vec<String> {
    let mut words = vec!["host".to_owned(), verb.to_owned(), name.to_owned()];
    if verb == "acquire" {
        words.extend(["--provider".to_owned(), "cloud".to_owned()]);
    }
    words
}

fn verb_of(words: &[&str]) -> Option<&'static str> {
    ["acquire", "status", "release"].into_iter().find(|verb| words.get(1) == Some(verb))
}

fn run_of(words: &[&str], killed_after: Option<Duration>) -> Run {
    Run {
        argv: std::iter::once("mu").chain(words.iter().copied()).map(str::to_owned).collect(),
        signals: killed_after.map(|after| (after, "mu".to_owned(), 9)).into_iter().collect(),
        ..Run::default()
    }
}

/// Names and handles of the hosts that are there by what mu knows: one that is recorded lost is not (HOST-12).
fn there(rows: &[Value]) -> BTreeSet<(String, String)> {
    let text = |row: &Value, column: &str| row[column].as_str().unwrap_or_default().to_owned();
    let there = rows.iter().filter(|row| row["state"] != "lost");
    there.map(|row| (text(row, "name"), text(row, "handle"))).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// HOST-12, A-80: a status beside a release that was killed finds the machine gone.
    #[test]
    fn a_host_that_is_recorded_lost_has_no_machine() {
        let rows = [
            json!({ "name": "a", "state": "lost", "handle": "vm-1" }),
            json!({ "name": "b", "state": "ready", "handle": "vm-2" }),
        ];
        assert_eq!(there(&rows), BTreeSet::from([("b".to_owned(), "vm-2".to_owned())]));
    }
}
