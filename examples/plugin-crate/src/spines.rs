//! Two routings along shortest paths, in a tree up to any common spine and down again: each job over a spine of its own, or
//! by the occupancy of the packet's own lane. Paths and virtual channels are those of [`EqualCost`].

use fairlane_core::ids::{LinkId, SwitchId};
use fairlane_core::routing::{Entry, EqualCost, Loads, Selection, Visit};
use fairlane_core::table::NoParams;

/// The jobs are shared out to the spines: job `j` takes up port `j` modulo their number.
pub static SPINE_BY_JOB: Entry = Entry {
    name: "spine_by_job",
    summary: "jobs are assigned to the spine switches round-robin",
    schema: NoParams::schema,
    build: |graph, params, _| {
        NoParams::check("fabric.routing", params)?;
        Ok(Box::new(EqualCost::new(graph, "spine_by_job", SpineByJob)?))
    },
};

/// Every packet takes the up port whose lane of this packet holds the fewest bytes.
pub static LIGHTEST_LANE: Entry = Entry {
    name: "lightest_lane",
    summary: "the up port with the lowest occupancy of the packet's own lane",
    schema: NoParams::schema,
    build: |graph, params, _| {
        NoParams::check("fabric.routing", params)?;
        Ok(Box::new(EqualCost::new(graph, "lightest_lane", LightestLane)?))
    },
};

struct SpineByJob;

impl Selection for SpineByJob {
    fn select(&self, _at: SwitchId, visit: &Visit, links: &[LinkId], _loads: &Loads) -> LinkId {
        links[visit.job.index() % links.len()]
    }
}

struct LightestLane;

impl Selection for LightestLane {
    fn select(&self, _at: SwitchId, visit: &Visit, links: &[LinkId], loads: &Loads) -> LinkId {
        // Of equals the lowest port.
        *links.iter().min_by_key(|link| loads.on_lane(**link, visit.vl, 0)).expect("at least two links")
    }

    fn sees_lanes(&self) -> bool {
        true
    }
}
