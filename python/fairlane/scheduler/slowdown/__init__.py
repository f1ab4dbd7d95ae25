"""How allocations and neighbours slow jobs down: a model fitted to packet-level simulations of the jobs' patterns."""

from fairlane.scheduler.slowdown.bench import Bench, Best, Measured, Resident
from fairlane.scheduler.slowdown.features import Use
from fairlane.scheduler.slowdown.fit import fit_model
from fairlane.scheduler.slowdown.model import (
    Coefficients,
    ModelError,
    SlowdownModel,
    error_of,
    load_model,
    shipped_models,
)
from fairlane.scheduler.slowdown.moments import draw_moment

__all__ = [
    "Bench",
    "Best",
    "Coefficients",
    "Measured",
    "ModelError",
    "Resident",
    "SlowdownModel",
    "Use",
    "draw_moment",
    "error_of",
    "fit_model",
    "load_model",
    "shipped_models",
]
