"""Results of runs and studies: data frames, and their folders."""

from fairlane.core.errors import ResultsError
from fairlane.results.run import Run, RunMeta, load_run
from fairlane.results.study import StudyMeta, StudyResults
from fairlane.results.views import Interference

__all__ = [
    "Interference",
    "ResultsError",
    "Run",
    "RunMeta",
    "StudyMeta",
    "StudyResults",
    "load_run",
]
