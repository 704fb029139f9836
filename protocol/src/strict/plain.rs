//! The characters of a string that need no look of their own, many bytes at a time.

/// Most strings end within so many bytes; only a longer one is worth the start of a vector loop.
pub(super) const SHORT: usize = 32;
/// Few enough bytes that the second look at them finds them in the nearest cache.
const CHUNK: usize = 4096;

/// How many bytes come before the first quote, backslash or control character.
#[inline]
pub(super) fn prefix(bytes: &[u8]) -> usize {
    short(bytes, long)
}

/// The same in a string that is known to have no control characters.
#[inline]
pub(super) fn checked_prefix(bytes: &[u8]) -> usize {
    short(bytes, end_in)
}

/// Word by word as long as that pays, and by `long` from there on.
#[inline]
fn short(bytes: &[u8], long: impl Fn(&[u8]) -> usize) -> usize {
    let mut plain = 0;
    while plain < SHORT {
        let Some(word) = bytes[plain..].first_chunk() else { return plain + last(&bytes[plain..]) };
        if let Some(stop) = first_stop(word) {
            return plain + stop;
        }
        plain += 8;
    }
    plain + long(&bytes[plain..])
}

/// Which of eight bytes is the first quote, backslash or control character.
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

/// Of fewer than eight bytes.
fn last(bytes: &[u8]) -> usize {
    let stops = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..0x20);
    bytes.iter().position(stops).unwrap_or(bytes.len())
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
