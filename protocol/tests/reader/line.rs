//! The line splitter.

use mu_protocol::invalid::{InvalidMessage, Why};
use mu_protocol::line::{LineSplitter, MAX_LINE};
use proptest::prelude::*;

const TOO_LONG: InvalidMessage = InvalidMessage { at: MAX_LINE, why: Why::TooLong };

/// Everything that `splitter` makes of `pieces`.
fn feed(splitter: &mut LineSplitter, pieces: &[&[u8]]) -> Vec<Result<Vec<u8>, InvalidMessage>> {
    let mut lines = Vec::new();
    for piece in pieces {
        let mut rest = *piece;
        while let Some(line) = splitter.next(&mut rest) {
            lines.push(line.map(<[u8]>::to_vec));
        }
        assert!(rest.is_empty(), "input left over");
    }
    lines
}

fn split(pieces: &[&[u8]]) -> Vec<Result<Vec<u8>, InvalidMessage>> {
    feed(&mut LineSplitter::new(), pieces)
}

/// TRN-02
#[test]
fn several_lines_in_one_read_come_one_by_one() {
    assert_eq!(split(&[b"a\nbc\n\nd\n"]), [&b"a"[..], b"bc", b"", b"d"].map(|line| Ok(line.to_vec())));
}

/// TRN-02
#[test]
fn a_line_spread_over_many_reads_is_joined() {
    assert_eq!(split(&[b"a", b"", b"b", b"c\nd", b"\n"]), [&b"abc"[..], b"d"].map(|line| Ok(line.to_vec())));
}

/// A-11
#[test]
fn a_carriage_return_stays_in_the_line() {
    assert_eq!(split(&[b"a\r\n"]), [Ok(b"a\r".to_vec())]);
}

/// A-11
#[test]
fn an_unterminated_last_line_is_pending_and_never_a_line() {
    let mut splitter = LineSplitter::new();
    assert_eq!(feed(&mut splitter, &[b"a\nhalf"]), [Ok(b"a".to_vec())]);
    assert_eq!(splitter.pending(), 4);
}

#[test]
fn nothing_is_pending_after_a_line_joined_from_two_reads() {
    let mut splitter = LineSplitter::new();
    feed(&mut splitter, &[b"half", b" a line\n"]);
    assert_eq!(splitter.pending(), 0);
}

#[test]
fn a_line_inside_one_read_is_not_copied() {
    let read = b"one\ntwo\n";
    let mut rest = &read[..];
    let mut splitter = LineSplitter::new();
    let line = splitter.next(&mut rest).unwrap().unwrap();
    assert!(std::ptr::eq(line.as_ptr(), read.as_ptr()));
}

/// A-10
#[test]
fn a_line_of_exactly_one_mebibyte_is_legal_in_one_read() {
    let mut read = vec![b'x'; MAX_LINE];
    read.push(b'\n');
    assert_eq!(split(&[&read]), [Ok(vec![b'x'; MAX_LINE])]);
}

/// A-10
#[test]
fn a_line_of_exactly_one_mebibyte_is_legal_when_its_line_feed_comes_later() {
    assert_eq!(split(&[&vec![b'x'; MAX_LINE], b"\n"]), [Ok(vec![b'x'; MAX_LINE])]);
}

/// TRN-04
#[test]
fn a_line_of_one_byte_more_is_refused_with_its_line_feed_in_sight() {
    let mut read = vec![b'x'; MAX_LINE + 1];
    read.push(b'\n');
    assert_eq!(split(&[&read]), [Err(TOO_LONG)]);
}

/// TRN-04
#[test]
fn a_line_is_refused_at_the_first_byte_too_many_without_waiting_for_a_line_feed() {
    let mut splitter = LineSplitter::new();
    assert_eq!(feed(&mut splitter, &[&vec![b'x'; MAX_LINE]]), []);
    assert_eq!(feed(&mut splitter, &[b"x"]), [Err(TOO_LONG)]);
}

/// TRN-04
#[test]
fn an_endless_line_is_refused_once_a_read_and_never_held() {
    let piece = vec![b'x'; 64 * 1024];
    let mut splitter = LineSplitter::new();
    let refusals = feed(&mut splitter, &[&piece[..]; 64]);
    assert_eq!(refusals, vec![Err(TOO_LONG); 64 - 16]);
    assert_eq!(splitter.pending(), 0);
}

/// TRN-20
#[test]
fn no_line_comes_after_one_that_was_too_long() {
    let mut splitter = LineSplitter::new();
    feed(&mut splitter, &[&vec![b'x'; MAX_LINE + 1]]);
    assert_eq!(feed(&mut splitter, &[b"\ngood\n", b""]), [Err(TOO_LONG)]);
}

#[test]
fn a_good_line_before_one_that_is_too_long_still_comes() {
    let read = [b"good\n", &vec![b'x'; MAX_LINE + 1][..]].concat();
    assert_eq!(split(&[&read]), [Ok(b"good".to_vec()), Err(TOO_LONG)]);
}

/// Takes hours instead of milliseconds if what is held is searched again for each byte.
#[test]
fn a_mebibyte_that_comes_byte_by_byte_is_looked_at_once() {
    let line = vec![b'x'; MAX_LINE];
    let mut pieces: Vec<&[u8]> = line.chunks(1).collect();
    pieces.push(b"\n");
    assert_eq!(split(&pieces), [Ok(line.clone())]);
}

proptest! {
    #![proptest_config(crate::cases(256))]

    /// TRN-02
    #[test]
    fn the_cuts_between_reads_do_not_matter(
        stream in proptest::collection::vec(prop_oneof![Just(b'\n'), Just(b'\r'), any::<u8>()], 0..400),
        cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..40),
    ) {
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(stream.len() + 1)).collect();
        cuts.sort_unstable();
        let mut pieces = Vec::new();
        let mut start = 0;
        for cut in cuts {
            pieces.push(&stream[start..cut]);
            start = cut;
        }
        pieces.push(&stream[start..]);
        let mut splitter = LineSplitter::new();
        let lines = feed(&mut splitter, &pieces);
        let mut expected: Vec<&[u8]> = stream.split(|&byte| byte == b'\n').collect();
        let unterminated = expected.pop().unwrap_or_default();
        prop_assert_eq!(lines, expected.iter().map(|line| Ok(line.to_vec())).collect::<Vec<_>>());
        prop_assert_eq!(splitter.pending(), unterminated.len());
    }

    /// TRN-04
    #[test]
    fn the_limit_holds_wherever_the_reads_are_cut(over in 0_usize..3, cut in 0..=MAX_LINE) {
        let stream = [&vec![b'x'; MAX_LINE - 1 + over][..], b"\n"].concat();
        let lines = split(&[&stream[..cut], &stream[cut..]]);
        match over {
            0 | 1 => prop_assert_eq!(lines, [Ok(stream[..stream.len() - 1].to_vec())]),
            _ => prop_assert!(lines.iter().all(|line| *line == Err(TOO_LONG)) && !lines.is_empty()),
        }
    }
}
