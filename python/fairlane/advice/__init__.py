"""Advice: which rails, service level and placement an application had best run with, and a model of run times.

``alternatives`` simulates what can be chosen; ``model`` predicts run times and their spread from conditions, and
``learning`` fits it and says how far it is off.
"""

from fairlane.advice.alternatives import Advice, advise
from fairlane.advice.learning import learn
from fairlane.advice.model import RunTimeModel, load_model

__all__ = ["Advice", "RunTimeModel", "advise", "learn", "load_model"]
