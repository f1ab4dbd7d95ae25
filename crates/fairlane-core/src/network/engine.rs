//! The engine: a shard in a window, which is at most one link latency (see [`crate::kernel`]). The windows follow one another in
//! `windows`.
//!
//! In a window each host runs first, alone, through its events in order of time, and soon after it its NIC's port if it hands
//! messages over; then, with adaptive routing or input-queued switches, the switches route what arrives at them; then each
//! other port that has something to do runs, alone (the ports of an input-queued switch together with the switch). What a port
//! sends arrives in a later window, so the order in which hosts and ports run changes no result.

use super::endpoint::Endpoint;
use super::in_flight::{HOSTS, PORTS};
use super::index::{PortIdx, Queued};
use super::port::{ActivePort, Arrival, Forwarded, kind};
use super::prefetch::{INJECTING, LARGE, Prefetch};
use super::probe::Probe;
use super::shard::Shard;
use crate::error::RunError;
use crate::ids::HostId;
use crate::units::Instant;

/// The error that ended the run of a host, and the id of the host.
pub(super) type Failed = (HostId, RunError);

impl Shard {
    /// Runs one window. After an error the window is run to its end all the same, so that what has been measured does not
    /// depend on the order of hosts; of several errors, that of the first host is returned.
    pub(super) fn run_window<P: Probe, E: Endpoint + Prefetch>(
        &mut self,
        window: u64,
        endpoint: &mut E,
        probe: &mut P,
    ) -> Result<(), Failed> {
        self.in_flight.calendar.open(window);
        self.in_flight.take_due(&self.config);
        let until = self.in_flight.calendar.opening(window + 1);
        let result = self.run_hosts(until, endpoint, probe);
        if self.config.fabric.by_switch {
            self.run_switches::<P>();
        }
        self.run_ports(until, probe);
        self.in_flight.calendar.close();
        self.last_due = window;
        result
    }

    fn run_hosts<P: Probe, E: Endpoint + Prefetch>(
        &mut self,
        until: Instant,
        endpoint: &mut E,
        probe: &mut P,
    ) -> Result<(), Failed> {
        let mut hosts = std::mem::take(&mut self.scratch.hosts);
        let mut arrivals = std::mem::take(&mut self.scratch.arrivals);
        self.in_flight.calendar.take(HOSTS, &mut hosts);
        let mut result = Ok(());
        let large = self.ports.len() > LARGE;
        for (place, &host) in hosts.iter().enumerate() {
            if large {
                self.prefetch_hosts::<P, E>(&hosts, place, endpoint);
            }
            if let Err(error) = self.run_host(host, until, endpoint, probe, large) {
                result = result.and(Err((self.config.naming.host_id::<P>(host), error)));
            }
            self.run_injecting(if large { INJECTING } else { 0 }, until, &mut arrivals, probe);
        }
        self.run_injecting(0, until, &mut arrivals, probe);
        self.scratch.arrivals = arrivals;
        self.scratch.hosts = hosts;
        result
    }

    fn run_ports<P: Probe>(&mut self, until: Instant, probe: &mut P) {
        let mut ports = std::mem::take(&mut self.scratch.ports);
        let mut to_hosts = std::mem::take(&mut self.scratch.to_hosts);
        self.in_flight.calendar.take_split(PORTS, &self.to_hosts, &mut to_hosts, &mut ports);
        // In ascending order: first the NICs' ports.
        let nics = ports.partition_point(|&port| port < self.config.naming.nics);
        self.run_each::<P, { kind::NIC }>(&ports[..nics], until, probe);
        if self.config.has::<P>().input_queued {
            self.run_crossbars([&ports[nics..], &to_hosts], until, probe);
        } else {
            self.run_each::<P, { kind::TO_SWITCH }>(&ports[nics..], until, probe);
            self.run_each::<P, { kind::TO_HOST }>(&to_hosts, until, probe);
        }
        self.scratch.to_hosts = to_hosts;
        self.scratch.ports = ports;
    }

    fn run_each<P: Probe, const KIND: u8>(&mut self, ports: &[PortIdx], until: Instant, probe: &mut P) {
        let mut arrivals = std::mem::take(&mut self.scratch.arrivals);
        let large = self.ports.len() > LARGE;
        for (place, &port) in ports.iter().enumerate() {
            if large {
                self.prefetch_ports::<P, KIND>(ports, place);
            }
            self.run_port::<P, KIND>(port, until, &mut arrivals, probe);
        }
        self.scratch.arrivals = arrivals;
    }

    /// Runs one port through the open window.
    #[inline(always)]
    pub(super) fn run_port<P: Probe, const KIND: u8>(
        &mut self,
        port: PortIdx,
        until: Instant,
        arrivals: &mut Vec<Arrival>,
        probe: &mut P,
    ) {
        let mut first = self.in_flight.inboxes.take(self.in_flight.calendar.window(), port);
        if first.is_some() {
            match self.active_port::<P, KIND>(port, probe).forward_single(first, until) {
                Forwarded::Yes => return,
                Forwarded::Part(lane) => {
                    self.active_port::<P, KIND>(port, probe).requeue(lane, first.message());
                    first = Queued::NONE;
                }
                Forwarded::No => {}
            }
        }
        self.run_queues::<P, KIND>(port, first, until, arrivals, probe);
    }

    /// The general case of [`Shard::run_port`]: packets queue or wait for credits. A function of its own, so that the common
    /// case stays in registers.
    #[inline(never)]
    fn run_queues<P: Probe, const KIND: u8>(
        &mut self,
        port: PortIdx,
        first: Queued,
        until: Instant,
        arrivals: &mut Vec<Arrival>,
        probe: &mut P,
    ) {
        self.active_port::<P, KIND>(port, probe).run(first, until, arrivals);
    }

    #[inline(always)]
    pub(super) fn active_port<'a, P: Probe, const KIND: u8>(
        &'a mut self,
        number: PortIdx,
        probe: &'a mut P,
    ) -> ActivePort<'a, P, KIND> {
        ActivePort {
            number,
            port: &mut self.ports[number],
            lanes: &mut self.lanes,
            base: number.index() * self.config.fabric.lanes,
            opening: self.in_flight.calendar.opening(self.in_flight.calendar.window()),
            states: &mut self.arbiter_states,
            config: &self.config,
            in_flight: &mut self.in_flight,
            probe,
        }
    }
}
