//! The envelope: which members make a reply, which a notification, and everything else.

use mu_protocol::envelope::{Body, Incoming, NotificationMethod, parse};
use mu_protocol::invalid::{InvalidMessage, Why};
use mu_protocol::messages::values::MAX_INTEGER;
use proptest::prelude::*;

use crate::refused;

/// The id and the raw outcome of a reply.
fn reply(line: &str) -> (u64, Result<&str, &str>) {
    match parse(line.as_bytes()) {
        Ok(Incoming::Reply { id, body: Body::Result(result) }) => (id, Ok(result.get())),
        Ok(Incoming::Reply { id, body: Body::Error(error) }) => (id, Err(error.get())),
        other => panic!("no reply: {other:?}"),
    }
}

/// TRN-10
#[test]
fn a_reply_carries_its_result_as_it_was_written() {
    assert_eq!(reply(r#"{"jsonrpc":"2.0","id":7,"result":{ "a" : 1.50 }}"#), (7, Ok(r#"{ "a" : 1.50 }"#)));
}

/// TRN-10
#[test]
fn null_is_a_result() {
    assert_eq!(reply(r#"{"jsonrpc":"2.0","id":1,"result":null}"#), (1, Ok("null")));
}

/// A-71
#[test]
fn an_error_of_any_shape_is_an_error() {
    assert_eq!(reply(r#"{"jsonrpc":"2.0","id":1,"error":{"x":[]}}"#), (1, Err(r#"{"x":[]}"#)));
}

/// TRN-01
#[test]
fn the_order_and_the_spelling_of_members_do_not_matter() {
    let line = r#" { "error" : {} , "\u0069d" : 3 , "\u006asonrpc" : "2\u002e0" } "#;
    assert_eq!(reply(line), (3, Err("{}")));
}

/// TRN-16
#[test]
fn the_largest_id_is_two_to_the_53_less_one() {
    let line = format!(r#"{{"jsonrpc":"2.0","id":{MAX_INTEGER},"result":1}}"#);
    assert_eq!(reply(&line), (9_007_199_254_740_991, Ok("1")));
}

/// TRN-13
#[test]
fn both_notifications_are_known() {
    for (name, expected) in [
        ("watch/settled", NotificationMethod::WatchSettled),
        ("watch/restarted", NotificationMethod::WatchRestarted),
    ] {
        let line = format!(r#"{{"jsonrpc":"2.0","params":{{"watchId":"w"}},"method":"{name}"}}"#);
        match parse(line.as_bytes()) {
            Ok(Incoming::Notification { method, params }) => {
                assert_eq!((method, params.get()), (expected, r#"{"watchId":"w"}"#));
            }
            other => panic!("no notification: {other:?}"),
        }
    }
}

refused! { parse;
    /// TRN-01
    a_batch: r#"[{"jsonrpc":"2.0","id":1,"result":null}]"# => 0, Batch;
    /// TRN-01
    a_json_log_line: r#" {"level":"info"}"# => 1, MissingVersion;
    /// TRN-01
    another_version: r#"{"jsonrpc":"1.0","id":1,"result":null}"# => 11, WrongVersion;
    /// TRN-01
    a_version_that_is_a_number: r#"{"jsonrpc":2.0,"id":1,"result":null}"# => 11, WrongVersion;
    /// TRN-01
    a_version_with_more_behind_it: r#"{"jsonrpc":"2.00","id":1,"result":null}"# => 11, WrongVersion;

    /// TRN-15
    an_unknown_member: r#"{"jsonrpc":"2.0","id":1,"meta":{},"result":null}"# => 24, UnknownMember;
    /// TRN-15
    a_known_member_in_capitals: r#"{"jsonrpc":"2.0","id":1,"Result":null}"# => 24, UnknownMember;
    /// TRN-15
    the_first_of_two_unknown_members: r#"{"x":0,"jsonrpc":"2.0","y":0,"id":1,"result":1}"# => 1, UnknownMember;

    /// TRN-17
    a_request: r#"{"jsonrpc":"2.0","id":1,"method":"log","params":{}}"# => 24, Request;
    /// TRN-17
    a_request_named_like_a_notification: r#"{"jsonrpc":"2.0","id":1,"method":"watch/settled","params":{}}"# => 24, Request;
    /// TRN-17
    a_request_whose_id_is_null: r#"{"jsonrpc":"2.0","id":null,"method":"log"}"# => 27, Request;
    /// TRN-15
    neither_id_nor_method: r#"{"jsonrpc":"2.0","result":null}"# => 0, NoIdNoMethod;

    /// TRN-16
    an_id_that_is_a_string: r#"{"jsonrpc":"2.0","id":"1","result":null}"# => 22, IdNotNumber;
    /// TRN-16
    an_id_that_is_null: r#"{"jsonrpc":"2.0","id":null,"result":null}"# => 22, IdNotNumber;
    /// TRN-16
    an_id_that_is_an_array: r#"{"jsonrpc":"2.0","id":[1],"result":null}"# => 22, IdNotNumber;
    /// TRN-16
    an_id_with_a_fraction: r#"{"jsonrpc":"2.0","id":1.5,"result":null}"# => 22, IdOutOfRange;
    /// TRN-16
    an_id_with_a_zero_fraction: r#"{"jsonrpc":"2.0","id":1.0,"result":null}"# => 22, IdOutOfRange;
    /// TRN-16
    an_id_with_an_exponent: r#"{"jsonrpc":"2.0","id":1e0,"result":null}"# => 22, IdOutOfRange;
    /// TRN-16
    a_negative_id: r#"{"jsonrpc":"2.0","id":-1,"result":null}"# => 22, IdOutOfRange;
    /// TRN-16
    a_zero_id: r#"{"jsonrpc":"2.0","id":0,"result":null}"# => 22, IdOutOfRange;
    /// TRN-16
    a_negative_zero: r#"{"jsonrpc":"2.0","id":-0,"result":null}"# => 22, IdOutOfRange;
    /// TRN-16
    an_id_past_the_largest: r#"{"jsonrpc":"2.0","id":9007199254740992,"result":null}"# => 22, IdOutOfRange;
    /// TRN-16
    an_id_of_two_to_the_64_and_one: r#"{"jsonrpc":"2.0","id":18446744073709551617,"result":null}"# => 22, IdOutOfRange;

    /// TRN-10
    neither_result_nor_error: r#"{"jsonrpc":"2.0","id":3}"# => 0, NoOutcome;
    /// A-08
    both_result_and_error: r#"{"jsonrpc":"2.0","id":3,"error":{},"result":{}}"# => 35, TwoOutcomes;
    /// A-08
    a_null_result_beside_an_error: r#"{"jsonrpc":"2.0","id":3,"result":null,"error":{}}"# => 38, TwoOutcomes;
    /// A-08
    a_null_error_beside_a_result: r#"{"jsonrpc":"2.0","id":3,"result":{},"error":null}"# => 36, TwoOutcomes;
    /// TRN-11
    an_error_that_is_null: r#"{"jsonrpc":"2.0","id":3,"error":null}"# => 32, ErrorNotObject;
    /// TRN-11
    an_error_that_is_a_string: r#"{"jsonrpc":"2.0","id":3,"error":"no"}"# => 32, ErrorNotObject;
    /// TRN-11
    an_error_that_is_an_array: r#"{"jsonrpc":"2.0","id":3,"error":[1,"no"]}"# => 32, ErrorNotObject;
    /// TRN-15
    params_in_a_reply: r#"{"jsonrpc":"2.0","id":3,"params":{},"result":1}"# => 24, ParamsInReply;

    /// TRN-21
    another_notification: r#"{"jsonrpc":"2.0","method":"log/line","params":{}}"# => 26, UnknownNotification;
    /// TRN-21
    a_notification_of_mu_sent_back: r#"{"jsonrpc":"2.0","method":"shutdown"}"# => 26, UnknownNotification;
    /// TRN-21
    a_method_in_capitals: r#"{"jsonrpc":"2.0","method":"watch/Settled","params":{}}"# => 26, UnknownNotification;
    /// TRN-15
    a_method_that_is_no_string: r#"{"jsonrpc":"2.0","method":1,"params":{}}"# => 26, MethodNotString;
    /// TRN-15
    a_notification_without_params: r#"{"jsonrpc":"2.0","method":"watch/settled"}"# => 0, MissingParams;
    /// TRN-15
    params_that_are_an_array: r#"{"jsonrpc":"2.0","method":"watch/settled","params":["w"]}"# => 51, ParamsNotObject;
    /// TRN-15
    params_that_are_null: r#"{"jsonrpc":"2.0","method":"watch/settled","params":null}"# => 51, ParamsNotObject;
    /// TRN-15
    a_notification_with_a_result: r#"{"jsonrpc":"2.0","method":"watch/settled","params":{},"result":1}"# => 54, OutcomeInNotification;
    /// TRN-15
    a_notification_with_an_error: r#"{"jsonrpc":"2.0","error":{},"method":"watch/settled","params":{}}"# => 17, OutcomeInNotification;
}

/// TRN-14
#[test]
fn the_text_of_a_refusal_names_byte_kind_and_rule() {
    let refusal = parse(br#"{"jsonrpc":"2.0","id":1,"meta":1,"result":1}"#).unwrap_err();
    assert_eq!(refusal, InvalidMessage { at: 24, why: Why::UnknownMember });
    assert_eq!(refusal.to_string(), "byte 24: unknown envelope member (TRN-15)");
}

/// Every way in which a text of the plugin's choice can come into a line.
fn with_canary(canary: &str) -> impl Iterator<Item = Vec<u8>> {
    [
        "@",
        "\"@\"",
        "{@",
        "{\"@",
        "{\"@\":1}",
        "{\"@\":1,\"@\":2}",
        "{\"a\":@}",
        "{\"a\":\"@\\q\"}",
        "{\"a\":t@}",
        "{\"jsonrpc\":\"@\"}",
        "{\"jsonrpc\":\"2.0\",\"@\":1}",
        "{\"jsonrpc\":\"2.0\",\"id\":\"@\",\"result\":1}",
        "{\"jsonrpc\":\"2.0\",\"method\":\"@\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":\"@\"}",
        "{} @",
        "[\"@\"]",
    ]
    .into_iter()
    .map(move |shape| shape.replace('@', canary).into_bytes())
    .chain([[canary.as_bytes(), b"\xff"].concat()])
}

proptest! {
    #![proptest_config(crate::cases(256))]

    /// SEC-01
    #[test]
    fn the_text_of_a_refusal_is_one_line_without_content(canary in "[a-z]{4,6}7[A-Z]{6}") {
        for line in with_canary(&canary) {
            let refusal = parse(&line).map(drop).unwrap_err();
            for text in [refusal.to_string(), format!("{refusal:?}")] {
                prop_assert!(!text.contains(&canary) && !text.contains('\n'), "{}", text);
            }
        }
    }

    /// TRN-16
    #[test]
    fn each_id_that_mu_sends_comes_back(id in 1..=MAX_INTEGER) {
        let line = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":null}}"#);
        prop_assert_eq!(reply(&line), (id, Ok("null")));
    }
}
