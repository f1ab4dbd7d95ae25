"""What a run measured: data frames, the folder they live in, SQL over them, and their summary for the terminal."""

from fairlane.results.errors import ResultsError
from fairlane.results.interference import Interference
from fairlane.results.query import query
from fairlane.results.run import Run, RunMeta
from fairlane.results.store import load, save
from fairlane.results.summary import print_frame, print_summary

__all__ = [
    "Interference",
    "ResultsError",
    "Run",
    "RunMeta",
    "load",
    "print_frame",
    "print_summary",
    "query",
    "save",
]
