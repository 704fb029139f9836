use super::*;
use crate::cli::failure::Kind;
use crate::cli::output::Next;
use crate::testing::plugin;

fn failure(kind: Kind, message: &str) -> Result<Stopped, Failure> {
    Err(Failure::new(kind, message))
}

#[test]
fn one_failing_plugin_is_that_failure() {
    let (a, b) = (plugin("a", None), plugin("b", None));
    let results = [(&a, Ok(Stopped::Clean)), (&b, failure(Kind::Untrusted, "b is bad"))];
    assert_eq!(first_failure(&results), Some(Failure::new(Kind::Untrusted, "b is bad")));
}

#[test]
fn the_first_by_name_gives_the_exit_and_the_others_are_counted_and_noted() {
    let (a, b, c) = (plugin("a", None), plugin("b", None), plugin("c", None));
    let failed = [failure(Kind::PluginFailed, "b died"), failure(Kind::Untrusted, "c is bad")];
    let [second, third] = failed;
    let results = [(&a, Ok(Stopped::Clean)), (&b, second), (&c, third)];
    let failure = first_failure(&results).unwrap();
    assert_eq!(failure.kind, Kind::PluginFailed);
    assert_eq!(failure.message, "b died (2 of 3 plugins fail: b, c)");
    assert_eq!(failure.notes, ["c is bad"]);
    assert_eq!(failure.next, Some(Next::alt(["mu plugin check b", "mu plugin check c"])));
}

#[test]
fn a_plugin_that_had_to_be_killed_passes_with_a_message() {
    let (a, b) = (plugin("a", None), plugin("b", None));
    let results = [(&a, Ok(Stopped::Clean)), (&b, Ok(Stopped::Killed))];
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
