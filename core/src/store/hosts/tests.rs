use mu_protocol::objects::from_json;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use serde_json::{Value, json};

use super::*;
use crate::store::{Missing, plugins};
use crate::testing::{FakeOs, open, plugin};

fn host(name: &str, state: State) -> Host {
    Host {
        name: name.parse().unwrap(),
        plugin: "box".parse().unwrap(),
        instance: Instance::new("prod-eu").unwrap(),
        key: Key::new("k1").unwrap(),
        state,
        params: Params::from([("size".into(), "large".into())]),
        facts: Facts {
            deadline_at: Some(EpochMillis::new(9).unwrap()),
            idle_reclaim_ms: None,
            max_jobs: Some(Count::new(2).unwrap()),
        },
        since: EpochMs(5),
    }
}

fn handle(text: &str) -> Handle {
    Handle::new(text).unwrap()
}

#[test]
fn a_host_is_found_again_in_every_state() {
    let os = FakeOs::new();
    os.clone().block_on(async {
        let store = open(&os, Missing::Create).await;
        let states = [
            State::Acquiring,
            State::Ready(handle("i-1")),
            State::Releasing(handle("i-1")),
            State::Lost { handle: handle("i-1"), reason: "fire".into() },
        ];
        for state in states {
            let host = host("a", state);
            let put = |tx: Tx<'_>| plugins::put(tx, &plugin("box", None)).and(put(tx, &host));
            let stored: Result<(), StoreError> = store.write(put).await;
            stored.unwrap();
            assert_eq!(store.read(|tx| find(tx, &host.name)).await, Ok(Some(host.clone())));
            assert_eq!(store.read(all).await.unwrap(), [("a".to_owned(), Ok(host))]);
        }
        let removed: Result<(), StoreError> = store.write(|tx| remove(tx, &"a".parse().unwrap())).await;
        removed.unwrap();
        assert_eq!(store.read(names).await, Ok(vec![]));
    });
}

/// HOST-03: before there is a handle there is no instance to name either.
#[test]
fn a_target_names_handle_and_instance_once_there_is_a_handle() {
    let target = |state| serde_json::to_value(host("a", state).target()).unwrap();
    assert_eq!(target(State::Acquiring), json!({"name": "a"}));
    let whole = json!({"name": "a", "handle": "i-1", "instance": "prod-eu"});
    assert_eq!(target(State::Ready(handle("i-1"))), whole);
}

/// HOST-09, HOST-10
#[test]
fn a_fact_that_is_left_out_stays_and_one_that_is_null_goes() {
    let facts = host("a", State::Acquiring).facts;
    let up = |json: serde_json::Value| facts.patched(serde_json::from_value(json).unwrap());
    assert_eq!(up(json!({"state": "up", "handle": "h"})), facts);
    let patched = up(json!({"state": "up", "handle": "h", "deadlineAt": null, "idleReclaimMs": 7}));
    let wanted =
        Facts { deadline_at: None, idle_reclaim_ms: Some(Millis::new(7).unwrap()), max_jobs: facts.max_jobs };
    assert_eq!(patched, wanted);
    assert_eq!(up(json!({"state": "unknown", "reason": "fog"})), facts);
}

#[test]
fn a_row_that_contradicts_itself_is_refused_by_the_table() {
    let os = FakeOs::new();
    os.clone().block_on(async {
        let store = open(&os, Missing::Create).await;
        let put = |tx: Tx<'_>| {
            plugins::put(tx, &plugin("box", None)).and(put(tx, &host("a", State::Ready(handle("h")))))
        };
        let stored: Result<(), StoreError> = store.write(put).await;
        stored.unwrap();
    });
    for change in [
        "handle = NULL",
        "state = 'acquiring'",
        "state = 'lost'",
        "reason = 'x'",
        "state = 'x'",
        "max_jobs = -1",
    ] {
        assert!(os.connection().execute_batch(&format!("UPDATE hosts SET {change}")).is_err(), "{change}");
    }
}

/// What a provider may say about a host, as the text that comes from it.
fn status() -> impl Strategy<Value = Value> {
    let fact =
        || prop_oneof![Just(None), Just(Some(Value::Null)), (0..4_u64).prop_map(|fact| Some(json!(fact)))];
    let up = [fact(), fact(), fact()].prop_map(|facts| {
        let mut up = json!({"state": "up", "handle": "i-1"});
        for (name, fact) in FACTS.iter().zip(facts) {
            if let Some(fact) = fact {
                up[name] = fact;
            }
        }
        up
    });
    let other = prop_oneof![
        Just(json!({"state": "unknown", "reason": "no answer"})),
        Just(json!({"state": "gone", "reason": "fire"})),
        Just(json!({"state": "needs-human", "remedy": "unlock it"})),
    ];
    prop_oneof![4 => up, 1 => other]
}

const FACTS: [&str; 3] = ["deadlineAt", "idleReclaimMs", "maxJobs"];

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 256,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(1),
        ..ProptestConfig::default()
    })]

    /// HOST-09, HOST-10, HOST-16: a fact is what the last `up` said that named it at all.
    #[test]
    fn a_fact_is_what_was_said_of_it_last(
        first in [proptest::option::of(0..4_u64), proptest::option::of(0..4_u64), proptest::option::of(0..4_u64)],
        statuses in proptest::collection::vec(status(), 0..6),
    ) {
        let mut facts = Facts {
            deadline_at: first[0].map(|fact| EpochMillis::new(fact).unwrap()),
            idle_reclaim_ms: first[1].map(|fact| Millis::new(fact).unwrap()),
            max_jobs: first[2].map(|fact| Count::new(fact).unwrap()),
        };
        for status in &statuses {
            facts = facts.patched(from_json(&status.to_string()).unwrap());
        }
        let said = |place: usize| {
            let named = statuses.iter().rev().find_map(|status| status.get(FACTS[place]));
            named.map_or(first[place], Value::as_u64)
        };
        let found = [
            facts.deadline_at.map(EpochMillis::value),
            facts.idle_reclaim_ms.map(Millis::value),
            facts.max_jobs.map(Count::value),
        ];
        prop_assert_eq!(found, [said(0), said(1), said(2)]);
    }
}
