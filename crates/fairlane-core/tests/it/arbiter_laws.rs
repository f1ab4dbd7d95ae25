//! Laws of every arbiter, and the purpose of each.

use fairlane_core::ids::VirtualLane;
use fairlane_core::qos::arbiter::{self, Arbitration, Lanes, Single, TABLE};
use fairlane_core::units::{BitsPerSec, Bytes, Instant};
use proptest::prelude::*;
use serde_json::{Value, json};

/// Lanes of the examples that the schemas show.
const LANES: u8 = 2;
/// The bandwidth of a port: a byte a picosecond.
const BANDWIDTH: BitsPerSec = BitsPerSec(8_000_000_000_000);

/// One port. Every packet takes a picosecond a byte.
struct Port {
    arbiter: Box<dyn Arbitration>,
    now: u64,
}

impl Port {
    fn new(name: &str, params: &Value, lanes: u8) -> Self {
        Self::of_link(name, params, lanes, BANDWIDTH)
    }

    fn of_link(name: &str, params: &Value, lanes: u8, bandwidth: BitsPerSec) -> Self {
        Self { arbiter: arbiter::build(name, params, lanes).unwrap().at(&[bandwidth]), now: 0 }
    }

    /// Serves one packet of the size that its lane has. `ready`: a bit for each lane.
    fn serve(&mut self, ready: u32, sizes: &[u64]) -> u8 {
        let lane = self.arbiter.pick(0, Lanes(ready), &Single(Bytes(64)), Instant(self.now));
        assert!(Lanes(ready).contains(lane), "lane {lane} is not ready");
        let bytes = sizes[lane.index()];
        self.arbiter.sent(0, lane, Bytes(bytes), Instant(self.now));
        self.now += bytes;
        lane.0
    }

    /// The lanes served one after another, packets of 64 bytes.
    fn sequence(&mut self, ready: &[u32]) -> Vec<u8> {
        ready.iter().map(|ready| self.serve(*ready, &[64; 32])).collect()
    }

    /// Bytes by lane of `packets` packets while all lanes of `sizes` are ready.
    fn saturate(&mut self, packets: usize, sizes: &[u64]) -> Vec<u64> {
        let mut bytes = vec![0; sizes.len()];
        for _ in 0..packets {
            let lane = usize::from(self.serve((1 << sizes.len()) - 1, sizes));
            bytes[lane] += sizes[lane];
        }
        bytes
    }
}

fn error(name: &str, params: &Value) -> String {
    arbiter::build(name, params, LANES).err().unwrap_or_else(|| panic!("{name} takes {params}")).to_string()
}

proptest! {
    /// Whatever is ready, a ready lane is served, at any time and with any sizes; the same story ends the same way.
    #[test]
    fn every_arbiter_conserves_work(
        story in prop::collection::vec((1..(1_u32 << LANES), 1..5000_u64, 0..100_000_u64), 1..200)
    ) {
        for entry in TABLE {
            let schema = (entry.schema)();
            let examples = schema.get("examples").and_then(Value::as_array).cloned().unwrap_or_default();
            let has_parameters = schema.get("properties").is_some();
            prop_assert!(!examples.is_empty() || !has_parameters, "the schema of arbiter {} has no examples", entry.name);
            for params in examples.iter().chain([&json!({})]) {
                let run = || {
                    let mut port = Port::new(entry.name, params, LANES);
                    let serve = |(ready, bytes, pause): &(u32, u64, u64)| {
                        port.now += pause;
                        port.serve(*ready, &[*bytes; LANES as usize])
                    };
                    story.iter().map(serve).collect::<Vec<u8>>()
                };
                prop_assert_eq!(run(), run());
            }
        }
    }
}

#[test]
fn one_lane_alone_is_always_served() {
    for entry in TABLE {
        for lane in 0..4 {
            assert_eq!(Port::new(entry.name, &json!({}), 4).sequence(&[1 << lane; 300]), [lane; 300], "{}", entry.name);
        }
    }
}

#[test]
fn the_set_of_lanes_goes_round() {
    let next = |set, start| Lanes(set).next_from(VirtualLane(start)).map(|lane| lane.0);
    assert_eq!([next(0b1001, 0), next(0b1001, 1), next(0b1001, 4), next(0, 3)], [Some(0), Some(3), Some(0), None]);
    assert_eq!([next(1 << 31, 31), next(0b1, 32)], [Some(31), Some(0)]);
}

mod weighted_round_robin {
    use super::*;

    const NAME: &str = "weighted_round_robin";

    #[test]
    fn seven_to_two_is_seven_then_two() {
        let expected = [[0_u8; 7].as_slice(), &[1; 2]].concat().repeat(3);
        assert_eq!(Port::new(NAME, &json!({ "weights": [7, 2] }), 2).sequence(&[0b11; 27]), expected);
    }

    #[test]
    fn a_lane_that_runs_dry_loses_the_rest_of_its_turn() {
        let ready = [&[0b11; 4][..], &[0b10], &[0b11; 9]].concat();
        let turns = Port::new(NAME, &json!({ "weights": [7, 2] }), 2).sequence(&ready);
        assert_eq!(turns, [0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 1]);
    }

    #[test]
    fn packets_are_shared_whatever_their_size() {
        let bytes = Port::new(NAME, &json!({ "weights": [5, 3, 1] }), 3).saturate(900, &[64, 4096, 512]);
        assert_eq!(bytes, [500 * 64, 300 * 4096, 100 * 512]);
    }

    #[test]
    fn one_weight_is_for_all() {
        assert_eq!(Port::new(NAME, &json!({ "weights": 2 }), 3).sequence(&[0b111; 7]), [0, 0, 1, 1, 2, 2, 0]);
        assert_eq!(Port::new(NAME, &json!({}), 3).sequence(&[0b101; 4]), [0, 2, 0, 2]);
    }

    #[test]
    fn bad_weights_are_refused() {
        for (params, expected) in [
            (json!({ "weights": [1] }), "as many weights as there are virtual lanes, 2"),
            (json!({ "weights": [1, 0] }), "qos.arbiter.weights[1] = 0: 1 to 65535"),
            (json!({ "weights": 65_536 }), "1 to 65535"),
            (json!({ "weight": 1 }), "unknown field `weight`"),
        ] {
            let message = error(NAME, &params);
            assert!(message.contains(expected), "{params}: {message}");
        }
    }
}

mod vlarb {
    use super::*;

    const NAME: &str = "vlarb";

    #[test]
    fn weights_count_units_of_64_bytes() {
        let mut port = Port::new(NAME, &json!({ "vlarb_low": [[0, 7], [1, 2]] }), 2);
        assert_eq!(port.sequence(&[0b11; 18]), [[0_u8; 7].as_slice(), &[1; 2]].concat().repeat(2));
        // Weights of whole packets share bytes, whatever the sizes: 4 packets of 64, then 1 of 512.
        let mut port = Port::new(NAME, &json!({ "vlarb_low": [[0, 4], [1, 8]] }), 2);
        assert_eq!(port.saturate(500, &[64, 512]), [400 * 64, 100 * 512]);
    }

    #[test]
    fn a_packet_may_overdraw_its_weight() {
        // One byte of weight left is enough to send: 128 bytes of weight are two packets of 100 bytes, not one.
        let mut port = Port::new(NAME, &json!({ "vlarb_low": [[0, 2], [1, 1]] }), 2);
        let turns: Vec<u8> = (0..6).map(|_| port.serve(0b11, &[100, 100])).collect();
        assert_eq!(turns, [0, 0, 1, 0, 0, 1]);
    }

    #[test]
    fn a_lane_may_stand_in_a_table_twice_and_weight_zero_is_skipped() {
        let mut port = Port::new(NAME, &json!({ "vlarb_low": [[0, 1], [1, 1], [2, 0], [0, 1], [2, 1]] }), 3);
        assert_eq!(port.sequence(&[0b111; 8]), [0, 1, 0, 2, 0, 1, 0, 2]);
    }

    #[test]
    fn a_lane_that_runs_dry_loses_what_is_left_of_its_weight() {
        let mut port = Port::new(NAME, &json!({ "vlarb_low": [[0, 3], [1, 2]] }), 2);
        let ready = [&[0b11; 1][..], &[0b10], &[0b11; 5]].concat();
        assert_eq!(port.sequence(&ready), [0, 1, 1, 0, 0, 0, 1]);
    }

    /// Packets of 64 bytes; lane 1 is high.
    fn high(limit: u8) -> Port {
        let params = json!({ "vlarb_high": [[1, 255]], "vlarb_low": [[0, 255]], "high_limit": limit });
        Port::new(NAME, &params, 2)
    }

    #[test]
    fn high_limit_0_lets_one_packet_pass() {
        assert_eq!(high(0).sequence(&[0b11; 6]), [1, 0, 1, 0, 1, 0]);
    }

    #[test]
    fn high_limit_1_lets_4096_bytes_pass() {
        let expected = [[1_u8; 64].as_slice(), &[0]].concat().repeat(3);
        assert_eq!(high(1).sequence(&[0b11; 195]), expected);
        // A packet that starts below the limit is sent whole: 3000 bytes are below 4096, 6000 are not.
        let mut port = high(1);
        let turns: Vec<u8> = (0..6).map(|_| port.serve(0b11, &[3000, 3000])).collect();
        assert_eq!(turns, [1, 1, 0, 1, 1, 0]);
    }

    #[test]
    fn high_limit_254_is_a_bound_and_255_is_none() {
        let packets = 254 * 4096 / 64;
        let turns = high(254).sequence(&vec![0b11; packets + 1]);
        assert!(turns[..packets].iter().all(|lane| *lane == 1) && turns[packets] == 0);
        let mut port = high(255);
        // Far beyond 4 GiB in a row.
        assert!((0..100).all(|_| port.serve(0b11, &[4096, u64::from(u32::MAX)]) == 1));
        assert_eq!(port.serve(0b01, &[64, 64]), 0);
    }

    #[test]
    fn only_what_holds_up_a_low_lane_counts() {
        // Ten packets while nothing low is ready leave the whole limit for when something is.
        let ready = [&[0b10; 10][..], &[0b11; 3]].concat();
        assert_eq!(high(0).sequence(&ready)[10..], [1, 0, 1]);
    }

    #[test]
    fn lanes_left_out_of_the_high_table_are_low_by_default() {
        let mut port = Port::new(NAME, &json!({ "vlarb_high": [[2, 1]], "high_limit": 255 }), 3);
        assert_eq!(port.sequence(&[0b111, 0b011, 0b010, 0b111]), [2, 0, 1, 2]);
    }

    #[test]
    fn bad_tables_are_refused() {
        for (params, expected) in [
            (json!({ "vlarb_low": [[0, 1]] }), "virtual lane 1 has a weight above zero neither"),
            (json!({ "vlarb_low": [[0, 1], [1, 0]] }), "virtual lane 1 has a weight above zero neither"),
            (json!({ "vlarb_high": [[0, 1], [2, 1]] }), "qos.arbiter.vlarb_high[1] = 2: a virtual lane in use, 0 to 1"),
            (json!({ "vlarb_low": vec![[0, 1]; 65] }), "at most 64 entries"),
            (json!({ "vlarb_low": [[0, 256]] }), "256"),
            (json!({ "high_limit": 256 }), "256"),
        ] {
            let message = error(NAME, &params);
            assert!(message.contains(expected), "{params}: {message}");
        }
    }
}

mod strict_priority {
    use super::*;

    const NAME: &str = "strict_priority";

    #[test]
    fn lower_lanes_starve() {
        assert_eq!(Port::new(NAME, &json!({}), 3).saturate(1000, &[64; 3]), [0, 0, 64_000]);
        assert_eq!(Port::new(NAME, &json!({ "order": [1, 2, 0] }), 3).saturate(1000, &[64; 3]), [0, 64_000, 0]);
        assert_eq!(Port::new(NAME, &json!({ "order": [1, 2, 0] }), 3).sequence(&[0b101, 0b001, 0b111]), [2, 0, 1]);
    }

    #[test]
    fn shares_hold() {
        let params = json!({ "shares": [[2, 25], [1, 50]], "interval": 100_000 });
        // 100 intervals of 1000 packets of 100 bytes.
        let bytes = Port::new(NAME, &params, 3).saturate(100_000, &[100; 3]);
        assert_eq!(bytes, [2_500_000, 5_000_000, 2_500_000]);
    }

    #[test]
    fn shares_are_those_of_the_own_link() {
        let params = json!({ "shares": [[1, 50]], "interval": 100_000 });
        for (bandwidth, first) in [(BANDWIDTH, 500), (BitsPerSec(BANDWIDTH.0 / 4), 125)] {
            let mut port = Port::of_link(NAME, &params, 2, bandwidth);
            assert!((0..first).all(|_| port.serve(0b11, &[100, 100]) == 1));
            assert_eq!(port.serve(0b11, &[100, 100]), 0, "{bandwidth:?}");
        }
    }

    #[test]
    fn a_lane_beyond_its_share_takes_what_is_left_over() {
        let params = json!({ "shares": [[1, 10]], "interval": 100_000 });
        let mut port = Port::new(NAME, &params, 2);
        assert!((0..500).all(|_| port.serve(0b10, &[100, 100]) == 1));
        assert_eq!(port.serve(0b11, &[100, 100]), 0);
        port.now = 100_000;
        assert_eq!(port.serve(0b11, &[100, 100]), 1);
    }

    #[test]
    fn among_lanes_beyond_their_shares_priority_decides() {
        let params = json!({ "shares": [[1, 1], [0, 1]], "interval": 100_000 });
        let mut port = Port::new(NAME, &params, 2);
        let turns: Vec<u8> = (0..5).map(|_| port.serve(0b11, &[600, 600])).collect();
        assert_eq!(turns, [1, 1, 0, 0, 1]);
    }

    #[test]
    fn intervals_start_at_multiples_of_their_length_even_far_out() {
        let params = json!({ "shares": [[1, 50]], "interval": 1_000 });
        let mut port = Port::new(NAME, &params, 2);
        port.now = 7_000_000_000_999;
        assert_eq!(port.serve(0b11, &[500, 500]), 1);
        // The next interval has begun meanwhile.
        assert_eq!(port.serve(0b11, &[500, 500]), 1);
        port.now = 7_000_000_001_999;
        assert_eq!(port.serve(0b11, &[500, 500]), 0);
    }

    #[test]
    fn bad_parameters_are_refused() {
        for (params, expected) in [
            (json!({ "order": [0] }), "qos.arbiter.order = [0]: each of the 2 virtual lanes"),
            (json!({ "order": [0, 0] }), "each of the 2 virtual lanes in use once"),
            (json!({ "shares": [[2, 10]] }), "qos.arbiter.shares[0] = 2: a virtual lane in use"),
            (json!({ "shares": [[0, 101]] }), "qos.arbiter.shares[0] = 101: 1 to 100 percent"),
            (json!({ "shares": [[0, 1]], "interval": 10_000_000_001_u64 }), "a time above zero, at most 10 ms"),
            (json!({ "shares": [[0, 1]], "interval": 0 }), "qos.arbiter.interval = 0"),
        ] {
            let message = error(NAME, &params);
            assert!(message.contains(expected), "{params}: {message}");
        }
    }
}
