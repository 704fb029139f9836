//! A host `dock`, whose link is the scripted plugin `box`.

use mu_protocol::declaration::Declaration;
use serde_json::{Value, json};

use super::{FakeOs, Heard, PluginProcess, Script, declaration, file, open};
use crate::invocation::Invocation;
use crate::link::Link;
use crate::os::{EpochMs, Exit, FileKind};
use crate::store::plugins::{self, Plugin};
use crate::store::profiles::{self, Profile};
use crate::store::{Missing, StoreError, Tx};
use crate::verbs::name::HostName;

/// The declaration of `box` with these members of its link changed.
pub(crate) fn with_link(changes: Value) -> Declaration {
    let mut text: Value = serde_json::from_str(&declaration("box", None).to_json()).unwrap();
    let link = text["seams"]["link"].as_object_mut().unwrap();
    link.extend(changes.as_object().unwrap().clone());
    Declaration::from_recorded(&text.to_string()).expect("a declaration by the schema")
}

/// A host of `box`.
pub(crate) fn host(name: &str, declaration: &Declaration) -> Profile {
    let plugin = "box".parse().unwrap();
    Profile {
        name: name.parse().unwrap(),
        identity: profiles::identity(&plugin, declaration),
        plugin,
        fetch_template: None,
        repo: None,
        max_sessions: 1,
        added_at: EpochMs(3000),
    }
}

/// Registers `box` with this declaration, and these hosts.
pub(crate) fn register(os: &FakeOs, declaration: Declaration, hosts: &[Profile]) {
    let mut plugin: Plugin = super::plugin("box", None);
    plugin.declaration = declaration;
    os.block_on(async {
        let store = open(os, Missing::Create).await;
        let put = |tx: Tx<'_>| {
            plugins::put(tx, &plugin)?;
            hosts.iter().try_for_each(|host| profiles::insert(tx, host))
        };
        let stored: Result<(), StoreError> = store.write(put).await;
        stored.unwrap();
    });
}

/// A machine where `dock` is registered and `box` serves each call by `serve`: what is beside `jsonrpc` and `id` in the
/// reply, or nothing yet.
pub(crate) fn dock(
    declaration: Declaration,
    change: impl FnOnce(&mut Profile),
    serve: impl FnMut(&Value) -> Option<Value> + Clone + 'static,
) -> FakeOs {
    let os = FakeOs::new();
    let mut host = host("dock", &declaration);
    change(&mut host);
    register(&os, declaration.clone(), &[host]);
    trusted(os).with_programs(move |_| Ok(serving(&declaration, serve.clone())))
}

/// The machine with the file of `box`.
pub(crate) fn trusted(os: FakeOs) -> FakeOs {
    os.with_file("/opt/mu-plugin-box", file(FileKind::Regular, 1000, 0o755))
}

/// A plugin that declares this and serves each call by `serve`; it exits with its stdin.
pub(crate) fn serving(
    declaration: &Declaration,
    mut serve: impl FnMut(&Value) -> Option<Value> + 'static,
) -> Script {
    let declaration: Value = serde_json::from_str(&declaration.to_json()).unwrap();
    Box::new(move |plugin, heard| {
        let Heard::Line(line) = heard else {
            plugin.exit = Some(Exit::Status(0));
            return;
        };
        let request: Value = serde_json::from_str(line).unwrap();
        if request["method"] == "initialize" {
            replies(plugin, &request, json!({"result": declaration}));
        } else if request["id"].is_u64()
            && let Some(reply) = serve(&request)
        {
            replies(plugin, &request, reply);
        }
    })
}

fn replies(plugin: &mut PluginProcess, request: &Value, mut reply: Value) {
    reply["jsonrpc"] = json!("2.0");
    reply["id"] = request["id"].clone();
    plugin.says(&format!("{reply}\n"));
}

/// A reply with a run that wrote `stdout`.
pub(crate) fn ran(exit_code: Value, stdout: &str) -> Value {
    json!({"result": {"exitCode": exit_code, "stdout": stdout, "stderr": "", "partial": false}})
}

/// A reply with an error.
pub(crate) fn error(data: Value) -> Value {
    json!({"error": {"code": -32000, "message": "said so\nand more", "data": data}})
}

/// The calls that the plugin's processes got, without their ids and deadlines.
pub(crate) fn calls(os: &FakeOs) -> Vec<Value> {
    let mut calls = Vec::new();
    for child in os.children() {
        for line in &child.borrow().lines {
            let mut line: Value = serde_json::from_str(line).unwrap();
            if line["id"].is_u64() && line["method"] != "initialize" {
                line["params"].as_object_mut().unwrap().remove("deadline").expect("each call has one");
                calls.push(json!({"method": line["method"], "params": line["params"]}));
            }
        }
    }
    calls
}

/// Runs `f` with the link of `dock`, in an invocation of its own.
pub(crate) fn linked<T>(os: &FakeOs, f: impl AsyncFnOnce(&Link<'_, FakeOs>) -> T) -> T {
    let invocation = Invocation::new(os.clone());
    let name: HostName = "dock".parse().unwrap();
    os.block_on(invocation.run(async {
        let store = crate::store::Store::open(&invocation, Missing::Create).await.unwrap();
        let link = Link::open(&invocation, &store, &name).await.unwrap();
        f(&link).await
    }))
}
