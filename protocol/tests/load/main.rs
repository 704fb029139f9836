//! From an answer to `initialize` to a declaration or a refusal.
//!
//! `agreement` compares with the published schema, `shape` holds LOAD-05 to LOAD-07, `rules` the others, `recorded` the form that is stored and LOAD-19, `text` what a
//! refusal says.

mod agreement;
mod recorded;
mod rules;
mod shape;
mod text;

use mu_protocol::declaration::{Declaration, Seam};
use mu_protocol::envelope::Body;
use mu_protocol::load::{LoadRefusal, Registration, load};
use mu_protocol::strict::Checked;
use proptest::prelude::ProptestConfig;
use proptest::test_runner::RngSeed;
use serde_json::{Value, json};

const DIGEST: &str = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

const OTHER_DIGEST: &str = "sha256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

/// A declaration with everything in it that can be declared, optional members included.
fn full() -> Value {
    json!({
        "protocol": 1,
        "plugin": {"name": "box", "version": "0.1.0"},
        "instance": "prod-eu",
        "schema": DIGEST,
        "seams": {
            "link": {
                "fetch": true, "push": false, "slots": "self", "remoteOnTimeout": "stopping",
                "quiescence": "provable", "maxScriptBytes": 131072, "checks": ["template", "reach"]
            },
            "job": {
                "kind": "box", "view": "detached", "handle": "reply",
                "start": {
                    "lookup": true, "fenceKey": true, "dedupe": {"exact": true, "windowMs": 60000}, "inFlightMs": 500
                },
                "channel": "turns", "checks": [], "firstTurn": "at-start", "outlivesHost": true,
                "honours": {"command": true, "env": false, "sockets": true, "roles": ["full-access", "read-only"]}
            },
            "host": {"acquire": {"lookup": false, "fenceKey": false, "dedupe": {"exact": true, "windowMs": 0}}},
            "channel": {
                "name": "turns",
                "caps": {
                    "fence": "none", "receipt": "exact", "dedupe": "none", "steer": "native", "interrupt": "native",
                    "fresh": "in-place", "answer": true, "command": false, "watch": "stream", "settleText": "full"
                }
            }
        }
    })
}

/// [`full`] with the member at `pointer` replaced or added.
fn with(pointer: &str, value: Value) -> Value {
    let mut declaration = full();
    set(&mut declaration, pointer, value);
    declaration
}

fn set(declaration: &mut Value, pointer: &str, value: Value) {
    let (object, name) = pointer.rsplit_once('/').expect("a pointer into an object");
    let object = declaration.pointer_mut(object).and_then(Value::as_object_mut);
    object.expect("an object").insert(name.to_owned(), value);
}

/// [`full`] without the member at `pointer`.
fn without(pointer: &str) -> Value {
    let mut declaration = full();
    remove(&mut declaration, pointer);
    declaration
}

fn remove(declaration: &mut Value, pointer: &str) {
    let (object, name) = pointer.rsplit_once('/').expect("a pointer into an object");
    let object = declaration.pointer_mut(object).and_then(Value::as_object_mut);
    object.expect("an object").remove(name).expect("a member to remove");
}

fn json(text: &str) -> Checked<'_> {
    Checked::value(text).expect("strict JSON")
}

/// What mu makes of `result` for the plugin `box`, asked for `needs`.
fn judge_for(
    needs: &[Seam],
    result: &str,
    recorded: Option<&Declaration>,
) -> Result<Declaration, LoadRefusal> {
    load(&Body::Result(json(result)), &Registration { name: "box", needs }, DIGEST, recorded)
}

fn judge(result: &Value) -> Result<Declaration, LoadRefusal> {
    judge_for(&[], &result.to_string(), None)
}

/// The rule and the field of a refusal.
fn refusal(result: &Value) -> (&'static str, String) {
    let refusal = judge(result).unwrap_err();
    (refusal.rule, refusal.field)
}

/// One test for each refusal: `name: result => rule, field;`.
macro_rules! refused {
    ($($(#[$doc:meta])+ $name:ident: $result:expr => $rule:literal, $field:literal;)+) => {$(
        $(#[$doc])+
        #[test]
        fn $name() {
            assert_eq!(crate::refusal(&$result), ($rule, $field.to_owned()));
        }
    )+};
}
use refused;

/// HSK-02
#[test]
fn a_declaration_with_everything_in_it_loads() {
    let declaration = judge(&full()).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&declaration.to_json()).unwrap(), full());
}

/// The same cases in every run.
fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(1),
        ..ProptestConfig::default()
    }
}
