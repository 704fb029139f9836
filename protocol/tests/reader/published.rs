//! The envelope and the published schema agree on which replies and notifications there are (GEN-04).

use boon::{Compiler, Schemas};
use mu_protocol::envelope::{Body, Incoming, parse};
use mu_protocol::schema::SCHEMA;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value, json};

/// Whether the schema allows `message` as what `definition` names.
fn allows(definition: &str, message: &Value) -> bool {
    thread_local! {
        static ENVELOPE: (Schemas, Vec<(&'static str, boon::SchemaIndex)>) = {
            let schema: Value = serde_json::from_str(SCHEMA).expect("the schema is JSON");
            let id = schema["$id"].as_str().expect("the schema has an id").to_owned();
            let mut compiler = Compiler::new();
            compiler.add_resource(&id, schema).expect("the schema is one resource");
            let mut schemas = Schemas::new();
            let indices = ["reply", "errorReply", "notification"].map(|name| {
                (name, compiler.compile(&format!("{id}#/$defs/{name}"), &mut schemas).expect("the schema compiles"))
            });
            (schemas, indices.to_vec())
        };
    }
    ENVELOPE.with(|(schemas, indices)| {
        let (_, index) = indices.iter().find(|(name, _)| *name == definition).expect("a compiled definition");
        schemas.validate(message, *index).is_ok()
    })
}

/// An object of some of the members that messages have, and now and then another.
fn message() -> impl Strategy<Value = Value> {
    let error = json!({"code": -1, "message": "no", "data": {"kind": "permanent"}});
    let members = [
        ("jsonrpc", vec![json!("2.0"), json!("2.0"), json!("2.0"), json!("1.0"), json!(2)]),
        (
            "id",
            vec![
                json!(1),
                json!(2),
                json!(0),
                json!(-1),
                json!(1.5),
                json!("1"),
                json!(null),
                json!(1_u64 << 53),
            ],
        ),
        ("result", vec![json!(null), json!({}), json!([1])]),
        ("error", vec![error.clone(), error, json!({}), json!(null), json!("no")]),
        ("method", vec![json!("watch/restarted"), json!("watch/settled"), json!("log"), json!(1)]),
        ("params", vec![json!({"watchId": "w", "incarnation": "i"}), json!({}), json!([]), json!(null)]),
        ("extra", vec![json!(1)]),
    ];
    // Which members there are: the shapes that can be legal, each with one member more or less.
    let shapes = select(vec![0b111_u8, 0b1011, 0b110001]);
    let values = members.map(|(name, values)| select(values).prop_map(move |value| (name, value)));
    (shapes, proptest::option::of(0..7_u8), Vec::from(values)).prop_map(|(shape, flip, values)| {
        let shape = shape ^ flip.map_or(0, |bit| 1 << bit);
        let chosen = values.into_iter().enumerate().filter(|(bit, _)| shape & (1 << bit) != 0);
        Value::Object(chosen.map(|(_, (name, value))| (name.to_owned(), value)).collect::<Map<_, _>>())
    })
}

proptest! {
    #![proptest_config(crate::cases(3000))]

    #[test]
    fn what_the_schema_allows_is_read_as_what_it_is(message in message()) {
        let line = message.to_string();
        let incoming = parse(line.as_bytes());
        let is_result = matches!(incoming, Ok(Incoming::Reply { body: Body::Result(_), .. }));
        let is_error = matches!(incoming, Ok(Incoming::Reply { body: Body::Error(_), .. }));
        let is_notification = matches!(incoming, Ok(Incoming::Notification { .. }));
        prop_assert_eq!(is_result, allows("reply", &message), "{}", line);
        // Errors and params are typed later, by their own definitions.
        prop_assert!(is_error || !allows("errorReply", &message), "{}", line);
        prop_assert!(is_notification || !allows("notification", &message), "{}", line);
    }
}
