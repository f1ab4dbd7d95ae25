"""Alternatives of rails, service level and placement for an application among its neighbours, ranked."""

from fairlane.study.shipped.advice.question import ask
from fairlane.study.shipped.advice.results import Advice, Check
from fairlane.study.shipped.advice.study import Alternatives

__all__ = ["Advice", "Alternatives", "Check", "ask"]
