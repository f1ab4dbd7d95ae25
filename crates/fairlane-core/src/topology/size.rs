//! How large a fabric will be, from its parameters alone: counted before anything is allocated.

use crate::error::BuildError;

/// Hosts, switches and links of a fabric that has not been built. Counts that no 64 bits hold are as large as can be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    /// Hosts.
    pub hosts: u64,
    /// Switches.
    pub switches: u64,
    /// Links: two for each cable.
    pub links: u64,
}

impl Size {
    /// So many links have numbers.
    pub const MAX_LINKS: u64 = 1 << 27;

    /// The size of a fabric of so many cables, those of hosts among them.
    #[must_use]
    pub fn new(hosts: u64, switches: u64, cables: u64) -> Self {
        Self { hosts, switches, links: cables.saturating_mul(2) }
    }

    /// The size of a fabric whose cables come from several parameters: the key of each, its value, and how many cables.
    ///
    /// # Errors
    /// [`BuildError::Value`] names the parameter with the most cables if there are more links than numbers for them.
    pub(super) fn of<const N: usize>(
        hosts: u64,
        switches: u64,
        cables: [(&str, String, u64); N],
    ) -> Result<Self, BuildError> {
        let size = Self::new(hosts, switches, sum(cables.each_ref().map(|(.., count)| *count)));
        let largest = cables.into_iter().max_by_key(|(.., count)| *count);
        largest.map_or(Ok(size), |(key, value, _)| size.check_as(&format!("fabric.{key}"), value))
    }

    /// Refuses more links than there are numbers for.
    ///
    /// # Errors
    /// [`BuildError::Value`] with the number of links.
    pub fn check(self) -> Result<Self, BuildError> {
        self.check_as("fabric.links", self.links)
    }

    /// The same, where the parameter that stands at `path` is to be changed.
    pub(crate) fn check_as(self, path: &str, value: impl ToString) -> Result<Self, BuildError> {
        let (Self { hosts, switches, links }, most) = (self, Self::MAX_LINKS);
        if links <= most {
            return Ok(self);
        }
        let allowed = format!(
            "at most {most} links make a fabric; with these parameters it has {links}, {hosts} hosts and {switches} switches"
        );
        Err(BuildError::value(path, value, allowed))
    }
}

/// The product, or the greatest number if it is larger.
pub(super) fn product<const N: usize>(factors: [u64; N]) -> u64 {
    if factors.contains(&0) { 0 } else { factors.into_iter().fold(1, u64::saturating_mul) }
}

/// The sum, or the greatest number if it is larger.
pub(super) fn sum<const N: usize>(terms: [u64; N]) -> u64 {
    terms.into_iter().fold(0, u64::saturating_add)
}

/// How many pairs so many things make.
pub(super) fn pairs(of: u64) -> u64 {
    of.saturating_mul(of.saturating_sub(1)) / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_and_sums_stop_at_the_greatest_number() {
        assert_eq!(product([3, 4, 5]), 60);
        assert_eq!(product([u64::MAX, u64::MAX, 0]), 0);
        assert_eq!(product([1 << 40, 1 << 40]), u64::MAX);
        assert_eq!(sum([u64::MAX, 1]), u64::MAX);
        assert_eq!([0, 1, 2, 5].map(pairs), [0, 0, 1, 10]);
    }

    #[test]
    fn more_links_than_numbers_are_refused() {
        assert!(Size::new(1, 1, Size::MAX_LINKS / 2).check().is_ok());
        let error = Size::new(9, 3, u64::MAX).check().unwrap_err().to_string();
        assert!(error.contains("fabric.links = 18446744073709551615: at most 134217728"), "{error}");
        let (few, many) = (("few", "3".to_owned(), 7), ("many", "[9]".to_owned(), u64::MAX));
        let error = Size::of(9, 3, [few, many]).unwrap_err().to_string();
        assert!(error.starts_with("fabric.many = [9]: at most 134217728 links"), "{error}");
    }
}
