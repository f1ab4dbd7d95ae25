//! The registry: all that a specification can ask for by name, and what a plug-in adds to.
//!
//! A [`Registry`] is a value: two simulations in one process can have different ones. It starts with the built-in entries.
//!
//! ```
//! use fairlane_core::registry::Registry;
//! use fairlane_core::routing::Entry;
//! use fairlane_core::table::NoParams;
//!
//! static MINE: Entry = Entry {
//!     name: "mine",
//!     summary: "d_mod_k under another name",
//!     schema: || schemars::schema_for!(NoParams),
//!     build: |graph, params, routings| routings.build("d_mod_k", params, graph),
//! };
//! let mut registry = Registry::default();
//! registry.routings.add(&MINE)?;
//! assert!(registry.routings.find("mine").is_ok());
//! assert!(registry.routings.add(&MINE).unwrap_err().to_string().starts_with("routing \"mine\" is registered already"));
//! # Ok::<(), fairlane_core::error::BuildError>(())
//! ```

use crate::error::BuildError;
use crate::fault::Faults;
use crate::mpi::collective::algorithms::Collectives;
use crate::network::{self, Architecture, Surroundings, Switches, allocator::Allocators, transport::Transports};
use crate::qos::arbiter::Arbiters;
use crate::routing::Routings;
use crate::table::Table;
use crate::topology::Topologies;

/// A table for each kind of entry.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    /// The topologies.
    pub topologies: Table<Topologies>,
    /// The routings.
    pub routings: Table<Routings>,
    /// The arbiters.
    pub arbiters: Table<Arbiters>,
    /// The algorithms of collectives.
    pub collectives: Table<Collectives>,
    /// The transports.
    pub transports: Table<Transports>,
    /// The switch architectures.
    pub switches: Table<Switches>,
    /// The allocators of input-queued switches.
    pub allocators: Table<Allocators>,
    /// The faults.
    pub faults: Table<Faults>,
}

impl Registry {
    /// Builds the switch architecture that a network's parameters name.
    ///
    /// # Errors
    /// [`BuildError`] names the key that is wrong.
    pub fn architecture(&self, network: &network::Parameters) -> Result<Architecture, BuildError> {
        let surroundings = Surroundings { full_packet: network.largest_packet(), allocators: &self.allocators };
        self.switches.build(&network.switch.name, &network.switch.params, surroundings)
    }

    /// Every table by the name of its kind, as lists of entries with the schemas of their parameters.
    #[must_use]
    pub fn describe(&self) -> serde_json::Value {
        serde_json::json!({
            "topology": self.topologies.describe(),
            "routing": self.routings.describe(),
            "arbiter": self.arbiters.describe(),
            "collective": self.collectives.describe(),
            "switch": self.switches.describe(),
            "allocator": self.allocators.describe(),
            "transport": self.transports.describe(),
            "fault": self.faults.describe(),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::mpi::collective::algorithms::{self, Algorithm};
    use crate::network::allocator;
    use crate::{routing, topology};

    static ROUTING: routing::Entry = routing::Entry { name: "mine", summary: "my own", ..routing::TABLE[0] };
    static LINEAR: Algorithm = algorithms::TABLE[0].build.named("linear", "once more");

    #[test]
    fn an_added_entry_is_found_listed_and_suggested() {
        let mut registry = Registry::default();
        registry.routings.add(&ROUTING).unwrap();
        assert_eq!(registry.routings.find("mine").unwrap().summary, "my own");
        assert_eq!(registry.describe()["routing"][routing::TABLE.len()]["name"], json!("mine"));
        let error = registry.routings.find("mime").err().unwrap().to_string();
        assert!(error.contains(", mine") && error.ends_with("did you mean \"mine\"?"), "{error}");
        assert!(Registry::default().routings.find("mine").is_err(), "other registries do not have it");
    }

    #[test]
    fn a_name_that_is_taken_is_an_error_that_names_both() {
        let mut registry = Registry::default();
        registry.routings.add(&ROUTING).unwrap();
        let error = registry.routings.add(&routing::TABLE[0]).unwrap_err().to_string();
        let summary = routing::TABLE[0].summary;
        let words = format!("routing \"adaptive\" is registered already ({summary}); the one added ({summary})");
        assert!(error.starts_with(&words), "{error}");
        assert_eq!(registry.routings.entries().count(), routing::TABLE.len() + 1);
    }

    #[test]
    fn collectives_of_different_kinds_may_share_a_name() {
        let mut registry = Registry::default();
        assert_eq!(LINEAR.build.kind.name(), "barrier");
        let error = registry.collectives.add(&LINEAR).unwrap_err().to_string();
        assert!(error.contains("\"linear\"") && error.contains("once more"), "{error}");
    }

    /// One error for all kinds: parameters that are no object.
    #[test]
    fn parameters_that_are_no_object_are_refused_alike() {
        let registry = Registry::default();
        let graph = topology::build("fat_tree", &json!({ "hosts": 16, "levels": 2, "radix": 8 })).unwrap();
        for wrong in [json!(5), json!([]), json!("half"), json!(true)] {
            let network = crate::table::Named { name: "output_queued".to_owned(), params: wrong.clone() };
            let network = network::Parameters { switch: network, ..Default::default() };
            let errors = [
                ("topology", "fabric", registry.topologies.build("fat_tree", &wrong, ()).map(drop)),
                ("routing", "fabric.routing", registry.routings.build("d_mod_k", &wrong, &graph).map(drop)),
                ("arbiter", "qos.arbiter", registry.arbiters.build("vlarb", &wrong, 2).map(drop)),
                ("transport", "network.transport", registry.transports.build("credits_only", &wrong, ()).map(drop)),
                (
                    "switch allocator",
                    "network.switch.allocator",
                    registry.allocators.build("round_robin", &wrong, ()).map(drop),
                ),
                ("switch architecture", "network.switch", registry.architecture(&network).map(drop)),
            ];
            for (kind, path, error) in errors {
                let error = error.unwrap_err().to_string();
                assert!(error.starts_with(&format!("{path}: the parameters of {kind} \"")), "{error}");
                assert!(error.ends_with(&format!("are an object, not {wrong}")), "{error}");
            }
        }
    }

    #[test]
    fn unknown_parameters_are_named_and_none_may_be_null() {
        let transports = Table::<Transports>::default();
        assert!(transports.build("credits_only", &serde_json::Value::Null, ()).is_ok());
        let error = transports.build("credits_only", &json!({ "rate": 1 }), ()).err().unwrap().to_string();
        assert!(error.starts_with("network.transport: unknown field `rate`"), "{error}");
        assert_eq!(format!("{:?}", allocator::TABLE[0]), "switch allocator \"round_robin\"");
    }
}
