//! What reads declarations and the published schema agree on every declaration (GEN-04).

use boon::{Compiler, SchemaIndex, Schemas};
use mu_protocol::declaration::Declaration;
use mu_protocol::messages::values::MAX_INTEGER;
use mu_protocol::schema::{SCHEMA, SCHEMA_DIGEST};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Map, Value, json};

use crate::{full, judge, judge_for};

/// A declaration that is legal by the schema, with any of its optional members and any of its words.
fn declaration() -> BoxedStrategy<Value> {
    object(vec![
        always("protocol", just(json!(1))),
        always(
            "plugin",
            object(vec![
                always("name", words(&["box", "crate"])),
                always("version", "[^\\x00-\\x1f\\x7f-\\x9f]{1,128}".prop_map(Value::from).boxed()),
            ]),
        ),
        always("instance", "[^\\x00-\\x1f\\x7f-\\x9f]{1,128}".prop_map(Value::from).boxed()),
        always("schema", words(&[SCHEMA_DIGEST, crate::DIGEST])),
        always(
            "seams",
            object(vec![
                maybe("link", link()),
                maybe("job", job()),
                maybe("host", object(vec![always("acquire", key_capabilities())])),
                maybe("channel", object(vec![always("name", name()), always("caps", channel_caps())])),
            ]),
        ),
    ])
}

fn link() -> BoxedStrategy<Value> {
    object(vec![
        always("fetch", boolean()),
        maybe("push", boolean()),
        always("slots", words(&["mu", "self"])),
        always("remoteOnTimeout", words(&["stopped", "stopping", "unknown"])),
        always("quiescence", words(&["provable", "unprovable"])),
        always("maxScriptBytes", integer()),
        always("checks", list(&["template", "reach", "agent"])),
    ])
}

fn job() -> BoxedStrategy<Value> {
    object(vec![
        always("kind", name()),
        always("view", words(&["bound", "detached"])),
        always("handle", words(&["pane", "file", "reply"])),
        always("start", key_capabilities()),
        maybe("channel", name()),
        always("checks", list(&["template", "reach", "agent"])),
        maybe("firstTurn", words(&["on-send", "at-start"])),
        maybe("outlivesHost", boolean()),
        maybe(
            "honours",
            object(vec![
                always("command", boolean()),
                always("env", boolean()),
                always("sockets", boolean()),
                always("roles", list(&["full-access", "read-only"])),
            ]),
        ),
    ])
}

fn key_capabilities() -> BoxedStrategy<Value> {
    object(vec![
        always("lookup", boolean()),
        always("fenceKey", boolean()),
        maybe("dedupe", dedupe()),
        maybe("inFlightMs", integer()),
    ])
}

fn dedupe() -> BoxedStrategy<Value> {
    object(vec![always("exact", just(json!(true))), always("windowMs", integer())])
}

fn channel_caps() -> BoxedStrategy<Value> {
    object(vec![
        always("fence", words(&["none", "incarnation"])),
        always("receipt", words(&["none", "exact"])),
        always("dedupe", prop_oneof![words(&["none"]), dedupe()].boxed()),
        always("steer", words(&["none", "native"])),
        always("interrupt", words(&["none", "native"])),
        always("fresh", words(&["none", "in-place", "restart"])),
        always("answer", boolean()),
        always("command", boolean()),
        always("watch", words(&["stream", "poll", "none"])),
        always("settleText", words(&["none", "tail", "full"])),
    ])
}

type Member = (&'static str, BoxedStrategy<Option<Value>>);

fn always(name: &'static str, value: BoxedStrategy<Value>) -> Member {
    (name, value.prop_map(Some).boxed())
}

fn maybe(name: &'static str, value: BoxedStrategy<Value>) -> Member {
    (name, option::of(value).boxed())
}

fn object(members: Vec<Member>) -> BoxedStrategy<Value> {
    let (names, values): (Vec<_>, Vec<_>) = members.into_iter().unzip();
    let object = move |values: Vec<Option<Value>>| {
        let members = names.iter().zip(values).filter_map(|(name, value)| Some(((*name).to_owned(), value?)));
        Value::Object(members.collect::<Map<_, _>>())
    };
    values.prop_map(object).boxed()
}

fn just(value: Value) -> BoxedStrategy<Value> {
    Just(value).boxed()
}

fn words(words: &'static [&'static str]) -> BoxedStrategy<Value> {
    select(words).prop_map(Value::from).boxed()
}

fn list(words: &'static [&'static str]) -> BoxedStrategy<Value> {
    proptest::collection::vec(select(words), 0..4).prop_map(Value::from).boxed()
}

fn name() -> BoxedStrategy<Value> {
    "[a-z][a-z0-9_-]{0,31}".prop_map(Value::from).boxed()
}

fn boolean() -> BoxedStrategy<Value> {
    any::<bool>().prop_map(Value::from).boxed()
}

fn integer() -> BoxedStrategy<Value> {
    prop_oneof![0..10_u64, 0..=MAX_INTEGER, Just(MAX_INTEGER)].prop_map(Value::from).boxed()
}

/// A change to the value at some place of a declaration.
#[derive(Clone, Debug)]
enum Mutation {
    Remove(Index),
    Replace(Index, Value),
    Rename(Index, &'static str),
    Add(Index, &'static str, Value),
    /// Puts what stands at one place at another.
    Copy(Index, Index),
}

fn mutations() -> impl Strategy<Value = Vec<Mutation>> {
    const NAMES: [&str; 8] = ["extra", "push", "dedupe", "channel", "honours", "", "Fetch", "link"];
    let values = [
        json!(null),
        json!(true),
        json!(false),
        json!(""),
        json!("none"),
        json!("self"),
        json!("at-start"),
        json!("Box"),
        json!("a".repeat(32)),
        json!("a".repeat(33)),
        json!("x".repeat(128)),
        json!("x".repeat(129)),
        json!("é".repeat(128)),
        json!("😀".repeat(129)),
        json!("a\u{1}"),
        json!("a\u{85}"),
        json!("a\n"),
        json!("box\n"),
        json!(SCHEMA_DIGEST.to_uppercase()),
        json!(format!("{SCHEMA_DIGEST}0")),
        json!(&SCHEMA_DIGEST[7..]),
        json!(0),
        json!(1),
        json!(-1),
        json!(1.5),
        json!(1_u64 << 53),
        json!(MAX_INTEGER),
        json!(u64::MAX),
        json!([]),
        json!(["reach"]),
        json!(["reach", "reach"]),
        json!(["full-access"]),
        json!([null]),
        json!({}),
        json!({"exact": true, "windowMs": 0}),
        json!({"exact": false, "windowMs": 0}),
        json!({"exact": true}),
    ];
    let mutation = prop_oneof![
        any::<Index>().prop_map(Mutation::Remove),
        (any::<Index>(), select(values.to_vec())).prop_map(|(at, value)| Mutation::Replace(at, value)),
        (any::<Index>(), select(&NAMES[..])).prop_map(|(at, name)| Mutation::Rename(at, name)),
        (any::<Index>(), select(&NAMES[..]), select(values.to_vec()))
            .prop_map(|(at, name, value)| Mutation::Add(at, name, value)),
        (any::<Index>(), any::<Index>()).prop_map(|(from, to)| Mutation::Copy(from, to)),
    ];
    proptest::collection::vec(mutation, 0..3)
}

/// The pointers to every value in `value`, itself first.
fn places(pointer: &str, value: &Value) -> Vec<String> {
    let inner: Vec<String> = match value {
        Value::Object(members) => {
            members.iter().flat_map(|(name, value)| places(&format!("{pointer}/{name}"), value)).collect()
        }
        Value::Array(items) => items
            .iter()
            .enumerate()
            .flat_map(|(at, value)| places(&format!("{pointer}/{at}"), value))
            .collect(),
        _ => Vec::new(),
    };
    [vec![pointer.to_owned()], inner].concat()
}

fn set(declaration: &mut Value, place: &str, value: Value) {
    if let Some(place) = declaration.pointer_mut(place) {
        *place = value;
    }
}

fn mutate(mut declaration: Value, mutations: &[Mutation]) -> Value {
    for mutation in mutations {
        let places = places("", &declaration);
        let place = |at: &Index| at.get(&places).clone();
        let cut = |at: &Index| {
            place(at).rsplit_once('/').map(|(object, name)| (object.to_owned(), name.to_owned()))
        };
        match mutation {
            Mutation::Remove(at) => {
                let Some((object, name)) = cut(at) else { continue };
                declaration
                    .pointer_mut(&object)
                    .and_then(Value::as_object_mut)
                    .map(|members| members.remove(&name));
            }
            Mutation::Rename(at, other) => {
                let Some((object, name)) = cut(at) else { continue };
                if let Some(members) = declaration.pointer_mut(&object).and_then(Value::as_object_mut) {
                    let value = members.remove(&name).unwrap_or_default();
                    members.insert((*other).to_owned(), value);
                }
            }
            Mutation::Add(at, name, value) => {
                if let Some(members) = declaration.pointer_mut(&place(at)).and_then(Value::as_object_mut) {
                    members.insert((*name).to_owned(), value.clone());
                }
            }
            Mutation::Replace(at, value) => {
                set(&mut declaration, &place(at), value.clone());
            }
            Mutation::Copy(from, to) => {
                let value = declaration.pointer(&place(from)).cloned().unwrap_or_default();
                set(&mut declaration, &place(to), value);
            }
        }
    }
    declaration
}

/// The published definition of a declaration.
struct Published {
    schemas: Schemas,
    declaration: SchemaIndex,
}

impl Published {
    fn new() -> Self {
        let schema: Value = serde_json::from_str(SCHEMA).expect("the schema is JSON");
        let id = schema["$id"].as_str().expect("the schema has an id").to_owned();
        let mut compiler = Compiler::new();
        compiler.add_resource(&id, schema).expect("the schema is one resource");
        let mut schemas = Schemas::new();
        let declaration = compiler.compile(&format!("{id}#/$defs/initialize.result"), &mut schemas);
        Published { declaration: declaration.expect("the schema compiles"), schemas }
    }

    fn is_legal(&self, declaration: &Value) -> bool {
        self.schemas.validate(declaration, self.declaration).is_ok()
    }
}

thread_local! {
    static PUBLISHED: Published = Published::new();
}

fn is_legal(declaration: &Value) -> bool {
    PUBLISHED.with(|published| published.is_legal(declaration))
}

proptest! {
    #![proptest_config(crate::cases(1500))]

    /// GEN-04
    #[test]
    fn a_declaration_is_read_exactly_if_the_schema_allows_it(
        declaration in declaration(),
        mutations in mutations(),
    ) {
        let declaration = mutate(declaration, &mutations);
        let read = Declaration::from_recorded(&declaration.to_string());
        prop_assert_eq!(read.is_ok(), is_legal(&declaration), "{:?} of {}", read, declaration);
    }

    /// LOAD-05, LOAD-06, LOAD-07
    #[test]
    fn the_rules_of_the_shape_refuse_exactly_what_the_schema_refuses(
        declaration in declaration(),
        mutations in mutations(),
    ) {
        let declaration = mutate(declaration, &mutations);
        let rule = judge(&declaration).err().map(|refusal| refusal.rule);
        if rule != Some("LOAD-01") {
            let of_shape = matches!(rule, Some("LOAD-05" | "LOAD-06" | "LOAD-07"));
            prop_assert_eq!(of_shape, !is_legal(&declaration), "{:?} of {}", rule, declaration);
        }
    }

    /// SEC-01
    #[test]
    fn the_recorded_form_of_any_declaration_is_legal_and_comes_back(declaration in declaration()) {
        prop_assert!(is_legal(&declaration));
        let read = Declaration::from_recorded(&declaration.to_string()).unwrap();
        let recorded = read.to_json();
        prop_assert_eq!(&serde_json::from_str::<Value>(&recorded).unwrap(), &declaration);
        prop_assert_eq!(Declaration::from_recorded(&recorded), Ok(read));
    }

    ///
    #[test]
    fn two_declarations_differ_somewhere_exactly_if_they_are_not_equal(
        first in mutations(),
        second in mutations(),
    ) {
        let recorded = mutate(full(), &first);
        let declared = mutate(recorded.clone(), &second);
        if let (Ok(recorded), Ok(loaded)) = (judge(&recorded), judge(&declared)) {
            let verdict = judge_for(&[], &declared.to_string(), Some(&recorded));
            prop_assert_eq!(verdict.is_ok(), recorded == loaded);
        }
    }
}
