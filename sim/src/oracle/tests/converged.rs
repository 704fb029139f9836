//! What must agree in the end.

use serde_json::{Value, json};

use crate::oracle::Excuses;
use crate::oracle::converged::check;
use crate::oracle::ledger::{Books, Machine};
use crate::oracle::rows::{EffectRow, HostRow, PluginRow, Rows};

/// A provider, its host `h`, and the machine behind it; `acquire` is what it declares.
struct End {
    rows: Rows,
    books: Books,
    declares: Vec<(String, Value)>,
}

fn end(acquire: &Value) -> End {
    let text = |text: &str| text.to_owned();
    let declaration = json!({ "instance": "i", "seams": { "host": { "acquire": acquire } } });
    End {
        rows: Rows {
            plugins: vec![PluginRow {
                name: text("box"),
                instance: text("i"),
                declaration: declaration.clone(),
            }],
            hosts: vec![HostRow {
                name: text("h"),
                plugin: text("box"),
                instance: text("i"),
                state: text("ready"),
                handle: Some(text("vm")),
            }],
            ..Rows::default()
        },
        books: Books {
            machines: vec![Machine {
                instance: text("i"),
                key: text("k"),
                host: text("h"),
                handles: vec![text("vm")],
                made_ms: 1,
                gone_ms: None,
            }],
            ..Books::default()
        },
        declares: vec![(text("box"), declaration)],
    }
}

fn fenced() -> End {
    end(&json!({ "lookup": true, "fenceKey": true }))
}

impl End {
    fn found(&self) -> usize {
        check(&self.rows, &self.books, &self.declares, Excuses::default()).len()
    }

    fn open(mut self, method: &str) -> End {
        let row = super::effects::intent(&super::effects::acquire(2, "k"));
        self.rows.effects = vec![EffectRow { method: method.into(), ..row }];
        self
    }
}

#[test]
fn what_agrees_passes() {
    assert_eq!(fenced().found(), 0);
}

/// EFF-03, EFF-04
#[test]
fn an_effect_that_could_be_resolved_and_is_open_is_found() {
    assert_eq!(fenced().open("host.acquire").found(), 1);
    assert_eq!(fenced().open("host.release").found(), 1);
}

/// EFF-07, EFF-11, EFF-13
#[test]
fn an_effect_may_stay_open_for_a_named_reason() {
    let mut changed = fenced().open("host.release");
    changed.rows.plugins[0].instance = "j".into();
    assert_eq!(changed.found(), 0);
    let mut not_added_again = fenced().open("host.release");
    not_added_again.declares[0].1["instance"] = "j".into();
    assert_eq!(not_added_again.found(), 0);
    assert_eq!(end(&json!({ "lookup": false })).open("host.acquire").found(), 0);
    // An unfenced `none` counts never, but what exists is found.
    let mut unfenced = end(&json!({ "lookup": true })).open("host.acquire");
    assert_eq!(unfenced.found(), 1);
    unfenced.books.machines.clear();
    unfenced.rows.hosts.clear();
    assert_eq!(unfenced.found(), 0);
}

/// HOST-12, A-85
#[test]
fn hosts_and_machines_that_do_not_agree_are_found() {
    let mut no_host = fenced();
    no_host.rows.hosts.clear();
    assert_eq!(no_host.found(), 1);
    let mut no_machine = fenced();
    no_machine.books.machines.clear();
    assert_eq!(no_machine.found(), 1);
    let mut ended = fenced();
    ended.books.machines[0].gone_ms = Some(7);
    assert_eq!(ended.found(), 1);
    ended.rows.hosts[0].state = "lost".into();
    assert_eq!(ended.found(), 0);
    let mut renamed = fenced();
    renamed.books.machines[0].handles.push("vm-2".into());
    assert_eq!(renamed.found(), 0);
    let mut other = fenced();
    other.rows.hosts[0].handle = Some("vm-7".into());
    assert_eq!(other.found(), 2);
}

/// EFF-13
#[test]
fn a_time_in_flight_is_waited_for_unless_it_is_longer_than_anybody_waits() {
    let open = |in_flight_ms: u64| {
        let mut end = end(&json!({ "lookup": true, "inFlightMs": in_flight_ms })).open("host.acquire");
        end.books.machines.clear();
        end.rows.hosts.clear();
        end.found()
    };
    assert_eq!(open(60_000), 1);
    assert_eq!(open(1 << 53), 0);
}
