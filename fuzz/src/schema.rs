//! The published schema of the protocol, asked by the name of a definition.

use std::cell::RefCell;
use std::collections::BTreeMap;

use boon::{Compiler, SchemaIndex, Schemas};
use mu_protocol::schema::SCHEMA;
use serde_json::Value;

struct Published {
    id: String,
    compiler: Compiler,
    schemas: Schemas,
    compiled: BTreeMap<String, SchemaIndex>,
}

thread_local! {
    static PUBLISHED: RefCell<Published> = RefCell::new(Published::new());
}

impl Published {
    fn new() -> Published {
        let schema: Value = serde_json::from_str(SCHEMA).expect("the schema is JSON");
        let id = schema["$id"].as_str().expect("the schema has an id").to_owned();
        let mut compiler = Compiler::new();
        compiler.add_resource(&id, schema).expect("the schema is one resource");
        Published { id, compiler, schemas: Schemas::new(), compiled: BTreeMap::new() }
    }

    fn is_valid(&mut self, definition: &str, value: &Value) -> bool {
        let index = self.compiled.get(definition).copied().unwrap_or_else(|| {
            let location = format!("{}#/$defs/{}", self.id, definition.replace('/', "~1"));
            let index = self.compiler.compile(&location, &mut self.schemas).expect("a definition");
            self.compiled.insert(definition.to_owned(), index);
            index
        });
        self.schemas.validate(value, index).is_ok()
    }
}

/// Whether the value is valid by that definition.
pub fn is_valid(definition: &str, value: &Value) -> bool {
    PUBLISHED.with_borrow_mut(|published| published.is_valid(definition, value))
}
