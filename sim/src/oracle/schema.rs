//! Every line that mu writes is valid by the published schema. The validator is a library of its own kind, so that
//! one misunderstanding does not sit on both sides.

use boon::{Compiler, SchemaIndex, Schemas};
use serde_json::Value;

use super::{History, Violation, strict};

thread_local! {
    static HOST_MESSAGE: (Schemas, SchemaIndex) = compile();
}

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
    HOST_MESSAGE.with(|(schemas, index)| {
        for wire in &history.wires {
            for line in &wire.lines {
                let mut say = |rule, text: String| {
                    let text = format!("{}: {text}", history.name(wire));
                    found.push(Violation { oracle: "schema", rule, at: Some(line.at), text });
                };
                if line.bytes.len() > MAX_LINE {
                    say("TRN-04", format!("mu wrote a line of {} bytes", line.bytes.len()));
                }
                match strict::object(&line.bytes).map(Value::from) {
                    None => say("TRN-02", "mu wrote a line that is not one JSON object".into()),
                    Some(value) => {
                        if let Err(error) = schemas.validate(&value, *index) {
                            let error = error.to_string().replace('\n', "; ");
                            say("GEN-04", format!("mu wrote a line that the schema refuses: {error}"));
                        }
                    }
                }
            }
        }
    });
}
