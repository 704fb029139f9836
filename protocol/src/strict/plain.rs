//! The characters of a string that need no look of their own, many bytes at a time.
//!
//! A quote, a backslash or a control character stops. One word tells whether a piece is short; if it is not, a vector loop
//! is worth its start.

/// Few enough bytes that the second look at them finds them in the nearest cache.
const CHUNK: usize = 4096;

/// How many bytes come before the first stop, or all.
#[inline]
pub(super) fn prefix(bytes: &[u8]) -> usize {
    bytes.first_chunk().and_then(first_stop).unwrap_or_else(|| long(bytes))
}

/// The same in a string that is known to have no control characters.
#[inline]
pub(super) fn checked_prefix(bytes: &[u8]) -> usize {
    bytes.first_chunk().and_then(first_stop).unwrap_or_else(|| end_in(bytes))
}

/// Which of eight bytes is the first that stops.
#[inline]
pub(super) fn first_stop(word: &[u8; 8]) -> Option<usize> {
    const LOW: u64 = u64::from_ne_bytes([0x01; 8]);
    const HIGH: u64 = u64::from_ne_bytes([0x80; 8]);
    // Sets the high bit of each byte below `limit`, and perhaps of some above such a byte: a borrow runs upwards only, so
    // the lowest bit set is always right.
    let below = |word: u64, limit: u64| word.wrapping_sub(LOW * limit) & !word;
    let word = u64::from_le_bytes(*word);
    let quote = below(word ^ (LOW * u64::from(b'"')), 1);
    let backslash = below(word ^ (LOW * u64::from(b'\\')), 1);
    let hit = (quote | backslash | below(word, 0x20)) & HIGH;
    (hit != 0).then(|| hit.trailing_zeros() as usize / 8)
}

fn long(bytes: &[u8]) -> usize {
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
