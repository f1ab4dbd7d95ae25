//! NICs: messages become packets, and packets become deliveries.

pub(super) mod flows;
pub(super) mod go_back_n;
mod grants;
mod inject;
mod notices;
mod pacing;
mod pull_rate;
mod pulls;
pub(super) mod queue_pairs;
mod reassemble;
mod resend;
mod segment;
pub mod transport;

use super::config::Config;
use super::endpoint::{Endpoint, Pause};
use super::features::Instance;
use super::in_flight::{InFlight, PORTS};
use super::index::HostIdx;
use super::packet::Packet;
use super::port::{Arrival, kind};
use super::shard::Shard;
use crate::error::RunError;
use crate::units::Instant;

impl Shard {
    /// Runs one host through the open window, and notes the ports that it hands messages to. `prefetch`: fetches what those
    /// will read.
    #[inline(always)]
    pub(super) fn run_host<I: Instance, E: Endpoint>(
        &mut self,
        host: HostIdx,
        until: Instant,
        endpoint: &mut E,
        prefetch: bool,
    ) -> Result<(), RunError> {
        let Self { config, in_flight, scratch, observation, .. } = self;
        let nics = config.naming.nics_of(host);
        in_flight.deliver::<I>(config, observation, nics.clone(), until, &mut scratch.deliveries);
        let id = config.naming.host_id(host);
        let pause = endpoint.run(id, until, &scratch.deliveries, &mut scratch.injections);
        let mut now = false;
        for injection in &scratch.injections {
            now |= in_flight.inject::<I>(config, &nics, injection, until);
        }
        scratch.injections.clear();
        in_flight.pause(config, host, pause?);
        if now {
            let window = self.in_flight.calendar.window();
            for nic in nics {
                let head = self.in_flight.inboxes.head(window, nic);
                if head.is_some() {
                    self.scratch.injecting.push(nic);
                    if prefetch {
                        self.prefetch_injecting(nic, head);
                    }
                }
            }
        }
        Ok(())
    }

    /// Ends the deferral of deliveries at every host: each runs when something arrives.
    pub(super) fn wake_all(&mut self, now: Instant) {
        for host in self.config.naming.all_hosts() {
            self.in_flight.end_deferral(&self.config, host, now);
        }
    }

    /// Runs the NICs' ports to which their hosts have handed messages, all but the last `but`.
    #[inline(always)]
    pub(super) fn run_injecting<I: Instance>(&mut self, but: usize, until: Instant, arrivals: &mut Vec<Arrival>) {
        while self.scratch.injecting.len() > self.scratch.injected + but {
            let nic = self.scratch.injecting[self.scratch.injected];
            self.scratch.injected += 1;
            self.in_flight.calendar.forget(PORTS, nic);
            self.run_port::<I, { kind::NIC }>(nic, until, arrivals);
        }
    }
}

impl InFlight {
    /// A host has run: schedules its next run, at its own time and, unless it defers deliveries, for what arrives.
    #[inline(always)]
    fn pause(&mut self, config: &Config, host: HostIdx, Pause { at, deferrable }: Pause) {
        if let Some(at) = at {
            self.wake_host(host, at);
        }
        if deferrable {
            self.deferring[host] = true;
        } else {
            self.end_deferral(config, host, Instant::ZERO);
        }
    }

    /// A host no longer defers deliveries: schedules it for every packet on its way to it, at `now` for those that have arrived.
    #[inline(always)]
    fn end_deferral(&mut self, config: &Config, host: HostIdx, now: Instant) {
        if !std::mem::replace(&mut self.deferring[host], false) {
            return;
        }
        for nic in config.naming.nics_of(host) {
            let mut packet = self.receive_queues[nic].0;
            while packet.is_some() {
                let Packet { time, next, .. } = self.packets[packet];
                self.wake_host(host, time.max(now));
                packet = next;
            }
        }
    }
}
