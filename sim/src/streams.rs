//! Named random streams: what one part of a run draws does not depend on how much another part has drawn.
//!
//! In: the seed of the run and a name such as `plugin.cloud/host.acquire/3/delay`. Out: numbers that are a function of
//! these two alone, the same on every machine.

/// One stream of pseudo-random numbers (xoshiro256++, started from a hash of seed and name).
#[derive(Clone, Debug)]
pub struct Stream {
    state: [u64; 4],
}

/// Bijective finaliser of splitmix64.
fn mix(mut word: u64) -> u64 {
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

impl Stream {
    /// The stream called `name` of the run with this seed.
    pub fn new(seed: u64, name: &str) -> Stream {
        // FNV-1a over the name, begun at the mixed seed.
        let start = 0xcbf2_9ce4_8422_2325 ^ mix(seed.wrapping_add(0x9e37_79b9_7f4a_7c15));
        let mut key = start;
        for byte in name.bytes() {
            key = (key ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        let state = std::array::from_fn(|_| {
            key = key.wrapping_add(0x9e37_79b9_7f4a_7c15);
            mix(key)
        });
        Stream { state }
    }

    /// The next 64 bits.
    pub fn word(&mut self) -> u64 {
        let [a, b, c, d] = &mut self.state;
        let out = a.wrapping_add(*d).rotate_left(23).wrapping_add(*a);
        let shifted = *b << 17;
        *c ^= *a;
        *d ^= *b;
        *b ^= *c;
        *a ^= *d;
        *c ^= shifted;
        *d = d.rotate_left(45);
        out
    }

    /// A number below `bound`; 0 when `bound` is 0. The bias is below `bound` / 2^64.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.word()) * u128::from(bound)) >> 64) as u64
    }

    /// A number from `low` to `high`, both included. Needs `low <= high`.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        debug_assert!(low <= high, "an empty range has nothing to draw");
        match (high - low).checked_add(1) {
            Some(count) => low + self.below(count),
            None => self.word(),
        }
    }

    /// True in `times` of `of` cases.
    pub fn chance(&mut self, times: u64, of: u64) -> bool {
        self.below(of) < times
    }

    /// One of the items; `None` when there are none.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        if items.is_empty() { None } else { items.get(self.below(items.len() as u64) as usize) }
    }

    /// Fills `buf` with random bytes.
    pub fn fill(&mut self, buf: &mut [u8]) {
        for chunk in buf.chunks_mut(8) {
            chunk.copy_from_slice(&self.word().to_le_bytes()[..chunk.len()]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first_words(seed: u64, name: &str) -> [u64; 4] {
        let mut stream = Stream::new(seed, name);
        std::array::from_fn(|_| stream.word())
    }

    #[test]
    fn a_draw_from_one_stream_does_not_shift_another() {
        let mut delays = Stream::new(7, "plugin.cloud/host.acquire/3/delay");
        let undisturbed = first_words(7, "order");
        delays.word();
        let mut order = Stream::new(7, "order");
        let mut seen = [0; 4];
        for slot in &mut seen {
            delays.word();
            *slot = order.word();
        }
        assert_eq!(seen, undisturbed);
    }

    #[test]
    fn streams_differ_by_seed_and_by_name() {
        assert_ne!(first_words(7, "order"), first_words(8, "order"));
        assert_ne!(first_words(7, "order"), first_words(7, "ordes"));
        assert_ne!(first_words(0, ""), first_words(1, ""));
    }

    #[test]
    fn the_numbers_are_pinned_so_that_a_seed_means_the_same_run_for_ever() {
        assert_eq!(first_words(1, "order")[0], PINNED);
    }

    const PINNED: u64 = 16_542_379_328_503_996_589;

    #[test]
    fn below_reaches_every_number_and_no_other() {
        let mut stream = Stream::new(3, "dice");
        let mut seen = [false; 6];
        for _ in 0..200 {
            seen[stream.below(6) as usize] = true;
        }
        assert_eq!(seen, [true; 6]);
        assert_eq!(stream.below(0), 0);
        assert_eq!(stream.between(4, 4), 4);
    }

    #[test]
    fn fill_covers_lengths_that_are_no_multiple_of_a_word() {
        let mut bytes = [0u8; 13];
        Stream::new(5, "random").fill(&mut bytes);
        assert!(bytes[8..].iter().any(|byte| *byte != 0));
    }
}
