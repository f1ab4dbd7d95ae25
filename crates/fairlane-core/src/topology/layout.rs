//! How the switches of a fabric are laid out: what routings do arithmetic with, and what pictures go by.

use std::fmt;

use serde::Serialize;

use crate::ids::SwitchId;

/// How the switches of a fabric are laid out, beyond their levels.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Layout {
    /// By levels only, or by nothing at all.
    #[default]
    Free,
    /// Groups of equally many consecutive switches, as in a dragonfly.
    Groups {
        /// Switches of a group.
        switches: u32,
        /// How many of them make a row, where a group is a grid of rows; else all.
        row: u32,
    },
    /// A grid. Coordinates are the digits of a switch's number, those of dimension 0 counting fastest.
    Grid(Grid),
}

/// A grid of switches: a torus, a mesh, a HyperX.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Grid {
    /// Switches along each dimension.
    pub sides: Vec<u32>,
    /// How the switches that differ in one coordinate only are joined.
    pub line: LineCabling,
}

/// How the switches along a line of a grid are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LineCabling {
    /// Neighbours, and the last with the first: a torus.
    Ring,
    /// Neighbours: a mesh.
    Open,
    /// All with all: a HyperX.
    Full,
}

impl Grid {
    /// The coordinates of a switch.
    pub fn coordinates(&self, switch: SwitchId) -> impl Iterator<Item = u32> + '_ {
        let mut rest = switch.0;
        self.sides.iter().map(move |side| {
            let digit = rest % side;
            rest /= side;
            digit
        })
    }

    /// The first dimension in which two switches differ.
    #[must_use]
    pub fn dimension(&self, a: SwitchId, b: SwitchId) -> Option<usize> {
        self.coordinates(a).zip(self.coordinates(b)).position(|(a, b)| a != b)
    }
}

/// The role of a link, seen from the end that sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LinkRole {
    /// Between a host and its switch, in either direction.
    Host,
    /// To a switch of a higher level.
    Up,
    /// Between switches of one level, within one group if there are groups.
    Local,
    /// Between groups.
    Global,
    /// To a switch of a lower level.
    Down,
    /// Along a dimension of a grid.
    Dimension(u8),
}

impl fmt::Display for LinkRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host => f.write_str("host"),
            Self::Up => f.write_str("up"),
            Self::Local => f.write_str("local"),
            Self::Global => f.write_str("global"),
            Self::Down => f.write_str("down"),
            Self::Dimension(number) => write!(f, "dimension {number}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coordinates_are_the_digits_of_a_number() {
        let grid = Grid { sides: vec![4, 3, 2], line: LineCabling::Ring };
        let at = SwitchId(3 + 4 * (2 + 3));
        assert_eq!(grid.coordinates(at).collect::<Vec<_>>(), [3, 2, 1]);
        assert_eq!(grid.dimension(at, SwitchId(3 + 4)), Some(1));
        assert_eq!(grid.dimension(at, at), None);
    }
}
