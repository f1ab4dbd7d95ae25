//! Named streams of random numbers: one seed, one stream for every purpose and index, on every platform the same.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// The stream `name`/`index` of `seed`: ChaCha8, keyed so that streams never overlap.
///
/// A stream depends on nothing but its three arguments, so adding a rank or a job leaves the others' draws alone.
#[must_use]
pub fn stream(seed: u64, name: &str, index: u64) -> ChaCha8Rng {
    // FNV-1a turns the name into a number; the key is the three numbers side by side.
    let name_hash = name
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
    let mut key = [0_u8; 32];
    key[..8].copy_from_slice(&seed.to_le_bytes());
    key[8..16].copy_from_slice(&name_hash.to_le_bytes());
    key[16..24].copy_from_slice(&index.to_le_bytes());
    ChaCha8Rng::from_seed(key)
}

/// A number that looks random, of the time and the link at which a packet comes: of packets with payload there is one at a time.
#[must_use]
pub fn draw(time: u64, link: u32) -> u32 {
    // SplitMix64 (G. Steele, D. Lea, C. Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014).
    let mut bits = time ^ (u64::from(link) << 40);
    bits = bits.wrapping_add(0x9E37_79B9_7F4A_7C15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    #[allow(clippy::cast_possible_truncation, reason = "the low half")]
    {
        (bits ^ (bits >> 31)) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::Rng;

    #[test]
    fn streams_differ_and_repeat() {
        let draw = |seed, name, index| stream(seed, name, index).next_u64();
        assert_eq!(draw(1, "placement", 0), draw(1, "placement", 0));
        assert_ne!(draw(1, "placement", 0), draw(1, "placement", 1));
        assert_ne!(draw(1, "placement", 0), draw(1, "compute", 0));
        assert_ne!(draw(1, "placement", 0), draw(2, "placement", 0));
    }
}
