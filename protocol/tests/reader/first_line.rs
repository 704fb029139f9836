//! What a wrong first line is taken for.

use mu_protocol::envelope::parse;
use mu_protocol::first_line::{Hint, diagnose};
use mu_protocol::invalid::{InvalidMessage, Why};
use mu_protocol::line::{LineSplitter, MAX_LINE};
use mu_protocol::outgoing::initialize;
use proptest::prelude::*;

/// The hint for the first line of `stdout`.
fn hint(stdout: &[u8]) -> Option<Hint> {
    let mut rest = stdout;
    let mut splitter = LineSplitter::new();
    let line = splitter.next(&mut rest).expect("a whole line");
    diagnose(stdout, &line.and_then(parse).map(drop).unwrap_err())
}

macro_rules! taken_for {
    ($($(#[$doc:meta])+ $name:ident: $stdout:expr => $hint:expr;)+) => {$(
        $(#[$doc])+
        #[test]
        fn $name() {
            let stdout = $stdout;
            assert_eq!(hint(stdout.as_ref()), $hint);
        }
    )+};
}

taken_for! {
    /// TRN-06
    a_banner: "mu-plugin-box 0.1.0 starting\n{\"jsonrpc\":\"2.0\"}\n" => Some(Hint::LogText);
    /// TRN-06
    a_banner_in_colour: "\u{1b}[32mINFO\u{1b}[0m ready\n" => Some(Hint::LogText);
    /// TRN-06
    a_banner_in_latin_1: b"d\xe9marrage\n" => Some(Hint::LogText);
    /// TRN-06
    a_banner_that_starts_like_a_literal: "note: nothing\n" => Some(Hint::LogText);
    /// TRN-06
    a_timestamp: "2024-01-01 ready\n" => Some(Hint::LogText);
    /// TRN-06
    an_endless_banner: "x".repeat(MAX_LINE + 1) => Some(Hint::LogText);
    /// TRN-06
    a_log_object: "{\"level\":\"info\",\"msg\":\"ready\"}\n{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n" => Some(Hint::LogObject);
    /// TRN-01
    a_reply_of_json_rpc_1: "{\"id\":1,\"result\":{}}\n" => None;
    ///
    a_blank_line: "\r\n{}\n" => Some(Hint::Blank);
    ///
    a_byte_order_mark: "\u{feff}{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n" => Some(Hint::ByteOrderMark);
    /// TRN-03
    utf_16_with_a_mark: b"\xff\xfe{\0\"\0\n\0" => Some(Hint::WideCharacters);
    /// TRN-03
    utf_16_big_endian_with_a_mark: b"\xfe\xff\0{\0\"\0\n" => Some(Hint::WideCharacters);
    /// TRN-03
    utf_16_without_a_mark: b"{\0\"\0j\0\n\0" => Some(Hint::WideCharacters);
    /// TRN-03
    utf_32_without_a_mark: b"\0\0\0{\0\0\0\"\0\0\0\n" => Some(Hint::WideCharacters);
    /// TRN-14
    one_zero_byte_is_not_utf_16: b"{\0}\n" => None;
    /// TRN-14
    one_zero_byte_at_the_start_is_not_utf_16: b"\0{}\n" => Some(Hint::LogText);
    /// TRN-02
    header_framing: "Content-Length: 120\r\n\r\n{\"jsonrpc\":\"2.0\"}" => Some(Hint::HeaderFraming);
    /// TRN-02
    header_framing_in_another_order: "content-type: application/json\r\nContent-Length: 2\r\n\r\n{}"
        => Some(Hint::HeaderFraming);
    /// TRN-01
    a_batch: "[{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}]\n" => Some(Hint::Batch);
    /// TRN-02
    a_pretty_printed_object: "{\n  \"jsonrpc\": \"2.0\"\n}\n" => Some(Hint::SeveralLines);
    /// TRN-17
    the_request_sent_back: initialize(1) => Some(Hint::Echo);
    /// TRN-17
    another_request: "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"log\"}\n" => None;
    /// TRN-15
    a_reply_with_an_unknown_member: "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{},\"meta\":1}\n" => None;
    /// TRN-05
    a_reply_with_a_byte_that_is_not_utf_8: b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"\xff\"}\n" => None;
    /// TRN-04
    a_reply_that_is_too_long: "{\"jsonrpc\":\"2.0\"".to_owned() + &" ".repeat(MAX_LINE) => None;
}

/// TRN-06
#[test]
fn each_hint_is_one_line_that_says_what_to_do() {
    let hints = [
        (Hint::LogText, "stderr"),
        (Hint::LogObject, "stderr"),
        (Hint::Blank, "no blank lines"),
        (Hint::ByteOrderMark, "without a byte order mark"),
        (Hint::WideCharacters, "write UTF-8"),
        (Hint::HeaderFraming, "without Content-Length"),
        (Hint::Batch, "not a batch"),
        (Hint::SeveralLines, "on one line"),
        (Hint::Echo, "answer it"),
    ];
    for (hint, advice) in hints {
        let text = hint.to_string();
        assert!(text.contains(advice) && !text.contains('\n'), "{text}");
    }
}

proptest! {
    #![proptest_config(crate::cases(256))]

    /// TRN-14
    #[test]
    fn any_bytes_are_diagnosed_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..12)) {
        for why in [Why::NotAnObject, Why::NotUtf8, Why::TooLong, Why::Request, Why::BadNumber] {
            diagnose(&bytes, &InvalidMessage { at: 0, why });
        }
    }
}
