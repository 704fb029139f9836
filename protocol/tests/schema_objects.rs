//! Each of serde's loopholes is closed at every depth, and what is refused is named without being quoted.

use std::collections::BTreeMap;

use mu_protocol::objects::{Fault, Mismatch, Patch, from_json, nullable};
use serde::{Deserialize, Serialize};

#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Outer {
    id: u64,
    inner: Option<Inner>,
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Inner {
    word: Word,
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Word {
    On,
    Off,
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
enum Any {
    Unit,
    One(Inner),
    Two(u8, Word),
    Named { inner: Inner },
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Nullable {
    #[serde(deserialize_with = "nullable")]
    inner: Option<Inner>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Facts {
    #[serde(default, skip_serializing_if = "Patch::is_absent")]
    fact: Patch<u64>,
}

fn fault<'de, T: Deserialize<'de> + std::fmt::Debug>(raw: &'de str) -> Fault {
    from_json::<T>(raw).expect_err("refused").fault
}

/// The loophole is there: plain serde takes what the next tests see refused.
#[test]
fn plain_serde_takes_arrays_for_structs_and_objects_for_words() {
    let outer = Outer { id: 1, inner: Some(Inner { word: Word::On }) };
    assert_eq!(serde_json::from_str::<Outer>(r#"[1,[{"on":null}]]"#).unwrap(), outer);
    assert_eq!(serde_json::from_str::<Outer>(r#"{"id":1,"inner":null}"#).unwrap().inner, None);
}

#[test]
fn a_struct_is_never_read_from_an_array() {
    assert_eq!(fault::<Outer>(r#"[1,{"word":"on"}]"#), Fault::WrongType);
}

#[test]
fn a_struct_deep_inside_is_never_read_from_an_array() {
    assert_eq!(fault::<Outer>(r#"{"id":1,"inner":["on"]}"#), Fault::WrongType);
    assert_eq!(fault::<Vec<BTreeMap<String, Inner>>>(r#"[{"a":["on"]}]"#), Fault::WrongType);
    assert_eq!(fault::<(u8, Inner)>(r#"[1,["on"]]"#), Fault::WrongType);
    assert_eq!(fault::<Nullable>(r#"{"inner":["on"]}"#), Fault::WrongType);
    assert_eq!(fault::<Any>(r#"{"one":["on"]}"#), Fault::WrongType);
    assert_eq!(fault::<Any>(r#"{"named":[{"word":"on"}]}"#), Fault::WrongType);
    assert_eq!(fault::<Any>(r#"{"named":{"inner":["on"]}}"#), Fault::WrongType);
}

#[test]
fn what_an_array_is_for_is_read_from_an_array() {
    assert_eq!(from_json::<Vec<Word>>(r#"["on","off"]"#), Ok(vec![Word::On, Word::Off]));
    assert_eq!(from_json::<[u8; 2]>("[1,2]"), Ok([1, 2]));
    assert!(from_json::<[u8; 2]>("[1,2,3]").is_err());
    assert!(from_json::<[u8; 2]>("[1]").is_err());
}

#[test]
fn a_word_is_never_read_from_an_object() {
    assert_eq!(from_json::<Word>(r#""on""#), Ok(Word::On));
    assert_eq!(fault::<Word>(r#"{"on":null}"#), Fault::WrongType);
    assert_eq!(fault::<Inner>(r#"{"word":{"on":null}}"#), Fault::WrongType);
    assert_eq!(fault::<Any>(r#"{"unit":null}"#), Fault::WrongType);
}

#[test]
fn a_word_written_with_escapes_is_the_same_word() {
    assert_eq!(from_json::<Word>(r#""\u006fn""#), Ok(Word::On));
    assert_eq!(from_json::<Inner>(r#"{"w\u006frd":"on"}"#), Ok(Inner { word: Word::On }));
}

#[test]
fn a_word_is_never_read_from_its_number() {
    assert_eq!(fault::<Word>("0"), Fault::WrongType);
}

#[test]
fn an_unknown_word_is_a_wrong_value() {
    assert_eq!(fault::<Word>(r#""On""#), Fault::WrongValue);
    assert_eq!(fault::<Any>(r#"{"three":1}"#), Fault::WrongValue);
}

#[test]
fn a_variant_with_content_is_an_object_of_exactly_one_member() {
    assert_eq!(from_json::<Any>(r#""unit""#), Ok(Any::Unit));
    assert_eq!(from_json::<Any>(r#"{"one":{"word":"on"}}"#), Ok(Any::One(Inner { word: Word::On })));
    assert_eq!(from_json::<Any>(r#"{"two":[1,"off"]}"#), Ok(Any::Two(1, Word::Off)));
    assert_eq!(
        from_json::<Any>(r#"{"named":{"inner":{"word":"off"}}}"#),
        Ok(Any::Named { inner: Inner { word: Word::Off } })
    );
    for text in [r#""one""#, r#""two""#, r#""named""#, "{}", r#"{"one":{"word":"on"},"two":[1,"on"]}"#] {
        assert!(from_json::<Any>(text).is_err(), "{text}");
    }
    assert!(from_json::<Any>(r#"{"two":[1,"off",2]}"#).is_err());
    assert!(from_json::<Any>(r#"{"two":[1,{"off":null}]}"#).is_err());
}

#[test]
fn an_optional_member_may_be_absent_but_not_null() {
    assert_eq!(from_json::<Outer>(r#"{"id":1}"#), Ok(Outer { id: 1, inner: None }));
    assert_eq!(fault::<Outer>(r#"{"id":1,"inner":null}"#), Fault::WrongType);
    assert_eq!(fault::<Option<u8>>("null"), Fault::WrongType);
}

#[test]
fn a_nullable_member_may_be_null_but_not_absent() {
    assert_eq!(from_json::<Nullable>(r#"{"inner":null}"#), Ok(Nullable { inner: None }));
    assert_eq!(
        from_json::<Nullable>(r#"{"inner":{"word":"on"}}"#),
        Ok(Nullable { inner: Some(Inner { word: Word::On }) })
    );
    assert_eq!(fault::<Nullable>("{}"), Fault::MissingMember("inner".into()));
}

#[test]
fn a_nullable_member_is_read_by_plain_serde_too() {
    assert_eq!(serde_json::from_str::<Nullable>(r#"{"inner":null}"#).unwrap(), Nullable { inner: None });
}

/// HOST-09, HOST-10
#[test]
fn a_patch_tells_absent_null_and_value_apart() {
    for (text, patch) in
        [("{}", Patch::Absent), (r#"{"fact":null}"#, Patch::Null), (r#"{"fact":7}"#, Patch::Value(7))]
    {
        assert_eq!(from_json::<Facts>(text), Ok(Facts { fact: patch }));
        assert_eq!(serde_json::to_string(&Facts { fact: patch }).unwrap(), text);
    }
}

/// HOST-09, HOST-10
#[test]
fn a_patch_keeps_clears_or_sets_a_fact() {
    assert_eq!(Patch::Absent.apply(Some(1)), Some(1));
    assert_eq!(Patch::Null.apply(Some(1)), None);
    assert_eq!(Patch::Value(2).apply(Some(1)), Some(2));
}

#[test]
fn an_integer_is_no_float_no_string_and_in_range() {
    for text in ["1.0", "1e0", "1.5", "-0", "-1", "18446744073709551616", "1e400", "\"1\"", "true", "null"] {
        assert!(from_json::<u64>(text).is_err(), "{text}");
    }
    assert_eq!(from_json::<u64>("18446744073709551615"), Ok(u64::MAX));
    assert!(from_json::<u8>("256").is_err());
    assert!(from_json::<i32>("2147483648").is_err());
    assert!(from_json::<i32>("-2147483649").is_err());
    assert_eq!(from_json::<i32>("-2147483648"), Ok(i32::MIN));
}

#[test]
fn a_string_is_not_read_from_anything_else() {
    for text in ["1", "true", "null", "[]", "{}", r#"["a"]"#] {
        assert_eq!(fault::<String>(text), Fault::WrongType, "{text}");
    }
}

#[test]
fn the_text_is_exactly_one_value() {
    for text in ["", " ", "1 2", "{\"id\":1}x", "{\"id\":1", "{\"id\":1,}", "nul"] {
        assert_eq!(fault::<serde::de::IgnoredAny>(text), Fault::NotJson, "{text}");
    }
    assert_eq!(from_json::<u8>(" 1 "), Ok(1));
}

/// LOAD-05, LOAD-06
#[test]
fn a_mismatch_says_where_and_which_kind() {
    let mismatch = |at, fault| Err(Mismatch { at, fault });
    assert_eq!(
        from_json::<Outer>(r#"{"inner":{"word":"on"}}"#),
        mismatch(23, Fault::MissingMember("id".into()))
    );
    assert_eq!(from_json::<Outer>(r#"{"id":1,"idx":2}"#), mismatch(13, Fault::UnknownMember));
    assert_eq!(from_json::<Outer>(r#"{"id":1,"id":2}"#), mismatch(8, Fault::DuplicateMember));
    assert_eq!(from_json::<Outer>("{\"id\":\n\"1\"}").map_err(|m| m.fault), Err(Fault::WrongType));
    assert_eq!(from_json::<Outer>("{\"id\":\n\n\"1\"}").map_err(|m| m.at), Err(11));
}

/// The design: an invalid message is told by position and kind, never by its content.
#[test]
fn a_mismatch_never_quotes_the_text() {
    for text in [
        r#"{"id":"canary"}"#,
        r#"{"id":1,"canary":2}"#,
        r#"{"id":1,"inner":{"word":"canary"}}"#,
        r#"{"id":1,"inner":"canary"}"#,
        r#"{"id":1} canary"#,
        r#"canary"#,
        r#"["canary"]"#,
    ] {
        let mismatch = from_json::<Outer>(text).unwrap_err();
        assert!(!format!("{mismatch} {mismatch:?}").contains("canary"), "{mismatch:?}");
    }
}
