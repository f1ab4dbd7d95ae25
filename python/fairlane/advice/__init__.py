"""Advice: which rails, service level and placement an application had best run with, and a model of run times.

``alternatives`` simulates the alternatives; ``model`` predicts run times and their intervals from conditions.
"""

from fairlane.advice.alternatives import Advice, advise
from fairlane.advice.model import RunTimeModel, learn

__all__ = ["Advice", "RunTimeModel", "advise", "learn"]
