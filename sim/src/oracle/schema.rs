//! Every line that mu writes is valid by the published schema. The validator is a library of its own kind, so that
//! one misunderstanding does not sit on both sides.

use std::cell::RefCell;
use std::collections::BTreeSet;

use boon::{Compiler, SchemaIndex, Schemas};
use serde_json::Value;

use super::history::Line;
use super::{History, Violation};

thread_local! {
    static HOST_MESSAGE: (Schemas, SchemaIndex) = compile();
    /// Lines that were found valid: mu says the same few things in every run.
    static VALID: RefCell<BTreeSet<Vec<u8>>> = const { RefCell::new(BTreeSet::new()) };
}

const REMEMBERED: usize = 1_000;

const ADDRESS: &str = "https://mu.invalid/plugin-protocol-v1.json";

fn compile() -> (Schemas, SchemaIndex) {
    let schema: Value =
        serde_json::from_str(mu_protocol::schema::SCHEMA).expect("the published schema is JSON");
    let mut compiler = Compiler::new();
    compiler.add_resource(ADDRESS, schema).expect("its address is well-formed");
    let mut schemas = Schemas::new();
    let index = compiler
        .compile(&format!("{ADDRESS}#/$defs/hostMessage"), &mut schemas)
        .expect("the published schema defines hostMessage");
    (schemas, index)
}

pub(super) fn check(history: &History, found: &mut Vec<Violation>) {
    VALID.with_borrow_mut(|valid| {
        if valid.len() > REMEMBERED {
            valid.clear();
        }
        for wire in &history.wires {
            for line in &wire.lines {
                if valid.contains(&line.bytes) {
                    continue;
                }
                match refusal(line) {
                    None => drop(valid.insert(line.bytes.clone())),
                    Some(error) => {
                        let text =
                            format!("mu wrote a line to {} that the schema refuses: {error}", wire.name);
                        found.push(Violation { oracle: "schema", rule: "GEN-04", at: Some(line.at), text });
                    }
                }
            }
        }
    });
}

fn refusal(line: &Line) -> Option<String> {
    HOST_MESSAGE.with(|(schemas, index)| {
        schemas.validate(&line.json, *index).err().map(|error| error.to_string().replace('\n', "; "))
    })
}
