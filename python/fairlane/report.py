"""Results as one HTML file, which needs no network and no server: their view, written by ``views.page``.

A page may show a second result of the same kind beside the first. ``docs/report.md`` says how pages are used.
"""

from pathlib import Path

from fairlane.errors import Problem, ScenarioError
from fairlane.folders import load
from fairlane.results.base import Results
from fairlane.results.errors import writing
from fairlane.views.kinds import KINDS, view_of
from fairlane.views.page import page

__all__ = ["load_results", "page_of", "write_report"]


def write_report(results: Results, file: str | Path, compare: Results | None = None, *, compare_name: str = "") -> Path:
    """Writes the page of results, and returns where it is.

    Args:
        results: Of a kind in ``views.kinds.KINDS``.
        file: The HTML file to write.
        compare: Results of the same kind to compare them with.
        compare_name: What the others are called; by default by their folder.

    Raises:
        ResultsError: the results lack what the page needs, or the page cannot be written.
        ScenarioError: the two have nothing in common, or are of different kinds.
    """
    path = Path(file)
    text = page_of(results, compare, compare_name=compare_name)
    with writing(path):
        path.write_text(text, "utf-8")
    return path


def page_of(results: Results, compare: Results | None = None, *, compare_name: str = "") -> str:
    """The page as text. The arguments and errors are those of ``write_report``."""
    every = [results] if compare is None else [results, compare]
    stored = all(one.folder for one in every)
    return page(view_of(every, () if stored else ("first", compare_name or "second")[: len(every)]))


def load_results(folder: str | Path, key: str) -> Results:
    """The results in a folder. ``key`` is how the command line calls it, for errors.

    Raises:
        ResultsError: there are no results in the folder.
        ScenarioError: results of this kind have no page.
    """
    found = load(folder)
    if type(found) not in KINDS:
        allowed = f"the folder of {', '.join(kind.words for kind in KINDS.values())}"
        raise ScenarioError(Problem(key, f"is a {type(found).__name__}, which has no page", str(folder), allowed))
    return found
