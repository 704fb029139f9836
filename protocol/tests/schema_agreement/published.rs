//! The published schema, compiled once, asked by the name of a definition.

use std::collections::BTreeMap;

use boon::{Compiler, SchemaIndex, Schemas};
use mu_protocol::schema::SCHEMA;
use serde_json::Value;

/// Where the schema is said to come from; nothing is fetched.
const URL: &str = "file:///plugin-protocol-v1.json";

pub(crate) struct Published {
    schemas: Schemas,
    compiler: Compiler,
    compiled: BTreeMap<String, SchemaIndex>,
}

impl Published {
    pub(crate) fn new() -> Self {
        let mut compiler = Compiler::new();
        compiler.add_resource(URL, serde_json::from_str(SCHEMA).expect("JSON")).expect("a schema");
        Published { schemas: Schemas::new(), compiler, compiled: BTreeMap::new() }
    }

    /// The names of its definitions, sorted.
    pub(crate) fn definitions() -> Vec<String> {
        let schema: Value = serde_json::from_str(SCHEMA).expect("JSON");
        let mut names = schema["$defs"].as_object().expect("definitions").keys().cloned().collect::<Vec<_>>();
        names.sort_unstable();
        names
    }

    /// Makes a definition ready to be asked.
    pub(crate) fn compile(&mut self, definition: &str) {
        let location = format!("{URL}#/$defs/{}", definition.replace('/', "~1"));
        let index = self.compiler.compile(&location, &mut self.schemas).expect("a definition");
        self.compiled.insert(definition.to_owned(), index);
    }

    /// Whether `json` is valid by a compiled definition.
    pub(crate) fn is_valid(&self, definition: &str, json: &Value) -> bool {
        self.schemas.validate(json, self.compiled[definition]).is_ok()
    }
}
