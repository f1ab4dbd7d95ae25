"""What runs and studies measured: data frames, the folders they live in, SQL over them."""

from fairlane.results.errors import ResultsError
from fairlane.results.interference import Interference
from fairlane.results.query import query
from fairlane.results.run import Run, RunMeta
from fairlane.results.store import load, load_run, save
from fairlane.results.study import StudyMeta, StudyResults

__all__ = [
    "Interference",
    "ResultsError",
    "Run",
    "RunMeta",
    "StudyMeta",
    "StudyResults",
    "load",
    "load_run",
    "query",
    "save",
]
