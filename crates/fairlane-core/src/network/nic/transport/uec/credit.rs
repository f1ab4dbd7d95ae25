//! Congestion control by receivers, RCCC (Ultra Ethernet Specification 1.0, section 3.6.14), at the sender: a packet starts if
//! there is credit. See [`pulls`](super::super::super::pulls) for the receiver.
//!
//! A packet may start while the credit is above zero, and takes its bytes, so that the credit may fall below zero by part of a
//! packet. Every packet carries the *pull target*: all the credit that the flow has had, and what it needs on top, which is
//! its backlog less its credit, at most the speculative window.
//!
//! A flow begins with a speculative credit of 1.5 times the bandwidth times `base_rtt`, of which what is left lapses when it hears
//! from the receiver for the first time. It begins anew when it has a backlog, nothing in flight, and no credit, neither left
//! nor to come. A trimmed packet is retransmitted with credit, a lost one without.

/// A flow's credit, in bytes.
#[derive(Clone, Default)]
pub(super) struct Credit {
    /// What may start; below zero by less than a packet.
    left: i64,
    /// All that receivers have granted.
    granted: u64,
    /// The highest pull target that the receiver is known to have.
    known_target: u64,
    /// Trimmed packets that the flow knows of, and those that the receiver knew of when it granted credit last.
    trimmed: [u32; 2],
    backlog: u64,
    in_flight: u64,
    /// The speculative window, which is also the most credit that a flow keeps.
    window: i64,
    speculative: bool,
}

impl Credit {
    /// That of a flow with this speculative window.
    pub fn new(window: u64) -> Self {
        Self { window: window.cast_signed(), ..Self::default() }
    }

    /// Whether another packet may start.
    pub const fn is_left(&self) -> bool {
        self.left > 0
    }

    /// Packets of so many bytes on the wire are to be sent.
    pub const fn offered(&mut self, bytes: u64) {
        self.backlog += bytes;
        self.begin();
    }

    /// Begins to speculate, if nothing is to come without that.
    const fn begin(&mut self) {
        let due = self.known_target > self.granted || self.trimmed[0] > self.trimmed[1];
        if self.backlog > 0 && self.in_flight == 0 && self.left <= 0 && !due {
            self.left = self.window;
            self.speculative = true;
        }
    }

    /// The pull target of a packet of `bytes` that starts; `most`: the most that is needed.
    pub fn target(&self, bytes: u64, most: u64, full: u64) -> u64 {
        let backlog = self.backlog.saturating_sub(bytes);
        let needed =
            backlog.min(most).min(self.window.cast_unsigned()).cast_signed() - (self.left - bytes.cast_signed());
        let least = if self.speculative && backlog > 0 { full.cast_signed() } else { 0 };
        self.granted + needed.max(least).cast_unsigned()
    }

    pub const fn started(&mut self, bytes: u64) {
        self.left -= bytes.cast_signed();
        self.backlog = self.backlog.saturating_sub(bytes);
        self.in_flight += bytes;
    }

    /// A packet has been answered, when the receiver had this target.
    pub fn answered(&mut self, bytes: u64, trimmed: bool, target: u64) {
        self.in_flight -= bytes;
        self.trimmed[0] += u32::from(trimmed);
        self.known_target = self.known_target.max(target);
        self.end_speculation();
        self.begin();
    }

    /// Credit has come: `granted` is all there has been, by a receiver that knew of so many trimmed packets.
    pub fn pulled(&mut self, granted: u64, trimmed: u32) {
        self.end_speculation();
        self.trimmed[1] = self.trimmed[1].max(trimmed);
        let more = granted.saturating_sub(self.granted);
        self.left = self.window.min(self.left + more.cast_signed());
        self.granted += more;
        self.begin();
    }

    /// A packet has been lost, and its timeout has passed.
    pub const fn lost(&mut self, bytes: u64) {
        self.in_flight -= bytes;
        self.left += bytes.cast_signed();
    }

    fn end_speculation(&mut self) {
        if std::mem::replace(&mut self.speculative, false) {
            self.left = self.left.min(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FULL: u64 = 4_150;
    const WINDOW: u64 = 10 * FULL;

    /// Sends while there is credit. Returns the packets and the last pull target.
    fn send(credit: &mut Credit) -> (u64, u64) {
        let (mut packets, mut target) = (0, 0);
        while credit.is_left() && credit.backlog > 0 {
            target = credit.target(FULL, u64::MAX >> 1, FULL);
            credit.started(FULL);
            packets += 1;
        }
        (packets, target)
    }

    /// Sixteen packets are sent: ten in the speculative window, which ask for six more.
    #[test]
    fn a_flow_speculates_once_and_then_needs_credit() {
        let mut credit = Credit::new(WINDOW);
        credit.offered(16 * FULL);
        assert_eq!(send(&mut credit), (10, 6 * FULL));
        credit.answered(FULL, false, 6 * FULL);
        assert!(!credit.is_left());
        // Part of a packet is enough for a packet to start; the rest is missing next time.
        credit.pulled(FULL / 2, 0);
        assert_eq!(send(&mut credit), (1, 6 * FULL));
        credit.pulled(FULL, 0);
        assert_eq!(send(&mut credit).0, 0);
        credit.pulled(6 * FULL, 0);
        assert_eq!(send(&mut credit).0, 5);
        assert_eq!((credit.left, credit.backlog), (0, 0));
    }

    #[test]
    fn what_is_left_of_the_speculative_window_lapses() {
        let mut credit = Credit::new(WINDOW);
        credit.offered(3 * FULL);
        assert_eq!(send(&mut credit).0, 3);
        assert!(credit.is_left());
        credit.answered(FULL, false, 0);
        assert!(!credit.is_left());
    }

    /// A trimmed packet waits for credit that the receiver is sure to grant; a lost one does not.
    #[test]
    fn a_flow_begins_anew_only_if_no_credit_will_come() {
        let one = || {
            let mut credit = Credit::new(WINDOW);
            credit.offered(FULL);
            assert_eq!(send(&mut credit).0, 1);
            credit
        };
        let mut trimmed = one();
        trimmed.answered(FULL, true, 0);
        trimmed.offered(FULL);
        assert!(!trimmed.is_left());
        trimmed.pulled(FULL, 1);
        assert_eq!(send(&mut trimmed).0, 1);
        let mut lost = one();
        lost.lost(FULL);
        lost.offered(FULL);
        assert_eq!(send(&mut lost).0, 1);
        let mut next = one();
        next.answered(FULL, false, 0);
        next.offered(20 * FULL);
        assert_eq!(send(&mut next).0, 10);
    }

    #[test]
    fn a_flow_keeps_a_window_of_credit_at_most() {
        let mut credit = Credit::new(WINDOW);
        credit.pulled(100 * FULL, 0);
        assert_eq!(credit.left.cast_unsigned(), WINDOW);
    }
}
