//! The whole of mu on a machine that executes nothing: what verbs print and how they exit.

use std::io;
use std::os::unix::ffi::OsStringExt;
use std::task::Poll;
use std::time::Duration;

use serde_json::{Value, json};

use crate::os::{FileKind, Signal};
use crate::store::{Missing, Tx, plugins};
use crate::testing::{FakeOs, Ran, file, open, plugin};

mod effects;
mod growth;
mod hosts;

fn machine(names: &[&str]) -> FakeOs {
    let os = FakeOs::new();
    os.block_on(async {
        let store = open(&os, Missing::Create).await;
        let put = |tx: Tx<'_>| names.iter().try_for_each(|name| plugins::put(tx, &plugin(name, None)));
        store.write(put).await.unwrap();
    });
    os
}

fn failed(ran: &Ran, exit: u8, error: &str) {
    assert_eq!((ran.exit, ran.error().as_str()), (exit, error), "{ran:?}");
}

/// OUT-03
#[test]
fn every_bad_command_line_is_an_envelope_with_exit_2() {
    let os = FakeOs::new();
    let cases: &[(&[&str], &str)] = &[
        (&[], "usage"),
        (&["nothing"], "usage"),
        (&["plugin"], "usage"),
        (&["plugin", "list", "--nothing"], "usage"),
        (&["plugin", "list", "more"], "usage"),
        (&["plugin", "show"], "usage"),
        (&["plugin", "add", "box", "/x/mu-plugin-box"], "usage"),
        (&["plugin", "add", "box", "--"], "usage"),
        (&["plugin", "add", "Box", "--", "/x/mu-plugin-Box"], "bad-name"),
        (&["plugin", "show", "b.x"], "bad-name"),
        (&["plugin", "rm", ""], "bad-name"),
        (&["completions", "tcsh"], "usage"),
    ];
    for (args, error) in cases {
        for json in [false, true] {
            let mut args = args.to_vec();
            if json {
                args.insert(0, "--json");
            }
            let ran = os.run(&args);
            failed(&ran, 2, error);
            assert_eq!(ran.err.is_empty(), json, "{args:?}: {}", ran.err);
        }
    }
    assert!(!os.database().exists());
}

#[test]
fn a_failure_for_people_is_one_line_on_stderr_with_the_message_of_the_envelope() {
    let ran = FakeOs::new().run(&["plugin", "show", "box"]);
    assert_eq!(ran.err, format!("mu: {}\n", ran.message()));
}

#[test]
fn a_name_nobody_has_is_exit_3_with_near_names() {
    let os = machine(&["cloud", "crate"]);
    for verb in ["show", "rm", "check"] {
        let ran = os.run(&["plugin", verb, "cluod"]);
        failed(&ran, 3, "unknown-plugin");
        assert!(ran.message().ends_with("did you mean cloud?"), "{}", ran.message());
        assert_eq!(ran.next(), ["mu plugin list"]);
    }
}

#[test]
fn a_list_on_a_fresh_machine_is_empty_and_creates_nothing() {
    let os = FakeOs::new();
    assert_eq!(os.run(&["plugin", "list", "--json"]).json()["data"], json!({"plugins": [], "more": 0}));
    assert_eq!(os.run(&["plugin", "list"]).out, "");
    failed(&os.run(&["plugin", "rm", "box"]), 3, "unknown-plugin");
    failed(&os.run(&["plugin", "show", "box"]), 3, "unknown-plugin");
    assert!(!os.database().parent().unwrap().exists());
}

#[test]
fn the_list_is_a_table_for_people_and_rows_in_json() {
    let os = machine(&["crate", "box"]);
    let table = "NAME   VERSION  INSTANCE  SEAMS  CHANNEL  ARGV\n\
        box    0.1.0    prod-eu   link   -        /opt/mu-plugin-box\n\
        crate  0.1.0    prod-eu   link   -        /opt/mu-plugin-crate\n";
    assert_eq!(os.run(&["plugin", "list"]).out, table);
    let row = json!({"name": "box", "version": "0.1.0", "instance": "prod-eu", "seams": ["link"], "channel": null,
        "argv": ["/opt/mu-plugin-box"]});
    assert_eq!(os.run(&["--json", "plugin", "list"]).json()["data"]["plugins"][0], row);
}

/// OUT-09, OUT-11
#[test]
fn a_long_list_ends_with_the_command_for_the_rest() {
    let names: Vec<String> = (0..60).map(|n| format!("plugin-{n:02}")).collect();
    let os = machine(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let ran = os.run(&["plugin", "list"]);
    let last: Vec<&str> = ran.out.lines().rev().take(2).collect();
    assert_eq!(last[0], "next: mu plugin list --full");
    assert!(last[1].starts_with("more="), "{}", ran.out);
    assert_eq!(os.run(&["plugin", "list", "--full"]).out.lines().count(), 61);
}

#[test]
fn show_returns_every_column_next_to_the_declaration() {
    let os = machine(&["box"]);
    let ran = os.run(&["plugin", "show", "box", "--json"]);
    let row = &ran.json()["data"];
    let sql = "SELECT group_concat(name) AS names FROM (SELECT name FROM pragma_table_info('plugins') ORDER BY name)";
    let columns = os.run(&["sql", "--json", sql]).json()["data"]["rows"][0]["names"].clone();
    let keys: Vec<&String> = row.as_object().unwrap().keys().collect();
    assert_eq!(json!(keys.iter().map(|key| key.as_str()).collect::<Vec<_>>().join(",")), columns);
    assert_eq!(row["declaration"]["seams"]["link"]["maxScriptBytes"], json!(131_072));
    assert!(os.run(&["plugin", "show", "box"]).out.contains("declared_at    1970-01-01T00:00:02Z\n"));
}

#[test]
fn rm_returns_the_row_and_frees_the_name() {
    let os = machine(&["box"]);
    let ran = os.run(&["plugin", "rm", "box", "--json"]);
    assert_eq!((ran.exit, &ran.json()["data"]["name"]), (0, &json!("box")));
    failed(&os.run(&["plugin", "rm", "box"]), 3, "unknown-plugin");
}

#[test]
fn rm_removes_a_row_that_mu_cannot_read() {
    let os = machine(&["box"]);
    assert_eq!(os.run(&["sql", "--write", "UPDATE plugins SET argv = '[1]'"]).exit, 0);
    failed(&os.run(&["plugin", "show", "box"]), 5, "database-damaged");
    assert_eq!(os.run(&["plugin", "rm", "box"]).exit, 0);
    assert_eq!(os.run(&["plugin", "list"]).exit, 0);
}

#[test]
fn the_schema_is_printed_byte_for_byte_and_wrapped_in_json() {
    use mu_protocol::schema::{SCHEMA, SCHEMA_DIGEST};
    let os = FakeOs::new();
    assert_eq!(os.run(&["plugin", "schema"]).out, SCHEMA);
    assert_eq!(os.run(&["plugin", "schema", "--digest"]).out, format!("{SCHEMA_DIGEST}\n"));
    let data = os.run(&["plugin", "schema", "--json"]).json()["data"].clone();
    assert_eq!(data, json!({"schema_digest": SCHEMA_DIGEST, "schema": SCHEMA}));
    assert_eq!(os.looked_at(), Vec::<String>::new());
}

#[test]
fn completions_exist_for_three_shells_and_know_the_verbs() {
    let os = FakeOs::new();
    for shell in ["bash", "zsh", "fish"] {
        let ran = os.run(&["completions", shell]);
        assert!(ran.exit == 0 && ran.out.contains("schema") && ran.out.contains("completions"), "{shell}");
    }
}

#[test]
fn help_is_on_stdout_with_exit_0_and_wrapped_in_json() {
    let os = FakeOs::new();
    let ran = os.run(&["plugin", "add", "--help"]);
    assert!(ran.exit == 0 && ran.err.is_empty() && ran.out.starts_with("Register a plugin"), "{ran:?}");
    let wrapped = os.run(&["plugin", "add", "--help", "--json"]).json();
    assert_eq!(wrapped["data"]["help"], json!(ran.out.trim_end()));
}

/// REG-03 to REG-07
#[test]
fn an_untrusted_file_is_exit_4_at_add_before_anything_is_made() {
    let path = "/opt/mu-plugin-box";
    let trusted = file(FileKind::Regular, 1000, 0o755);
    let cases = [
        ("mu-plugin-box", None),
        ("/opt/mu-plugin-crate", None),
        (path, None),
        (path, Some(file(FileKind::Directory, 1000, 0o755))),
        (path, Some(file(FileKind::Fifo, 1000, 0o644))),
        (path, Some(file(FileKind::Regular, 0, 0o755))),
        (path, Some(file(FileKind::Regular, 1000, 0o775))),
        (path, Some(file(FileKind::Regular, 1000, 0o757))),
    ];
    for (argv0, facts) in cases {
        let os = facts.into_iter().fold(FakeOs::new(), |os, facts| os.with_file(path, facts));
        let ran = os.run(&["plugin", "add", "box", "--", argv0, "--json"]);
        failed(&ran, 4, "untrusted");
        assert!(ran.message().starts_with("plugin box: "), "{}", ran.message());
        assert!(!os.database().parent().unwrap().exists());
    }
    // The next step is the start itself, which a machine that executes nothing fails.
    let os = FakeOs::new().with_file(path, trusted);
    failed(&os.run(&["plugin", "add", "box", "--", path]), 5, "plugin-failed");
}

/// REG-08
#[test]
fn an_untrusted_file_is_exit_4_at_every_start() {
    let os = machine(&["box"]).with_file("/opt/mu-plugin-box", file(FileKind::Regular, 1000, 0o775));
    failed(&os.run(&["plugin", "check", "box"]), 4, "untrusted");
    failed(&os.run(&["plugin", "check"]), 4, "untrusted");
}

/// REG-11
#[test]
fn another_command_line_for_a_known_name_is_refused_and_changes_nothing() {
    let os = machine(&["box"]).with_file("/opt/mu-plugin-box", file(FileKind::Regular, 1000, 0o755));
    let before = os.run(&["plugin", "show", "box", "--json"]).out;
    let ran = os.run(&["plugin", "add", "box", "--", "/opt/mu-plugin-box", "it's", ""]);
    failed(&ran, 4, "argv-differs");
    let again = r"mu plugin add box -- /opt/mu-plugin-box 'it'\''s' ''";
    assert_eq!(ran.json()["next"], json!({"mode": "seq", "commands": ["mu plugin rm box", again]}));
    assert_eq!(os.run(&["plugin", "show", "box", "--json"]).out, before);
}

#[test]
fn an_argument_that_is_not_utf_8_is_exit_2() {
    let os = FakeOs::new();
    let mut args: Vec<_> =
        ["plugin", "add", "box", "--", "/opt/mu-plugin-box"].map(std::ffi::OsString::from).into();
    args.push(std::ffi::OsString::from_vec(vec![b'a', 0xff]));
    failed(&os.run(&args), 2, "bad-argument");
}

/// REG-10
#[test]
fn a_failed_add_of_a_known_plugin_keeps_the_old_row() {
    let os = machine(&["box"]).with_file("/opt/mu-plugin-box", file(FileKind::Regular, 1000, 0o755));
    let before = os.run(&["plugin", "show", "box", "--json"]).out;
    failed(&os.run(&["plugin", "add", "box", "--", "/opt/mu-plugin-box"]), 5, "plugin-failed");
    assert_eq!(os.run(&["plugin", "show", "box", "--json"]).out, before);
}

#[test]
fn a_check_of_no_plugin_passes_with_an_empty_list() {
    assert_eq!(
        FakeOs::new().run(&["plugin", "check", "--json"]).json()["data"],
        json!({"plugins": [], "more": 0})
    );
}

#[test]
fn no_variable_for_the_database_is_exit_2() {
    failed(&FakeOs::new().with_var("MU_DB_PATH", "").run(&["plugin", "list"]), 2, "no-database-path");
}

#[test]
fn a_database_that_cannot_be_used_is_exit_5_in_every_verb_that_needs_it() {
    let os = FakeOs::new();
    os.connection();
    std::fs::write(os.database(), b"no database at all ".repeat(200)).unwrap();
    for args in
        [&["plugin", "list"][..], &["plugin", "rm", "box"], &["plugin", "check"], &["sql", "SELECT 1"]]
    {
        failed(&os.run(args), 5, "database-damaged");
    }
}

#[test]
fn a_read_only_database_is_exit_5_and_loses_nothing() {
    let os = machine(&["box"]).read_only();
    for args in [["plugin", "rm", "box"], ["plugin", "show", "box"]] {
        let ran = os.run(&args);
        failed(&ran, 5, "database-unusable");
        assert!(ran.message().contains("read-only"), "{}", ran.message());
    }
    let count = "SELECT count(*) FROM plugins";
    assert_eq!(os.connection().query_row(count, [], |row| row.get::<_, i64>(0)), Ok(1));
}

#[test]
fn a_database_that_stays_locked_is_exit_5() {
    let os = machine(&["box"]);
    let other = os.connection();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    failed(&os.run(&["plugin", "rm", "box"]), 5, "database-busy");
}

/// PRC-12
#[test]
fn a_signal_that_no_verb_answers_ends_mu_by_that_signal_with_nothing_on_stdout() {
    for (signal, exit) in [(Signal::Interrupt, 130), (Signal::Terminate, 143), (Signal::HangUp, 129)] {
        let os = machine(&["box"]);
        os.signal(signal);
        let ran = os.run(&["plugin", "list", "--json"]);
        assert_eq!((ran.exit, ran.out.as_str()), (exit, ""));
        assert_eq!(ran.err.lines().count(), 1);
        assert!(ran.err.starts_with(&format!("mu: ended by {}", signal.name())), "{}", ran.err);
        assert_eq!(os.raised(), [signal]);
    }
}

/// PRC-12
#[test]
fn the_line_on_stderr_says_whether_the_work_was_done() {
    let os = machine(&["box"]);
    os.signal(Signal::Terminate);
    let ran = os.run(&["plugin", "rm", "box"]);
    assert_eq!(ran.err, "mu: ended by SIGTERM, after: plugin box is no longer registered\n");
    os.signal(Signal::Terminate);
    let ran = os.run(&["plugin", "rm", "box"]);
    assert!(
        ran.err.starts_with("mu: ended by SIGTERM, after: no plugin is registered as box"),
        "{}",
        ran.err
    );
}

#[test]
fn a_signal_ends_a_wait_for_the_database() {
    let os = machine(&["box"]);
    let other = os.connection();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let sender = os.clone();
    os.after(Duration::from_secs(1), move || sender.signal(Signal::Interrupt));
    let ran = os.run(&["plugin", "rm", "box"]);
    assert_eq!((ran.exit, ran.out.as_str(), ran.err.as_str()), (130, "", "mu: ended by SIGINT\n"));
    drop(other);
    assert_eq!(os.run(&["plugin", "show", "box"]).exit, 0);
}

/// PRC-13
#[test]
fn a_panic_is_an_envelope_without_the_panics_message() {
    let ran = machine(&["box"]).panicking().run(&["plugin", "list"]);
    failed(&ran, 1, "internal");
    assert!(ran.message().contains("core/src/testing/mod.rs:"), "{}", ran.message());
    assert!(!format!("{ran:?}").contains("secret"));
}

/// PRC-13
#[test]
fn a_panic_while_the_answer_is_given_is_exit_1_and_no_more() {
    let ran = machine(&["box"]).with_stdout(|| panic!("a secret")).run(&["plugin", "list"]);
    assert_eq!((ran.exit, ran.out.as_str(), ran.err.as_str()), (1, "", ""));
}

#[test]
fn a_reader_that_went_away_is_a_quiet_end() {
    let os = machine(&["box"]).with_stdout(|| Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())));
    let ran = os.run(&["plugin", "list"]);
    assert_eq!((ran.exit, ran.err.as_str()), (0, ""));
}

#[test]
fn a_full_standard_output_is_not_a_success() {
    let os = machine(&["box"]).with_stdout(|| Poll::Ready(Err(io::ErrorKind::StorageFull.into())));
    let ran = os.run(&["plugin", "list"]);
    assert_eq!(ran.exit, 1);
    assert!(ran.err.starts_with("mu: cannot write to standard output"), "{}", ran.err);
    assert!(ran.err.ends_with("; nothing else went wrong\n"), "{}", ran.err);
}

#[test]
fn a_failure_that_cannot_be_written_is_not_called_the_only_one() {
    let os = machine(&["box"]).with_stdout(|| Poll::Ready(Err(io::ErrorKind::StorageFull.into())));
    let ran = os.run(&["plugin", "frob"]);
    assert_eq!((ran.exit, ran.err.lines().count()), (2, 2), "{}", ran.err);
    assert!(!ran.err.contains("nothing else"), "{}", ran.err);
}

/// PRC-12
#[test]
fn a_signal_ends_a_write_that_nobody_reads() {
    let os = machine(&["box"]);
    let sender = os.clone();
    let os = os.with_stdout(move || {
        sender.signal(Signal::Interrupt);
        Poll::Pending
    });
    assert_eq!(os.run(&["plugin", "list"]).exit, 130);
    assert_eq!(os.raised(), [Signal::Interrupt]);
}

#[test]
fn an_interrupted_write_is_taken_up_again() {
    let mut count = 0;
    let os = machine(&["box"]).with_stdout(move || {
        count += 1;
        Poll::Ready(if count % 2 == 1 { Err(io::ErrorKind::Interrupted.into()) } else { Ok(()) })
    });
    let ran = os.run(&["plugin", "show", "box", "--json"]);
    assert_eq!((ran.exit, &ran.json()["ok"]), (0, &Value::Bool(true)));
}
