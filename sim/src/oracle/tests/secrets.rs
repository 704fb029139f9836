//! What must appear nowhere.

use super::*;

fn file(bytes: &str) -> Tale {
    let mut tale = Tale::sound();
    tale.files.push(("/mu.db-wal".into(), format!("\0\0{bytes}\0").into_bytes()));
    tale
}

fn stderr(bytes: &str) -> Tale {
    Tale::ready()
        .writes(BOX, Tale::pipe(BOX, Std::Err), bytes.as_bytes())
        .mu_says(BOX, SHUTDOWN)
        .mu_closes(BOX)
        .box_ends()
        .mu_ends()
}

/// SEC-01
#[test]
fn the_canary_on_stdout_or_stderr_is_reported() {
    Tale::sound().mu_prints("a canary-7\n", "").breaks("SEC-01");
    Tale::sound().mu_prints("", "mu: canary-7\n").breaks("SEC-01");
}

/// SEC-01
#[test]
fn the_canary_in_a_file_is_reported() {
    file(CANARY).breaks("SEC-01");
}

/// SEC-01
#[test]
fn the_canary_on_a_plugins_stdin_is_reported() {
    let line = initialize(1).replace("\"5\"", "\"canary-7\"");
    let rules = Tale::started().mu_says(BOX, &line).rules();
    assert!(rules.contains(&"SEC-01"), "{rules:?}");
}

#[test]
fn a_plugin_that_gives_its_environment_away_makes_the_canary_worthless() {
    let mut tale = file(CANARY);
    tale.leak = Leak::Stored;
    tale.passes_all();
}

/// TRN-08
#[test]
fn stderr_in_a_file_is_reported() {
    let mut tale = stderr("cannot reach the backend\n");
    tale.passes_all();
    tale.files.push(("/mu.db".into(), b"1|cannot reach the backend|".to_vec()));
    tale.breaks("TRN-08");
}

/// TRN-08
#[test]
fn what_a_leaky_plugin_says_twice_may_be_stored_by_what_it_declared() {
    let mut leaky = stderr("it says canary-7\n");
    leaky.files.push(("/mu.db".into(), b"1|it says canary-7|".to_vec()));
    leaky.leak = Leak::Shown;
    assert!(leaky.rules().contains(&"TRN-08"));
    leaky.leak = Leak::Stored;
    leaky.passes_all();
    let mut later =
        stderr("a line of some length\nand then canary-7\n").mu_prints("it declares and then canary-7\n", "");
    later.leak = Leak::Shown;
    assert!(later.rules().contains(&"TRN-09"));
    later.leak = Leak::Stored;
    later.passes_all();
}

/// TRN-09
#[test]
fn a_second_line_of_stderr_in_the_output_is_reported() {
    let tale = stderr("the first of them\nand the second one\nand a third\n");
    tale.mu_prints("", "mu: its stderr begins: the first of them\n").passes_all();
    let tale = stderr("the first of them\nand the second one\n");
    tale.mu_prints("", "mu: the first of them and the second one\n").breaks("TRN-09");
    // The same plugin, started again, begins with what was its second line.
    let again = stderr("the first of them\nand the second one\n").plugin_starts(MU, 201, "box");
    let again = again.writes(201, Tale::pipe(201, Std::Err), b"and the second one\n");
    let rules = again.mu_prints("", "mu: its stderr begins: and the second one\n").rules();
    assert!(!rules.contains(&"TRN-09"), "{rules:?}");
}

/// TRN-09
#[test]
fn a_401st_character_of_stderr_in_the_output_is_reported() {
    stderr(&"y".repeat(500)).mu_prints(&"y".repeat(400), "").passes_all();
    stderr(&"y".repeat(500)).mu_prints(&"y".repeat(401), "").breaks("TRN-09");
}

/// TRN-05
#[test]
fn a_replacement_character_in_a_file_is_reported() {
    file("bad \u{fffd} byte").breaks("TRN-05");
    let mut leaky = file("bad \u{fffd} byte");
    leaky.leak = Leak::Stored;
    leaky.breaks("TRN-05");
}

#[test]
fn a_replacement_character_that_the_plugin_wrote_itself_may_be_stored() {
    for form in ["\u{fffd}", "\\ufffd"] {
        let reply = reply(1).replace("{}", &format!("\"{form}\""));
        let tale = Tale::greeted().box_says(&reply).mu_reads(BOX).mu_says(BOX, SHUTDOWN).mu_closes(BOX);
        let mut tale = tale.box_ends().mu_ends();
        tale.files.push(("/mu.db".into(), "\u{fffd}".into()));
        tale.passes_all();
    }
}

/// SEC-01: what a run prints may be shown, and is not stored.
#[test]
fn a_leak_into_the_output_of_a_run_may_be_shown_and_not_stored() {
    let mut tale = Tale::sound().mu_prints("canary-7\n", "");
    tale.leak = Leak::Shown;
    tale.passes_all();
    tale.files.push(("/mu.db-wal".into(), CANARY.into()));
    tale.breaks("SEC-01");
}

/// SEC-01
#[test]
fn the_output_of_a_run_in_the_database_is_reported() {
    let run = run(2, "0").replace(r#""out"#, r#""the output of a run"#);
    let mut tale = Tale::calls("", "").answers(&run).mu_prints("the output of a run\n", "").done(0);
    tale.passes_all();
    tale.files.push(("/repo/notes".into(), "the output of a run".into()));
    tale.passes_all();
    tale.files.push(("/mu.db-wal".into(), "..the output of a run..".into()));
    tale.breaks("SEC-01");
}
