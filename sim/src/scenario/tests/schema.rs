//! The schema for editors and the guide for authors say what the code says.

use std::collections::BTreeSet;

use boon::{Compiler, SchemaIndex, Schemas};
use serde_json::Value;

use super::super::{Db, DiskErrno, RecordState, Scenario};
use super::{EVERYTHING, parse};
use crate::backend::{BackendDeed, Fact, NetDeed};
use crate::fake::{Kind, METHODS, Seam, Sig, When, catalogue};

const SCHEMA: &str = include_str!("../../../../schemas/scenario-v1.json");
const GUIDE: &str = include_str!("../../../../docs/scenarios.md");

fn schema() -> Value {
    serde_json::from_str(SCHEMA).expect("the schema is JSON")
}

struct Validator {
    schemas: Schemas,
    index: SchemaIndex,
}

impl Validator {
    /// Of the whole schema, or of the part behind `#`.
    fn new(part: &str) -> Validator {
        let mut schemas = Schemas::new();
        let mut compiler = Compiler::new();
        compiler.add_resource("scenario.json", schema()).unwrap();
        let index = compiler.compile(&format!("scenario.json{part}"), &mut schemas).unwrap();
        Validator { schemas, index }
    }

    fn accepts(&self, value: &Value) -> bool {
        self.schemas.validate(value, self.index).is_ok()
    }

    fn accepts_toml(&self, text: &str) -> bool {
        let table: toml::Table = toml::from_str(text).expect("TOML");
        self.accepts(&serde_json::to_value(table).unwrap())
    }
}

fn around(step: &str) -> String {
    format!("title = 't'\nrules = ['A-10']\n[plugins.box]\n[[steps]]\nrun = 'mu plugin list'\n{step}\n")
}

fn with_fault(fault: &str) -> String {
    format!(
        "title = 't'\nrules = ['A-10']\n[plugins.box]\n[[faults]]\nplugin = 'box'\n{fault}\n[[steps]]\nrun = 'mu'\n"
    )
}

#[test]
fn a_file_with_every_key_is_valid() {
    assert!(Validator::new("").accepts_toml(EVERYTHING));
}

#[test]
fn what_is_written_is_valid() {
    assert!(Validator::new("").accepts_toml(&parse(EVERYTHING).unwrap().to_toml()));
}

#[test]
fn schema_and_reader_refuse_the_same_files() {
    let validator = Validator::new("");
    let wrong = [
        "title = 't'\nrules = ['A-10']\nsteps = []\n".to_owned(),
        "rules = ['A-10']\n[[steps]]\nrun = 'mu'\n".to_owned(),
        "title = ''\nrules = ['A-10']\n[[steps]]\nrun = 'mu'\n".to_owned(),
        "title = 't'\nrules = []\n[[steps]]\nrun = 'mu'\n".to_owned(),
        "title = 't'\nrules = ['TRN-04', 'TRN-04']\n[[steps]]\nrun = 'mu'\n".to_owned(),
        "title = 't'\nrules = ['A-10']\nshort_io = 0\n[[steps]]\nrun = 'mu'\n".to_owned(),
        "title = 't'\nrules = ['A-10']\nreal = false\n[[steps]]\nrun = 'mu'\n".to_owned(),
        "title = 't'\nrules = ['A-10']\nwhy_not_real = 'x'\n[[steps]]\nrun = 'mu'\n".to_owned(),
        "title = 't'\nrules = ['A-10']\n[plugins.Box]\n[[steps]]\nrun = 'mu'\n".to_owned(),
        "title = 't'\nrules = ['A-10']\n[plugins.dir]\n[[steps]]\nrun = 'mu'\n".to_owned(),
        "title = 't'\nrules = ['A-10']\n[[steps]]\n".to_owned(),
        "title = 't'\nrules = ['A-10']\n[[steps]]\nexit = 0\n".to_owned(),
        "title = 't'\nrules = ['A-10']\n[[steps]]\nrun = 'ls'\n".to_owned(),
        "title = 't'\nrules = ['A-10']\n[plugins.repo]\n[[steps]]\nrun = 'mu'\n".to_owned(),
        "title = 't'\nrules = ['A-10']\n[[steps]]\nrepo = { fetch_head = 'x' }\nfetch_head = 'x'\n"
            .to_owned(),
        around("world = { suspend_ms = 1, at_ms = 1 }"),
        around("repo = {}"),
        around("fetch_head = 1"),
        around("exits = 0"),
        around("exit = 256"),
        around("exit = 1\ndied_of = 'TERM'"),
        around("kill_at_call = 1"),
        around("power_at_disk = 1"),
        around("disk_error = { at = 0, errno = 'EIO' }"),
        around("disk_error = { at = 1, errno = 'EPERM' }"),
        around("kill_plugin_at = { box = 0 }"),
        around("converged = true"),
        around("db = 'full'"),
        around("db = 'gone'"),
        around("advance_ms = 60001"),
        around("took_ms = [1]"),
        around("signal = { what = 'FOO', at_ms = 1 }"),
        around("signal = [{ what = 'TERM' }]"),
        around("stdout = { contains = 1 }"),
        around("wire = { plugin = 'box' }"),
        around("chmod = { box = '999' }"),
        around("plan = { box = { file = { mode = '0700' } } }"),
        around("kill_at_disk = 1"),
        around("reboot = true"),
        around("recycle = true"),
        around("backend_set = {}"),
        around("backend_set = { fence = 'no' }"),
        around("backend_set = { land_ms = 2592000001 }"),
        around("backend_do = { do = 'lose' }"),
        around("backend_do = { do = 'end', host = 'box' }"),
        around("backend_do = { do = 'facts', host = 'box' }"),
        around("backend_do = { do = 'lose', host = 'box', max_jobs = 1 }"),
        around("backend_do = { do = 'clear', host = 'box' }"),
        around("backend_do = { do = 'facts', host = 'box', max_jobs = 1, fact = 'maxJobs' }"),
        around("net = { do = 'delay' }"),
        around("net = { do = 'heal', ms = 1 }"),
        around("net = [{ at_ms = 1 }]"),
        around("backend = { instance = 'a' }"),
        around("backend = { hosts = -1 }"),
        around("effects = -1"),
        around("records = { box = 'there' }"),
        with_fault("do = 'lookup-none'\non = 'host.look'"),
        with_fault("do = 'invalid-utf8'"),
        with_fault("do = 'exit'"),
        with_fault("do = { exit = 256 }"),
        with_fault("do = { bom = 1 }"),
        with_fault("do = 'bom'\nwhen = 'later'"),
        with_fault("do = 'bom'\nnth = 0"),
        with_fault("do = { leave-child = { until = 'soon' } }"),
        with_fault("on = 'initialize'"),
    ];
    for text in wrong {
        assert!(parse(&text).is_err(), "the reader takes\n{text}");
        assert!(!validator.accepts_toml(&text), "the schema takes\n{text}");
    }
}

#[test]
fn schema_and_reader_take_the_same_files() {
    let validator = Validator::new("");
    let right = [
        around(""),
        around("overlap = true\n[[steps]]\nadvance_ms = 60000"),
        around("stdout = { contains = ['a', 'b'], lines = 0 }"),
        around("fetch_head = 'absent'\n[[steps]]\nrepo = { fetch_head = '' }"),
        around("plan = { box = {} }\njson = { a = { b = [1, 2.5] } }"),
        around("backend = [{ hosts = 1, instance = 'a' }, { ever = 0 }]\nrecords = {}\neffects = 0"),
        around("[[steps]]\nbackend_do = { do = 'well', host = 'box' }\nnet = []\nrecords = { box = 'lost' }"),
        around(
            "backend_do = [{ do = 'clear', host = 'box', fact = 'maxJobs' }, { do = 'facts', host = 'box', max_jobs = 1 }]",
        ),
        around(
            "backend_set = { net_ms = 2592000000, deadline_ms = -5 }\nnet = { do = 'delay', ms = 0, at_ms = 9 }",
        ),
        with_fault("do = 'lookup-none'\non = 'host.lookup'"),
        with_fault("do = 'error-human'\non = 'host.acquire'\nwhen = 'after-effect'"),
        with_fault("do = { leave-child = {} }"),
        with_fault("do = { exit = 255 }\nwhen = 'on-eof'\nafter_ms = 0"),
    ];
    for text in right {
        assert_eq!(parse(&text).err(), None, "{text}");
        assert!(validator.accepts_toml(&text), "the schema refuses\n{text}");
    }
}

/// What the reader takes in place of an unknown key, by the list in its refusal.
fn keys_that_the_reader_knows(text: &str) -> BTreeSet<String> {
    let message = parse(text).expect_err("there is an unknown key").message;
    let list = message.split_once("expected one of ").expect("a list").1;
    list.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

#[test]
fn the_keys_are_the_same_everywhere() {
    let schema = schema();
    let places = [
        ("", "zzz = 1\ntitle = 't'\n".to_owned()),
        ("/$defs/plugin", "title = 't'\nrules = ['A-10']\nsteps = []\n[plugins.box]\nzzz = 1\n".to_owned()),
        (
            "/$defs/file",
            "title = 't'\nrules = ['A-10']\nsteps = []\n[plugins.box]\nfile = { zzz = 1 }\n".to_owned(),
        ),
        ("/$defs/fault", with_fault("zzz = 1")),
        ("/$defs/background", with_fault("do = { leave-child = { zzz = 1 } }")),
        ("/$defs/step", around("zzz = 1")),
        ("/$defs/text", around("stdout = { zzz = 1 }")),
        ("/$defs/signal_at", around("signal = { zzz = 1 }")),
        ("/$defs/wire", around("wire = { zzz = 1 }")),
        ("/$defs/world_at", around("world = { zzz = 1 }")),
        ("/$defs/backend", around("backend_set = { zzz = 1 }")),
        ("/$defs/backend_do", around("backend_do = { zzz = 1 }")),
        ("/$defs/net", around("net = { zzz = 1 }")),
        ("/$defs/counts", around("backend = { zzz = 1 }")),
        ("/$defs/disk_error", around("disk_error = { zzz = 1 }")),
    ];
    for (place, text) in places {
        let properties = schema.pointer(&format!("{place}/properties")).and_then(Value::as_object).unwrap();
        let known = keys_that_the_reader_knows(&text);
        assert_eq!(properties.keys().cloned().collect::<BTreeSet<_>>(), known, "{place}");
        for key in
            known.iter().filter(|key| !["plugins", "backend", "faults", "steps"].contains(&key.as_str()))
        {
            let named = [format!("`{key}`"), format!("`{{ {key} = ")];
            assert!(named.iter().any(|name| GUIDE.contains(name)), "the guide lacks `{key}`");
        }
    }
}

fn strings(value: &Value) -> Vec<&str> {
    value.as_array().expect("a list").iter().map(|item| item.as_str().expect("a string")).collect()
}

#[test]
fn the_values_are_the_same_everywhere() {
    fn written<T: serde::Serialize>(all: &[T]) -> Vec<String> {
        all.iter().map(|one| serde_json::to_value(one).unwrap().as_str().unwrap().to_owned()).collect()
    }
    let schema = schema();
    let places = [
        ("/$defs/plugin/properties/seams/items/enum", written(&Seam::ALL)),
        ("/$defs/file/properties/kind/enum", written(&Kind::ALL)),
        ("/$defs/fault/properties/when/enum", written(&When::ALL)),
        ("/$defs/fault/properties/on/enum", written(METHODS)),
        ("/$defs/signal/enum", written(&Sig::ALL)),
        ("/$defs/step/properties/db/enum", written(&Db::ALL)),
        ("/$defs/backend_do/properties/do/enum", written(&BackendDeed::ALL)),
        ("/$defs/backend_do/properties/fact/enum", written(&Fact::ALL)),
        ("/$defs/net/properties/do/enum", written(&NetDeed::ALL)),
        ("/$defs/step/properties/records/additionalProperties/enum", written(&RecordState::ALL)),
        ("/$defs/disk_error/properties/errno/enum", written(&DiskErrno::ALL)),
    ];
    for (place, values) in places {
        assert_eq!(strings(schema.pointer(place).unwrap()), values, "{place}");
        for value in values {
            assert!(GUIDE.contains(&format!("`{value}`")), "the guide lacks `{value}`");
        }
    }
}

#[test]
fn the_schema_knows_every_fault_with_its_line_and_no_other() {
    let schema = schema();
    let known = schema.pointer("/$defs/do/oneOf").and_then(Value::as_array).unwrap().iter().map(|one| {
        match one.get("const") {
            Some(name) => (name.as_str().unwrap(), one["description"].as_str().unwrap()),
            None => {
                let (name, value) = one["properties"].as_object().unwrap().iter().next().unwrap();
                (name.as_str(), value["description"].as_str().unwrap())
            }
        }
    });
    let wanted: BTreeSet<_> = catalogue().into_iter().map(|entry| (entry.name, entry.doc)).collect();
    assert_eq!(known.collect::<BTreeSet<_>>(), wanted);
}

#[test]
fn every_example_of_a_fault_is_valid() {
    let validator = Validator::new("#/$defs/do");
    for entry in catalogue() {
        for act in entry.examples {
            assert!(validator.accepts(&serde_json::to_value(&act).unwrap()), "{act:?}");
        }
    }
}

/// The name that the guide gives to these moments, by its table of them.
fn moments_in_the_guide(moments: &[When]) -> &'static str {
    let list = moments.iter().map(|when| format!("`{}`", when.name())).collect::<Vec<_>>().join(", ");
    let row =
        GUIDE.lines().find(|line| line.ends_with(&format!("| {list} |"))).expect("a row of these moments");
    row.split('|').nth(1).unwrap().trim()
}

#[test]
fn the_guide_has_a_row_for_every_fault() {
    for entry in catalogue() {
        let end = format!(" | {} | {} |", entry.doc, moments_in_the_guide(entry.moments));
        let row = GUIDE
            .lines()
            .find(|line| line.starts_with(&format!("| `{}`", entry.name)) && line.ends_with(&end));
        assert!(row.is_some(), "the guide lacks the row of `{}`, ending in\n{end}", entry.name);
    }
}

#[test]
fn the_examples_of_the_guide_are_scenarios() {
    let validator = Validator::new("");
    let blocks: Vec<&str> =
        GUIDE.split("```toml\n").skip(1).map(|block| block.split("```").next().unwrap()).collect();
    assert_eq!(blocks.len(), 2);
    let is_rule = |id: &str| id.split_once('-').is_some_and(|(group, n)| group.len() < 5 && n.len() == 2);
    for block in blocks {
        let scenario = Scenario::parse("docs/scenarios.md", block, &is_rule).unwrap();
        assert!(validator.accepts_toml(block), "{}", scenario.title);
    }
}
