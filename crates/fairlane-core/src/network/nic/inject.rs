//! Injection: a host hands a message to its NIC.

use crate::ids::LinkId;
use crate::network::config::Config;
use crate::network::features::Instance;
use crate::network::in_flight::InFlight;
use crate::network::index::{MessageIdx, PairIdx, PortIdx};
use crate::network::naming::Nics;
use crate::network::packet::{Content, Injection, Message, PacketFlags};
use crate::network::partition::PortPlace;
use crate::units::{Instant, Picoseconds};

impl InFlight {
    /// Hands a message to a NIC: to its port's inbox, once the adapter takes another message. Returns whether that is before
    /// `until`, the end of the open window; then the port must be run.
    #[inline(always)]
    pub(super) fn inject<I: Instance>(
        &mut self,
        config: &Config,
        nics: &Nics,
        injection: &Injection,
        until: Instant,
    ) -> bool {
        let Injection { at, from, to, bytes, rails: [rail, other], vl, traffic, kind, token, stage, urgent, .. } =
            *injection;
        let nic = nics.rail(rail);
        debug_assert!(at >= self.calendar.opened(), "host {from} sends in the past");
        let packets = config.fabric.packets_of(bytes.0);
        let has = config.has::<I>();
        let offered = if has.gaps { self.offer(config, nic, at) } else { at };
        let pair = if has.pairs {
            self.queue_pairs.add(config.fabric.parameters.injection, nic, injection)
        } else {
            PairIdx::NONE
        };
        let message = self.messages.insert(Message {
            offered,
            sequence: self.sequence,
            bytes: bytes.0,
            left: bytes.0,
            undelivered: u32::try_from(packets).expect("invariant: a message has fewer than 2^25 packets"),
            sent: 0,
            next: MessageIdx::NONE,
            to: config.fabric.endpoint(to, other),
            pair,
            traffic,
            kind,
            vl,
            flags: PacketFlags::new(stage, packets == 1, urgent),
            any_delivered: false,
            packed: Content::Payload(token).into(),
        });
        if packets > 1
            && let Err(PortPlace { shard, .. }) = config.port_of(LinkId(self.messages[message].to))
        {
            self.announce(shard, message);
        }
        self.sequence += 1;
        self.totals.messages_injected += 1;
        self.totals.bytes_injected += bytes.0;
        if offered >= until {
            self.send_message(nic, message);
            return false;
        }
        self.messages[message].next = self.inboxes.push(self.calendar.window(), nic, message.into()).message();
        true
    }

    /// Announces a message of several packets to the shard of its destination.
    #[cold]
    fn announce(&mut self, shard: u8, message: MessageIdx) {
        self.mail[usize::from(shard)].announced.push((message, self.messages[message]));
    }

    /// When a message that is handed over at `at` is offered: at least the adapter's gap after the message before it.
    #[inline]
    fn offer(&mut self, config: &Config, nic: PortIdx, at: Instant) -> Instant {
        let gap = config.naming.gaps.get(nic).map_or(Picoseconds::ZERO, |gap| *gap);
        if gap == Picoseconds::ZERO {
            return at;
        }
        let next = &mut self.next_offer[nic];
        let offered = at.max(*next);
        *next = offered + gap;
        offered
    }
}
