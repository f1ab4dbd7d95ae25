//! The parts of a fabric that no path between switches joins.

use crate::ids::SwitchId;

/// No part: an adapter whose cable is down.
pub(super) const NOWHERE: u32 = u32::MAX;

/// The parts of a fabric, and the rail of each.
#[derive(Debug)]
pub(super) struct Parts {
    /// By switch. Hosts join nothing.
    pub of_switch: Vec<u32>,
    /// By part: the rail of all of its endpoints; none if it has endpoints of several.
    pub rails: Vec<Option<u8>>,
}

impl Parts {
    /// The rail of a switch's part.
    pub fn rail(&self, switch: SwitchId) -> Option<u8> {
        self.rails[self.of_switch[switch.index()] as usize]
    }
}
