//! The characters of a string that need no look of their own, many bytes at a time.

/// Bytes that are looked at together.
const BLOCK: usize = 32;

/// How many bytes come before the first quote, backslash or control character.
pub(super) fn prefix(bytes: &[u8]) -> usize {
    // Most strings end within a block; only a longer one is worth the start of the vector loop.
    let (head, rest) = bytes.split_at(bytes.len().min(BLOCK));
    let plain = by_words(head);
    if plain < head.len() {
        return plain;
    }
    let blocks = rest.chunks_exact(BLOCK).take_while(|block| is_plain(block)).count() * BLOCK;
    plain + blocks + by_words(&rest[blocks..])
}

fn stops(byte: u8) -> bool {
    // Without short cuts, so that the compiler makes vector instructions of a loop over it.
    (byte == b'"') | (byte == b'\\') | (byte < 0x20)
}

fn is_plain(block: &[u8]) -> bool {
    !block.iter().fold(false, |any, &byte| any | stops(byte))
}

fn by_words(bytes: &[u8]) -> usize {
    let (words, tail) = bytes.as_chunks::<8>();
    for (place, word) in words.iter().enumerate() {
        if let Some(plain) = first_stop(word) {
            return place * 8 + plain;
        }
    }
    words.len() * 8 + tail.iter().position(|&byte| stops(byte)).unwrap_or(tail.len())
}

/// Which of eight bytes is the first that stops.
fn first_stop(word: &[u8; 8]) -> Option<usize> {
    const LOW: u64 = u64::from_ne_bytes([0x01; 8]);
    const HIGH: u64 = u64::from_ne_bytes([0x80; 8]);
    // Sets the high bit of each byte below `limit`, and perhaps of some above such a byte: a borrow runs upwards only, so
    // the lowest bit set is always right.
    let below = |word: u64, limit: u64| word.wrapping_sub(LOW * limit) & !word & HIGH;
    let word = u64::from_le_bytes(*word);
    let quote = below(word ^ (LOW * u64::from(b'"')), 1);
    let backslash = below(word ^ (LOW * u64::from(b'\\')), 1);
    let hit = quote | backslash | below(word, 0x20);
    (hit != 0).then(|| hit.trailing_zeros() as usize / 8)
}

/// Appends to `to` the bytes before the first quote, backslash or control character, and tells how many they are.
pub(super) fn copy(bytes: &[u8], to: &mut Vec<u8>) -> usize {
    // Pieces between two escapes are short: whole words are written, and what was too much is taken back.
    for (place, word) in bytes.as_chunks::<8>().0.iter().take(BLOCK / 8).enumerate() {
        to.extend_from_slice(word);
        if let Some(plain) = first_stop(word) {
            to.truncate(to.len() - 8 + plain);
            return place * 8 + plain;
        }
    }
    let done = (bytes.len() / 8 * 8).min(BLOCK);
    let more = prefix(&bytes[done..]);
    to.extend_from_slice(&bytes[done..done + more]);
    done + more
}
