//! The published file itself: its digest, that it is closed, the whole lines, and the declaration with what the load
//! rules need to be legal in it.

#[path = "schema_agreement/published.rs"]
mod published;

use mu_protocol::messages::method::Method;
use mu_protocol::schema::{SCHEMA, SCHEMA_DIGEST};
use published::Published;
use serde_json::{Value, json};

fn valid(definition: &str, json: &Value) -> bool {
    let mut published = Published::new();
    published.compile(definition);
    published.is_valid(definition, json)
}

/// HSK-07: plugins are built against these bytes. Whoever changes the file changes the protocol.
#[test]
fn the_digest_is_that_of_the_bytes_everybody_builds_against() {
    assert_eq!(SCHEMA_DIGEST, "sha256:b9fe660d110882cfe735c2517189f4942ae31e224c3512c65ca4ed001ef695a3");
}

/// GEN-04
#[test]
fn the_schema_of_the_crate_is_the_published_file() {
    let published = concat!(env!("CARGO_MANIFEST_DIR"), "/../schemas/plugin-protocol-v1.json");
    assert_eq!(SCHEMA, std::fs::read_to_string(published).unwrap());
}

#[test]
fn the_schema_is_valid_by_its_own_draft() {
    let mut compiler = boon::Compiler::new();
    let mut schemas = boon::Schemas::new();
    let draft = "https://json-schema.org/draft/2020-12/schema";
    let draft = compiler.compile(draft, &mut schemas).unwrap();
    schemas.validate(&serde_json::from_str(SCHEMA).unwrap(), draft).unwrap();
}

/// TRN-15: what an object may hold is said wherever an object may stand.
#[test]
fn every_object_is_closed_or_a_map_of_typed_values() {
    fn look(place: &str, schema: &Value, open: &mut Vec<String>) {
        match schema {
            Value::Object(members) => {
                if members.get("type") == Some(&json!("object"))
                    && !members.contains_key("additionalProperties")
                {
                    open.push(place.to_owned());
                }
                for (name, inner) in members {
                    look(&format!("{place}/{name}"), inner, open);
                }
            }
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    look(&format!("{place}/{index}"), item, open);
                }
            }
            _ => {}
        }
    }

    let mut open = Vec::new();
    look("", &serde_json::from_str(SCHEMA).unwrap(), &mut open);
    // Their `oneOf` says by the method what these are.
    let by_method = ["/$defs/notification/properties/params", "/$defs/request/properties/params"];
    assert_eq!(open, by_method);
}

#[test]
fn every_definition_is_used_or_a_result() {
    for name in Published::definitions() {
        let used = SCHEMA.contains(&format!("\"#/$defs/{}\"", name.replace('/', "~1")));
        assert!(used || name.ends_with(".result"), "{name}");
    }
}

fn host_target() -> Value {
    json!({"host": {"name": "box"}})
}

/// HSK-01, A-02, A-03, A-06
#[test]
fn the_lines_of_mu_are_requests_cancels_and_a_bare_shutdown() {
    let initialize = json!({"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocol":{"min":1,"max":1},"mu":"5"}});
    let acquire = json!({"jsonrpc":"2.0","id":2,"method":"host.acquire","params":
        {"deadline": 1, "target": host_target(), "key": "k", "params": {"size": "s"}}});
    let cancel = json!({"jsonrpc":"2.0","method":"$/cancel","params":{"id":2}});
    let unwatch = json!({"jsonrpc":"2.0","method":"$/cancel","params":{"watchId":"w"}});
    let shutdown = json!({"jsonrpc":"2.0","method":"shutdown"});
    for line in [&initialize, &acquire, &cancel, &unwatch, &shutdown] {
        assert!(valid("hostMessage", line), "{line}");
        assert!(!valid("pluginMessage", line), "{line}");
    }

    let with = |line: &Value, name: &str, value: Value| {
        let mut line = line.clone();
        line[name] = value;
        line
    };
    for line in [
        with(&shutdown, "params", json!({})),
        with(&shutdown, "id", json!(3)),
        with(&cancel, "id", json!(3)),
        with(&cancel, "params", json!({"id": 2, "watchId": "w"})),
        with(&cancel, "params", json!({})),
        with(&acquire, "method", json!("host.status")),
        with(&acquire, "method", json!("host.destroy")),
        with(&acquire, "id", json!(0)),
        with(&acquire, "id", json!("2")),
        with(&acquire, "jsonrpc", json!("1.0")),
        with(&acquire, "trace", json!(1)),
        with(&initialize, "params", json!({"protocol":{"min":1,"max":1},"mu":"5","deadline":1})),
        json!([initialize]),
    ] {
        assert!(!valid("hostMessage", &line), "{line}");
    }
}

/// CALL-01, CALL-02: a method of the calls without its parameters is no line.
#[test]
fn every_method_has_its_place_in_a_line_of_mu() {
    let mut published = Published::new();
    published.compile("hostMessage");
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    let branches = schema["$defs"]["request"]["oneOf"].as_array().unwrap();
    let mut methods = vec!["initialize"];
    methods.extend(Method::ALL.iter().map(|method| method.as_str()));
    let named = |branch: &Value| branch["properties"]["method"]["const"].as_str().unwrap().to_owned();
    assert_eq!(branches.iter().map(named).collect::<Vec<_>>(), methods);
    for (method, branch) in methods.iter().zip(branches) {
        assert_eq!(branch["properties"]["params"]["$ref"], format!("#/$defs/{method}.params"));
        let line = json!({"jsonrpc":"2.0","id":1,"method":method,"params":{}});
        assert!(!published.is_valid("hostMessage", &line), "{method}");
    }
}

/// TRN-10 to TRN-13, A-08, A-09
#[test]
fn the_lines_of_a_plugin_are_replies_errors_and_two_notifications() {
    let observation = json!({"status":"idle","settled":true,"since":1,"runs":1,"incarnation":"i"});
    let error =
        |data: Value| json!({"jsonrpc":"2.0","id":3,"error":{"code":-32000,"message":"m","data":data}});
    for line in [
        json!({"jsonrpc":"2.0","id":3,"result":null}),
        json!({"jsonrpc":"2.0","id":3,"result":{"any":"thing"}}),
        error(json!({"kind":"permanent"})),
        error(json!({"kind":"human","remedy":"log in"})),
        json!({"jsonrpc":"2.0","method":"watch/settled","params":{"watchId":"w","observation":observation}}),
        json!({"jsonrpc":"2.0","method":"watch/restarted","params":{"watchId":"w","incarnation":"i"}}),
    ] {
        assert!(valid("pluginMessage", &line), "{line}");
        assert!(!valid("hostMessage", &line), "{line}");
    }
    for line in [
        json!({"jsonrpc":"2.0","id":3}),
        json!({"jsonrpc":"2.0","result":null}),
        json!({"jsonrpc":"2.0","id":null,"result":null}),
        json!({"jsonrpc":"2.0","id":3,"result":null,"extra":1}),
        json!({"jsonrpc":"2.0","id":3,"result":null,"error":{"code":1,"message":"","data":{"kind":"permanent"}}}),
        json!({"jsonrpc":"2.0","id":3,"error":{"code":1,"message":""}}),
        error(json!({"kind":"fatal"})),
        error(json!({"kind":"human"})),
        error(json!({"kind":"permanent","remedy":"log in"})),
        error(json!({"kind":"permanent","detail":1})),
        json!({"jsonrpc":"2.0","method":"watch/progress","params":{"watchId":"w"}}),
        json!({"jsonrpc":"2.0","id":4,"method":"watch/restarted","params":{"watchId":"w","incarnation":"i"}}),
        json!({"jsonrpc":"2.0","id":4,"method":"host.status","params":{}}),
    ] {
        assert!(!valid("pluginMessage", &line), "{line}");
    }
}

fn key_capabilities() -> Value {
    json!({"lookup":true,"fenceKey":true,"dedupe":{"exact":true,"windowMs":60000},"inFlightMs":5000})
}

fn declaration() -> Value {
    json!({
        "protocol": 1,
        "plugin": {"name": "box", "version": "0.1.0"},
        "instance": "prod:eu",
        "schema": SCHEMA_DIGEST,
        "seams": {
            "link": {
                "fetch": true, "push": true, "slots": "self", "remoteOnTimeout": "stopping", "quiescence": "provable",
                "maxScriptBytes": 131072, "checks": ["template", "reach", "agent"],
            },
            "job": {
                "kind": "vm", "view": "detached", "handle": "reply", "start": key_capabilities(), "channel": "vmc",
                "checks": [], "firstTurn": "at-start", "outlivesHost": true,
                "honours": {"command": true, "env": true, "sockets": false, "roles": ["full-access", "read-only"]},
            },
            "host": {"acquire": key_capabilities()},
            "channel": {"name": "vmc", "caps": {
                "fence": "none", "receipt": "exact", "dedupe": {"exact": true, "windowMs": 60000}, "steer": "native",
                "interrupt": "native", "fresh": "in-place", "answer": true, "command": true, "watch": "stream",
                "settleText": "tail",
            }},
        },
    })
}

struct Declarations(Published);

impl Declarations {
    fn new() -> Self {
        let mut published = Published::new();
        published.compile("initialize.result");
        Declarations(published)
    }

    /// Whether the full declaration is valid with another value in one place, or without the place for `None`.
    fn with(&self, place: &str, value: Option<Value>) -> bool {
        let (parent, name) = place.rsplit_once('/').unwrap();
        let mut json = declaration();
        let members = json.pointer_mut(parent).unwrap().as_object_mut().unwrap();
        match value {
            Some(value) => members.insert(name.to_owned(), value),
            None => members.remove(name),
        };
        self.0.is_valid("initialize.result", &json)
    }
}

/// LOAD-05, A-69
#[test]
fn a_declaration_may_leave_out_what_is_optional_and_nothing_else() {
    const OPTIONAL: &[&str] = &[
        "/seams/link",
        "/seams/link/push",
        "/seams/job",
        "/seams/job/start/dedupe",
        "/seams/job/start/inFlightMs",
        "/seams/job/channel",
        "/seams/job/firstTurn",
        "/seams/job/outlivesHost",
        "/seams/job/honours",
        "/seams/host",
        "/seams/host/acquire/dedupe",
        "/seams/host/acquire/inFlightMs",
        "/seams/channel",
    ];

    fn places(at: &str, json: &Value, all: &mut Vec<String>) {
        for (name, inner) in json.as_object().into_iter().flatten() {
            let place = format!("{at}/{name}");
            places(&place, inner, all);
            all.push(place);
        }
    }

    let mut all = Vec::new();
    places("", &declaration(), &mut all);
    let declarations = Declarations::new();
    for place in &all {
        assert_eq!(declarations.with(place, None), OPTIONAL.contains(&place.as_str()), "{place}");
    }
    assert!(OPTIONAL.iter().all(|place| all.iter().any(|other| other == place)));
}

/// LOAD-06
#[test]
fn a_declaration_has_no_unknown_member_at_any_depth() {
    let declarations = Declarations::new();
    for object in [
        "",
        "/plugin",
        "/seams",
        "/seams/link",
        "/seams/job",
        "/seams/job/start",
        "/seams/job/start/dedupe",
        "/seams/job/honours",
        "/seams/host",
        "/seams/host/acquire",
        "/seams/channel",
        "/seams/channel/caps",
        "/seams/channel/caps/dedupe",
    ] {
        assert!(declarations.0.is_valid("initialize.result", &declaration()));
        assert!(!declarations.with(&format!("{object}/extra"), Some(json!(true))), "{object}");
    }
}

/// LOAD-07, SEAM-06, SEAM-07, SEAM-14, A-32
#[test]
fn a_declaration_has_no_unknown_value() {
    let declarations = Declarations::new();
    for (place, value) in [
        ("/seams/link/slots", json!("many")),
        ("/seams/link/remoteOnTimeout", json!("killed")),
        ("/seams/link/quiescence", json!(true)),
        ("/seams/link/maxScriptBytes", json!(-1)),
        ("/seams/link/maxScriptBytes", json!(1.5)),
        ("/seams/link/checks", json!(["disk"])),
        ("/seams/link/push", json!(null)),
        ("/seams/job/view", json!("float")),
        ("/seams/job/handle", json!("pid")),
        ("/seams/job/kind", json!("VM")),
        ("/seams/job/channel", json!(null)),
        ("/seams/job/firstTurn", json!("never")),
        ("/seams/job/honours/roles", json!(["root"])),
        ("/seams/host/acquire/dedupe/exact", json!(false)),
        ("/seams/host/acquire/dedupe", json!("none")),
        ("/seams/channel/caps/dedupe", json!(true)),
        ("/seams/channel/caps/dedupe", json!({"exact": false, "windowMs": 1})),
        ("/seams/channel/caps/receipt", json!("maybe")),
        ("/seams/channel/caps/fresh", json!(false)),
        ("/seams/channel/caps/answer", json!("none")),
        ("/seams/channel/caps/watch", json!("push")),
        ("/seams/channel/caps/settleText", json!("some")),
        ("/seams/channel/caps/fence", json!("runs")),
        ("/schema", json!(SCHEMA_DIGEST.to_uppercase())),
        ("/schema", json!(SCHEMA_DIGEST.trim_start_matches("sha256:"))),
        ("/plugin/name", json!("mu-plugin-Box")),
        ("/plugin/version", json!("")),
    ] {
        assert!(!declarations.with(place, Some(value.clone())), "{place} {value}");
    }
}

/// LOAD-01, LOAD-03, LOAD-04, LOAD-09 to LOAD-18: a load rule is reached only by what the schema lets through.
#[test]
fn what_a_load_rule_refuses_is_legal_by_the_schema() {
    let declarations = Declarations::new();
    for (place, value) in [
        ("/protocol", json!(0)),
        ("/protocol", json!(2)),
        ("/plugin/name", json!("other")),
        ("/schema", json!(format!("sha256:{}", "0".repeat(64)))),
        ("/seams", json!({})),
        ("/seams", json!({"host": {"acquire": {"lookup": true, "fenceKey": true}}})),
        ("/seams/host/acquire", json!({"lookup": false, "fenceKey": false})),
        ("/seams/job/start", json!({"lookup": false, "fenceKey": false})),
        ("/seams/job/channel", json!("other")),
        ("/seams/job/handle", json!("pane")),
        ("/seams/job/honours/env", json!(false)),
        ("/seams/channel/caps/watch", json!("poll")),
        ("/seams/channel/caps/watch", json!("none")),
        ("/seams/channel/caps/settleText", json!("none")),
        ("/seams/channel/caps/fence", json!("incarnation")),
    ] {
        assert!(declarations.with(place, Some(value.clone())), "{place} {value}");
    }
}

/// HSK-04, A-19
#[test]
fn an_instance_has_1_to_128_characters_and_no_control_characters() {
    let declarations = Declarations::new();
    let instance = |text: String| declarations.with("/instance", Some(json!(text)));
    assert!(!instance(String::new()));
    assert!(instance("\u{1f980}".repeat(128)));
    assert!(!instance("a".repeat(129)));
    assert!(!instance("a\u{7f}".into()));
    assert!(!instance("a\n".into()));
}
