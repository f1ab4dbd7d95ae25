"""A scheduler: replays a job log on a fabric, first come first served with EASY backfilling, over any allocator.

Run times are those of the log, or stretch by the slowdowns that a fitted model forecasts
(``fairlane.learn.scheduler.slowdown``). ``compare_allocators`` replays the same jobs under several allocators.
"""

from fairlane.learn.scheduler.compare import Comparison, ScheduleMetrics, compare_allocators, metrics_of
from fairlane.learn.scheduler.easy import refusals, replay
from fairlane.learn.scheduler.log import Log, LoggedJob, PatternMix, Placed, Schedule, Share, read_log
from fairlane.learn.scheduler.slowdown.forecast import Forecast, Verification, verify
from fairlane.learn.scheduler.slowdown.model import SlowdownModel, fit_model, load_model

__all__ = [
    "Comparison",
    "Forecast",
    "Log",
    "LoggedJob",
    "PatternMix",
    "Placed",
    "Schedule",
    "ScheduleMetrics",
    "Share",
    "SlowdownModel",
    "Verification",
    "compare_allocators",
    "fit_model",
    "load_model",
    "metrics_of",
    "read_log",
    "refusals",
    "replay",
    "verify",
]
