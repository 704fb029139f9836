//! Bad input: exit code, envelope, one line on standard error, and nothing executed.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

use crate::stage::Stage;

#[test]
fn what_mu_does_not_understand_is_usage() {
    let stage = Stage::new();
    let place = stage.install("box", []);
    for arguments in [
        &["frobnicate"][..],
        &["plugin", "frobnicate"],
        &["plugin", "list", "--frobnicate"],
        &["plugin", "list", "extra"],
        &["plugin", "add"],
        &["plugin", "add", "box"],
        &["plugin", "add", "box", &place],
        &["plugin", "add", "box", "--"],
        &["plugin", "show"],
        &["db", "query"],
        &["completions", "tcsh"],
    ] {
        stage.mu(arguments.iter().copied()).end().fails(2, "usage");
        stage.mu(["--json"].into_iter().chain(arguments.iter().copied())).end().fails(2, "usage");
    }
    assert_eq!(stage.log("box"), []);
    assert!(!stage.db().exists());
}

/// REG-01
#[test]
fn a_bad_name_is_refused_before_anything_else() {
    let stage = Stage::new();
    let long = "a".repeat(33);
    for name in ["Box", "1box", "_box", "bo x", "bö", "b/x", &long, ""] {
        stage.mu(["plugin", "add", name, "--", "/nowhere"]).end().fails(2, "bad-name");
        stage.mu(["plugin", "show", name]).end().fails(2, "bad-name");
    }
    assert!(!stage.db().exists());
}

#[test]
fn an_unknown_plugin_is_answered_with_near_names() {
    let stage = Stage::new();
    stage.register("box", []);
    for arguments in [["plugin", "show", "bos"], ["plugin", "rm", "bos"], ["plugin", "check", "bos"]] {
        let envelope = stage.mu(arguments).end().fails(3, "unknown-plugin");
        assert!(envelope["message"].as_str().unwrap().contains("box"), "{envelope}");
    }
}

/// REG-03 to REG-07: a fifo that was opened would hold mu up for ever.
#[test]
fn a_file_that_is_not_trusted_is_not_executed() {
    let stage = Stage::new();
    let place = |name: &str| stage.place(name);
    fs::create_dir(place("directory")).unwrap();
    mkfifo(place("fifo").as_str(), Mode::S_IRWXU).unwrap();
    symlink(place("nothing"), place("dangling")).unwrap();
    symlink(place("circle"), place("circle")).unwrap();
    stage.install("named", []);
    symlink(place("named"), stage.path("plugins/other-name")).unwrap();
    let writable = stage.path("writable");
    fs::copy("/bin/true", &writable).unwrap();
    fs::set_permissions(&writable, Permissions::from_mode(0o775)).unwrap();
    symlink(&writable, place("writable")).unwrap();
    let other_name = stage.path("plugins/other-name").to_str().unwrap().to_owned();
    for (name, path) in [
        ("directory", place("directory")),
        ("fifo", place("fifo")),
        ("dangling", place("dangling")),
        ("circle", place("circle")),
        ("missing", place("missing")),
        ("named", other_name),
        ("named", "mu-plugin-named".to_owned()),
        ("named", "./mu-plugin-named".to_owned()),
        ("writable", place("writable")),
        ("box", place("named")),
    ] {
        let envelope = stage.mu(["plugin", "add", name, "--", &path]).end().fails(4, "untrusted");
        assert!(
            envelope["message"].as_str().unwrap().contains(path.rsplit('/').next().unwrap()),
            "{envelope}"
        );
    }
    assert_eq!(stage.log("named"), []);
    assert!(!stage.db().exists());
}

/// REG-06
#[test]
fn a_file_of_somebody_else_is_not_executed() {
    let stage = Stage::new();
    // Whoever runs this: `/bin/true` is root's, and root can give a copy away.
    let target = if nix::unistd::geteuid().is_root() {
        let target = stage.path("given-away");
        fs::copy("/bin/true", &target).unwrap();
        std::os::unix::fs::chown(&target, Some(65_534), None).unwrap();
        target
    } else {
        "/bin/true".into()
    };
    symlink(target, stage.place("box")).unwrap();
    stage.mu(["plugin", "add", "box", "--", &stage.place("box")]).end().fails(4, "untrusted");
}

/// REG-11
#[test]
fn another_command_line_for_a_known_name_changes_nothing() {
    let stage = Stage::new();
    let place = stage.register("box", []);
    let before = stage.mu(["plugin", "show", "box", "--json"]).end().succeeds().stdout;
    stage.mu(["plugin", "add", "box", "--", &place, "--region", "eu"]).end().fails(4, "argv-differs");
    assert_eq!(stage.mu(["plugin", "show", "box", "--json"]).end().succeeds().stdout, before);
    assert!(stage.log("box").iter().all(|line| line.start == 1));
}

#[test]
fn a_database_that_cannot_be_used_is_one_line_and_is_left_alone() {
    let stage = Stage::new();
    let place = stage.register("box", []);
    let fails = |arguments: &[&str], db: &str, exit, error| {
        stage.mu(arguments.iter().copied()).var("MU_DB_PATH", stage.path(db)).end().fails(exit, error);
    };
    let list = &["plugin", "list", "--json"];
    let add = &["plugin", "add", "box", "--", &place][..];

    fs::create_dir(stage.path("directory")).unwrap();
    fs::write(stage.path("letter"), "this is not a database, it is a letter\n".repeat(100)).unwrap();
    mkfifo(&stage.path("fifo"), Mode::S_IRWXU).unwrap();
    for verb in [&list[..], add] {
        fails(verb, "directory", 5, "database-unusable");
        fails(verb, "letter", 5, "database-damaged");
        fails(verb, "letter/below", 5, "database-unusable");
        fails(verb, "fifo", 5, "database-unusable");
    }
    let letter = fs::read_to_string(stage.path("letter")).unwrap();
    assert!(letter.starts_with("this is not a database"));

    fs::copy(stage.db(), stage.path("newer")).unwrap();
    let newer = rusqlite::Connection::open(stage.path("newer")).unwrap();
    newer.pragma_update(None, "user_version", 1_000_000).unwrap();
    drop(newer);
    let before = fs::read(stage.path("newer")).unwrap();
    fails(list, "newer", 4, "database-newer");
    fails(add, "newer", 4, "database-newer");
    assert!(fs::read(stage.path("newer")).unwrap() == before);
}

#[test]
fn without_any_path_to_a_database_mu_says_which_variables_it_looks_at() {
    let stage = Stage::new();
    let envelope = stage.mu(["plugin", "list"]).without_home().end().fails(2, "no-database-path");
    for name in ["MU_DB_PATH", "XDG_STATE_HOME", "HOME"] {
        assert!(envelope["message"].as_str().unwrap().contains(name), "{envelope}");
    }
}

#[test]
fn a_query_that_mu_will_not_run_is_usage() {
    let stage = Stage::new();
    stage.register("box", []);
    let query = |sql| stage.mu(["db", "query", sql]).end();
    query("SELEC 1").fails(2, "bad-sql");
    query("SELECT 1; SELECT 2").fails(2, "bad-sql");
    query("ATTACH '/tmp/x' AS x").fails(2, "bad-sql");
    query("DELETE FROM plugins").fails(2, "needs-write");
    let listed = stage.mu(["db", "query", "SELECT name FROM plugins", "--json"]).end().succeeds();
    assert!(listed.stdout.contains(r#"[{"name":"box"}]"#), "{listed:?}");
}
