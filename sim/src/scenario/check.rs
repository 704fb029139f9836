//! What a well-formed scenario may still not say. Each refusal knows the place in the file that it is about.

use std::collections::BTreeSet;

use crate::fake::PluginTable;

use super::expect::check_path;
use super::format::{Db, Scenario, Step};
use super::words::{self, WordsError};

/// Names that a `run` line uses for something else than a plugin.
const PLACES: [&str; 3] = ["dir", "db", "repo"];
/// On real processes time really passes.
const LONGEST_REAL_ADVANCE_MS: u64 = 60_000;

/// One step of the way from the root of the file to a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum At {
    /// The value of this key.
    Key(String),
    /// The element of this number.
    Index(usize),
    /// This key itself, as the last step.
    Name(String),
}

/// What is wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) at: Vec<At>,
    pub(crate) reason: String,
}

type Checked = Result<(), Refusal>;

/// Collects the way to a place.
#[derive(Clone, Default)]
struct Place(Vec<At>);

impl Place {
    fn key(&self, key: &str) -> Place {
        Place([&self.0[..], &[At::Key(key.to_owned())]].concat())
    }

    fn index(&self, index: usize) -> Place {
        Place([&self.0[..], &[At::Index(index)]].concat())
    }

    fn name(&self, name: &str) -> Place {
        Place([&self.0[..], &[At::Name(name.to_owned())]].concat())
    }

    fn refuse(self, reason: impl Into<String>) -> Checked {
        Err(Refusal { at: self.0, reason: reason.into() })
    }
}

/// Checks all of it. `is_rule` knows the ids of the rules.
pub(crate) fn check(scenario: &Scenario, is_rule: &dyn Fn(&str) -> bool) -> Checked {
    let root = Place::default();
    if scenario.title.trim().is_empty() || scenario.title.contains('\n') {
        return root.key("title").refuse("the title is one line that says what happens");
    }
    if scenario.rules.is_empty() {
        return root
            .key("rules")
            .refuse("a scenario shows at least one rule; their ids are in docs/protocol.md");
    }
    let mut seen = BTreeSet::new();
    for (index, rule) in scenario.rules.iter().enumerate() {
        let place = root.key("rules").index(index);
        if !is_rule(rule) {
            return place.refuse(format!("unknown rule `{rule}`; a rule looks like `TRN-04` or `A-10`"));
        }
        if !seen.insert(rule) {
            return place.refuse(format!("rule `{rule}` stands here twice"));
        }
    }
    if i64::try_from(scenario.seed).is_err() {
        return root.key("seed").refuse("a seed is at most 9223372036854775807");
    }
    if scenario.short_io == Some(0) {
        return root.key("short_io").refuse("one in so many: at least 1");
    }
    match (scenario.real, &scenario.why_not_real) {
        (false, None) => return root.key("real").refuse("`real = false` needs its reason in `why_not_real`"),
        (true, Some(_)) => {
            return root.key("why_not_real").refuse("without `real = false` it does run on real processes");
        }
        _ => {}
    }
    check_plugins(scenario, &root.key("plugins"))?;
    for (index, fault) in scenario.faults.iter().enumerate() {
        let place = root.key("faults").index(index);
        known_plugin(scenario, &fault.plugin, || place.key("plugin"))?;
        if let Err(impossible) = fault.check() {
            return place.key(impossible.key).refuse(impossible.reason);
        }
    }
    if scenario.steps.is_empty() {
        return root.key("steps").refuse("a scenario has at least one step");
    }
    for (index, step) in scenario.steps.iter().enumerate() {
        let place = root.key("steps").index(index);
        check_world(scenario, step, &place)?;
        check_run(scenario, step, &place)?;
        check_expectations(scenario, step, &place)?;
        if step.overlap && index + 1 == scenario.steps.len() {
            return place.key("overlap").refuse("no step follows that could overlap this one");
        }
    }
    Ok(())
}

fn check_plugins(scenario: &Scenario, plugins: &Place) -> Checked {
    let mut files = BTreeSet::new();
    for (name, table) in &scenario.plugins {
        let grammar = name.len() <= 32
            && name.starts_with(|c: char| c.is_ascii_lowercase())
            && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '-');
        if !grammar {
            let reason =
                "a plugin's name is a small letter and up to 31 of small letters, digits, `_` and `-`";
            return plugins.name(name).refuse(format!("`{name}`: {reason}"));
        }
        let is_taken = name == "mu" || PLACES.iter().chain(&words::OF_A_TEMPLATE).any(|place| place == name);
        if is_taken {
            return plugins
                .name(name)
                .refuse(format!("`{name}` means something else here; take another name"));
        }
        let place = plugins.key(name);
        check_table(name, table, &place)?;
        if let Err((key, reason)) = table.file.check() {
            return place.key("file").key(key).refuse(reason);
        }
        if !files.insert(table.file.basename(name)) {
            return place.key("file").refuse("another plugin's file has the same name");
        }
    }
    Ok(())
}

fn check_table(name: &str, table: &PluginTable, place: &Place) -> Checked {
    match table.declaration(name, "sha256:") {
        Ok(_) => Ok(()),
        Err(error) => {
            let step = |step: &String| match step.parse() {
                Ok(index) => At::Index(index),
                Err(_) => At::Key(step.clone()),
            };
            Place(place.0.iter().cloned().chain(error.at.iter().map(step)).collect()).refuse(error.reason)
        }
    }
}

fn known_plugin(scenario: &Scenario, name: &str, place: impl Fn() -> Place) -> Checked {
    if scenario.plugins.contains_key(name) {
        return Ok(());
    }
    let known: Vec<&str> = scenario.plugins.keys().map(String::as_str).collect();
    let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
    place().refuse(format!("no plugin `{name}` here; there are: {known}"))
}

fn check_world(scenario: &Scenario, step: &Step, place: &Place) -> Checked {
    for name in step.chmod.keys() {
        known_plugin(scenario, name, || place.key("chmod").name(name))?;
    }
    for (name, file) in &step.file {
        let here = place.key("file");
        known_plugin(scenario, name, || here.name(name))?;
        if let Err((key, reason)) = file.check() {
            return here.key(name).key(key).refuse(reason);
        }
    }
    for (name, table) in &step.plan {
        let here = place.key("plan");
        known_plugin(scenario, name, || here.name(name))?;
        if !table.file.is_ordinary() {
            return here
                .key(name)
                .key("file")
                .refuse("a plan changes what the plugin says; use the step's `file`");
        }
        check_table(name, table, &here.key(name))?;
    }
    if scenario.real {
        let only_simulated = [
            ("wall_step_ms", step.wall_step_ms.is_some()),
            ("world", !step.world.is_empty()),
            ("kill_at_call", step.kill_at_call.is_some()),
            ("panic_at_call", step.panic_at_call.is_some()),
            ("kill_at_disk", step.kill_at_disk.is_some()),
            ("power_at_call", step.power_at_call.is_some()),
            ("power_at_disk", step.power_at_disk.is_some()),
            ("disk_error", step.disk_error.is_some()),
            ("kill_plugin_at", !step.kill_plugin_at.is_empty()),
            ("end_all", step.end_all),
            ("converged", step.converged),
            ("db", step.db == Some(Db::Full)),
        ];
        for (key, used) in only_simulated {
            if used {
                let what = if key == "db" { "db = \"full\"" } else { key };
                let reason =
                    format!("`{what}` is for the simulated machine alone: say `real = false` and why");
                return place.key(key).refuse(reason);
            }
        }
        if step.advance_ms.is_some_and(|ms| ms > LONGEST_REAL_ADVANCE_MS) {
            let reason =
                format!("real time does not jump: at most {LONGEST_REAL_ADVANCE_MS}, or `real = false`");
            return place.key("advance_ms").refuse(reason);
        }
    }
    Ok(())
}

fn check_run(scenario: &Scenario, step: &Step, place: &Place) -> Checked {
    let Some(run) = &step.run else {
        return check_without_run(step, place);
    };
    let words = match words::split(run) {
        Ok(words) => words,
        Err(error) => return place.key("run").refuse(error.to_string()),
    };
    if words.first().map(String::as_str) != Some("mu") {
        return place.key("run").refuse("a run begins with `mu`");
    }
    for name in words.iter().flat_map(|word| words::placeholders(word)) {
        if !PLACES.contains(&name) {
            known_plugin(scenario, name, || place.key("run"))?;
        }
    }
    for name in step.env.keys() {
        if name.is_empty() || name.contains(['=', '\0']) {
            return place.key("env").name(name).refuse(format!("`{name}` cannot name a variable"));
        }
    }
    for (index, signal) in step.signal.iter().enumerate() {
        if signal.to != "mu" {
            let here = place.key("signal");
            known_plugin(scenario, &signal.to, || here.index(index).key("to"))?;
        }
    }
    for (index, change) in step.world.iter().enumerate() {
        if change.wall_step_ms.is_some() == change.suspend_ms.is_some() {
            return place.key("world").index(index).refuse("either `wall_step_ms` or `suspend_ms`");
        }
    }
    check_ends(scenario, step, place)
}

/// Where mu, its plugins, its machine or its disk come to an end.
fn check_ends(scenario: &Scenario, step: &Step, place: &Place) -> Checked {
    let ends = [
        ("kill_at_call", step.kill_at_call),
        ("panic_at_call", step.panic_at_call),
        ("kill_at_disk", step.kill_at_disk),
        ("power_at_call", step.power_at_call),
        ("power_at_disk", step.power_at_disk),
    ];
    let error = step.disk_error.map(|error| error.at);
    for (key, at) in ends.into_iter().chain([("disk_error", error)]) {
        if at == Some(0) {
            return place.key(key).refuse("counting begins at 1");
        }
    }
    for (name, at) in &step.kill_plugin_at {
        let here = place.key("kill_plugin_at");
        known_plugin(scenario, name, || here.name(name))?;
        if *at == 0 {
            return here.key(name).refuse("counting begins at 1");
        }
    }
    let mut given = ends.into_iter().filter(|(_, at)| at.is_some());
    if let (Some((one, _)), Some((other, _))) = (given.next(), given.next()) {
        return place.key(other).refuse(format!("mu ends once: `{one}` or `{other}`"));
    }
    Ok(())
}

/// A step that runs nothing changes the world, and expects nothing.
fn check_without_run(step: &Step, place: &Place) -> Checked {
    let of_a_run = [
        ("env", !step.env.is_empty()),
        ("overlap", step.overlap),
        ("signal", !step.signal.is_empty()),
        ("world", !step.world.is_empty()),
        ("kill_at_call", step.kill_at_call.is_some()),
        ("panic_at_call", step.panic_at_call.is_some()),
        ("kill_at_disk", step.kill_at_disk.is_some()),
        ("power_at_call", step.power_at_call.is_some()),
        ("power_at_disk", step.power_at_disk.is_some()),
        ("disk_error", step.disk_error.is_some()),
        ("kill_plugin_at", !step.kill_plugin_at.is_empty()),
        ("stdout_closed", step.stdout_closed),
        ("exit", step.exit.is_some()),
        ("died_of", step.died_of.is_some()),
        ("error", step.error.is_some()),
        ("json", !step.json.is_empty()),
        ("json_absent", !step.json_absent.is_empty()),
        ("stdout", step.stdout.is_some()),
        ("stderr", step.stderr.is_some()),
        ("within_ms", step.within_ms.is_some()),
        ("took_ms", step.took_ms.is_some()),
        ("wire", !step.wire.is_empty()),
        ("starts", !step.starts.is_empty()),
        ("fetch_head", step.fetch_head.is_some()),
    ];
    if let Some((key, _)) = of_a_run.into_iter().find(|(_, used)| *used) {
        return place.key(key).refuse(format!("`{key}` needs a `run` in the same step"));
    }
    if *step == Step::default() {
        return place.clone().refuse("the step does nothing: give it a `run` or a change to the world");
    }
    Ok(())
}

fn check_expectations(scenario: &Scenario, step: &Step, place: &Place) -> Checked {
    if step.exit.is_some() && step.died_of.is_some() {
        return place.key("died_of").refuse("mu exits or dies: `exit` or `died_of`");
    }
    if step.error.is_some() && step.exit == Some(0) {
        return place.key("error").refuse("with `exit = 0` there is no error");
    }
    for path in step.json.keys() {
        if let Err(reason) = check_path(path) {
            return place.key("json").name(path).refuse(reason);
        }
    }
    for (index, path) in step.json_absent.iter().enumerate() {
        if let Err(reason) = check_path(path) {
            return place.key("json_absent").index(index).refuse(reason);
        }
    }
    if let Some((least, most)) = step.took_ms
        && least > most
    {
        return place.key("took_ms").refuse("the first number is the smaller one");
    }
    for (index, wire) in step.wire.iter().enumerate() {
        let here = place.key("wire").index(index);
        known_plugin(scenario, &wire.plugin, || here.key("plugin"))?;
        if wire.start == Some(0) {
            return here.key("start").refuse("counting begins at 1");
        }
    }
    for name in step.starts.keys() {
        known_plugin(scenario, name, || place.key("starts").name(name))?;
    }
    Ok(())
}

impl Step {
    /// The arguments of `run`, `mu` the first of them. `place` gives the path for a placeholder: a plugin's name, `dir`,
    /// `db` or `repo`. `None` for a step that runs nothing.
    pub fn argv(&self, place: &dyn Fn(&str) -> String) -> Option<Result<Vec<String>, WordsError>> {
        let words = words::split(self.run.as_ref()?);
        Some(words.map(|words| words.iter().map(|word| words::expand(word, place)).collect()))
    }

    /// Whether it has to do with the repository, which must then be there.
    pub fn uses_repo(&self) -> bool {
        let named = |run: &String| words::placeholders(run).contains(&"repo");
        self.repo.is_some() || self.fetch_head.is_some() || self.run.as_ref().is_some_and(named)
    }
}
