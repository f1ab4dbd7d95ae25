//! Parts of several routings: where hosts hang, lists of alternative links, and the choice among those.

use crate::error::BuildError;
use crate::ids::{HostId, LinkId, SwitchId};

/// A routing's tables have so many entries at most: some gigabytes.
const MOST_ENTRIES: u64 = 1 << 30;

/// The entries of a table of so many rows and columns.
///
/// # Errors
/// [`BuildError::Value`] names the routing if they are too many to be numbered or kept in memory.
pub(super) fn table_entries(routing: &str, [rows, columns]: [(usize, &str); 2]) -> Result<usize, BuildError> {
    let count = (rows.0 as u64).saturating_mul(columns.0 as u64);
    if count <= MOST_ENTRIES {
        return Ok(rows.0 * columns.0);
    }
    let allowed = format!(
        "needs a table of {} {} x {} {} on this fabric, and at most {MOST_ENTRIES} entries are possible",
        rows.0, rows.1, columns.0, columns.1
    );
    Err(BuildError::value("fabric.routing", routing, allowed))
}

/// Lists of alternative links, by slot.
#[derive(Default)]
pub(super) struct Choices {
    /// The link of each list of one, as most are; of others where the list begins in `others`, with [`Choices::OTHER`].
    slots: Vec<LinkId>,
    /// The other lists one after the other, the number of links before each.
    others: Vec<LinkId>,
}

impl Choices {
    /// Links have 27-bit numbers.
    const OTHER: u32 = 1 << 31;

    /// Adds the next slot's list.
    pub fn push(&mut self, links: impl IntoIterator<Item = LinkId>) {
        let start = self.others.len();
        self.others.push(LinkId(0));
        self.others.extend(links);
        let number = |count: usize| u32::try_from(count).expect("invariant: fewer than 2^31 links in all lists");
        let slot = if let [_, only] = self.others[start..] {
            self.others.truncate(start);
            only
        } else {
            self.others[start] = LinkId(number(self.others.len() - start - 1));
            LinkId(number(start) | Self::OTHER)
        };
        self.slots.push(slot);
    }

    /// Links of all lists of several.
    pub fn size(&self) -> usize {
        self.others.len()
    }

    /// A slot's list.
    #[inline]
    pub fn list(&self, slot: usize) -> &[LinkId] {
        let entry = &self.slots[slot];
        if entry.0 & Self::OTHER == 0 {
            return std::slice::from_ref(entry);
        }
        let start = (entry.0 ^ Self::OTHER) as usize;
        &self.others[start + 1..=start + self.others[start].index()]
    }

    /// The link that a slot's list has for packets of this spread, which is asked for only if there are several.
    #[inline]
    pub fn pick(&self, slot: usize, spread: impl FnOnce() -> u32) -> LinkId {
        let entry = self.slots[slot];
        if entry.0 & Self::OTHER == 0 { entry } else { self.pick_other(slot, spread()) }
    }

    #[inline(never)]
    fn pick_other(&self, slot: usize, spread: u32) -> LinkId {
        let list = self.list(slot);
        list[share(spread, u32::try_from(list.len()).expect("invariant: fewer than 2^32 links")) as usize]
    }
}

/// A number that scatters destinations, differently at each switch.
#[inline]
pub(super) fn spread(at: SwitchId, to: HostId) -> u32 {
    scatter(to.0.wrapping_mul(0x9E37_79B9) ^ at.0.wrapping_mul(0x85EB_CA6B))
}

/// Mixes the bits of a number.
#[inline]
pub(super) fn scatter(mut bits: u32) -> u32 {
    bits = (bits ^ (bits >> 16)).wrapping_mul(0x7FEB_352D);
    bits = (bits ^ (bits >> 15)).wrapping_mul(0x846C_A68B);
    bits ^ (bits >> 16)
}

/// A number below `parts` from one that is spread over all of `u32`.
#[inline]
pub(super) fn share(spread: u32, parts: u32) -> u32 {
    ((u64::from(spread) * u64::from(parts)) >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_of_too_many_entries_are_refused() {
        let entries = |rows, columns| table_entries("minimal", [(rows, "switches"), (columns, "groups")]);
        assert_eq!(entries(1 << 15, 1 << 15), Ok(1 << 30));
        for (rows, columns) in [((1 << 15) + 1, 1 << 15), (usize::MAX, usize::MAX)] {
            let error = entries(rows, columns).unwrap_err().to_string();
            let expected =
                format!("fabric.routing = minimal: needs a table of {rows} switches x {columns} groups on this");
            assert!(error.starts_with(&expected), "{error}");
        }
    }

    #[test]
    fn consecutive_destinations_are_spread_evenly() {
        let mut choices = Choices::default();
        choices.push((0..4).map(LinkId));
        let mut load = [0_u32; 4];
        (0..4000).map(HostId).for_each(|to| load[choices.pick(0, || spread(SwitchId(7), to)).index()] += 1);
        // Four times the standard deviation of a fair choice, sqrt(4000 x 1/4 x 3/4) = 27.
        assert!(load.iter().all(|load| load.abs_diff(1000) < 110), "{load:?}");
    }
}
