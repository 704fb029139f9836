//! The characters of a string that need no look of their own, many bytes at a time.
//!
//! A quote, a backslash or a control character stops. Words of eight bytes are taken at a fixed stride, wherever their
//! stops are, so that the processor need not know the one to load the next.

/// After so many bytes without a stop it is worth the start of a vector loop.
pub(super) const SHORT: usize = 32;
/// Few enough bytes that the second look at them finds them in the nearest cache.
const CHUNK: usize = 4096;

/// The eight bytes at `at`; quotes take the place of those that are missing at the end.
#[inline]
pub(super) fn word(bytes: &[u8], at: usize) -> u64 {
    let rest = &bytes[at..];
    match rest.first_chunk() {
        Some(word) => u64::from_le_bytes(*word),
        None => rest.iter().rev().fold(EACH * u64::from(b'"'), |word, byte| word << 8 | u64::from(*byte)),
    }
}

/// A one in each byte.
const EACH: u64 = u64::from_ne_bytes([0x01; 8]);

/// The high bit of each byte of `word` that stops, but for the first `skip` of them.
#[inline]
pub(super) fn stops(word: u64, skip: usize) -> u64 {
    const LOW: u64 = EACH * 0x7f;
    // The high bit of each byte that is at least `limit`, whatever its neighbours are.
    let least = |word: u64, limit: u64| (word & LOW) + EACH * (0x80 - limit) | word;
    let quote = word ^ (EACH * u64::from(b'"'));
    let backslash = word ^ (EACH * u64::from(b'\\'));
    let plain = least(quote, 1) & least(backslash, 1) & least(word, 0x20);
    !plain & !LOW & (u64::MAX << (8 * skip))
}

/// Which byte of a word the first of its stops is.
#[inline]
pub(super) fn first(stops: u64) -> usize {
    stops.trailing_zeros() as usize / 8
}

/// The stops behind the escape that begins at byte `place`, the first of `stops`.
#[inline]
pub(super) fn behind_escape(stops: u64, place: usize) -> u64 {
    let both = 0x8080_u64 << (8 * place);
    stops & !both
}

/// How many bytes come before the first stop, or all, in a string that is known to have no control characters.
#[inline]
pub(super) fn checked_prefix(bytes: &[u8]) -> usize {
    let mut plain = 0;
    while plain < SHORT {
        let stops = stops(word(bytes, plain), 0);
        if stops != 0 {
            return plain + first(stops);
        }
        plain += 8;
    }
    plain + end_in(&bytes[plain..])
}

/// How many bytes come before the first stop, or all; for a long string.
pub(super) fn long(bytes: &[u8]) -> usize {
    let mut plain = 0;
    for chunk in bytes.chunks(CHUNK) {
        let end = end_in(chunk);
        // Without short cuts, so that the compiler makes vector instructions of it.
        let lowest = chunk[..end].iter().fold(u8::MAX, |lowest, &byte| lowest.min(byte));
        if lowest < 0x20 {
            return plain + chunk.iter().take_while(|&&byte| byte >= 0x20).count();
        }
        plain += end;
        if end < chunk.len() {
            break;
        }
    }
    plain
}

/// Where the first quote or backslash stands, or the length if there is none.
pub(super) fn end_in(bytes: &[u8]) -> usize {
    memchr::memchr2(b'"', b'\\', bytes).unwrap_or(bytes.len())
}
