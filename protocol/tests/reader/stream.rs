//! A stream of messages: where it is cut changes nothing, and a string is read as serde_json reads it.

use mu_protocol::envelope::parse;
use mu_protocol::line::LineSplitter;
use mu_protocol::objects::from_json;
use proptest::prelude::*;
use proptest::sample::{Index, select};

use crate::json::{mutate, mutations, object, string};

/// What a line is read as, with the text that it holds.
fn read(line: &[u8]) -> String {
    format!("{:?} {}", parse(line), line.len())
}

fn line() -> impl Strategy<Value = Vec<u8>> {
    let message = select(vec![
        (r#"{"jsonrpc":"2.0","id":7,"result":"#, "}"),
        (r#"{"jsonrpc":"2.0","error":"#, r#","id":9007199254740991}"#),
        (r#"{"jsonrpc":"2.0","method":"watch/settled","params":"#, "}"),
        ("", ""),
        ("", "\r"),
    ]);
    (message, object(), mutations()).prop_map(|((head, tail), object, mutations)| {
        let mut line = mutate(&format!("{head}{object}{tail}"), &mutations);
        line.retain(|byte| *byte != b'\n');
        line
    })
}

proptest! {
    #![proptest_config(crate::cases(500))]

    /// TRN-02, TRN-14
    #[test]
    fn the_messages_are_the_same_wherever_the_stream_is_cut(
        lines in proptest::collection::vec(line(), 0..6),
        rest in "[a-z]{0,3}",
        cuts in proptest::collection::vec(any::<Index>(), 0..30),
    ) {
        let mut stream: Vec<u8> = lines.iter().flat_map(|line| line.iter().chain(b"\n")).copied().collect();
        stream.extend_from_slice(rest.as_bytes());
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(stream.len() + 1)).collect();
        cuts.extend([0, stream.len()]);
        cuts.sort_unstable();
        let mut splitter = LineSplitter::new();
        let mut messages = Vec::new();
        for cut in cuts.windows(2) {
            let mut piece = &stream[cut[0]..cut[1]];
            while let Some(line) = splitter.next(&mut piece) {
                messages.push(read(line.expect("short lines")));
            }
        }
        prop_assert_eq!(messages, lines.iter().map(|line| read(line)).collect::<Vec<_>>());
        prop_assert_eq!(splitter.pending(), rest.len());
    }
}

proptest! {
    #![proptest_config(crate::cases(3000))]

    /// RFC 8259, 7
    #[test]
    fn a_string_is_read_as_serde_json_reads_it(
        pieces in proptest::collection::vec((string(), 0..40_usize), 1..6),
    ) {
        let text: String = pieces.iter().map(|(text, pad)| text[1..text.len() - 1].to_owned() + &"x".repeat(*pad)).collect();
        let text = format!("\"{text}\"");
        prop_assert_eq!(from_json::<String>(&text).ok(), serde_json::from_str::<String>(&text).ok(), "{}", text);
        let list = format!("[{text} , {text}]");
        prop_assert_eq!(from_json::<Vec<String>>(&list).ok(), serde_json::from_str::<Vec<String>>(&list).ok());
    }
}
