//! A hash chain: one fingerprint for all that happened so far, in order.

use std::fmt;

/// The state of the chain after some events. Two runs are the same when their digests are.
///
/// Each step is a bijection of either lane, so two chains that differ once stay different until another difference.
/// Not cryptographic: nobody here has an interest in a collision.
#[derive(Clone, Debug)]
pub struct Chain {
    lanes: [u64; 2],
    words: u64,
}

/// 128 bits of a [`Chain`], shown as 32 hex digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(pub u128);

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

const FIRST: u64 = 0x9e37_79b1_85eb_ca87;
const SECOND: u64 = 0xc2b2_ae3d_27d4_eb4f;
const THIRD: u64 = 0x1656_67b1_9e37_79f9;

impl Default for Chain {
    fn default() -> Chain {
        Chain { lanes: [FIRST, SECOND], words: 0 }
    }
}

impl Chain {
    /// Adds one number.
    pub fn word(&mut self, word: u64) {
        let [left, right] = &mut self.lanes;
        *left = left.wrapping_add(word.wrapping_mul(SECOND)).rotate_left(31).wrapping_mul(FIRST);
        *right = (*right ^ word.wrapping_mul(THIRD)).rotate_left(27).wrapping_mul(FIRST).wrapping_add(SECOND);
        self.words += 1;
    }

    /// Adds a byte string and its length.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.word(bytes.len() as u64);
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.word(u64::from_le_bytes(*word));
        }
        if !rest.is_empty() {
            let mut last = [0; 8];
            last[..rest.len()].copy_from_slice(rest);
            self.word(u64::from_le_bytes(last));
        }
    }

    /// The fingerprint so far.
    pub fn digest(&self) -> Digest {
        let mut end = self.clone();
        end.word(self.words);
        let [left, right] = end.lanes;
        let avalanche = |mut lane: u64| {
            lane = (lane ^ (lane >> 33)).wrapping_mul(SECOND);
            lane = (lane ^ (lane >> 29)).wrapping_mul(THIRD);
            lane ^ (lane >> 32)
        };
        Digest(u128::from(avalanche(left)) << 64 | u128::from(avalanche(right)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest_of(parts: &[&[u8]]) -> Digest {
        let mut chain = Chain::default();
        for part in parts {
            chain.bytes(part);
        }
        chain.digest()
    }

    #[test]
    fn order_boundaries_and_trailing_zeros_all_count() {
        let all = [
            digest_of(&[b"ab", b"c"]),
            digest_of(&[b"a", b"bc"]),
            digest_of(&[b"c", b"ab"]),
            digest_of(&[b"abc"]),
            digest_of(&[b"abc\0"]),
            digest_of(&[]),
            digest_of(&[b""]),
        ];
        for (place, one) in all.iter().enumerate() {
            assert!(!all[..place].contains(one), "item {place} collides");
        }
    }

    #[test]
    fn the_digest_is_pinned_so_that_every_machine_and_version_agrees() {
        assert_eq!(digest_of(&[b"deterministic"]).to_string(), "9d33aa91fa660920354da3aa00ebb9f6");
    }
}
