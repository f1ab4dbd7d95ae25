"""Advice: which rails, service level and placement an application had best run with, and a model of run times.

``alternatives`` simulates the alternatives; ``model`` predicts run times and their intervals from conditions;
``sharing`` estimates what the jobs of a whole cluster do to each other.
"""

from fairlane.learn.advice.alternatives import Advice, advise
from fairlane.learn.advice.model import RunTimeModel, learn
from fairlane.learn.advice.sharing import Neighbours, neighbours

__all__ = ["Advice", "Neighbours", "RunTimeModel", "advise", "learn", "neighbours"]
