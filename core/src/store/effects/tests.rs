use serde_json::json;

use super::*;
use crate::store::{Missing, plugins};
use crate::testing::{FakeOs, open as open_store, plugin, process};

fn moment(ms: u64, nanos: u32) -> Moment {
    let boot = BootTime {
        boot: "boot".into(),
        since: Duration::from_millis(ms) + Duration::from_nanos(nanos.into()),
    };
    Moment { wall: EpochMs(ms as i64), boot }
}

fn sent(id: u64, pgid: i32) -> Sent {
    let deadline = EpochMillis::new(60_000 + id).unwrap();
    Sent { request_id: id, deadline, group: process(pgid, 3), at: EpochMs(5) }
}

fn effect(key: &str, host: &str, method: Method) -> Effect {
    Effect {
        key: Key::new(key).unwrap(),
        method,
        plugin: "box".parse().unwrap(),
        instance: Instance::new("prod-eu").unwrap(),
        host: host.parse().unwrap(),
        params: json!({"key": key}).to_string(),
        writer: process(500, 7),
        resolver: None,
        begun: moment(1_000, 0),
        quiet: None,
        window_ms: Some(60_000),
        in_flight_ms: None,
        superseded: false,
        note: None,
        sends: vec![sent(4, 70)],
    }
}

fn with_store(test: impl AsyncFnOnce(&FakeOs, crate::store::Store<FakeOs>)) {
    let os = FakeOs::new();
    os.clone().block_on(async {
        let store = open_store(&os, Missing::Create).await;
        let put: Result<(), StoreError> = store.write(|tx| plugins::put(tx, &plugin("box", None))).await;
        put.unwrap();
        test(&os, store).await;
    });
}

async fn write<T>(store: &crate::store::Store<FakeOs>, f: impl FnOnce(Tx<'_>) -> Result<T, StoreError>) -> T {
    store.write(f).await.unwrap()
}

/// EFF-02, A-25
#[test]
fn an_intent_is_found_again_with_every_send() {
    with_store(async |_, store| {
        let mut effect = effect("k1", "a", Method::HostAcquire);
        write(&store, |tx| open(tx, &effect)).await;
        assert_eq!(store.read(|tx| find(tx, "k1")).await.unwrap().as_ref(), Some(&effect));
        write(&store, |tx| add_send(tx, &effect.key, &sent(9, 71))).await;
        effect.sends.push(sent(9, 71));
        assert_eq!(store.read(|tx| of_host(tx, &effect.host)).await.unwrap().as_ref(), Some(&effect));
        let groups: Vec<i32> = effect.parties().groups.iter().map(|group| group.pid.0).collect();
        assert_eq!(groups, [70, 71]);
        assert_eq!(store.read(|tx| of_host(tx, &"b".parse().unwrap())).await.unwrap(), None);
    });
}

/// since when all are gone is kept once, and forgotten with another send.
#[test]
fn quiet_is_rounded_up_kept_once_and_gone_with_another_send() {
    with_store(async |_, store| {
        let effect = effect("k1", "a", Method::HostAcquire);
        let quiet = async || store.read(|tx| find(tx, "k1")).await.unwrap().unwrap().quiet;
        write(&store, |tx| open(tx, &effect)).await;
        write(&store, |tx| keep_quiet(tx, &effect.key, &moment(2_000, 1))).await;
        assert_eq!(quiet().await.unwrap().boot.since, Duration::from_millis(2_001));
        write(&store, |tx| keep_quiet(tx, &effect.key, &moment(9_000, 0))).await;
        assert_eq!(quiet().await.unwrap().wall, EpochMs(2_000));
        write(&store, |tx| add_send(tx, &effect.key, &sent(9, 71))).await;
        assert_eq!(quiet().await, None);
    });
}

/// EFF-06
#[test]
fn a_claim_is_left_with_what_is_known() {
    with_store(async |_, store| {
        let effect = effect("k1", "a", Method::HostAcquire);
        write(&store, |tx| open(tx, &effect)).await;
        write(&store, |tx| claim(tx, &effect.key, &process(501, 9))).await;
        let found = async || store.read(|tx| find(tx, "k1")).await.unwrap().unwrap();
        assert_eq!(found().await.resolver, Some(process(501, 9)));
        write(&store, |tx| leave(tx, &effect.key, "fog")).await;
        let left = found().await;
        assert_eq!((left.resolver, left.note.as_deref()), (None, Some("fog")));
    });
}

/// EFF-02: what is sent again are the bytes that were sent.
#[test]
fn parameters_that_were_changed_behind_mus_back_are_not_sent_again() {
    with_store(async |os, store| {
        write(&store, |tx| open(tx, &effect("k1", "a", Method::HostAcquire))).await;
        os.connection().execute_batch("UPDATE effects SET params = '{\"key\":\"k2\"}'").unwrap();
        let error = store.read(|tx| find(tx, "k1")).await.unwrap_err();
        assert!(matches!(error, StoreError::BadRow { table: "effects", column: "params", .. }), "{error}");
    });
}

#[test]
fn a_host_has_one_open_effect_and_its_plugin_stays() {
    with_store(async |_, store| {
        write(&store, |tx| open(tx, &effect("k1", "a", Method::HostAcquire))).await;
        let second = effect("k2", "a", Method::HostRelease);
        let refused: Result<(), StoreError> = store.write(|tx| open(tx, &second)).await;
        assert!(matches!(refused, Err(StoreError::Rejected { .. })), "{refused:?}");
        let gone: Result<bool, StoreError> = store.write(|tx| plugins::remove(tx, "box")).await;
        assert!(matches!(gone, Err(StoreError::Rejected { .. })), "{gone:?}");
    });
}

/// The tables are made for all effects there are.
#[test]
fn every_effect_has_a_place() {
    with_store(async |_, store| {
        let mut keys = Vec::new();
        for method in Method::ALL.iter().copied().filter(|method| method.is_effect()) {
            let key = format!("key of {method}");
            let host = if method == Method::HostRelease { "b" } else { "a" };
            write(&store, |tx| open(tx, &effect(&key, host, method))).await;
            keys.push(key);
        }
        let all = store.read(all).await.unwrap();
        assert_eq!(all.iter().map(|(key, _)| key).collect::<Vec<_>>(), keys.iter().collect::<Vec<_>>());
        assert!(all.iter().all(|(_, effect)| effect.is_ok()));
    });
}
