//! A `run` line to words.

use super::super::words::{WordsError, expand, join, placeholders, split};

#[test]
fn blanks_part_words_and_quotes_hold_them_together() {
    assert_eq!(split("mu  plugin\tadd").unwrap(), ["mu", "plugin", "add"]);
    assert_eq!(split("mu 'a b' \"c d\" e' 'f").unwrap(), ["mu", "a b", "c d", "e f"]);
}

#[test]
fn an_empty_quote_is_an_empty_word() {
    assert_eq!(split("mu '' \"\"").unwrap(), ["mu", "", ""]);
    assert_eq!(split("  ").unwrap(), [""; 0]);
}

#[test]
fn backslashes_work_as_in_a_shell() {
    assert_eq!(split(r#"a\ b '\n' "\"\\\n""#).unwrap(), ["a b", r"\n", r#""\\n"#]);
}

#[test]
fn words_that_are_joined_are_split_into_the_same() {
    for words in [&["mu", "a b", "", "it's", "\"$x\"", "{box}", r"a\n"][..], &["mu"], &[]] {
        assert_eq!(
            split(&join(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())).unwrap(),
            words
        );
    }
    assert_eq!(join(&["mu".to_owned(), "--json".to_owned(), "a b".to_owned()]), "mu --json 'a b'");
}

#[test]
fn quoted_shell_characters_are_plain() {
    assert_eq!(split("mu db query 'select 1; | > $x'").unwrap()[3], "select 1; | > $x");
}

#[test]
fn what_is_open_or_for_a_shell_is_refused() {
    assert_eq!(split("mu 'a"), Err(WordsError::OpenQuote('\'')));
    assert_eq!(split("mu \"a\\"), Err(WordsError::OpenQuote('"')));
    assert_eq!(split("mu a\\"), Err(WordsError::OpenEscape));
    assert_eq!(split("mu > x"), Err(WordsError::Shell('>')));
}

#[test]
fn only_names_in_braces_are_placeholders() {
    assert_eq!(placeholders("{box}/{dir}x {} {A} {\"a\":1} {a b} {x-1_}"), ["box", "dir", "x-1_"]);
    assert_eq!(expand("a{box}b{\"c\"}{dir}", &str::to_uppercase), "aBOXb{\"c\"}DIR");
    assert_eq!(expand("{{box}}", &str::to_uppercase), "{BOX}");
    assert_eq!(expand("{local}{host}{repo}{remote}", &str::to_uppercase), "{local}{host}REPO{remote}");
}

#[test]
fn a_number_and_a_letter_in_braces_is_that_many_letters() {
    let expanded = |text| expand(text, &str::to_uppercase);
    assert_eq!(expanded("a{3x}b{12y}"), "axxxbyyyyyyyyyyyy");
    assert_eq!(expanded("{box}{2z}{dir}"), "BOXzzDIR");
    for kept in ["{0x}", "{3}", "{x}y{3xy}", "{3X}", "{3x", "{2000001x}", "{}"] {
        assert_eq!(expanded(kept), kept.replace("{x}", "X"), "{kept}");
    }
}
