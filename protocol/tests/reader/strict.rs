//! The strict pass, case by case: what JSON is, and where a line stops being it.

use mu_protocol::invalid::Why;
use mu_protocol::line::MAX_LINE;
use mu_protocol::strict::{Checked, MAX_DEPTH, check};

use crate::refused;

fn nested(depth: usize) -> String {
    // The object is the first level.
    format!("{{\"a\":{}1{}}}", "[".repeat(depth - 1), "]".repeat(depth - 1))
}

/// `{"0":0,…}` with `count` names.
fn wide(count: usize) -> String {
    let members: Vec<String> = (0..count).map(|name| format!("\"{name}\":0")).collect();
    format!("{{{}}}", members.join(","))
}

refused! { check;
    /// TRN-04
    more_than_one_mebibyte: format!("{{\"a\":\"{}\"}}", "x".repeat(MAX_LINE)) => MAX_LINE, TooLong;

    /// TRN-05
    bytes_that_are_not_utf8_at_the_start: b"\xff{}" => 0, NotUtf8;
    /// TRN-05
    bytes_that_are_not_utf8_in_a_string: b"{\"a\":\"b\xc3\"}" => 7, NotUtf8;
    /// TRN-05
    bytes_that_are_not_utf8_at_the_end: b"{}\x80" => 2, NotUtf8;
    /// TRN-05
    a_surrogate_encoded_in_utf8: b"{\"a\":\"\xed\xa0\x80\"}" => 6, NotUtf8;
    /// TRN-05
    an_overlong_encoding: b"{\"a\":\"\xc0\xaf\"}" => 6, NotUtf8;
    /// TRN-05
    a_character_cut_by_the_end_of_the_line: b"{\"a\":\"\xe2\x82" => 6, NotUtf8;

    /// A-11
    a_byte_order_mark: "\u{feff}{}" => 0, ByteOrderMark;
    /// A-11
    an_empty_line: "" => 0, Blank;
    /// A-11
    a_line_of_white_space: " \t\r" => 0, Blank;
    /// TRN-01
    a_batch: " [{}]" => 1, Batch;
    /// TRN-14
    a_log_line: "starting up" => 0, NotAnObject;
    /// TRN-14
    a_string: "\"a\"" => 0, NotAnObject;
    /// TRN-14
    a_number: "1" => 0, NotAnObject;
    /// TRN-14
    a_literal: " null" => 1, NotAnObject;
    /// TRN-14
    a_nul_before_the_object: "\0{}" => 0, NotAnObject;

    /// TRN-02
    two_objects: "{} {}" => 3, TrailingBytes;
    /// TRN-02
    a_comma_after_the_object: "{}," => 2, TrailingBytes;
    /// TRN-02
    a_nul_after_the_object: "{}\0" => 2, TrailingBytes;
    /// TRN-02
    a_byte_order_mark_after_the_object: "{}\u{feff}" => 2, TrailingBytes;

    /// TRN-02
    an_object_that_goes_on_in_the_next_line: "{" => 1, Unfinished;
    /// TRN-14
    a_line_cut_in_a_name: "{\"a" => 3, Unfinished;
    /// TRN-14
    a_line_cut_after_a_name: "{\"a\"" => 4, Unfinished;
    /// TRN-14
    a_line_cut_after_a_colon: "{\"a\":" => 5, Unfinished;
    /// TRN-14
    a_line_cut_in_a_literal: "{\"a\":tru" => 8, Unfinished;
    /// TRN-14
    a_line_cut_after_a_sign: "{\"a\":-" => 6, Unfinished;
    /// TRN-14
    a_line_cut_after_a_point: "{\"a\":1." => 7, Unfinished;
    /// TRN-14
    a_line_cut_after_a_value: "{\"a\":1" => 6, Unfinished;
    /// TRN-14
    a_line_cut_after_a_comma: "{\"a\":1," => 7, Unfinished;
    /// TRN-14
    a_line_cut_in_an_array: "{\"a\":[1,2" => 9, Unfinished;
    /// TRN-14
    a_line_cut_after_a_backslash: "{\"a\":\"\\" => 7, Unfinished;
    /// TRN-14
    a_line_cut_in_an_escape: "{\"a\":\"\\u00" => 10, Unfinished;
    /// TRN-14
    a_line_cut_between_surrogates: "{\"a\":\"\\ud83d" => 12, Unfinished;

    /// TRN-14
    a_missing_value: "{\"a\":}" => 5, ExpectedValue;
    /// TRN-14
    not_a_number: "{\"a\":NaN}" => 5, ExpectedValue;
    /// TRN-14
    single_quotes: "{\"a\":'b'}" => 5, ExpectedValue;
    /// TRN-14
    a_plus_sign: "{\"a\":+1}" => 5, ExpectedValue;
    /// TRN-14
    a_bare_point: "{\"a\":.5}" => 5, ExpectedValue;
    /// TRN-14
    a_trailing_comma_in_an_array: "{\"a\":[1,]}" => 8, ExpectedValue;
    /// TRN-14
    a_comment: "{\"a\":/**/1}" => 5, ExpectedValue;
    /// TRN-14
    white_space_that_json_does_not_know: "{\"a\":\u{a0}1}" => 5, ExpectedValue;
    /// TRN-14
    a_form_feed: "{\"a\":\u{c}1}" => 5, ExpectedValue;

    /// TRN-14
    a_trailing_comma_in_an_object: "{\"a\":1,}" => 7, ExpectedName;
    /// TRN-14
    a_name_without_quotes: "{a:1}" => 1, ExpectedName;
    /// TRN-14
    utf16_in_disguise: "{\0\"\0" => 1, ExpectedName;
    /// TRN-14
    a_second_colon_missing: "{\"a\" 1}" => 5, ExpectedColon;
    /// TRN-14
    two_members_without_a_comma: "{\"a\":1 \"b\":2}" => 7, ExpectedCommaOrBrace;
    /// TRN-14
    a_bracket_that_closes_an_object: "{\"a\":1]" => 6, ExpectedCommaOrBrace;
    /// TRN-14
    letters_glued_to_a_number: "{\"a\":1x}" => 6, ExpectedCommaOrBrace;
    /// TRN-14
    letters_glued_to_a_literal: "{\"a\":nullx}" => 9, ExpectedCommaOrBrace;
    /// TRN-14
    a_brace_that_closes_an_array: "{\"a\":[1}" => 7, ExpectedCommaOrBracket;
    /// TRN-14
    two_elements_without_a_comma: "{\"a\":[1 2]}" => 8, ExpectedCommaOrBracket;

    /// TRN-14
    a_misspelt_true: "{\"a\":trve}" => 7, BadLiteral;
    /// TRN-14
    a_capital_in_false: "{\"a\":faLse}" => 7, BadLiteral;
    /// TRN-14
    a_short_null: "{\"a\":nul}" => 8, BadLiteral;

    /// TRN-14
    a_leading_zero: "{\"a\":01}" => 6, BadNumber;
    /// TRN-14
    a_leading_zero_after_the_sign: "{\"a\":-012}" => 7, BadNumber;
    /// TRN-14
    a_sign_without_digits: "{\"a\":-}" => 6, BadNumber;
    /// TRN-14
    a_point_without_digits: "{\"a\":1.}" => 7, BadNumber;
    /// TRN-14
    an_exponent_without_digits: "{\"a\":1e}" => 7, BadNumber;
    /// TRN-14
    an_exponent_with_only_a_sign: "{\"a\":1e+}" => 8, BadNumber;
    /// TRN-14
    a_negative_infinity: "{\"a\":-Infinity}" => 6, BadNumber;

    /// TRN-14
    an_unknown_escape: "{\"a\":\"\\x41\"}" => 7, BadEscape;
    /// TRN-14
    an_escape_with_too_few_digits: "{\"a\":\"\\u00g0\"}" => 10, BadEscape;
    /// TRN-14
    an_escape_with_a_sign: "{\"a\":\"\\u+041\"}" => 8, BadEscape;
    /// TRN-14
    an_escape_in_capitals: "{\"a\":\"\\U0041\"}" => 7, BadEscape;
    /// TRN-14
    a_bad_escape_in_a_name: "{\"\\q\":1}" => 3, BadEscape;

    /// TRN-14
    a_raw_tab_in_a_string: "{\"a\":\"b\tc\"}" => 7, ControlCharacter;
    /// TRN-14
    a_raw_nul_in_a_string: "{\"a\":\"\0\"}" => 6, ControlCharacter;
    /// TRN-14
    a_raw_escape_character_in_a_name: "{\"\u{1b}[0m\":1}" => 2, ControlCharacter;
    /// TRN-14
    a_control_character_far_into_a_string: format!("{{\"a\":\"{}\u{1f}\"}}", "é".repeat(50)) => 106, ControlCharacter;

    /// TRN-05
    a_high_surrogate_alone: "{\"a\":\"x\\ud800\"}" => 7, LoneSurrogate;
    /// TRN-05
    a_low_surrogate_alone: "{\"a\":\"\\udc00\"}" => 6, LoneSurrogate;
    /// TRN-05
    two_high_surrogates: "{\"a\":\"\\ud800\\ud800\"}" => 6, LoneSurrogate;
    /// TRN-05
    a_high_surrogate_before_another_escape: "{\"a\":\"\\udbff\\n\"}" => 6, LoneSurrogate;
    /// TRN-05
    surrogates_in_the_wrong_order: "{\"a\":\"\\udfff\\ud800\"}" => 6, LoneSurrogate;
    /// TRN-05
    a_surrogate_alone_in_a_name: "{\"\\ud800\":1}" => 2, LoneSurrogate;
    /// TRN-05
    a_surrogate_alone_after_a_pair: "{\"a\":\"\\ud83d\\ude00\\ude00\"}" => 18, LoneSurrogate;

    /// A-11
    a_name_twice_at_the_top: "{\"a\":1,\"b\":2,\"a\":3}" => 13, DuplicateName;
    /// A-11
    a_name_twice_at_depth: "{\"a\":[{\"b\":{\"c\":1,\"c\":1}}]}" => 18, DuplicateName;
    /// A-11
    a_name_twice_with_an_escape: "{\"a\":1,\"\\u0061\":2}" => 7, DuplicateName;
    /// A-11
    a_name_twice_with_two_spellings: "{\"\\u002F\":1,\"\\/\":2}" => 12, DuplicateName;
    /// A-11
    a_name_twice_as_a_surrogate_pair: "{\"😀\":1,\"\\ud83d\\ude00\":2}" => 10, DuplicateName;
    /// A-11
    an_empty_name_twice: "{\"\":1,\"\":2}" => 6, DuplicateName;
    /// A-11
    the_eighth_name_again_as_the_ninth: wide(8).replace('}', ",\"7\":0}") => 49, DuplicateName;
    /// A-11
    the_first_name_again_as_the_tenth: wide(9).replace('}', ",\"0\":0}") => 55, DuplicateName;
    /// A-11
    the_ninth_name_again_after_a_hundred: wide(100).replace('}', ",\"\\u0038\":0}") => wide(100).len(), DuplicateName;

    /// TRN-14
    sixty_five_levels: nested(MAX_DEPTH + 1) => 5 + 63, TooDeep;
    /// TRN-14
    sixty_five_levels_of_objects: "{\"a\":".repeat(65) => 64 * 5, TooDeep;
    /// TRN-14
    a_hundred_thousand_levels: nested(100_000) => 5 + 63, TooDeep;
    /// TRN-14
    a_hundred_thousand_levels_of_objects: "{\"a\":".repeat(100_000) => 64 * 5, TooDeep;
}

/// TRN-14
#[test]
fn each_control_character_is_found_at_each_place_of_a_string() {
    for control in 0..0x20_u8 {
        for before in 0..100 {
            let line =
                ["{\"a\":\"", &"~".repeat(before), &char::from(control).to_string(), "~~~~~~~~\"}"].concat();
            let refusal = check(line.as_bytes()).unwrap_err();
            assert_eq!((refusal.at, refusal.why), (6 + before, Why::ControlCharacter));
        }
    }
}

/// TRN-14
#[test]
fn no_other_character_is_taken_for_a_control_character() {
    for char in (' '..'\u{300}').filter(|char| !matches!(char, '"' | '\\')) {
        for before in [0, 7, 31, 40] {
            let line = ["{\"a\":\"", &"~".repeat(before), &char.to_string(), "~~~~~~~~\"}"].concat();
            assert!(check(line.as_bytes()).is_ok(), "{char:?} after {before}");
        }
    }
}

/// A line that must pass.
macro_rules! accepted {
    ($($(#[$doc:meta])+ $name:ident: $line:expr;)+) => {$(
        $(#[$doc])+
        #[test]
        fn $name() {
            let line = $line;
            let line: &str = line.as_ref();
            assert_eq!(check(line.as_bytes()).map(Checked::get), Ok(line.trim()));
        }
    )+};
}

accepted! {
    /// TRN-02
    an_empty_object: "{}";
    /// A-11
    a_trailing_carriage_return: "{}\r";
    /// TRN-02
    white_space_between_everything: " { \"a\" : [ 1 , { } , [ ] ] , \"b\" : null } \t";
    /// TRN-02
    each_kind_of_value: "{\"a\":[true,false,null,\"\",0,{\"b\":1}]}";
    /// TRN-02
    each_form_of_a_number: "{\"a\":[0,-0,10,-1.5,0.0,1e5,1E+5,2.5e-3,18446744073709551616,1e400,1e-400]}";
    /// TRN-02
    each_escape: "{\"a\":\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0000\\uFFFF\\ud83d\\ude00\"}";
    /// TRN-03
    characters_of_each_length: "{\"aé€😀\":\"\u{7f}\u{80}\u{2028}\u{10ffff}\"}";
    /// A-11
    one_name_in_two_objects: "{\"a\":{\"a\":{\"a\":1}},\"b\":{\"a\":1}}";
    /// A-11
    names_that_differ_only_before_decoding: "{\"a\":1,\"\\\\u0061\":2,\"A\":3}";
    /// A-11
    names_that_look_alike_and_differ: "{\"\u{e9}\":1,\"e\u{301}\":2}";
    /// TRN-14
    sixty_four_levels: nested(MAX_DEPTH);
    /// TRN-14
    sixty_four_levels_beside_each_other: format!("{{\"a\":[{0},{0}]}}", nested(MAX_DEPTH - 2));
    /// TRN-14
    a_closing_quote_at_each_place_of_a_word: (0..20).map(|n| format!("\"{0}\":\"{0}\",", "x".repeat(n)))
        .fold("{".to_owned(), |line, member| line + &member) + "\"end\":0}";
    /// A-10
    one_mebibyte_in_one_string: format!("{{\"a\":\"{}\"}}", "x".repeat(MAX_LINE - 8));
    /// Takes minutes instead of milliseconds if each name is compared with all the others.
    a_hundred_thousand_names: wide(100_000);
    /// Likewise, where every comparison must decode and names differ only at the end.
    ten_thousand_long_names_with_escapes: (0..10_000).map(|n| format!(",\"{}{n}\":0", "\\u0061".repeat(15)))
        .fold("{\"\":0".to_owned(), |line, member| line + &member) + "}";
}
