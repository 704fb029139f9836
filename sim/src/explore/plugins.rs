//! Plugins: what they declare and the files that stand for them.

use std::collections::BTreeMap;

use serde_json::Value as Json;
use toml::{Table, Value};

use super::swarm::Swarm;
use super::{magnitude, one_of, stream, weighted};
use crate::fake::{Kind, Mode, Owner, PluginFile, PluginTable, Seam};
use crate::streams::Stream;

const NAMES: [&str; 3] = ["box", "cloud", "relay"];
/// Sets of seams that load together (LOAD-09, LOAD-10).
const SEAMS: [&[Seam]; 7] = [
    &[Seam::Link],
    &[Seam::Job],
    &[Seam::Channel],
    &[Seam::Link, Seam::Job],
    &[Seam::Job, Seam::Channel],
    &[Seam::Link, Seam::Host, Seam::Job],
    &[Seam::Link, Seam::Host, Seam::Job, Seam::Channel],
];
/// Members that a plugin may well choose, by seam.
const CHOICES: [(Seam, &str, &[&str]); 13] = [
    (Seam::Link, "fetch", &["true", "false"]),
    (Seam::Link, "push", &["true", "false"]),
    (Seam::Link, "slots", &["'mu'", "'self'"]),
    (Seam::Link, "remoteOnTimeout", &["'stopped'", "'stopping'", "'unknown'"]),
    (Seam::Link, "quiescence", &["'provable'", "'unprovable'"]),
    (Seam::Link, "checks", &["[]", "['reach']", "['template', 'reach', 'agent']"]),
    (Seam::Job, "view", &["'bound'", "'detached'"]),
    (Seam::Job, "handle", &["'pane'", "'file'", "'reply'"]),
    (Seam::Job, "outlivesHost", &["true", "false"]),
    (Seam::Job, "start", &["{ lookup = false, dedupe = { exact = true, windowMs = 60000 } }"]),
    (Seam::Host, "acquire", &["{ inFlightMs = 0 }", "{ dedupe = { exact = true, windowMs = 1 } }"]),
    (Seam::Channel, "caps", &["{ steer = 'native' }", "{ settleText = 'tail' }", "{ receipt = 'none' }"]),
    (Seam::Channel, "caps", &["{ dedupe = { exact = true, windowMs = 3600000 } }", "{ fresh = 'restart' }"]),
];
/// Changes that break one load rule each, or the schema: what is set, and to what.
const VIOLATIONS: [(&str, &str); 22] = [
    ("protocol", "2"),
    ("protocol", "1.0"),
    ("protocol", "'1'"),
    ("plugin.name", "'other'"),
    ("plugin.version", "''"),
    ("instance", "''"),
    ("instance", "\"a\\nb\""),
    ("schema", "'sha256:0000000000000000000000000000000000000000000000000000000000000000'"),
    ("schema", "'sha256:1'"),
    ("seams", "{}"),
    ("seams", "[]"),
    ("seams.vcs", "{}"),
    ("seams.link.maxScriptBytes", "-1"),
    ("seams.link.maxScriptBytes", "0.5"),
    ("seams.link.checks", "['reach', 'reach', 7]"),
    ("seams.host.acquire.lookup", "false"),
    ("seams.job.channel", "'nobody'"),
    ("seams.job.honours", "{ command = false, env = false, sockets = false, roles = [] }"),
    ("seams.job.start", "{}"),
    ("seams.channel.caps.watch", "'poll'"),
    ("seams.channel.caps.settleText", "'none'"),
    ("seams.channel.caps.fence", "'incarnation'"),
];

/// One to three plugins, and at most so many.
pub(super) fn draw(seed: u64, swarm: &Swarm, most: usize) -> BTreeMap<String, PluginTable> {
    let count = weighted(&mut stream(seed, "plugins"), &[(4, 1), (4, 2), (2, 3)]).min(most);
    let one = |name: &&str| {
        let mut own = stream(seed, &format!("plugin.{name}"));
        let mut table = sound(&mut own, name);
        if swarm.bad_declarations && own.chance(1, 2) {
            violate(&mut own, name, &mut table);
        }
        if swarm.bad_files && own.chance(1, 2) {
            table.file = file(&mut own, name);
        }
        ((*name).to_owned(), table)
    };
    NAMES[..count].iter().map(one).collect()
}

/// A plugin whose declaration loads, with a file that can be started.
pub(super) fn sound(stream: &mut Stream, name: &str) -> PluginTable {
    let seams = one_of(stream, &SEAMS).to_vec();
    let mut table = PluginTable { seams, ..PluginTable::default() };
    for (seam, member, values) in CHOICES {
        if table.seams.contains(&seam) && stream.chance(1, 4) {
            let value = parse(one_of(stream, values));
            members(&mut table, seam).insert(member.to_owned(), value);
        }
    }
    if table.seams.contains(&Seam::Link) && stream.chance(1, 8) {
        let bytes = 4_095 + magnitude(stream, 1 << 20);
        members(&mut table, Seam::Link).insert("maxScriptBytes".into(), Value::from(bytes as i64));
    }
    if stream.chance(1, 4) {
        table.declare =
            Some(Table::from_iter([("instance".to_owned(), Value::from(instance(stream, name)))]));
    }
    table
}

fn instance(stream: &mut Stream, name: &str) -> String {
    match stream.below(4) {
        0 => format!("{name}-eu"),
        1 => "prod-ü-東京".to_owned(),
        2 => "i".repeat(stream.between(1, 128) as usize),
        _ => format!("{name} {}", stream.below(1_000)),
    }
}

/// Breaks the declaration somehow: mostly one load rule, sometimes any member of it.
pub(super) fn violate(stream: &mut Stream, name: &str, table: &mut PluginTable) {
    let Ok(declaration) = table.declaration(name, "sha256:") else { return };
    let mut violated = table.clone();
    if stream.chance(1, 2) {
        let (path, value) = one_of(stream, &VIOLATIONS);
        violated.set.insert(path.to_owned(), parse(value));
    } else {
        let mut paths = Vec::new();
        collect(&declaration, "", &mut paths);
        let path = paths.swap_remove(stream.below(paths.len() as u64) as usize);
        match stream.below(4) {
            0 => violated.drop.push(path),
            1 => violated.null.push(path),
            2 => drop(violated.set.insert(format!("{path}X"), Value::from(true))),
            _ => {
                let values = ["''", "'x'", "-1", "1.5", "true", "[]", "{}", "[{}]", "9007199254740993"];
                drop(violated.set.insert(path, parse(one_of(stream, &values))));
            }
        }
    }
    // Not every violation fits every plugin.
    if violated.declaration(name, "sha256:").is_ok() {
        *table = violated;
    }
}

/// A file that is mostly unsound.
pub(super) fn file(stream: &mut Stream, name: &str) -> PluginFile {
    let ordinary = PluginFile::default();
    match stream.below(4) {
        0 => PluginFile { mode: mode(stream), ..ordinary },
        1 if stream.chance(1, 2) => PluginFile { owner: Owner::Other, ..ordinary },
        1 => PluginFile { basename: Some(format!("mu-plugin-{name}2")), ..ordinary },
        _ => {
            let kind = one_of(stream, &Kind::ALL);
            let freed = kind == Kind::Busy && stream.chance(2, 3);
            PluginFile { kind, busy_ms: freed.then(|| magnitude(stream, 2_000)), ..ordinary }
        }
    }
}

/// Permission bits, mostly trusted.
pub(super) fn mode(stream: &mut Stream) -> Mode {
    Mode(one_of(stream, &[0o755, 0o700, 0o500, 0o644, 0o775, 0o757, 0o000, 0o4755]))
}

fn members(table: &mut PluginTable, seam: Seam) -> &mut Table {
    let members = match seam {
        Seam::Link => &mut table.link,
        Seam::Host => &mut table.host,
        Seam::Job => &mut table.job,
        Seam::Channel => &mut table.channel,
    };
    members.get_or_insert_default()
}

/// A TOML value as it stands behind a key.
fn parse(value: &str) -> Value {
    let mut table: Table =
        toml::from_str(&format!("value = {value}")).expect("these values are written here");
    table.remove("value").expect("it was just read")
}

fn collect(json: &Json, at: &str, paths: &mut Vec<String>) {
    for (key, value) in json.as_object().into_iter().flatten() {
        let path = if at.is_empty() { key.clone() } else { format!("{at}.{key}") };
        collect(value, &path, paths);
        paths.push(path);
    }
}
