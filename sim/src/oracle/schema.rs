//! Plugins get no line from mu that the schema would refuse. The validator is a library of its own kind, so that
//! one misunderstanding does not sit on both sides.

use std::cell::RefCell;
use std::collections::BTreeSet;

use boon::{Compiler, SchemaIndex, Schemas};
use serde_json::Value;

use super::{History, Violation, strict};

thread_local! {
    static HOST_MESSAGE: (Schemas, SchemaIndex) = compile();
    /// Lines that were found valid: mu says the same few things in every run.
    static VALID: RefCell<BTreeSet<Vec<u8>>> = const { RefCell::new(BTreeSet::new()) };
}

const REMEMBERED: usize = 1_000;

const ADDRESS: &str = "https://mu.invalid/plugin-protocol-v1.json";
/// The longest line, without its line feed (TRN-04).
const MAX_LINE: usize = 1 << 20;

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
                match refusal(&line.bytes) {
                    None => drop(valid.insert(line.bytes.clone())),
                    Some((rule, text)) => {
                        let text = format!("{}: {text}", history.name(wire));
                        found.push(Violation { oracle: "schema", rule, at: Some(line.at), text });
                    }
                }
            }
        }
    });
}

/// What is wrong with a line of mu's, and by which rule.
fn refusal(line: &[u8]) -> Option<(&'static str, String)> {
    if line.len() > MAX_LINE {
        return Some(("TRN-04", format!("mu wrote a line of {} bytes", line.len())));
    }
    let Some(object) = strict::object(line) else {
        return Some(("TRN-02", "mu wrote a line that is not one JSON object".into()));
    };
    let refused = HOST_MESSAGE.with(|(schemas, index)| {
        schemas.validate(&Value::from(object), *index).map_err(|error| error.to_string())
    });
    let error = refused.err()?.replace('\n', "; ");
    Some(("GEN-04", format!("mu wrote a line that the schema refuses: {error}")))
}
