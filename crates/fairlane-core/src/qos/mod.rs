//! Quality of service: which service level a message has, which virtual lane a service level takes, and how a port
//! shares its link among virtual lanes. Names are those of InfiniBand and OpenSM.

pub mod arbiter;
pub mod classes;
pub mod levels;
