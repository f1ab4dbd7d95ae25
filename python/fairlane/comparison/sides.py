"""What is compared: the folder of a run or of a study, or a treatment of a study."""

from dataclasses import dataclass
from pathlib import Path

from fairlane.errors import Problem, ScenarioError
from fairlane.folders import load
from fairlane.results.run import Run
from fairlane.results.study import StudyResults

DEFAULT = "default"
"""The treatment of runs without one."""


@dataclass(frozen=True)
class Side:
    """One of two results that are compared: a run or a study, and the treatment of the study, if one was chosen."""

    name: str
    """What it is called in tables."""
    results: Run | StudyResults
    treatment: str | None = None


def side_of(given: str | Path | Run | StudyResults, option: str = "A") -> Side:
    """A side from results, a folder, or ``FOLDER:TREATMENT``.

    Raises ``ResultsError`` if the folder has no results, ``ScenarioError`` for what cannot be compared.
    """
    if isinstance(given, Run | StudyResults):
        return Side(given.headline(), given)
    folder, treatment = _split(str(given))
    results = load(folder)
    if not isinstance(results, Run | StudyResults):
        raise ScenarioError(Problem(option, "cannot be compared", str(given), "the folder of a run or a study"))
    if isinstance(results, StudyResults) and results.measured is not None:
        words = "is a study that measures tables of its own and compares nothing"
        raise ScenarioError(Problem(option, words, str(given), "a run, or a study whose runs are compared"))
    if treatment is None:
        return Side(str(given), results)
    if isinstance(results, Run):
        raise ScenarioError(Problem(option, "a run has no treatments", str(given), f"{folder}"))
    known = [DEFAULT, *results.meta.treatments]
    if treatment not in known:
        raise ScenarioError(Problem.unknown(option, f"treatment of {folder}", treatment, known, treatment))
    return Side(str(given), results, treatment)


def _split(given: str) -> tuple[str, str | None]:
    """Folder and treatment; a folder whose name has a colon is itself."""
    folder, colon, treatment = given.rpartition(":")
    return (folder, treatment) if colon and not Path(given).exists() else (given, None)
