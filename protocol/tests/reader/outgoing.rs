//! The lines that mu writes.

use mu_protocol::line::MAX_LINE;
use mu_protocol::outgoing::{TooLong, cancel, cancel_watch, initialize, request, shutdown};
use mu_protocol::strict::check;
use proptest::prelude::*;

/// HSK-01
#[test]
fn the_first_line_is_the_literal_one() {
    assert_eq!(
        initialize(1),
        br#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocol":{"min":1,"max":1},"mu":"5"}}"#
            .iter()
            .chain(b"\n")
            .copied()
            .collect::<Vec<u8>>()
    );
}

/// A-06
#[test]
fn the_two_cancels_differ_in_their_params() {
    assert_eq!(cancel(9), b"{\"jsonrpc\":\"2.0\",\"method\":\"$/cancel\",\"params\":{\"id\":9}}\n");
    assert_eq!(
        cancel_watch("a\"\n").unwrap(),
        b"{\"jsonrpc\":\"2.0\",\"method\":\"$/cancel\",\"params\":{\"watchId\":\"a\\\"\\n\"}}\n"
    );
}

/// A-03
#[test]
fn the_end_is_a_notification_without_params() {
    assert_eq!(shutdown(), b"{\"jsonrpc\":\"2.0\",\"method\":\"shutdown\"}\n");
}

/// TRN-02
#[test]
fn a_request_takes_its_params_as_they_are() {
    assert_eq!(
        request(2, "host.status", "{\"a\": 1.0}").unwrap(),
        b"{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"host.status\",\"params\":{\"a\": 1.0}}\n"
    );
}

/// Params that make a request of exactly `bytes` bytes.
fn filled(bytes: usize) -> String {
    let around = request(1, "m", "{\"a\":\"\"}").unwrap().len() - 1;
    format!("{{\"a\":\"{}\"}}", "x".repeat(bytes - around))
}

/// A-10
#[test]
fn a_request_of_exactly_one_mebibyte_is_written() {
    assert_eq!(request(1, "m", &filled(MAX_LINE)).map(|line| line.len()), Ok(MAX_LINE + 1));
}

/// A-10
#[test]
fn a_request_of_one_byte_more_is_refused() {
    assert_eq!(request(1, "m", &filled(MAX_LINE + 1)), Err(TooLong { bytes: MAX_LINE + 1 }));
}

/// A-10
#[test]
fn a_cancel_with_a_huge_watch_id_is_refused() {
    assert!(cancel_watch(&"x".repeat(MAX_LINE)).is_err());
}

proptest! {
    #![proptest_config(crate::cases(256))]

    /// TRN-02
    #[test]
    fn whatever_the_texts_each_line_is_one_strict_object(id in any::<u64>(), text in any::<String>()) {
        let lines = [request(id, &text, "{}").unwrap(), cancel_watch(&text).unwrap(), cancel(id), initialize(id)];
        for line in lines {
            let (feed, object) = line.split_last().unwrap();
            prop_assert_eq!(*feed, b'\n');
            prop_assert!(!object.contains(&b'\n') && check(object).is_ok());
        }
    }
}
