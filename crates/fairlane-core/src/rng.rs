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
