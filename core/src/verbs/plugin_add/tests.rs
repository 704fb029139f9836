use super::*;
use crate::store::StoreError;
use crate::testing::{FakeOs, declaration, open, plugin};

fn name() -> PluginName {
    "box".parse().unwrap()
}

fn argv() -> Vec<String> {
    vec!["/opt/mu-plugin-box".into()]
}

fn put(os: &FakeOs, plugins: &[Plugin]) {
    os.block_on(async {
        let store = open(os, Missing::Create).await;
        let put = |tx: Tx<'_>| plugins.iter().try_for_each(|plugin| plugins::put(tx, plugin));
        let stored: Result<(), StoreError> = store.write(put).await;
        stored.unwrap();
    });
}

fn recorded(os: &FakeOs, argv: Vec<String>, channel: Option<&str>) -> Result<Plugin, Failure> {
    os.block_on(async {
        let store = open(os, Missing::Create).await;
        store.write(|tx| record(tx, &name(), argv, declaration("box", channel), EpochMs(5000))).await
    })
}

fn stored(os: &FakeOs) -> Option<Plugin> {
    os.block_on(async { open(os, Missing::Create).await.read(|tx| plugins::find(tx, "box")).await.unwrap() })
}

/// REG-09
#[test]
fn what_the_plugin_declared_is_stored() {
    let os = FakeOs::new();
    let plugin = recorded(&os, argv(), Some("chat")).unwrap();
    assert_eq!((plugin.added_at, plugin.declared_at), (EpochMs(5000), EpochMs(5000)));
    assert_eq!(stored(&os), Some(plugin));
}

/// REG-10
#[test]
fn a_second_add_replaces_the_declaration_and_keeps_the_first_date() {
    let os = FakeOs::new();
    put(&os, &[plugin("box", None)]);
    let plugin = recorded(&os, argv(), Some("chat")).unwrap();
    assert_eq!((plugin.added_at, plugin.declared_at), (EpochMs(1000), EpochMs(5000)));
    assert_eq!(stored(&os).unwrap().channel(), Some("chat"));
}

/// REG-11
#[test]
fn a_row_that_another_mu_added_meanwhile_is_judged_again() {
    let os = FakeOs::new();
    put(&os, &[plugin("box", None)]);
    let other = vec!["/usr/bin/mu-plugin-box".into()];
    assert_eq!(recorded(&os, other, None).unwrap_err().kind, Kind::ArgvDiffers);
    assert_eq!(stored(&os), Some(plugin("box", None)));
}

/// REG-14
#[test]
fn a_channel_that_another_plugin_holds_is_refused_and_the_old_row_stays() {
    let os = FakeOs::new();
    put(&os, &[plugin("box", None), plugin("crate", Some("chat"))]);
    let failure = recorded(&os, argv(), Some("chat")).unwrap_err();
    assert_eq!(failure.kind, Kind::ChannelTaken);
    assert!(failure.message.contains("crate"), "{}", failure.message);
    assert_eq!(failure.next.unwrap().commands(), ["mu plugin show crate"]);
    assert_eq!(stored(&os), Some(plugin("box", None)));
}

/// REG-14
#[test]
fn a_plugin_keeps_its_own_channel() {
    let os = FakeOs::new();
    put(&os, &[plugin("box", Some("chat"))]);
    assert!(recorded(&os, argv(), Some("chat")).is_ok());
}
