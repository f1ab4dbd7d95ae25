"""The simulator as the rest of the package uses it: ``drive`` runs it, ``measured`` reads its tables.

Nothing else calls ``run_window_budget``: progress, interruption, budgets and what is watched are ``drive``'s.
"""

from fairlane.engine.drive import End, Engine, RawTable, Slice, Watcher, drive
from fairlane.engine.tables import Iterations, job_finished

__all__ = ["End", "Engine", "Iterations", "RawTable", "Slice", "Watcher", "drive", "job_finished"]
