//! The engine: time advances in windows of at most one link latency (see [`crate::kernel`]).
//!
//! In a window each host runs first, alone, through its events in order of time, and soon after it its NIC's port if it hands
//! messages over; then, with adaptive routing, the switches route what arrives at them; then each other port that has
//! something to do runs, alone. What a port sends lands in another's inbox for a later window, so the order in which hosts and
//! ports run changes nothing.

use super::in_flight::{HOSTS, PORTS};
use super::port::{ActivePort, Arrival, Forwarded, kind};
use super::prefetch::{INJECTING, LARGE};
use super::probe::{Counters, Departures, Off, Probe};
use super::{Endpoint, Network};
use crate::error::RunError;
use crate::ids::HostId;
use crate::kernel::NONE;
use crate::units::Instant;

impl Network {
    /// Runs up to the end of the window in which `end` lies, or until about `hops` packets have started on a link, or until
    /// nothing is left to happen; the clock is at `end` then. Returns whether it is.
    ///
    /// # Errors
    /// What the endpoint returned; the run has ended then.
    pub fn run_until<E: Endpoint>(&mut self, end: Instant, hops: u64, endpoint: &mut E) -> Result<bool, RunError> {
        let budget = self.in_flight.totals.packet_hops.saturating_add(hops);
        let observation = std::mem::take(&mut self.observation);
        if self.config.observe.counters {
            let mut counters = Counters(observation);
            let result = self.run_windows(end, budget, endpoint, &mut counters);
            self.observation = counters.0;
            result
        } else if self.config.detailed {
            let mut departures = Departures(observation);
            let result = self.run_windows(end, budget, endpoint, &mut departures);
            self.observation = departures.0;
            result
        } else {
            self.observation = observation;
            self.run_windows(end, budget, endpoint, &mut Off)
        }
    }

    fn run_windows<P: Probe, E: Endpoint>(
        &mut self,
        end: Instant,
        budget: u64,
        endpoint: &mut E,
        probe: &mut P,
    ) -> Result<bool, RunError> {
        while self.in_flight.totals.packet_hops < budget {
            let Some(window) = self.in_flight.calendar.open(self.next_window, end) else {
                self.next_window = self.next_window.max(self.window_at_or_after(end));
                return Ok(true);
            };
            self.in_flight.take_due(&self.config);
            let until = self.in_flight.calendar.opening(window + 1);
            self.run_hosts(until, endpoint, probe)?;
            if self.config.adaptive {
                self.run_switches();
            }
            self.run_ports(until.0, probe);
            self.in_flight.calendar.close();
            self.next_window = window + 1;
            if endpoint.end_window(until) {
                return Ok(true);
            }
        }
        Ok(self.now() >= end)
    }

    fn window_at_or_after(&self, at: Instant) -> u64 {
        let window = self.in_flight.calendar.window_of(at);
        if self.in_flight.calendar.opening(window) < at { window + 1 } else { window }
    }

    fn run_hosts<P: Probe, E: Endpoint>(
        &mut self,
        until: Instant,
        endpoint: &mut E,
        probe: &mut P,
    ) -> Result<(), RunError> {
        let mut hosts = std::mem::take(&mut self.scratch.hosts);
        let mut arrivals = std::mem::take(&mut self.scratch.arrivals);
        self.in_flight.calendar.take(HOSTS, &mut hosts);
        let mut result = Ok(());
        let large = self.ports.len() > LARGE;
        for (place, &host) in hosts.iter().enumerate() {
            if large {
                self.prefetch_hosts(&hosts, place, endpoint);
            }
            result = self.run_host(HostId(host), until, endpoint, probe, large);
            if result.is_err() {
                break;
            }
            self.run_injecting(if large { INJECTING } else { 0 }, until.0, &mut arrivals, probe);
        }
        self.run_injecting(0, until.0, &mut arrivals, probe);
        self.scratch.arrivals = arrivals;
        self.scratch.hosts = hosts;
        result
    }

    fn run_ports<P: Probe>(&mut self, until: u64, probe: &mut P) {
        let mut ports = std::mem::take(&mut self.scratch.ports);
        let mut to_hosts = std::mem::take(&mut self.scratch.to_hosts);
        self.in_flight.calendar.take_split(PORTS, &self.to_hosts, &mut to_hosts, &mut ports);
        // In ascending order: first the NICs' ports.
        let nics = ports.partition_point(|&port| port < self.config.nics);
        self.run_each::<P, { kind::NIC }>(&ports[..nics], until, probe);
        self.run_each::<P, { kind::TO_SWITCH }>(&ports[nics..], until, probe);
        self.run_each::<P, { kind::TO_HOST }>(&to_hosts, until, probe);
        self.scratch.to_hosts = to_hosts;
        self.scratch.ports = ports;
    }

    fn run_each<P: Probe, const KIND: u8>(&mut self, ports: &[u32], until: u64, probe: &mut P) {
        let mut arrivals = std::mem::take(&mut self.scratch.arrivals);
        let large = self.ports.len() > LARGE;
        for (place, &port) in ports.iter().enumerate() {
            if large {
                self.prefetch_ports::<KIND>(ports, place);
            }
            self.run_port::<P, KIND>(port, until, &mut arrivals, probe);
        }
        self.scratch.arrivals = arrivals;
    }

    /// Runs one port through the open window.
    #[inline(always)]
    pub(super) fn run_port<P: Probe, const KIND: u8>(
        &mut self,
        port: u32,
        until: u64,
        arrivals: &mut Vec<Arrival>,
        probe: &mut P,
    ) {
        let mut first = self.in_flight.inboxes.take(self.in_flight.calendar.window(), port);
        if first != NONE {
            match self.active_port::<P, KIND>(port, probe).forward_single(first, until) {
                Forwarded::Yes => return,
                Forwarded::Part(lane) => {
                    self.active_port::<P, KIND>(port, probe).requeue(lane, first);
                    first = NONE;
                }
                Forwarded::No => {}
            }
        }
        self.run_queues::<P, KIND>(port, first, until, arrivals, probe);
    }

    /// What [`Network::run_port`] seldom needs, apart from it so that what it often needs stays in registers.
    #[inline(never)]
    fn run_queues<P: Probe, const KIND: u8>(
        &mut self,
        port: u32,
        first: u32,
        until: u64,
        arrivals: &mut Vec<Arrival>,
        probe: &mut P,
    ) {
        self.active_port::<P, KIND>(port, probe).run(first, until, arrivals);
    }

    #[inline(always)]
    fn active_port<'a, P: Probe, const KIND: u8>(
        &'a mut self,
        number: u32,
        probe: &'a mut P,
    ) -> ActivePort<'a, P, KIND> {
        ActivePort {
            number,
            port: &mut self.ports[number as usize],
            lanes: &mut self.lanes,
            base: number as usize * self.config.lanes,
            opening: self.in_flight.calendar.opening(self.in_flight.calendar.window()).0,
            states: &mut self.arbiter_states,
            config: &self.config,
            in_flight: &mut self.in_flight,
            probe,
        }
    }
}
