//! The calls of a trace that cannot be simulated: collected over all ranks, by call and reason.

use std::collections::BTreeMap;

use crate::description::Unsupported;

/// Collects records that cannot be simulated.
#[derive(Default)]
pub struct Collector {
    /// By call and by the reason without its numbers.
    found: BTreeMap<(String, String), Unsupported>,
    /// The rank that was seen last, by the same key: ranks are read one after another.
    last_rank: BTreeMap<(String, String), u32>,
}

impl Collector {
    /// A record of `rank` that cannot be simulated; `record` is its number in the rank's file.
    pub fn add(&mut self, call: &str, reason: String, rank: u32, record: u64) {
        // Reasons that differ in a handle or rank only are one entry, under the first one's numbers.
        let key = (call.to_owned(), reason.chars().filter(|c| !c.is_ascii_digit()).collect::<String>());
        let entry = self.found.entry(key.clone()).or_insert_with(|| Unsupported {
            call: call.to_owned(),
            count: 0,
            ranks: 0,
            reason,
            first_rank: rank,
            first_record: record,
        });
        entry.count += 1;
        if self.last_rank.insert(key, rank) != Some(rank) {
            entry.ranks += 1;
        }
    }

    /// The entries, the most frequent first.
    pub fn finish(self) -> Vec<Unsupported> {
        let mut entries: Vec<Unsupported> = self.found.into_values().collect();
        entries.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.call.cmp(&b.call)));
        entries
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_count_records_and_ranks_and_keep_the_first_position() {
        let mut collector = Collector::default();
        for (rank, record) in [(0, 7), (0, 9), (2, 3)] {
            collector.add("MPI_Wait", format!("request {record} is unknown"), rank, record);
        }
        collector.add("MPI_File_open", "MPI-IO".to_owned(), 1, 4);
        let found = collector.finish();
        let summary: Vec<_> =
            found.iter().map(|e| (&*e.call, e.count, e.ranks, &*e.reason, e.first_rank, e.first_record)).collect();
        assert_eq!(
            summary,
            [("MPI_Wait", 3, 2, "request 7 is unknown", 0, 7), ("MPI_File_open", 1, 1, "MPI-IO", 1, 4)]
        );
    }
}
