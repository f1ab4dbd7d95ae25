"""How allocations and neighbours slow jobs down: a model fitted to packet-level simulations of the jobs' patterns."""

from fairlane.scheduler.slowdown.bench import Bench, Best, Resident, Slowdown
from fairlane.scheduler.slowdown.features import LinkUse
from fairlane.scheduler.slowdown.model import (
    Coefficients,
    SlowdownModel,
    fit_model,
    load_model,
    shipped_models,
)
from fairlane.scheduler.slowdown.snapshots import draw_snapshot

__all__ = [
    "Bench",
    "Best",
    "Coefficients",
    "LinkUse",
    "Resident",
    "Slowdown",
    "SlowdownModel",
    "draw_snapshot",
    "fit_model",
    "load_model",
    "shipped_models",
]
