"""A scheduler: replays a job log on a fabric, first come first served with EASY backfilling, over any allocator.

Run times are those of the log: how an allocation slows a job down is not in it.
"""

from fairlane.scheduler.easy import Placed, Schedule, replay
from fairlane.scheduler.metrics import ScheduleMetrics, metrics_of
from fairlane.scheduler.mix import PatternMix, Share, read_mix
from fairlane.scheduler.swf import Log, LoggedJob, read_log

__all__ = [
    "Log",
    "LoggedJob",
    "PatternMix",
    "Placed",
    "Schedule",
    "ScheduleMetrics",
    "Share",
    "metrics_of",
    "read_log",
    "read_mix",
    "replay",
]
