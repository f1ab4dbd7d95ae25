//! The order in which a window's arrivals at switches are routed.

use crate::network::in_flight::AtSwitch;

/// Sorts arrivals at switches.
#[derive(Clone, Debug, Default)]
pub(in crate::network) struct Sorting {
    /// By range of switches: where its next arrival goes.
    places: Vec<usize>,
}

impl Sorting {
    /// Sorts arrivals at so many switches by switch, time and link, into another list; of equals (empty packets of one link) the older
    /// stays first.
    #[inline]
    pub(super) fn sort(&mut self, arrivals: &[AtSwitch], switches: usize, sorted: &mut Vec<AtSwitch>) {
        let Some(&first) = arrivals.first() else { return sorted.clear() };
        // Ranges of switches, about as many as arrivals.
        let shift = (switches / arrivals.len()).checked_ilog2().map_or(0, |bits| bits + 1);
        let range = |arrival: &AtSwitch| arrival.switch.index() >> shift;
        self.places.clear();
        self.places.resize((switches >> shift) + 1, 0);
        let places = &mut self.places[..];
        arrivals.iter().for_each(|arrival| places[range(arrival)] += 1);
        let mut before = 0;
        for place in &mut *places {
            before += std::mem::replace(place, before);
        }
        sorted.resize(arrivals.len(), first);
        let sorted = &mut sorted[..];
        for arrival in arrivals {
            let place = &mut places[range(arrival)];
            sorted[*place] = *arrival;
            *place += 1;
        }
        let key = |it: &AtSwitch| u128::from(it.switch.0) << 96 | u128::from(it.time.0) << 32 | u128::from(it.link.0);
        let mut greatest = 0;
        for at in 0..sorted.len() {
            let own = key(&sorted[at]);
            if own >= greatest {
                greatest = own;
                continue;
            }
            let (arrival, mut place) = (sorted[at], at);
            while place > 0 && key(&sorted[place - 1]) > own {
                sorted[place] = sorted[place - 1];
                place -= 1;
            }
            sorted[place] = arrival;
        }
    }
}
