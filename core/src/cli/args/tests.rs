use std::os::unix::ffi::OsStringExt;

use super::*;

fn words(line: &str) -> Vec<OsString> {
    std::iter::once("mu").chain(line.split_whitespace()).map(OsString::from).collect()
}

fn ok(line: &str) -> Request {
    parse(&words(line)).1.unwrap_or_else(|failure| panic!("{line}: {failure:?}"))
}

fn failure(line: &str) -> Failure {
    parse(&words(line)).1.map(|request| panic!("{line}: {request:?}")).unwrap_err()
}

fn added(line: &str) -> Vec<String> {
    match ok(line) {
        Request::PluginAdd { argv, .. } => argv,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_tree_is_consistent() {
    tree().debug_assert();
}

/// REG-01
#[test]
fn everything_behind_the_dashes_is_verbatim() {
    let argv = added("plugin add box -- /x/mu-plugin-box --json --help -- -x --full=1");
    assert_eq!(argv, ["/x/mu-plugin-box", "--json", "--help", "--", "-x", "--full=1"]);
}

/// REG-01
#[test]
fn a_json_flag_behind_the_dashes_is_the_plugins() {
    assert!(!parse(&words("plugin add box -- /x/mu-plugin-box --json")).0);
    assert!(parse(&words("plugin add box --json -- /x/mu-plugin-box")).0);
}

#[test]
fn the_json_flag_stands_before_or_after_the_verb() {
    for line in ["--json plugin list", "plugin --json list", "plugin list --json"] {
        let (json, request) = parse(&words(line));
        assert!(json && request == Ok(Request::PluginList { full: false }), "{line}");
    }
}

/// OUT-03
#[test]
fn a_line_that_cannot_be_parsed_still_says_whether_json_is_wanted() {
    assert!(parse(&words("plugn --json")).0);
    assert!(!parse(&words("plugn")).0);
}

#[test]
fn a_missing_dash_is_explained_with_an_example() {
    for line in ["plugin add box /x/mu-plugin-box", "plugin add box", "plugin add", "plugin add --json box"] {
        let failure = failure(line);
        assert_eq!(failure.kind, Kind::Usage, "{line}");
        assert!(failure.message.contains("mu plugin add box -- /usr/local/bin/mu-plugin-box"), "{line}");
    }
}

#[test]
fn dashes_with_nothing_behind_them_are_a_usage_failure() {
    let failure = failure("plugin add box --");
    assert_eq!(failure.kind, Kind::Usage);
    assert!(failure.message.contains("ARGV"), "{}", failure.message);
}

#[test]
fn a_missing_name_before_the_dashes_is_a_usage_failure() {
    let failure = failure("plugin add -- /x/mu-plugin-box");
    assert_eq!(failure.kind, Kind::Usage);
    assert!(failure.message.contains("<NAME>"), "{}", failure.message);
}

///
#[test]
fn a_bad_name_is_a_failure_of_its_own() {
    for line in ["plugin add Box -- /x", "plugin show 9", "plugin rm a:b", "plugin check box ü"] {
        assert_eq!(failure(line).kind, Kind::BadName, "{line}");
    }
}

#[test]
fn an_argument_that_is_not_utf_8_is_refused_and_not_mended() {
    let mut argv = words("plugin add box -- /x/mu-plugin-box");
    argv.push(OsString::from_vec(b"a\xffb".to_vec()));
    let failure = parse(&argv).1.unwrap_err();
    assert_eq!(failure.kind, Kind::BadArgument);
    assert!(failure.message.contains("argument 2"), "{}", failure.message);
}

#[test]
fn a_verb_that_is_not_utf_8_is_a_usage_failure() {
    let argv = vec!["mu".into(), OsString::from_vec(b"\xff".to_vec())];
    assert_eq!(parse(&argv).1.unwrap_err().kind, Kind::Usage);
}

#[test]
fn an_unknown_verb_or_flag_is_one_line_with_a_tip_and_the_right_help() {
    let cases = [
        ("plugn list", "plugin", "mu --help"),
        ("plugin lst", "list", "mu plugin --help"),
        ("plugin list --ful", "--full", "mu plugin list --help"),
        ("plugin add box --json --ful", "--ful", "mu plugin add --help"),
        ("db query", "<SQL>", "mu db query --help"),
        ("completions tcsh", "fish", "mu completions --help"),
    ];
    for (line, named, help) in cases {
        let failure = failure(line);
        assert_eq!(failure.kind, Kind::Usage, "{line}");
        assert!(failure.message.contains(named) && !failure.message.contains("Usage"), "{}", failure.message);
        assert_eq!(failure.next.unwrap().commands(), [help], "{line}");
    }
}

#[test]
fn no_verb_at_all_lists_the_verbs() {
    assert!(
        failure("").message.contains("plugin, host, effect, db, sql, completions"),
        "{}",
        failure("").message
    );
    assert!(failure("plugin").message.contains("add, list, show"), "{}", failure("plugin").message);
    assert_eq!(parse(&[]).1.unwrap_err().kind, Kind::Usage);
}

/// BUD-03
#[test]
fn a_word_with_control_characters_does_not_break_the_line() {
    let argv = ["mu".into(), OsString::from("a\nb\u{1b}[31m")];
    let message = parse(&argv).1.unwrap_err().message;
    assert!(!message.contains(char::is_control), "{message}");
}

#[test]
fn help_is_a_result_at_every_level() {
    for line in
        ["--help", "-h", "plugin --help", "plugin add --help", "plugin add --help -- x", "--json db -h"]
    {
        let Request::Print(output) = ok(line) else { panic!("{line}") };
        let crate::cli::output::Data::Verbatim(_, text) = output.data else { panic!("{line}") };
        assert!(text.contains("Usage: mu") && text.contains("Example:"), "{line}: {text}");
    }
}

#[test]
fn the_version_is_a_result() {
    let Request::Print(output) = ok("--version") else { panic!() };
    assert_eq!(output.data, {
        let text = format!("mu {}", env!("CARGO_PKG_VERSION"));
        crate::cli::output::Data::Verbatim(Row::new([("version", json!(text))]), format!("{text}\n"))
    });
}

#[test]
fn sql_is_another_name_for_db_query() {
    let wanted = Request::DbQuery { sql: "SELECT".into(), write: true, full: true };
    assert_eq!(ok("db query --full SELECT --write"), wanted);
    assert_eq!(ok("sql SELECT --write --full"), wanted);
    assert_eq!(ok("sql -- --"), Request::DbQuery { sql: "--".into(), write: false, full: false });
}

fn each_verb(at: &clap::Command, look: &mut impl FnMut(&clap::Command)) {
    look(at);
    at.get_subcommands().for_each(|verb| each_verb(verb, look));
}

#[test]
fn every_help_fits_80_columns() {
    each_verb(&tree(), &mut |verb| {
        let help = verb.clone().render_long_help().to_string();
        let wide: Vec<&str> = help.lines().filter(|line| line.chars().count() > 80).collect();
        assert!(wide.is_empty(), "{}: {wide:?}", verb.get_name());
    });
}

/// BUD-02
#[test]
fn every_description_has_at_most_three_lines_of_80_columns() {
    each_verb(&tree(), &mut |verb| {
        for text in [verb.get_about(), verb.get_long_about()].into_iter().flatten() {
            let text = text.to_string();
            let lines: usize = text.lines().map(|line| line.chars().count().div_ceil(80).max(1)).sum();
            assert!(lines <= 3, "{}: {lines} lines", verb.get_name());
        }
    });
}

/// META-03
#[test]
fn every_verb_has_an_example_that_parses() {
    each_verb(&tree(), &mut |verb| {
        let after =
            verb.get_after_help().unwrap_or_else(|| panic!("{} has none", verb.get_name())).to_string();
        let example = after.lines().nth(1).unwrap().trim().strip_prefix("mu ").unwrap();
        let example = example.split(" > ").next().unwrap();
        let mut argv = vec![OsString::from("mu")];
        let mut quoted = example.split('\'');
        argv.extend(quoted.next().unwrap().split_whitespace().map(OsString::from));
        argv.extend(quoted.next().map(OsString::from));
        assert!(parse(&argv).1.is_ok(), "{}: {example}", verb.get_name());
    });
}

mod host;
