"""Timelines of a run for trace viewers: what each rank did, what it waited for and which job caused that.

``timelines`` puts them together, ``write_perfetto`` and ``write_otf2`` write them. ``docs/timelines.md`` says how they
are used.
"""

from fairlane.lab.timeline.build import PortCounters, Timelines, port_counters, timelines
from fairlane.lab.timeline.causes import of_messages, queueing_causes
from fairlane.lab.timeline.otf2_archive import Written, write_otf2
from fairlane.lab.timeline.perfetto import MOST_PORTS, write_perfetto

__all__ = [
    "MOST_PORTS",
    "PortCounters",
    "Timelines",
    "Written",
    "of_messages",
    "port_counters",
    "queueing_causes",
    "timelines",
    "write_otf2",
    "write_perfetto",
]
