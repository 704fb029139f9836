use std::cell::Cell;
use std::rc::Rc;

use super::*;
use crate::cli::failure::{Failure, Kind};
use crate::os::Signal;
use crate::testing::{FakeOs, file, open, plugin};

fn try_open(os: &FakeOs, missing: Missing) -> Result<(), StoreError> {
    let invocation = Invocation::new(os.clone());
    os.block_on(invocation.run(async { Store::open(&invocation, missing).await.map(drop) }))
}

fn pragma(os: &FakeOs, name: &str) -> String {
    let value = |row: &rusqlite::Row<'_>| row.get::<_, rusqlite::types::Value>(0);
    let value = os.connection().pragma_query_value(None, name, value).unwrap();
    match value {
        rusqlite::types::Value::Integer(number) => number.to_string(),
        rusqlite::types::Value::Text(text) => text,
        other => panic!("{other:?}"),
    }
}

fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::MetadataExt;
    path.metadata().unwrap().mode() & 0o777
}

#[test]
fn a_fresh_database_has_the_tables_of_this_mu_in_a_private_directory() {
    let os = FakeOs::new();
    try_open(&os, Missing::Create).unwrap();
    assert_eq!(pragma(&os, "user_version"), migrations::KNOWN.to_string());
    assert_eq!(pragma(&os, "journal_mode"), "wal");
    assert_eq!(mode(os.database().parent().unwrap()), 0o700);
}

#[test]
fn every_table_is_strict() {
    let os = FakeOs::new();
    try_open(&os, Missing::Create).unwrap();
    let sql = "SELECT count(*) FROM pragma_table_list WHERE strict = 0 AND type = 'table' AND name NOT LIKE 'sqlite_%'";
    assert_eq!(os.connection().query_row(sql, [], |row| row.get::<_, i64>(0)), Ok(0));
}

#[test]
fn each_connection_is_durable_and_checks_references() {
    let os = FakeOs::new();
    try_open(&os, Missing::Create).unwrap();
    os.block_on(async {
        let store = open(&os, Missing::Create).await;
        let number =
            |tx: Tx<'_>, name| tx.sql(tx.db.pragma_query_value(None, name, |row| row.get::<_, i64>(0)));
        assert_eq!(store.read(|tx| number(tx, "synchronous")).await, Ok(3), "EXTRA");
        assert_eq!(store.read(|tx| number(tx, "foreign_keys")).await, Ok(1));
    });
}

/// EFF-02: a log that could not be set up when the database was made is set up by the next run.
#[test]
fn a_database_without_a_log_gets_one() {
    let os = FakeOs::new();
    try_open(&os, Missing::Create).unwrap();
    os.connection().pragma_update_and_check(None, "journal_mode", "delete", |_| Ok(())).unwrap();
    assert_eq!(pragma(&os, "journal_mode"), "delete");
    try_open(&os, Missing::Empty).unwrap();
    assert_eq!(pragma(&os, "journal_mode"), "wal");
}

#[test]
fn a_database_that_is_up_to_date_is_opened_without_a_write() {
    let os = FakeOs::new();
    try_open(&os, Missing::Create).unwrap();
    let other = os.connection();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert_eq!(try_open(&os, Missing::Create), Ok(()), "opening waits for a writer");
    assert_eq!(os.now().0, Duration::ZERO);
}

#[test]
fn an_empty_file_left_by_a_crash_becomes_a_database() {
    let os = FakeOs::new();
    os.connection();
    std::fs::write(os.database(), b"").unwrap();
    try_open(&os, Missing::Empty).unwrap();
    assert_eq!(pragma(&os, "user_version"), migrations::KNOWN.to_string());
}

#[test]
fn a_newer_database_is_refused_and_not_a_byte_of_it_changes() {
    let os = FakeOs::new();
    os.connection().execute_batch("CREATE TABLE future (a); PRAGMA user_version = 7").unwrap();
    let before = std::fs::read(os.database()).unwrap();
    for missing in [Missing::Create, Missing::Empty] {
        let error = try_open(&os, missing).unwrap_err();
        assert_eq!(error, StoreError::Newer { path: os.database(), found: 7, known: migrations::KNOWN });
        let text = error.to_string();
        assert!(text.contains("schema 7") && text.contains(&migrations::KNOWN.to_string()), "{text}");
    }
    assert_eq!(std::fs::read(os.database()).unwrap(), before);
}

#[test]
fn what_a_newer_mu_left_in_its_log_stays_there() {
    let os = FakeOs::new();
    let elsewhere = os.with_var("MU_DB_PATH", os.database().with_file_name("elsewhere.db"));
    let newer = elsewhere.connection();
    newer
        .execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE future (a); PRAGMA user_version = 7")
        .unwrap();
    // What lies on the disk while the newer mu runs is what it leaves when it is killed.
    let log = os.database().with_extension("db-wal");
    std::fs::copy(elsewhere.database(), os.database()).unwrap();
    std::fs::copy(elsewhere.database().with_extension("db-wal"), &log).unwrap();
    let before = (std::fs::read(os.database()).unwrap(), std::fs::read(&log).unwrap());
    assert!(matches!(try_open(&os, Missing::Create), Err(StoreError::Newer { .. })));
    assert_eq!((std::fs::read(os.database()).unwrap(), std::fs::read(&log).unwrap()), before);
}

#[test]
fn a_database_of_another_program_is_refused_untouched() {
    let os = FakeOs::new();
    os.connection().execute_batch("CREATE TABLE bookmarks (a)").unwrap();
    let before = std::fs::read(os.database()).unwrap();
    assert!(matches!(try_open(&os, Missing::Create), Err(StoreError::Foreign { .. })));
    assert_eq!(std::fs::read(os.database()).unwrap(), before);
}

#[test]
fn a_file_of_garbage_is_no_database_and_stays_as_it_is() {
    let os = FakeOs::new();
    os.connection();
    let garbage = b"this is no database, whatever its name says".repeat(100);
    std::fs::write(os.database(), &garbage).unwrap();
    assert_eq!(try_open(&os, Missing::Create), Err(StoreError::NotADatabase { path: os.database() }));
    assert_eq!(std::fs::read(os.database()).unwrap(), garbage);
}

#[test]
fn a_directory_or_a_pipe_in_its_place_is_never_opened() {
    for kind in [FileKind::Directory, FileKind::Fifo, FileKind::Device, FileKind::Socket] {
        let os = FakeOs::new();
        let path = os.database();
        let os = os.with_file(path.to_str().unwrap(), file(kind, 1000, 0o600));
        assert_eq!(try_open(&os, Missing::Create), Err(StoreError::NotAFile { path: path.clone() }));
        assert!(!path.exists());
    }
}

#[test]
fn a_path_out_of_reach_says_so() {
    let os = FakeOs::new();
    let path = os.database();
    let os = os.with_error(path, io::ErrorKind::PermissionDenied);
    assert!(matches!(try_open(&os, Missing::Empty), Err(StoreError::Unreachable { .. })));
}

#[test]
fn a_directory_that_cannot_be_made_says_so() {
    let os = FakeOs::new();
    let directory = os.database().parent().unwrap().to_owned();
    let os = os.with_error(directory.clone(), io::ErrorKind::PermissionDenied);
    let error = try_open(&os, Missing::Create).unwrap_err();
    assert!(matches!(&error, StoreError::NoDirectory { path, .. } if *path == directory), "{error}");
}

#[test]
fn a_read_only_database_is_not_even_read_and_nothing_is_left_beside_it() {
    let os = FakeOs::new();
    try_open(&os, Missing::Create).unwrap();
    let os = os.read_only();
    for missing in [Missing::Create, Missing::Empty] {
        assert_eq!(try_open(&os, missing), Err(StoreError::ReadOnly { path: os.database() }));
    }
    assert_eq!(std::fs::read_dir(os.database().parent().unwrap()).unwrap().count(), 1);
}

#[test]
fn a_schema_without_its_table_is_a_damaged_database() {
    let os = FakeOs::new();
    os.block_on(async {
        let store = open(&os, Missing::Create).await;
        store.write(|tx| tx.sql(tx.db.execute_batch("DROP TABLE plugins"))).await.unwrap();
    });
    let ran = os.run(&["plugin", "list"]);
    assert_eq!((ran.exit, ran.error().as_str()), (5, "database-damaged"));
    assert!(ran.message().contains("no such table: plugins"), "{}", ran.message());
    assert_eq!(os.run(&["sql", "SELECT * FROM plugins"]).error(), "bad-sql");
}

#[test]
fn a_full_disk_fails_the_write_and_keeps_what_was_there() {
    let os = FakeOs::new();
    os.block_on(async {
        let store = open(&os, Missing::Create).await;
        store.write(|tx| plugins::put(tx, &plugin("box", None))).await.unwrap();
        let limit = |tx: Tx<'_>| {
            let pages: i64 = tx.sql(tx.db.pragma_query_value(None, "page_count", |row| row.get(0)))?;
            tx.sql(tx.db.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(())))
        };
        store.read(limit).await.unwrap();
        let mut large = plugin("crate", None);
        large.argv.push("x".repeat(1 << 20));
        let written = store.write(|tx| plugins::put(tx, &large)).await;
        assert_eq!(written, Err(StoreError::Full { path: os.database() }));
        assert_eq!(store.read(plugins::names).await, Ok(vec!["box".to_owned()]));
    });
}

#[test]
fn reading_a_database_that_is_not_there_sees_empty_tables_and_creates_nothing() {
    let os = FakeOs::new();
    os.block_on(async {
        let store = open(&os, Missing::Empty).await;
        assert_eq!(store.read(plugins::all).await, Ok(vec![]));
    });
    assert!(!os.database().parent().unwrap().exists());
}

#[test]
fn what_was_put_is_found_again() {
    let os = FakeOs::new();
    let (first, second) = (plugin("box", Some("chat")), plugin("a-b_9", None));
    os.block_on(async {
        let store = open(&os, Missing::Create).await;
        store.write(|tx| plugins::put(tx, &first).and(plugins::put(tx, &second))).await.unwrap();
    });
    os.block_on(async {
        let store = open(&os, Missing::Empty).await;
        let all = store.read(plugins::all).await.unwrap();
        let wanted = [&second, &first].map(|plugin| (plugin.name.clone(), Ok(plugin.clone())));
        assert_eq!(all, wanted);
        assert_eq!(store.read(|tx| plugins::find(tx, "box")).await, Ok(Some(first)));
        assert_eq!(
            store.read(|tx| plugins::channel_holder(tx, "chat", "crate")).await,
            Ok(Some("box".into()))
        );
        assert_eq!(store.read(|tx| plugins::channel_holder(tx, "chat", "box")).await, Ok(None));
    });
}

/// REG-10
#[test]
fn putting_a_plugin_again_renews_all_but_the_day_it_was_added() {
    let os = FakeOs::new();
    os.block_on(async {
        let store = open(&os, Missing::Create).await;
        store.write(|tx| plugins::put(tx, &plugin("box", None))).await.unwrap();
        let mut again = plugin("box", Some("chat"));
        (again.added_at, again.declared_at) = (crate::os::EpochMs(77), crate::os::EpochMs(88));
        store.write(|tx| plugins::put(tx, &again)).await.unwrap();
        let kept = store.read(|tx| plugins::find(tx, "box")).await.unwrap().unwrap();
        again.added_at = crate::os::EpochMs(1000);
        assert_eq!(kept, again);
    });
}

/// REG-14
#[test]
fn the_table_itself_refuses_a_second_holder_of_a_channel() {
    let os = FakeOs::new();
    os.block_on(async {
        let store = open(&os, Missing::Create).await;
        store.write(|tx| plugins::put(tx, &plugin("box", Some("chat")))).await.unwrap();
        let second = store.write(|tx| plugins::put(tx, &plugin("crate", Some("chat")))).await;
        assert!(matches!(second, Err(StoreError::Rejected { .. })));
    });
}

#[test]
fn a_row_that_no_verb_wrote_is_named_with_its_column() {
    let os = FakeOs::new();
    os.block_on(async {
        let store = open(&os, Missing::Create).await;
        for (column, text) in [("argv", "[1]"), ("declaration", "{\"a\":1}")] {
            store.write(|tx| plugins::put(tx, &plugin("box", None))).await.unwrap();
            let sql = format!("UPDATE plugins SET {column} = '{text}'");
            store.write(|tx| tx.sql(tx.db.execute_batch(&sql))).await.unwrap();
            let error = store.read(|tx| plugins::find(tx, "box")).await.unwrap_err();
            let wanted =
                StoreError::BadRow { path: os.database(), table: "plugins", row: "box".into(), column };
            assert_eq!(error, wanted);
        }
    });
}

#[test]
fn an_error_inside_a_write_undoes_it() {
    let os = FakeOs::new();
    os.block_on(async {
        let store = open(&os, Missing::Create).await;
        let failed: Result<(), Failure> = store
            .write(|tx| {
                plugins::put(tx, &plugin("box", None))?;
                Err(Failure::new(Kind::ChannelTaken, "no"))
            })
            .await;
        assert!(failed.is_err());
        assert_eq!(store.read(plugins::names).await, Ok(vec![]));
        store.write(|tx| plugins::put(tx, &plugin("crate", None))).await.unwrap();
    });
}

#[test]
fn a_locked_database_is_waited_for() {
    let os = FakeOs::new();
    try_open(&os, Missing::Create).unwrap();
    let other = os.connection();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    os.after(Duration::from_secs(3), move || other.execute_batch("COMMIT").unwrap());
    os.block_on(async {
        let store = open(&os, Missing::Create).await;
        store.write(|tx| plugins::put(tx, &plugin("box", None))).await.unwrap();
        assert_eq!(store.read(plugins::names).await, Ok(vec!["box".to_owned()]));
    });
    let waited = os.now().0;
    assert!(
        waited >= Duration::from_secs(3) && waited <= Duration::from_secs(3) + LONGEST_PAUSE,
        "{waited:?}"
    );
}

#[test]
fn the_creation_of_a_database_waits_for_a_lock_too() {
    let os = FakeOs::new();
    let other = os.connection();
    other.execute_batch("BEGIN EXCLUSIVE").unwrap();
    os.after(Duration::from_secs(1), move || other.execute_batch("ROLLBACK").unwrap());
    assert_eq!(try_open(&os, Missing::Create), Ok(()));
    assert_eq!(pragma(&os, "journal_mode"), "wal");
}

#[test]
fn a_database_that_stays_locked_is_given_up_after_the_limit() {
    let os = FakeOs::new();
    try_open(&os, Missing::Create).unwrap();
    let other = os.connection();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let ran = Rc::new(Cell::new(false));
    let closure_ran = ran.clone();
    os.block_on(async {
        let store = open(&os, Missing::Create).await;
        let written: Result<(), StoreError> = store
            .write(|_| {
                closure_ran.set(true);
                Ok(())
            })
            .await;
        assert_eq!(written, Err(StoreError::Busy { path: os.database() }));
    });
    assert_eq!(os.now().0, BUSY_LIMIT);
    assert!(!ran.get(), "the closure ran without the lock");
}

#[test]
fn a_signal_ends_the_wait_for_a_lock() {
    let os = FakeOs::new();
    try_open(&os, Missing::Create).unwrap();
    let other = os.connection();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let sender = os.clone();
    os.after(Duration::from_secs(2), move || sender.signal(Signal::Terminate));
    let invocation = Invocation::new(os.clone());
    let written = os.block_on(invocation.run(async {
        let store = Store::open(&invocation, Missing::Create).await?;
        store.write(|tx| plugins::put(tx, &plugin("box", None))).await
    }));
    assert_eq!(written, Err(StoreError::Interrupted(Signal::Terminate)));
    assert!(os.now().0 < Duration::from_secs(3));
}

#[test]
fn two_writers_of_one_invocation_take_turns() {
    let os = FakeOs::new();
    os.block_on(async {
        let store = open(&os, Missing::Create).await;
        let (first, second) = (plugin("box", None), plugin("crate", None));
        let writes = futures_util::future::join(
            store.write(|tx| plugins::put(tx, &first)),
            store.write(|tx| plugins::put(tx, &second)),
        );
        assert_eq!(writes.await, (Ok(()), Ok(())));
        assert_eq!(store.read(plugins::names).await.unwrap().len(), 2);
    });
}

#[test]
fn every_error_is_one_harmless_line_that_names_the_file() {
    let path: PathBuf = "/a\nb\u{1b}/mu.db".into();
    let reason = || "why".to_owned();
    let all = [
        StoreError::NoPath,
        StoreError::Newer { path: path.clone(), found: 2, known: 1 },
        StoreError::NotAFile { path: path.clone() },
        StoreError::Unreachable { path: path.clone(), reason: reason() },
        StoreError::NoDirectory { path: path.clone(), reason: reason() },
        StoreError::Unreadable { path: path.clone(), reason: reason() },
        StoreError::ReadOnly { path: path.clone() },
        StoreError::Full { path: path.clone() },
        StoreError::NotADatabase { path: path.clone() },
        StoreError::Foreign { path: path.clone() },
        StoreError::Damaged { path: path.clone(), reason: reason() },
        StoreError::BadRow { path: path.clone(), table: "plugins", row: "box".into(), column: "argv" },
        StoreError::Rejected { path: path.clone(), reason: reason() },
        StoreError::Busy { path: path.clone() },
        StoreError::Failed { path, reason: reason() },
    ];
    let exits = [2, 4, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5];
    for (error, exit) in all.into_iter().zip(exits) {
        let no_path = error == StoreError::NoPath;
        let failure = Failure::from(error);
        assert_eq!(failure.kind.exit(), exit, "{failure:?}");
        assert!(!failure.message.contains(char::is_control), "{failure:?}");
        assert!(no_path || failure.message.contains(r"/a\nb\u{1b}/mu.db"), "{failure:?}");
    }
}
