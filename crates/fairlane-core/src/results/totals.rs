//! The table of what the network as a whole has carried.

use std::iter::once;

use super::Measured;
use crate::columns::Columns;
use crate::columns::Unit::{Bytes, Count};

/// One row.
///
/// | column | unit | |
/// |---|---|---|
/// | `packet_hops` | packets | that started on a link, summed over links |
/// | `messages_injected`, `bytes_injected` | messages, bytes | handed to NICs; payload |
/// | `messages_delivered`, `bytes_delivered` | messages, bytes | that have come whole and that their hosts have looked at, and those of which packets were given up |
/// | `packets_lost` | packets | lost at links that are down, or at full queues of lossy lanes |
/// | `packets_trimmed` | packets | of which only the headers have come to their hosts |
/// | `packets_discarded` | packets | that came after a gap and were discarded by their receivers (`network.retransmission`) |
/// | `packets_retransmitted`, `packets_given_up` | packets | lost, trimmed or discarded, and retransmitted or given up |
/// | `bytes_retransmitted` | bytes | payload of retransmitted packets |
/// | `packets_marked` | packets | marked by a switch for congestion control |
/// | `control_packets`, `control_bytes` | packets, bytes | notices of congestion control that NICs have made; payload |
/// | `control_packets_received`, `control_bytes_received` | packets, bytes | those that have come to the host of their flow |
pub(super) fn totals(of: Measured<'_>) -> Columns {
    let totals = of.network.totals();
    Columns::default()
        .u64("packet_hops", Count, once(totals.packet_hops))
        .u64("messages_injected", Count, once(totals.messages_injected))
        .u64("bytes_injected", Bytes, once(totals.bytes_injected))
        .u64("messages_delivered", Count, once(totals.messages_delivered))
        .u64("bytes_delivered", Bytes, once(totals.bytes_delivered))
        .u64("packets_lost", Count, once(totals.packets_lost))
        .u64("packets_trimmed", Count, once(totals.packets_trimmed))
        .u64("packets_discarded", Count, once(totals.packets_discarded))
        .u64("packets_retransmitted", Count, once(totals.packets_retransmitted))
        .u64("bytes_retransmitted", Bytes, once(totals.bytes_retransmitted))
        .u64("packets_given_up", Count, once(totals.packets_given_up))
        .u64("packets_marked", Count, once(totals.packets_marked))
        .u64("control_packets", Count, once(totals.control_packets))
        .u64("control_bytes", Bytes, once(totals.control_bytes))
        .u64("control_packets_received", Count, once(totals.control_packets_received))
        .u64("control_bytes_received", Bytes, once(totals.control_bytes_received))
}
