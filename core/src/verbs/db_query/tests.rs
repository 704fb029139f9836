use serde_json::json;

use super::*;
use crate::store::plugins;
use crate::testing::{FakeOs, Ran, open, plugin};

fn machine(names: &[&str]) -> FakeOs {
    let os = FakeOs::new();
    os.block_on(async {
        let store = open(&os, Missing::Create).await;
        let put = |tx: Tx<'_>| names.iter().try_for_each(|name| plugins::put(tx, &plugin(name, None)));
        store.write(put).await.unwrap();
    });
    os
}

fn read(os: &FakeOs, sql: &str) -> Ran {
    os.run(&["db", "query", "--json", sql])
}

fn rows(os: &FakeOs, sql: &str) -> Value {
    let ran = read(os, sql);
    assert_eq!(ran.exit, 0, "{ran:?}");
    ran.json()["data"]["rows"].clone()
}

/// OUT-08
#[test]
fn rows_are_objects_under_the_names_of_their_columns() {
    let os = machine(&["box", "crate"]);
    let wanted = json!([{"name": "box", "n": 1}, {"name": "crate", "n": 1}]);
    assert_eq!(rows(&os, "SELECT name, 1 AS n FROM plugins ORDER BY name"), wanted);
}

#[test]
fn every_type_of_sqlite_has_a_form_in_json() {
    let sql =
        "SELECT NULL a, 9007199254740993 b, 1.5 c, 9e999 d, x'00ff' e, CAST(x'61ff' AS TEXT) f, 'ü' g, 1 a";
    let wanted = json!([{"a": null, "b": 9_007_199_254_740_993_i64, "c": 1.5, "d": "inf", "e": "x'00ff'",
        "f": "x'61ff'", "g": "ü", "a:1": 1}]);
    assert_eq!(rows(&machine(&[]), sql), wanted);
}

#[test]
fn a_database_that_is_not_there_is_queried_as_an_empty_one() {
    let os = FakeOs::new();
    assert_eq!(rows(&os, "SELECT * FROM plugins"), json!([]));
    assert!(!os.database().exists());
}

#[test]
fn a_statement_that_writes_needs_the_flag_and_is_told_so() {
    let os = machine(&["box"]);
    let sql = "DELETE FROM plugins WHERE name = 'box'";
    let ran = read(&os, sql);
    assert_eq!((ran.exit, ran.error().as_str()), (2, "needs-write"));
    assert_eq!(ran.next(), [r"mu db query --write 'DELETE FROM plugins WHERE name = '\''box'\'''"]);
    assert_eq!(rows(&os, "SELECT count(*) AS n FROM plugins"), json!([{"n": 1}]));
    let ran = os.run(&["sql", "--write", "--json", sql]);
    assert_eq!(ran.json(), json!({"ok": true, "data": {"changes": 1}, "next": null}));
    assert_eq!(rows(&os, "SELECT count(*) AS n FROM plugins"), json!([{"n": 0}]));
}

#[test]
fn a_write_that_returns_rows_returns_them_all() {
    let os = machine(&["box", "crate"]);
    let ran = os.run(&[
        "sql",
        "--write",
        "--json",
        "DELETE FROM plugins RETURNING name, printf('%.500c', 'x') AS x",
    ]);
    let rows = ran.json()["data"]["rows"].clone();
    assert_eq!(rows.as_array().unwrap().len(), 2);
    assert_eq!(rows[0]["x"].as_str().unwrap().len(), 500);
    assert_eq!(ran.json()["next"], Value::Null);
}

#[test]
fn what_sqlite_rejects_is_exit_2_and_one_line() {
    let os = machine(&["box"]);
    let cases = [
        ("SELEC 1", "syntax"),
        ("SELECT * FROM ships", "no such table"),
        ("", "empty"),
        ("-- only a comment", "empty"),
        ("SELECT 1; SELECT 2", "Multiple"),
        ("SELECT ?1", "parameter"),
        ("SELECT 'a\nb' FROM \u{1b}", "unrecognized token"),
    ];
    for (sql, named) in cases {
        let ran = os.run(&["db", "query", "--json", "--", sql]);
        assert_eq!((ran.exit, ran.error().as_str()), (2, "bad-sql"), "{sql}");
        let message = ran.message();
        assert!(message.to_lowercase().contains(&named.to_lowercase()), "{sql}: {message}");
        assert!(!message.contains(char::is_control), "{sql}: {message}");
    }
}

#[test]
fn a_write_that_breaks_a_constraint_is_undone() {
    let os = machine(&["box"]);
    let ran = os.run(&["sql", "--write", "UPDATE plugins SET name = 'Not A Name'"]);
    assert_eq!((ran.exit, ran.error().as_str()), (2, "bad-sql"));
    assert_eq!(rows(&os, "SELECT name FROM plugins"), json!([{"name": "box"}]));
}

#[test]
fn no_statement_reaches_another_file_or_mus_own_transaction() {
    let os = machine(&["box"]);
    let elsewhere = os.database().with_file_name("elsewhere.db");
    let attach = format!("ATTACH '{}' AS other", elsewhere.display());
    let vacuum = format!("VACUUM INTO '{}'", elsewhere.display());
    for sql in [&attach, &vacuum, "BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT a"] {
        for write in [&["--json"][..], &["--write"]] {
            let ran = os.run(&[&["sql"], write, &[sql]].concat());
            assert_eq!(ran.exit, 2, "{sql}: {ran:?}");
        }
    }
    assert!(!elsewhere.exists());
}

#[test]
fn a_reading_statement_cannot_turn_off_its_own_guard_or_change_the_file() {
    let os = machine(&["box"]);
    for sql in ["PRAGMA query_only = 0", "PRAGMA user_version = 9", "PRAGMA journal_mode = DELETE"] {
        assert_eq!(read(&os, sql).exit, 2, "{sql}");
    }
    assert_eq!(rows(&os, "PRAGMA user_version"), json!([{"user_version": crate::store::migrations::KNOWN}]));
    assert_eq!(rows(&os, "SELECT * FROM pragma_journal_mode"), json!([{"journal_mode": "wal"}]));
}

#[test]
fn a_pragma_that_only_tells_something_may_take_an_argument() {
    let os = machine(&[]);
    assert_eq!(rows(&os, "PRAGMA table_info(plugins)")[0]["name"], json!("name"));
    assert_eq!(rows(&os, "SELECT count(*) AS n FROM pragma_table_info('plugins')"), json!([{"n": 10}]));
}

/// The version it leaves is refused by every verb (exit 4).
#[test]
fn a_writing_pragma_can_make_the_database_newer() {
    let os = machine(&["box"]);
    assert_eq!(os.run(&["sql", "--write", "PRAGMA user_version = 99"]).exit, 0);
    let ran = os.run(&["plugin", "list"]);
    assert_eq!((ran.exit, ran.error().as_str()), (4, "database-newer"));
}

#[test]
fn a_query_without_an_end_is_given_up() {
    let os = machine(&[]);
    os.block_on(async {
        let store = open(&os, Missing::Empty).await;
        let confined = store.confine(false, 1_000_000).await.unwrap();
        let endless =
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n";
        let short = endless.replace("FROM n)", "FROM n WHERE i < 10000)");
        assert!(store.read(|tx| query(tx, &confined, &short, false)).await.is_ok());
        let ended = store.read(|tx| query(tx, &confined, endless, false)).await;
        assert_eq!(ended, Err(StoreError::TooLong));
    });
}

/// PRC-12
#[test]
fn a_signal_ends_a_query_that_runs() {
    let os = machine(&[]);
    let endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n";
    for write in [&["sql"][..], &["sql", "--write"]] {
        os.signal_at_look(Signal::Interrupt, 3); // the first look is that of the driver
        let ran = os.run(&[write, &[endless]].concat());
        assert_eq!((ran.exit, ran.out.as_str(), ran.err.as_str()), (130, "", "mu: ended by SIGINT\n"));
    }
    assert_eq!(os.raised(), [Signal::Interrupt; 2]);
}

#[test]
fn a_value_has_a_size_that_one_step_can_make() {
    let os = machine(&[]);
    let most = crate::store::confine::VALUE_BYTES;
    for sql in [format!("SELECT zeroblob({})", most + 1), "SELECT hex(zeroblob(400000000))".into()] {
        let ran = read(&os, &sql);
        assert_eq!((ran.exit, ran.error().as_str()), (2, "bad-sql"), "{sql}");
        assert!(ran.message().contains("too big"), "{}", ran.message());
    }
}

/// OUT-11
#[test]
fn a_large_value_is_cut_before_it_is_rendered_and_all_of_it_is_counted() {
    let os = machine(&[]);
    // Eight million digits, two million letters and two million escapes of two characters, and what stands around.
    let values = [
        ("zeroblob(4000000)", 8_000_000),
        ("printf('%.2000000c', 'ü')", 2_000_000),
        ("printf('%.2000000c', char(10))", 4_000_000),
    ];
    for (value, whole) in values {
        let row = &rows(&os, &format!("SELECT 7 AS n, {value} AS x"))[0];
        let (kept, cut) = (row["x"].as_str().unwrap(), row["cut"].as_u64().unwrap());
        assert!(kept.ends_with('…') && kept.chars().count() < 400, "{row}");
        assert!((whole - 400..whole).contains(&cut), "{value}: {cut}");
    }
}

/// OUT-09, OUT-10, OUT-11
#[test]
fn a_large_answer_is_cut_and_names_the_command_for_the_rest() {
    let os = machine(&[]);
    let sql = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000)
        SELECT i, printf('%.600c', 'x') AS x FROM n";
    let ran = read(&os, sql);
    let data = ran.json()["data"].clone();
    let shown = data["rows"].as_array().unwrap();
    assert!(ran.out.len() <= 4097, "{}", ran.out.len());
    assert_eq!(shown.len() as u64 + data["more"].as_u64().unwrap(), 1000);
    assert!(
        shown.iter().all(|row| row.to_string().chars().count() <= 400 && row["cut"].as_u64() > Some(200))
    );
    assert_eq!(ran.next(), [command(["mu", "db", "query", "--full", sql])]);
    let full = os.run(&["db", "query", "--json", "--full", sql]).json();
    assert_eq!((full["data"]["rows"].as_array().unwrap().len(), &full["next"]), (1000, &Value::Null));
}

/// OUT-15
#[test]
fn people_see_a_table_without_raw_control_characters() {
    let ran = machine(&["box"])
        .run(&["sql", "SELECT name, 'a' || char(10, 27) || '[31m' AS x, 7 AS added_at FROM plugins"]);
    assert_eq!(ran.out, "NAME  X              ADDED_AT\nbox   a\\n\\u{1b}[31m  7\n");
}
