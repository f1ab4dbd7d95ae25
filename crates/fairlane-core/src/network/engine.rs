//! The engine: a shard in a window, which is at most one link latency (see [`crate::kernel`]). The windows follow one another in
//! `windows`.
//!
//! In a window each host runs first, alone, through its events in order of time, and soon after it its NIC's port if it hands
//! messages over; then, with adaptive routing or input-queued switches, the switches route what arrives at them; then each
//! other port that has something to do runs, alone (the ports of an input-queued switch together with the switch). What a port
//! sends arrives in a later window, so the order in which hosts and ports run changes no result.

use std::marker::PhantomData;

use super::endpoint::Endpoint;
use super::features::Instance;
use super::in_flight::{HOSTS, PORTS};
use super::index::{PacketIdx, PortIdx};
use super::port::{ActivePort, Arrival, kind};
use super::prefetch::{INJECTING, LARGE, Prefetch};
use super::shard::Shard;
use crate::error::RunError;
use crate::ids::HostId;
use crate::units::Instant;

/// The error that ended the run of a host, and the id of the host.
pub(super) type Failed = (HostId, RunError);

impl Shard {
    /// Runs one window. After an error the window is run to its end all the same, so that what has been measured does not
    /// depend on the order of hosts; of several errors, that of the first host is returned.
    pub(super) fn run_window<I: Instance, E: Endpoint + Prefetch>(
        &mut self,
        window: u64,
        endpoint: &mut E,
    ) -> Result<(), Failed> {
        self.in_flight.calendar.open(window);
        self.in_flight.take_due(&self.config);
        let until = self.in_flight.calendar.opening(window + 1);
        let result = self.run_hosts::<I, E>(until, endpoint);
        if self.config.fabric.by_switch {
            self.run_switches::<I>(until);
        }
        self.run_ports::<I>(until);
        self.in_flight.calendar.close();
        self.last_due = window;
        result
    }

    fn run_hosts<I: Instance, E: Endpoint + Prefetch>(
        &mut self,
        until: Instant,
        endpoint: &mut E,
    ) -> Result<(), Failed> {
        let mut hosts = std::mem::take(&mut self.scratch.hosts);
        let mut arrivals = std::mem::take(&mut self.scratch.arrivals);
        self.in_flight.calendar.take(HOSTS, &mut hosts);
        let mut result = Ok(());
        let large = self.ports.len() > LARGE;
        for (place, &host) in hosts.iter().enumerate() {
            if large {
                self.prefetch_hosts::<I, E>(&hosts, place, endpoint);
            }
            if let Err(error) = self.run_host::<I, E>(host, until, endpoint, large) {
                result = result.and(Err((self.config.naming.host_id(host), error)));
            }
            self.run_injecting::<I>(if large { INJECTING } else { 0 }, until, &mut arrivals);
        }
        self.run_injecting::<I>(0, until, &mut arrivals);
        self.scratch.injecting.clear();
        self.scratch.injected = 0;
        self.scratch.arrivals = arrivals;
        self.scratch.hosts = hosts;
        result
    }

    fn run_ports<I: Instance>(&mut self, until: Instant) {
        let mut ports = std::mem::take(&mut self.scratch.ports);
        let mut to_hosts = std::mem::take(&mut self.scratch.to_hosts);
        self.in_flight.calendar.take_split(PORTS, &self.to_hosts, &mut to_hosts, &mut ports);
        // In ascending order: first the NICs' ports.
        let nics = ports.partition_point(|&port| port < self.config.naming.nics);
        self.run_each::<I, { kind::NIC }>(&ports[..nics], until);
        if self.config.has::<I>().input_queued {
            self.run_crossbars::<I>([&ports[nics..], &to_hosts], until);
        } else {
            self.run_each::<I, { kind::TO_SWITCH }>(&ports[nics..], until);
            self.run_each::<I, { kind::TO_HOST }>(&to_hosts, until);
        }
        self.scratch.to_hosts = to_hosts;
        self.scratch.ports = ports;
    }

    fn run_each<I: Instance, const KIND: u8>(&mut self, ports: &[PortIdx], until: Instant) {
        let mut arrivals = std::mem::take(&mut self.scratch.arrivals);
        let large = self.ports.len() > LARGE;
        for (place, &port) in ports.iter().enumerate() {
            if large {
                self.prefetch_ports::<I, KIND>(ports, place);
            }
            self.run_port::<I, KIND>(port, until, &mut arrivals);
        }
        self.scratch.arrivals = arrivals;
    }

    /// Runs one port through the open window.
    #[inline(always)]
    pub(super) fn run_port<I: Instance, const KIND: u8>(
        &mut self,
        port: PortIdx,
        until: Instant,
        arrivals: &mut Vec<Arrival>,
    ) {
        let mut first = self.in_flight.inboxes.take(self.in_flight.calendar.window(), port);
        if first.is_none() || !self.active_port::<I, KIND>(port).pass(&mut first, until) {
            self.run_queues::<I, KIND>(port, first, until, arrivals);
        }
    }

    /// A packet that has been routed joins its port, which first decides what comes before; nothing else arrives there before `next`.
    #[inline(always)]
    pub(super) fn join<I: Instance, const KIND: u8>(&mut self, port: PortIdx, packet: PacketIdx, next: Instant) {
        let mut first = packet;
        if !self.active_port::<I, KIND>(port).pass(&mut first, next) {
            self.join_queue::<I, KIND>(port, first, next);
        }
    }

    /// The general case of [`Shard::join`]. The port runs once more at the end of the window.
    #[inline(never)]
    fn join_queue<I: Instance, const KIND: u8>(&mut self, port: PortIdx, first: PacketIdx, next: Instant) {
        let mut arrivals = std::mem::take(&mut self.scratch.arrivals);
        let mut active = self.active_port::<I, KIND>(port);
        active.sort(first, &mut arrivals);
        active.advance(next, &mut arrivals);
        if active.port.waiting != 0 {
            self.in_flight.calendar.wake_near(PORTS, port, self.in_flight.calendar.window());
        }
        self.scratch.arrivals = arrivals;
    }

    /// The general case of [`Shard::run_port`]: packets queue or wait for credits. A function of its own, so that the common
    /// case stays in registers.
    #[inline(never)]
    fn run_queues<I: Instance, const KIND: u8>(
        &mut self,
        port: PortIdx,
        first: PacketIdx,
        until: Instant,
        arrivals: &mut Vec<Arrival>,
    ) {
        self.active_port::<I, KIND>(port).run(first, until, arrivals);
    }

    #[inline(always)]
    pub(super) fn active_port<I: Instance, const KIND: u8>(&mut self, number: PortIdx) -> ActivePort<'_, I, KIND> {
        ActivePort {
            number,
            port: &mut self.ports[number],
            lanes: &mut self.lanes,
            base: number.index() * self.config.fabric.lanes,
            opening: self.in_flight.calendar.opened(),
            arbiter: &mut *self.arbiter,
            config: &self.config,
            in_flight: &mut self.in_flight,
            observation: &mut self.observation,
            instance: PhantomData,
        }
    }
}
