//! A provider `cloud`, scripted, on a machine where it is registered.

use std::cell::RefCell;
use std::rc::Rc;

use mu_protocol::declaration::Declaration;
use mu_protocol::schema::SCHEMA_DIGEST;
use serde_json::{Value, json};

use super::{FakeOs, Heard, PluginProcess, Script, file, open};
use crate::os::{Exit, FileKind};
use crate::store::plugins::{self, Plugin};
use crate::store::{Missing, StoreError, Tx};

/// What the provider answers to a call: what is beside `jsonrpc` and `id` in the reply; `None`: it exits without a word.
pub(crate) type Serve = Box<dyn FnMut(&Value) -> Option<Value>>;

/// A declaration of `cloud` whose `acquire` has these capabilities.
pub(crate) fn declaration(acquire: Value, instance: &str) -> Declaration {
    let text = json!({"protocol": 1, "plugin": {"name": "cloud", "version": "0.1.0"}, "instance": instance,
        "schema": SCHEMA_DIGEST, "seams": {
            "link": {"fetch": true, "slots": "self", "remoteOnTimeout": "stopped", "quiescence": "provable",
                "maxScriptBytes": 131_072, "checks": []},
            "job": {"kind": "cloud", "view": "detached", "handle": "reply", "start": {"lookup": true, "fenceKey": true},
                "checks": []},
            "host": {"acquire": acquire}}});
    Declaration::from_recorded(&text.to_string()).expect("a declaration by the schema")
}

/// A machine with a provider.
pub(crate) struct Cloud {
    pub(crate) os: FakeOs,
    serve: Rc<RefCell<Serve>>,
}

impl Cloud {
    /// `cloud` is registered with these capabilities, and serves nothing yet.
    pub(crate) fn new(acquire: Value) -> Cloud {
        let serve: Rc<RefCell<Serve>> = Rc::new(RefCell::new(Box::new(|_| None)));
        let cloud = Cloud { os: FakeOs::new(), serve };
        cloud.register(declaration(acquire, "here"));
        Cloud { os: cloud.programs(), serve: cloud.serve }
    }

    /// Registers it anew.
    pub(crate) fn register(&self, declared: Declaration) {
        let plugin = Plugin { declaration: declared, ..super::plugin("cloud", None) };
        self.os.block_on(async {
            let store = open(&self.os, Missing::Create).await;
            let stored: Result<(), StoreError> = store.write(|tx: Tx<'_>| plugins::put(tx, &plugin)).await;
            stored.unwrap();
        });
    }

    fn programs(&self) -> FakeOs {
        let serve = Rc::clone(&self.serve);
        let os = self.os.clone().with_file("/opt/mu-plugin-cloud", file(FileKind::Regular, 1000, 0o755));
        os.with_programs(move |os| {
            let declared = os.block_on(async {
                let store = open(os, Missing::Empty).await;
                store.read(|tx| plugins::find(tx, "cloud")).await.unwrap().unwrap().declaration
            });
            Ok(script(declared, Rc::clone(&serve)))
        })
    }

    /// From now on it serves this way.
    pub(crate) fn serves(&self, serve: impl FnMut(&Value) -> Option<Value> + 'static) {
        *self.serve.borrow_mut() = Box::new(serve);
    }

    /// The methods that its processes were asked, in order.
    pub(crate) fn asked(&self) -> Vec<String> {
        let children = self.os.children();
        let methods = children.iter().flat_map(|child| child.borrow().methods());
        methods.filter(|method| method.contains('.')).collect()
    }

    /// The requests of its processes, in order.
    pub(crate) fn requests(&self) -> Vec<Value> {
        let children = self.os.children();
        let lines = children.iter().flat_map(|child| child.borrow().lines.clone());
        let lines = lines.map(|line| serde_json::from_str::<Value>(&line).unwrap());
        lines.filter(|line| line["method"].as_str().unwrap().contains('.')).collect()
    }

    /// How many rows a table has.
    pub(crate) fn count(&self, table: &str) -> i64 {
        let sql = format!("SELECT count(*) FROM {table}");
        self.os.connection().query_row(&sql, [], |row| row.get(0)).unwrap()
    }
}

fn script(declared: Declaration, serve: Rc<RefCell<Serve>>) -> Script {
    Box::new(move |plugin: &mut PluginProcess, heard| match heard {
        Heard::Line(line) => {
            let line: Value = serde_json::from_str(line).unwrap();
            let mut reply = match line["method"].as_str().unwrap() {
                "initialize" => {
                    let result: Value = serde_json::from_str(&declared.to_json()).unwrap();
                    json!({ "result": result })
                }
                method if method.contains('.') => match (serve.borrow_mut())(&line) {
                    Some(reply) => reply,
                    None => return plugin.exit = Some(Exit::Status(0)),
                },
                _ => return,
            };
            reply["jsonrpc"] = json!("2.0");
            reply["id"] = line["id"].clone();
            plugin.says(&format!("{reply}\n"));
        }
        Heard::End => plugin.exit = Some(Exit::Status(0)),
    })
}
