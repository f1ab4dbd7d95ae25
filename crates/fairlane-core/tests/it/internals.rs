//! The page on internals: the functions that it names exist, and its packet has the times that it gives.

use std::fs;
use std::path::Path;

use fairlane_core::network;
use fairlane_core::program::{COMM_WORLD, Op, P2p, SendMode};
use fairlane_core::units::Bytes;
use fairlane_core::{ids::Rank, observe::Departure};
use serde_json::json;

use super::shortcuts::{END, simulation};

/// `function` in `file`, as the page writes them.
fn named(page: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for (at, _) in page.match_indices("` in `network/") {
        let function = page[..at].rsplit('`').next().unwrap();
        let file = page[at + 6..].split('`').next().unwrap();
        found.push((function.to_owned(), file.to_owned()));
    }
    found
}

#[test]
fn the_functions_that_the_page_names_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("../../docs/internals.md")).unwrap();
    let functions = named(&page);
    assert!(functions.len() >= 15, "{functions:?}");
    for (function, file) in functions {
        let text = fs::read_to_string(root.join("src").join(&file)).unwrap_or_else(|_| panic!("there is no {file}"));
        assert!(
            text.contains(&format!("fn {function}(")) || text.contains(&format!("fn {function}<")),
            "{file} has no function {function}"
        );
    }
}

/// Departures of a message of this payload between the two hosts of the page, with a buffer of one packet.
fn departures(payload: u64) -> Vec<Departure> {
    let fabric = json!({
        "hosts": 4, "levels": 1, "radix": 4, "bandwidth": 100_000_000_000_u64, "latency": 200_000,
    });
    let (comm, mode) = (COMM_WORLD, SendMode::Standard);
    let send = Op::P2p(P2p::Send { to: Rank(1), bytes: Bytes(payload), tag: 0, comm, mode });
    let receive = Op::P2p(P2p::Recv { from: None, tag: None, comm });
    let parameters = network::Parameters { buffer: Bytes(4122), ..Default::default() };
    let mut simulation = simulation(fabric, parameters, 1 << 30, [vec![send], vec![receive]]);
    simulation.run_until(END, u64::MAX).unwrap();
    let latency = simulation.network().latencies();
    let first = latency.histograms().filter_map(|(.., histogram)| histogram.min()).min();
    assert_eq!(first.map(|first| first.0), Some(829_760), "the first packet is delivered");
    simulation.network().departures()
}

#[test]
fn a_packet_has_the_times_of_the_page() {
    let [nic, switch] = departures(4096)[..] else { panic!("two links") };
    assert_eq!(switch.time - nic.time, 300_000);
    // The second packet of a message starts when the credits of the first have returned.
    let two = departures(2 * 4096);
    let starts: Vec<u64> = two.iter().filter(|start| start.link == nic.link).map(|start| start.time).collect();
    assert_eq!(starts[1] - starts[0], 829_760);
}
