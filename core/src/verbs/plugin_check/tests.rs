use super::*;
use crate::cli::failure::Kind;
use crate::cli::output::Next;
use crate::store::Tx;
use crate::testing::{FakeOs, open, plugin, sound};

fn failure(kind: Kind, message: &str) -> Result<Stopped, Failure> {
    Err(Failure::new(kind, message))
}

#[test]
fn one_failing_plugin_is_that_failure() {
    let results = [("a", Ok(Stopped::Clean)), ("b", failure(Kind::Untrusted, "b is bad"))];
    assert_eq!(first_failure(&results), Some(Failure::new(Kind::Untrusted, "b is bad")));
}

#[test]
fn the_first_by_name_gives_the_exit_and_the_others_are_counted_and_noted() {
    let failed = [failure(Kind::PluginFailed, "b died"), failure(Kind::Untrusted, "c is bad")];
    let [second, third] = failed;
    let results = [("a", Ok(Stopped::Clean)), ("b", second), ("c", third)];
    let failure = first_failure(&results).unwrap();
    assert_eq!(failure.kind, Kind::PluginFailed);
    assert_eq!(failure.message, "b died (2 of 3 plugins fail: b, c)");
    assert_eq!(failure.notes, ["c is bad"]);
    assert_eq!(failure.next, Some(Next::alt(["mu plugin check b", "mu plugin check c"])));
}

#[test]
fn a_plugin_that_had_to_be_killed_passes_with_a_message() {
    let results = [("a", Ok(Stopped::Clean)), ("b", Ok(Stopped::Killed))];
    assert_eq!(first_failure(&results), None);
    let Data::List { rows, .. } = passed(&results, &[], false).data else { panic!() };
    let messages: Vec<_> = rows.iter().map(|row| row.value("message").unwrap().is_string()).collect();
    assert_eq!(messages, [false, true]);
    assert!(rows.iter().all(|row| row.value("ok") == Some(&json!(true))));
}

#[test]
fn the_uncut_command_repeats_the_names() {
    let names: Vec<PluginName> = vec!["a".parse().unwrap(), "b".parse().unwrap()];
    assert_eq!(passed(&[], &names, false).uncut.unwrap(), "mu plugin check a b --full");
    assert_eq!(passed(&[], &names, true).uncut, None);
}

/// A machine with the plugins box and crate, and a row of box that no verb wrote.
fn with_a_bad_row() -> FakeOs {
    let trusted = |name| format!("/opt/mu-plugin-{name}");
    let file = crate::testing::file(crate::os::FileKind::Regular, 1000, 0o755);
    let os = FakeOs::new().with_file(&trusted("box"), file).with_file(&trusted("crate"), file);
    os.block_on(async {
        let store = open(&os, Missing::Create).await;
        let rows =
            |tx: Tx<'_>| plugins::put(tx, &plugin("box", None)).and(plugins::put(tx, &plugin("crate", None)));
        store.write(rows).await.unwrap();
        let spoil = "UPDATE plugins SET declaration = '{}' WHERE name = 'box'";
        store.write(|tx| tx.sql(tx.db.execute_batch(spoil))).await.unwrap();
    });
    os.with_programs(|_| Ok(sound("crate")))
}

#[test]
fn a_row_that_mu_cannot_read_hinders_no_other_plugin_and_names_the_way_out() {
    let os = with_a_bad_row();
    assert_eq!(os.run(&["plugin", "check", "crate"]).exit, 0);
    let ran = os.run(&["plugin", "check", "box"]);
    assert_eq!((ran.exit, ran.error().as_str()), (5, "database-damaged"));
    assert_eq!(ran.next(), ["mu plugin rm box"]);
    let started = os.children().len();
    let ran = os.run(&["plugin", "check"]);
    assert_eq!((ran.exit, ran.error().as_str(), os.children().len()), (5, "database-damaged", started + 1));
    assert_eq!(os.run(&["plugin", "rm", "box"]).exit, 0);
    assert_eq!(os.run(&["plugin", "check"]).exit, 0);
}

#[test]
fn a_list_shows_the_name_of_a_row_that_mu_cannot_read_and_all_of_the_others() {
    let ran = with_a_bad_row().run(&["plugin", "list", "--json"]);
    let rows = ran.json()["data"]["plugins"].clone();
    assert_eq!((&rows[0], &rows[1]["instance"]), (&json!({"name": "box"}), &json!("prod-eu")));
    assert_eq!((ran.exit, ran.err.lines().count()), (0, 1), "{}", ran.err);
    assert!(ran.err.contains("declaration of box"), "{}", ran.err);
}
