//! What a well-formed scenario may still not say. Each refusal knows the place in the file that it is about.

use std::collections::BTreeSet;

use crate::backend::{BackendAt, BackendDeed, BackendTable, NetAt, NetDeed};
use crate::fake::{PluginTable, json_of};

use super::expect::check_path;
use super::format::{Db, Scenario, Step};
use super::words::{self, WordsError};

/// Names that a `run` line uses for something else than a plugin.
const PLACES: [&str; 4] = ["dir", "db", "repo", "key"];
/// On real processes time really passes.
const LONGEST_REAL_ADVANCE_MS: u64 = 60_000;
/// Thirty days: no run of the simulated machine lasts longer.
const LONGEST_MS: u64 = 30 * 86_400_000;

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
    if let Some(table) = &scenario.backend {
        check_backend(table, &root.key("backend"))?;
    }
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
        check_beyond(step, &place)?;
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
            ("reboot", step.reboot),
            ("recycle", step.recycle),
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
        let what = [change.wall_step_ms.is_some(), change.suspend_ms.is_some(), change.lock_ms.is_some()];
        if what.into_iter().filter(|one| *one).count() != 1 {
            return place.key("world").index(index).refuse("one of `wall_step_ms`, `suspend_ms`, `lock_ms`");
        }
    }
    check_ends(scenario, step, place)
}

/// Where mu, its plugins or its disk come to an end.
fn check_ends(scenario: &Scenario, step: &Step, place: &Place) -> Checked {
    let mut ends = None;
    for (key, at) in ends_of(step) {
        match (at, ends) {
            (None, _) => {}
            (Some(0), _) => return place.key(key).refuse("counting begins at 1"),
            (Some(_), Some(other)) => {
                return place.key(key).refuse(format!("mu ends once: `{other}` or `{key}`"));
            }
            (Some(_), None) => ends = Some(key),
        }
    }
    if step.disk_error.is_some_and(|error| error.at == 0) {
        return place.key("disk_error").refuse("counting begins at 1");
    }
    for (name, at) in &step.kill_plugin_at {
        let here = place.key("kill_plugin_at");
        known_plugin(scenario, name, || here.name(name))?;
        if *at == 0 {
            return here.key(name).refuse("counting begins at 1");
        }
    }
    Ok(())
}

/// The keys by which mu is ended at something that it does.
fn ends_of(step: &Step) -> [(&'static str, Option<u64>); 5] {
    [
        ("kill_at_call", step.kill_at_call),
        ("panic_at_call", step.panic_at_call),
        ("kill_at_disk", step.kill_at_disk),
        ("power_at_call", step.power_at_call),
        ("power_at_disk", step.power_at_disk),
    ]
}

fn check_backend(table: &BackendTable, place: &Place) -> Checked {
    let spans = [
        ("acquire_ms", table.acquire_ms),
        ("release_ms", table.release_ms),
        ("land_ms", table.land_ms),
        ("lookup_lag_ms", table.lookup_lag_ms),
        ("net_ms", table.net_ms),
    ];
    for (key, span) in spans {
        if span.is_some_and(|ms| ms > LONGEST_MS) {
            return place.key(key).refuse(format!("at most {LONGEST_MS}, which is thirty days"));
        }
    }
    Ok(())
}

/// What happens at the backend and on the way to it.
fn check_beyond(step: &Step, place: &Place) -> Checked {
    if let Some(table) = &step.backend_set {
        let here = place.key("backend_set");
        if *table == BackendTable::default() {
            return here.refuse("it sets nothing: name at least one key of `[backend]`");
        }
        check_backend(table, &here)?;
    }
    for (index, one) in step.backend_do.iter().enumerate() {
        check_backend_do(one, &place.key("backend_do").index(index))?;
    }
    for (index, one) in step.net.iter().enumerate() {
        check_net(one, &place.key("net").index(index))?;
    }
    let later = step.backend_do.iter().map(|one| ("backend_do", one.at_ms));
    let later: Vec<_> = later.chain(step.net.iter().map(|one| ("net", one.at_ms))).collect();
    for key in ["backend_do", "net"] {
        let its = later.iter().filter(|(name, _)| *name == key);
        for (index, (_, at_ms)) in its.enumerate() {
            let here = place.key(key).index(index).key("at_ms");
            if *at_ms > 0 && step.run.is_none() {
                return here.refuse("nothing runs in this step: leave `at_ms` out, or give it a `run`");
            }
            if *at_ms > LONGEST_MS {
                return here.refuse(format!("at most {LONGEST_MS}, which is thirty days"));
            }
        }
    }
    Ok(())
}

fn check_backend_do(one: &BackendAt, place: &Place) -> Checked {
    if one.host.is_empty() {
        return place.key("host").refuse("mu's name of the host");
    }
    let facts = [
        ("deadline_ms", one.deadline_ms.is_some()),
        ("idle_reclaim_ms", one.idle_reclaim_ms.is_some()),
        ("max_jobs", one.max_jobs.is_some()),
    ];
    let given = facts.iter().find(|(_, given)| *given);
    match (one.deed, given, one.fact) {
        (BackendDeed::Facts, None, _) => {
            place.clone().refuse("`facts` needs one: `deadline_ms`, `idle_reclaim_ms` or `max_jobs`")
        }
        (BackendDeed::Clear, _, None) => {
            place.clone().refuse("`clear` needs its `fact`: `deadlineAt`, `idleReclaimMs` or `maxJobs`")
        }
        (BackendDeed::Facts, Some(_), None) | (_, None, None) => Ok(()),
        (BackendDeed::Clear, None, Some(_)) => Ok(()),
        (_, Some((key, _)), _) if one.deed != BackendDeed::Facts => {
            place.key(key).refuse(format!("`{key}` is for `do = \"facts\"`"))
        }
        _ => place.key("fact").refuse("`fact` is for `do = \"clear\"`"),
    }
}

fn check_net(one: &NetAt, place: &Place) -> Checked {
    match (one.deed, one.ms) {
        (NetDeed::Delay, None) => place.clone().refuse("`delay` needs its `ms`"),
        (NetDeed::Delay, Some(ms)) if ms > LONGEST_MS => {
            place.key("ms").refuse(format!("at most {LONGEST_MS}, which is thirty days"))
        }
        (NetDeed::Delay, Some(_)) | (_, None) => Ok(()),
        (_, Some(_)) => place.key("ms").refuse("`ms` is for `do = \"delay\"`"),
    }
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
    for (path, value) in &step.json {
        if let Err(reason) = check_path(path) {
            return place.key("json").name(path).refuse(reason);
        }
        if let Err(error) = json_of(value, &[]) {
            return place.key("json").key(path).refuse(error.reason);
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
    for (index, counts) in step.backend.iter().enumerate() {
        let asked = [counts.hosts, counts.ever, counts.keys, counts.fenced];
        if asked.iter().all(Option::is_none) {
            let reason = "it asks for nothing: `hosts`, `ever`, `keys` or `fenced`";
            return place.key("backend").index(index).refuse(reason);
        }
    }
    for name in step.starts.keys() {
        known_plugin(scenario, name, || place.key("starts").name(name))?;
    }
    Ok(())
}

impl Step {
    /// The arguments of `run`, `mu` the first of them. `place` gives the path for a placeholder: a plugin's name, `dir`,
    /// `db`, `repo` or `key`. `None` for a step that runs nothing.
    pub fn argv(&self, place: &dyn Fn(&str) -> String) -> Option<Result<Vec<String>, WordsError>> {
        let words = words::split(self.run.as_ref()?);
        Some(words.map(|words| words.iter().map(|word| words::expand(word, place)).collect()))
    }

    /// Whether it has to do with the backend, which must then be there.
    fn uses_backend(&self) -> bool {
        let run = self.run.as_deref().unwrap_or_default();
        self.backend_set.is_some()
            || !self.backend_do.is_empty()
            || !self.net.is_empty()
            || !self.backend.is_empty()
            || run.contains("host acquire")
    }

    /// Whether its command line names the key of the open effect.
    pub fn names_key(&self) -> bool {
        self.run.as_ref().is_some_and(|run| words::placeholders(run).contains(&"key"))
    }

    /// Whether it has to do with the repository, which must then be there.
    pub fn uses_repo(&self) -> bool {
        let named = |run: &String| words::placeholders(run).contains(&"repo");
        self.repo.is_some() || self.fetch_head.is_some() || self.run.as_ref().is_some_and(named)
    }
}

impl Scenario {
    /// Whether anything in it has to do with the backend.
    pub fn uses_backend(&self) -> bool {
        self.backend.is_some()
            || self.faults.iter().any(|fault| fault.method().starts_with("host."))
            || self.steps.iter().any(Step::uses_backend)
    }
}
