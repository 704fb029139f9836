//! Every line that mu writes is valid by the published schema. The validator is a library of its own kind, so that
//! one misunderstanding does not sit on both sides.

use boon::{Compiler, SchemaIndex, Schemas};
use serde_json::Value;

use super::{History, Violation};

thread_local! {
    static HOST_MESSAGE: (Schemas, SchemaIndex) = compile();
}

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
    HOST_MESSAGE.with(|(schemas, index)| {
        for wire in &history.wires {
            for line in &wire.lines {
                if let Err(error) = schemas.validate(&line.json, *index) {
                    let text = format!("mu wrote a line to {} that the schema refuses: {error}", wire.name)
                        .replace('\n', "; ");
                    found.push(Violation { oracle: "schema", rule: "GEN-04", at: Some(line.at), text });
                }
            }
        }
    });
}
