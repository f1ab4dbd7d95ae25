//! A host's end of the network: messages become packets, packets deliveries.

mod inject;
mod reassemble;
mod segment;

use super::config::Config;
use super::in_flight::{InFlight, PORTS};
use super::packet::Packet;
use super::port::{Arrival, kind};
use super::probe::Probe;
use super::{Endpoint, Network, Pause};
use crate::error::RunError;
use crate::ids::HostId;
use crate::kernel::NONE;
use crate::units::Instant;

impl Network {
    /// Runs one host through the open window, and notes the ports that it hands messages to. `prefetch`: fetches what those
    /// will read.
    #[inline(always)]
    pub(super) fn run_host<P: Probe, E: Endpoint>(
        &mut self,
        host: HostId,
        until: Instant,
        endpoint: &mut E,
        probe: &mut P,
        prefetch: bool,
    ) -> Result<(), RunError> {
        let Self { config, in_flight, scratch, .. } = self;
        let nics = config.nics_of(host);
        in_flight.deliver(config, probe, nics.clone(), until.0, &mut scratch.deliveries);
        let pause = endpoint.run(host, until, &scratch.deliveries, &mut scratch.injections)?;
        let mut now = false;
        for injection in &scratch.injections {
            now |= in_flight.inject(config, injection, until.0);
        }
        scratch.injections.clear();
        in_flight.pause(config, host, pause);
        if now {
            let window = self.in_flight.calendar.window();
            for nic in nics {
                let head = self.in_flight.inboxes.head(window, nic);
                if head != NONE {
                    self.scratch.injecting.push_back(nic);
                    if prefetch {
                        self.prefetch_injecting(nic, head);
                    }
                }
            }
        }
        Ok(())
    }

    /// Has every host look at what is on its way to it when it arrives.
    pub fn wake_all(&mut self) {
        let now = self.now();
        for host in (0..).take(self.config.graph.hosts()).map(HostId) {
            self.in_flight.end_deferral(&self.config, host, now);
        }
    }

    /// Runs the NICs' ports to which their hosts have handed something, all but the last `but`.
    #[inline(always)]
    pub(super) fn run_injecting<P: Probe>(
        &mut self,
        but: usize,
        until: u64,
        arrivals: &mut Vec<Arrival>,
        probe: &mut P,
    ) {
        while self.scratch.injecting.len() > but
            && let Some(nic) = self.scratch.injecting.pop_front()
        {
            self.in_flight.calendar.forget(PORTS, nic);
            self.run_port::<P, { kind::NIC }>(nic, until, arrivals, probe);
        }
    }
}

impl InFlight {
    /// A host has run: has it run again at its own time, and for what comes to it unless that can be deferred.
    #[inline(always)]
    fn pause(&mut self, config: &Config, host: HostId, Pause { at, deferrable }: Pause) {
        if let Some(at) = at {
            self.wake_host(host.0, at);
        }
        if deferrable {
            self.deferring[host.index()] = true;
        } else {
            self.end_deferral(config, host, Instant::ZERO);
        }
    }

    /// A host no longer defers deliveries: has it run for all that is on its way to it, at `now` for what has arrived.
    #[inline(always)]
    fn end_deferral(&mut self, config: &Config, host: HostId, now: Instant) {
        if !std::mem::replace(&mut self.deferring[host.index()], false) {
            return;
        }
        for nic in config.nics_of(host) {
            let mut record = self.receive_queues[nic as usize].0;
            while record != NONE {
                let Packet { time, next, .. } = self.packets[record];
                self.wake_host(host.0, Instant(time).max(now));
                record = next;
            }
        }
    }
}
