//! How the ranks and transfers of several shards are numbered.
//!
//! An *id* is the same everywhere: the number of a shard in the high bits, and a number within that shard in the low bits.
//! Within a shard a *name* is used, which is the id with the shard's own bits cleared: the names of its own ranks and
//! transfers are indices, and no other name is one. With one shard, ids and names are the same.

/// The numbering as one shard sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Naming {
    /// The high bits of the shard's own ids.
    own: u32,
    /// Numbers of a shard are below this.
    limit: u32,
    shift: u32,
}

impl Naming {
    /// The numbering as shard number `shard` of so many sees it.
    pub fn new(shard: usize, shards: usize) -> Self {
        let number = u32::try_from(shard).expect("invariant: fewer than 2^16 shards");
        let bits = shards.next_power_of_two().ilog2();
        if bits == 0 {
            return Self { own: 0, limit: u32::MAX, shift: 32 };
        }
        let shift = 32 - bits;
        // The last number of the last shard would be [`crate::kernel::NONE`].
        Self { own: number << shift, limit: (1 << shift) - 1, shift }
    }

    /// The name of an id, and the id of a name.
    #[inline(always)]
    pub const fn translate(self, name_or_id: u32) -> u32 {
        name_or_id ^ self.own
    }

    /// Whether this is the name of something in the shard itself.
    #[inline(always)]
    pub const fn is_own(self, name: u32) -> bool {
        name < self.limit
    }

    /// The number of the shard and the number in it.
    pub fn place(self, name: u32) -> (usize, usize) {
        let id = u64::from(self.translate(name));
        ((id >> self.shift) as usize, (id & ((1_u64 << self.shift) - 1)) as usize)
    }

    /// The name in this shard of what has the name `name` in the shard of `from`.
    pub const fn from(self, from: Self, name: u32) -> u32 {
        self.translate(from.translate(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_a_shard_are_indices_and_ids_are_the_same_everywhere() {
        for shards in [1, 2, 3, 7, 32] {
            for shard in 0..shards {
                let naming = Naming::new(shard, shards);
                assert!(naming.is_own(5) && naming.place(5) == (shard, 5));
                for other in (0..shards).filter(|other| *other != shard) {
                    let there = Naming::new(other, shards);
                    let name = there.from(naming, 5);
                    assert!(!there.is_own(name), "{name} of shard {shard} in shard {other}");
                    assert_eq!(there.place(name), (shard, 5));
                    assert_eq!(there.translate(name), naming.translate(5), "one id");
                }
            }
        }
    }
}
