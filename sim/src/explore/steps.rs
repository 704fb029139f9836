//! Steps: what is run, and what happens before and meanwhile. They expect nothing; the oracles and the ending do.

use std::collections::BTreeMap;

use super::faults::span;
use super::swarm::Swarm;
use super::{magnitude, one_of, plugins, weighted};
use crate::fake::{Kind, PluginFile, PluginTable, Seam, Sig};
use crate::scenario::{Db, SignalAt, Step, WorldAt};
use crate::streams::Stream;

/// The last of mu's calls at which it is killed; most runs have fewer.
const LAST_CALL: u64 = 400;
/// mu that run at once, at most.
const AT_ONCE: usize = 3;
/// What is run on hosts: ends at once, late, never in time, with a status, with output, not at all.
const SCRIPTS: [&str; 9] = [
    "true",
    "echo hello",
    "echo out; echo err >&2; exit 7",
    "sleep 1",
    "sleep 4.9; echo late",
    "sleep 60",
    "printf 'a\\nb\\n'; sleep 2; exit 255",
    "echo ü 東京",
    "no-such-command",
];
const TIMEOUTS: [&str; 5] = ["", "", " --timeout 500ms", " --timeout 2s", " --timeout 5s"];

/// What the steps so far have made of the world.
struct World<'a> {
    plugins: &'a BTreeMap<String, PluginTable>,
    names: Vec<&'a str>,
    /// What stands at each plugin's path.
    files: BTreeMap<&'a str, PluginFile>,
    /// What was done to the database and not undone.
    db: Option<Db>,
    /// So many mu run already when the next step begins.
    running: usize,
}

/// The host that a plugin is the link of.
pub(super) fn host(plugin: &str) -> String {
    format!("far-{plugin}")
}

/// The plugins that declare a link, as far as the tables tell.
pub(super) fn linked(plugins: &BTreeMap<String, PluginTable>) -> impl Iterator<Item = &str> {
    let linked = plugins.iter().filter(|(_, table)| table.seams.contains(&Seam::Link));
    linked.map(|(name, _)| name.as_str())
}

/// One to eight steps, mostly few, and not more than `most`; those that make the hosts, where there are any, come before.
pub(super) fn draw(
    stream: &mut Stream,
    swarm: &Swarm,
    plugins: &BTreeMap<String, PluginTable>,
    most: usize,
) -> Vec<Step> {
    let mut world = World {
        plugins,
        names: plugins.keys().map(String::as_str).collect(),
        files: plugins.iter().map(|(name, table)| (name.as_str(), table.file.clone())).collect(),
        db: None,
        running: 0,
    };
    let count = weighted(stream, &[(3, 1), (4, 2), (3, 3), (2, 4), (1, 5), (1, 8)]).min(most);
    let mut steps = Vec::new();
    if swarm.calls {
        for name in linked(plugins) {
            let run = |run: String| Step { run: Some(run), ..Step::default() };
            let sessions = if stream.chance(1, 2) { 1 } else { stream.between(2, 3) };
            let host = host(name);
            steps.push(run(format!("mu plugin add {name} -- {{{name}}}")));
            let fetch = if stream.chance(1, 4) { "false" } else { "'echo {host} {remote}; exit 3'" };
            let add = format!("mu host add {host} --plugin {name} --fetch {fetch} --max-sessions {sessions}");
            steps.push(run(add));
            if stream.chance(1, 6) {
                steps.push(run(format!("mu host add near-{name} --plugin {name} --fetch false")));
            }
        }
    }
    steps.extend((0..count).map(|_| world.step(stream, swarm)));
    if let Some(last) = steps.last_mut() {
        last.overlap = false;
    }
    steps
}

impl World<'_> {
    fn step(&mut self, stream: &mut Stream, swarm: &Swarm) -> Step {
        let calls = swarm.calls && stream.chance(3, 4);
        let run = if calls { self.call(stream, swarm) } else { None };
        let run = run.unwrap_or_else(|| self.command(stream));
        let mut step = Step { run: Some(run), ..Step::default() };
        if swarm.changes && stream.chance(1, 3) {
            self.change(stream, &mut step);
        }
        if swarm.database && self.running == 0 {
            step.db = self.database(stream);
        }
        if swarm.time && stream.chance(1, 2) {
            if stream.chance(1, 3) {
                let ms = magnitude(stream, 10_000_000) as i64;
                step.wall_step_ms = Some(if stream.chance(1, 2) { -ms } else { ms });
            } else {
                step.advance_ms = Some(span(stream));
            }
        }
        if swarm.time && stream.chance(1, 6) {
            let ms = magnitude(stream, 10_000_000);
            let (wall_step_ms, suspend_ms) = match stream.below(4) {
                0 => (Some(-(ms as i64)), None),
                1 => (Some(ms as i64), None),
                _ => (None, Some(ms)),
            };
            step.world =
                vec![WorldAt { wall_step_ms, suspend_ms, at_ms: span(stream), ..WorldAt::default() }];
        }
        if swarm.signals && stream.chance(1, 3) {
            step.signal = (0..stream.between(1, 3)).map(|_| self.signal(stream)).collect();
        }
        if swarm.crashes && stream.chance(1, 3) {
            let call = Some(magnitude(stream, LAST_CALL));
            if stream.chance(1, 5) {
                step.panic_at_call = call;
            } else {
                step.kill_at_call = call;
            }
        }
        step.stdout_closed = stream.chance(1, 40);
        if stream.chance(1, 30) {
            step.env = environment(stream);
        }
        step.overlap = swarm.overlap && self.running + 1 < AT_ONCE && stream.chance(1, 2);
        self.running = if step.overlap { self.running + 1 } else { 0 };
        step
    }

    /// A verb that may call a link.
    fn call(&self, stream: &mut Stream, swarm: &Swarm) -> Option<String> {
        let linked: Vec<&str> = linked(self.plugins).collect();
        let (name, other) = match linked.as_slice() {
            [] => return None,
            names => (one_of(stream, names), one_of(stream, names)),
        };
        let (far, other) = (host(name), host(other));
        let json = if stream.chance(1, 2) { " --json" } else { "" };
        let verb = weighted(
            stream,
            &[
                (50, "exec"),
                (4, "long"),
                (20, "check"),
                (6, "agent"),
                (12, "fetch"),
                (4, "show"),
                (2, "rm"),
                (2, "add"),
            ],
        );
        Some(match verb {
            "exec" => {
                let (script, timeout) = (one_of(stream, &SCRIPTS), one_of(stream, &TIMEOUTS));
                format!("mu host exec {far}{json}{timeout} -- \"{script}\"")
            }
            "long" => {
                let bytes = if swarm.large { 1 << 20 } else { 100_000 };
                format!("mu host exec {far}{json} -- ': {{{}x}}'", magnitude(stream, bytes))
            }
            "check" if other != far => format!("mu host check {far} {other}{json}"),
            "check" if stream.chance(1, 4) => format!("mu host check {far} near-{name}{json}"),
            "check" => format!("mu host check {far}{json}"),
            "agent" => format!("mu host check {far} --agent claude{json}"),
            "fetch" => format!("mu host fetch {far} work --repo {{repo}}{json}{}", one_of(stream, &TIMEOUTS)),
            "show" => format!("mu host show {far}{json}"),
            "rm" => format!("mu host rm {far}{json}"),
            _ => format!("mu host add {far} --plugin {name}{json}"),
        })
    }

    fn command(&self, stream: &mut Stream) -> String {
        let name = one_of(stream, &self.names);
        let other = one_of(stream, &self.names);
        let command = match weighted(
            stream,
            &[
                (40, "add"),
                (4, "add other"),
                (2, "add under"),
                (22, "check"),
                (6, "check one"),
                (10, "list"),
                (8, "show"),
                (8, "rm"),
                (3, "query"),
                (1, "usage"),
            ],
        ) {
            "add" => format!("mu plugin add {name} -- {{{name}}}"),
            "add other" => format!("mu plugin add {name} -- {{{name}}} --region eu"),
            "add under" => format!("mu plugin add {name} -- {{{other}}}"),
            "check" => "mu plugin check".to_owned(),
            "check one" => format!("mu plugin check {name} {other}"),
            "list" => "mu plugin list".to_owned(),
            "show" => format!("mu plugin show {name} --full"),
            "rm" => format!("mu plugin rm {name}"),
            "query" => "mu db query 'SELECT name, instance FROM plugins'".to_owned(),
            _ => "mu plugin frobnicate".to_owned(),
        };
        let json = stream.chance(1, 2) && !command.contains(" -- ");
        if json { command + " --json" } else { command }
    }

    fn change(&mut self, stream: &mut Stream, step: &mut Step) {
        let index = stream.below(self.names.len() as u64) as usize;
        let (name, file) =
            (self.names[index], &mut *self.files.get_mut(self.names[index]).expect("it has one"));
        match stream.below(3) {
            0 if file.kind == Kind::Executable => {
                step.chmod.insert(name.to_owned(), plugins::mode(stream));
            }
            1 => {
                *file = plugins::file(stream, name);
                step.file.insert(name.to_owned(), file.clone());
            }
            _ => {
                let mut table = if stream.chance(1, 2) {
                    plugins::sound(stream, name)
                } else {
                    PluginTable { file: PluginFile::default(), ..self.plugins[name].clone() }
                };
                if stream.chance(1, 3) {
                    plugins::violate(stream, name, &mut table);
                }
                step.plan.insert(name.to_owned(), table);
            }
        }
    }

    /// Something that can be done to the database in its present state.
    fn database(&mut self, stream: &mut Stream) -> Option<Db> {
        let db = match self.db {
            None if stream.chance(1, 3) => one_of(stream, &Db::ALL),
            Some(Db::Garbage | Db::Newer | Db::Directory) if stream.chance(1, 2) => Db::Missing,
            Some(Db::ReadOnly | Db::ReadOnlyFile | Db::Unreadable | Db::Full) if stream.chance(1, 2) => {
                Db::Restored
            }
            _ => return None,
        };
        // A lock is given up at the end of the step by itself.
        self.db = (!matches!(db, Db::Missing | Db::Restored | Db::Locked)).then_some(db);
        Some(db)
    }

    fn signal(&self, stream: &mut Stream) -> SignalAt {
        let (to, what) = if stream.chance(1, 4) {
            let signals = [Sig::Kill, Sig::Term, Sig::Stop, Sig::Cont, Sig::Segv];
            (one_of(stream, &self.names), one_of(stream, &signals))
        } else {
            ("mu", one_of(stream, &[Sig::Term, Sig::Int, Sig::Hup, Sig::Kill]))
        };
        let at_ms = if stream.chance(1, 3) { 0 } else { span(stream) };
        SignalAt { to: to.to_owned(), what, at_ms }
    }
}

fn environment(stream: &mut Stream) -> BTreeMap<String, String> {
    let variables = [
        ("HOME", ""),
        ("XDG_STATE_HOME", "/home/user/elsewhere"),
        ("MU_DB_PATH", "/no/such/folder/mu.db"),
        ("MU_DB_PATH", "mu.db"),
        ("MU_AGENT_NAME", "somebody"),
        ("LANG", ""),
    ];
    let (name, value) = one_of(stream, &variables);
    BTreeMap::from([(name.to_owned(), value.to_owned())])
}
