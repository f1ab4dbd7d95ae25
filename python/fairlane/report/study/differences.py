"""A second study beside the one of a page: the change of each job, treatment and condition that both have."""

from typing import Any

from fairlane.comparison import Side, compare
from fairlane.comparison.changes import summary
from fairlane.errors import Problem, ScenarioError
from fairlane.results.study import StudyResults


def differences(study: StudyResults, other: StudyResults, name: str) -> dict[str, Any]:
    """The changes of ``fairlane compare`` from ``other`` to ``study``. ``name`` is how the other was given.

    Raises ``ScenarioError`` if they have no points or jobs in common, or compare nothing.
    """
    if study.measured is not None or other.measured is not None:
        words = "is a study that measures tables of its own and compares nothing"
        if other.measured is None:
            words = "cannot be compared: the study of the page measures tables of its own"
        raise ScenarioError(Problem("--compare", words, name, "studies whose runs are compared"))
    try:
        found = compare(Side(name, other), Side(study.headline(), study))
    except ScenarioError as error:
        words = "has no job at a point of the study that could be compared"
        allowed = "a study with points and jobs of the same names"
        raise ScenarioError(Problem("--compare", words, name, allowed)) from error
    rows = found.table.drop("p").to_dicts()
    return {"jobs": rows, "sentence": summary(found), "jobs_apart": list(found.only_in_one)}
