"""Why a run was slow: the time of ranks by activity, the ranks that they waited for, and why these were late.

``analyze`` puts everything together for a run's folder. The functions that it calls take data frames and return data
frames, so that they serve many runs as well as one.
"""

from fairlane.sim.analysis.analyze import analyze, types_of
from fairlane.sim.analysis.delays import (
    LATE,
    SLOW,
    by_neighbour,
    confusion,
    first_exchange,
    message_delays,
    quiet_wait,
    table_one,
    wait_delays,
)
from fairlane.sim.analysis.links import (
    FLIT_BYTES,
    FlitsAgainstWaits,
    Trend,
    by_link,
    delayers,
    flits_against_waits,
    link_flits,
    message_packets,
    roots,
)
from fairlane.sim.analysis.neighbours import groups_spanned, neighbour_types
from fairlane.sim.analysis.record import Record, Span, View, extremes, rounds, spans
from fairlane.sim.analysis.result import Analysis, Stretch, breakdown, calls, dominant_share, spread
from fairlane.sim.analysis.walk import Walk, walk

__all__ = [
    "FLIT_BYTES",
    "LATE",
    "SLOW",
    "Analysis",
    "FlitsAgainstWaits",
    "Record",
    "Span",
    "Stretch",
    "Trend",
    "View",
    "Walk",
    "analyze",
    "breakdown",
    "by_link",
    "by_neighbour",
    "calls",
    "confusion",
    "delayers",
    "dominant_share",
    "extremes",
    "first_exchange",
    "flits_against_waits",
    "groups_spanned",
    "link_flits",
    "message_delays",
    "message_packets",
    "neighbour_types",
    "quiet_wait",
    "roots",
    "rounds",
    "spans",
    "spread",
    "table_one",
    "types_of",
    "wait_delays",
    "walk",
]
