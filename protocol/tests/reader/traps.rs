//! Lines by which serde_json alone is fooled. Each test first shows the trap, then that it is closed.

use mu_protocol::envelope::parse;
use mu_protocol::invalid::Why;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use serde_json::value::RawValue;

fn why(line: &str) -> Why {
    parse(line.as_bytes()).map(drop).unwrap_err().why
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "only the shape matters")]
struct Reply {
    jsonrpc: String,
    id: u64,
    result: Option<Value>,
    error: Option<Value>,
}

/// TRN-01
#[test]
fn an_array_is_no_envelope() {
    let line = r#"["2.0",1,null,null]"#;
    assert!(serde_json::from_str::<Reply>(line).is_ok());
    assert_eq!(why(line), Why::Batch);
}

/// A-08
#[test]
fn a_null_result_does_not_hide_an_error() {
    #[derive(Deserialize)]
    #[serde(untagged)]
    #[expect(dead_code, reason = "only the shape matters")]
    enum Outcome {
        Success { result: Value },
        Failure { error: Value },
    }
    let line = r#"{"jsonrpc":"2.0","id":1,"result":null,"error":{"code":1}}"#;
    assert!(matches!(serde_json::from_str(line), Ok(Outcome::Success { .. })));
    assert_eq!(why(line), Why::TwoOutcomes);
}

/// TRN-10
#[test]
fn an_absent_result_is_not_a_null_result() {
    let absent = r#"{"jsonrpc":"2.0","id":1}"#;
    let null = r#"{"jsonrpc":"2.0","id":1,"result":null}"#;
    assert!(serde_json::from_str::<Reply>(absent).is_ok_and(|reply| reply.result.is_none()));
    assert!(serde_json::from_str::<Reply>(null).is_ok_and(|reply| reply.result.is_none()));
    assert_eq!(why(absent), Why::NoOutcome);
    assert!(parse(null.as_bytes()).is_ok());
}

/// A-11
#[test]
fn a_nested_duplicate_is_not_collapsed() {
    let line = r#"{"jsonrpc":"2.0","id":1,"result":{"a":1,"a":2}}"#;
    assert!(serde_json::from_str::<Reply>(line).is_ok());
    assert_eq!(why(line), Why::DuplicateName);
}

/// TRN-14
#[test]
fn depth_is_bounded_in_what_is_kept_raw() {
    let deep = format!("{}{}", "[".repeat(5000), "]".repeat(5000));
    assert!(serde_json::from_str::<&RawValue>(&deep).is_ok());
    assert!(serde_json::from_str::<IgnoredAny>(&deep).is_ok());
    assert_eq!(why(&format!(r#"{{"jsonrpc":"2.0","id":1,"result":{deep}}}"#)), Why::TooDeep);
}

/// TRN-05
#[test]
fn half_a_surrogate_pair_is_seen_in_what_is_kept_raw() {
    let half = r#""\ud800""#;
    assert!(serde_json::from_str::<&RawValue>(half).is_ok());
    assert!(serde_json::from_str::<IgnoredAny>(half).is_ok());
    assert_eq!(why(&format!(r#"{{"jsonrpc":"2.0","id":1,"result":{half}}}"#)), Why::LoneSurrogate);
}

/// TRN-16
#[test]
fn an_id_too_large_for_an_integer_is_not_rounded() {
    assert!(serde_json::from_str::<Value>("18446744073709551616").is_ok_and(|id| id.is_f64()));
    assert_eq!(why(r#"{"jsonrpc":"2.0","id":18446744073709551616,"result":1}"#), Why::IdOutOfRange);
}

/// TRN-16
#[test]
fn an_id_too_small_for_a_float_is_not_zero() {
    assert_eq!(serde_json::from_str::<f64>("1e-400").ok(), Some(0.0));
    assert_eq!(why(r#"{"jsonrpc":"2.0","id":1e-400,"result":1}"#), Why::IdOutOfRange);
}

/// TRN-02
#[test]
fn a_second_object_is_not_left_for_later() {
    let line = r#"{"jsonrpc":"2.0","id":1,"result":1}{"jsonrpc":"2.0","id":2,"result":1}"#;
    assert!(serde_json::Deserializer::from_str(line).into_iter::<Reply>().all(|reply| reply.is_ok()));
    assert_eq!(why(line), Why::TrailingBytes);
}
