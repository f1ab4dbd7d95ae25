"""Slowdowns of jobs by their hosts and their neighbours: jobs of snapshots co-running, isolated and at their best."""

from fairlane.study.shipped.slowdowns.bench import Bench, Best, Resident
from fairlane.study.shipped.slowdowns.study import Machine, Slowdown, Snapshots

__all__ = ["Bench", "Best", "Machine", "Resident", "Slowdown", "Snapshots"]
