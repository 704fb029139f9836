use super::*;
use crate::store::{Missing, plugins};
use crate::testing::dock::{host, register, with_link};
use crate::testing::{FakeOs, declaration, open};
use serde_json::json;

fn machine(hosts: &[Profile]) -> FakeOs {
    let os = FakeOs::new();
    register(&os, with_link(json!({})), hosts);
    os
}

fn sql(os: &FakeOs, sql: &str) -> rusqlite::Result<()> {
    os.connection().execute_batch(sql)
}

#[test]
fn what_was_inserted_is_found_again_by_name() {
    let mut full = host("quay", &declaration("box", None));
    full.fetch_template = Some("git fetch {remote}".into());
    full.repo = Some("/srv/app".into());
    full.max_sessions = 7;
    let plain = host("dock", &declaration("box", None));
    let os = machine(&[full.clone(), plain.clone()]);
    os.block_on(async {
        let store = open(&os, Missing::Empty).await;
        assert_eq!(store.read(|tx| find(tx, &full.name)).await, Ok(Some(full.clone())));
        assert_eq!(
            store.read(crate::store::hosts::names).await,
            Ok(vec!["dock".to_owned(), "quay".to_owned()])
        );
        let wanted = [plain, full].map(|host| (host.name.to_string(), Ok(host)));
        assert_eq!(store.read(all).await.unwrap(), wanted);
    });
}

/// HSK-05
#[test]
fn the_identity_is_the_plugin_and_its_instance_and_follows_a_new_declaration() {
    let os = machine(&[host("dock", &declaration("box", None))]);
    os.block_on(async {
        let store = open(&os, Missing::Create).await;
        let identities = |tx: Tx<'_>| {
            all(tx)?.into_iter().map(|(_, host)| Ok(host?.identity)).collect::<Result<Vec<_>, StoreError>>()
        };
        assert_eq!(store.read(identities).await.unwrap(), ["plugin:box:prod-eu"]);
        let other = Declaration { instance: "eu:2".into(), ..declaration("box", None) };
        store.write(|tx| follow(tx, &"crate".parse().unwrap(), &other)).await.unwrap();
        assert_eq!(store.read(identities).await.unwrap(), ["plugin:box:prod-eu"]);
        store.write(|tx| follow(tx, &"box".parse().unwrap(), &other)).await.unwrap();
        assert_eq!(store.read(identities).await.unwrap(), ["plugin:box:eu:2"]);
    });
}

/// REG-12, HSK-05
#[test]
fn the_table_itself_holds_its_rules() {
    let os = machine(&[host("dock", &declaration("box", None))]);
    let row = |values: &str| format!("PRAGMA foreign_keys = ON; INSERT INTO host_profiles VALUES ({values})");
    assert_eq!(sql(&os, &row("'quay', 'box', 'plugin:box:x', NULL, NULL, 1, 0")), Ok(()));
    for values in [
        "'Pier', 'box', 'plugin:box:x', NULL, NULL, 1, 0",
        "'pier', 'crate', 'plugin:crate:x', NULL, NULL, 1, 0",
        "'pier', 'box', 'pier', NULL, NULL, 1, 0",
        "'pier', 'box', 'plugin:box:', NULL, NULL, 1, 0",
        "'pier', 'box', 'plugin:box:x', '', NULL, 1, 0",
        "'pier', 'box', 'plugin:box:x', NULL, '', 1, 0",
        "'pier', 'box', 'plugin:box:x', NULL, NULL, 0, 0",
        "'pier', 'box', 'plugin:box:x', NULL, NULL, 'one', 0",
        "'dock', 'box', 'plugin:box:x', NULL, NULL, 1, 0",
    ] {
        assert!(sql(&os, &row(values)).is_err(), "{values}");
    }
    assert!(sql(&os, "PRAGMA foreign_keys = ON; DELETE FROM plugins").is_err());
    os.block_on(async {
        let store = open(&os, Missing::Create).await;
        let named = store.read(|tx| plugins::references(tx, "box", plugins::REFERENCES)).await;
        assert_eq!(named.unwrap(), ["host dock", "host quay"]);
    });
}

#[test]
fn a_row_that_no_verb_wrote_is_named_with_its_column() {
    let os = machine(&[host("dock", &declaration("box", None))]);
    sql(&os, "UPDATE host_profiles SET max_sessions = 5000000000").unwrap();
    os.block_on(async {
        let store = open(&os, Missing::Empty).await;
        let error = store.read(|tx| find(tx, &"dock".parse().unwrap())).await.unwrap_err();
        assert!(
            error.to_string().contains("host_profiles") && error.to_string().contains("max_sessions of dock")
        );
    });
}
