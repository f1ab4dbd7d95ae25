"""Results as one HTML file, which needs no network and no server.

A page consists of cards: heading, sentence, figure, export. Results that have a view are
written by ``views.page``. ``kinds`` lists the others; each of these has a package here that makes its data out of
tables, and one in ``browser`` that draws them. A page may show a second result of the
same kind beside the first. ``docs/report.md`` says how pages are used.
"""

from pathlib import Path
from typing import Any

from fairlane.errors import Problem, ScenarioError
from fairlane.folders import load
from fairlane.report.kinds import KINDS, Kind
from fairlane.report.page import html
from fairlane.results.base import Results
from fairlane.results.errors import ResultsError, writing
from fairlane.results.run import Run
from fairlane.views import kinds as views
from fairlane.views.page import page as page_of_view

__all__ = ["data_of", "load_results", "load_run", "page_of", "write_report"]


def write_report(results: Results, file: str | Path, compare: Results | None = None, *, compare_name: str = "") -> Path:
    """Writes the page of results, and returns where it is.

    Args:
        results: Of a kind in ``KINDS`` or ``views.KINDS``.
        file: The HTML file to write.
        compare: Results of the same kind to compare them with.
        compare_name: What the others are called; by default by their headline, or their folder if they have a view.

    Raises:
        ResultsError: the results lack what the page needs, the page cannot be written, or fairlane was built without
            the JavaScript library.
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
    if any(type(one) in views.KINDS for one in every):
        stored = all(one.folder for one in every)
        return page_of_view(views.view_of(every, () if stored else ("first", compare_name or "second")[: len(every)]))
    data, kind = data_of(results, compare, compare_name), _kind_of(results)
    return html(f"{data['meta']['title']} – fairlane", data, kind.name)


def data_of(results: Results, compare: Results | None = None, compare_name: str = "") -> dict[str, Any]:
    """What the page contains, as JSON. The arguments and errors are those of ``write_report``."""
    kind = _kind_of(results)
    if compare is not None and _kind_of(compare) is not kind:
        words = f"is {_kind_of(compare).words}, not {kind.words} as the first"
        raise ScenarioError(Problem("--compare", words, compare_name or compare.headline(), kind.words))
    return kind.data_of(results, compare, compare_name or (compare.headline() if compare else ""))


def load_results(folder: str | Path, key: str) -> Results:
    """The results in a folder. ``key`` is how the command line calls it, for errors.

    Raises:
        ResultsError: there are no results in the folder.
        ScenarioError: results of this kind have no page.
    """
    found = load(folder)
    if type(found) not in KINDS and type(found) not in views.KINDS:
        words = f"is a {type(found).__name__}, which has no page"
        raise ScenarioError(Problem(key, words, str(folder), _allowed()))
    return found


def load_run(folder: str | Path, key: str) -> Run:
    """The same of a run; raises ``ScenarioError`` for results of other kinds."""
    found = load_results(folder, key)
    if not isinstance(found, Run):
        raise ScenarioError(Problem(key, f"is a {type(found).__name__}", str(folder), "the folder of a run"))
    return found


def _kind_of(results: Results) -> Kind:
    kind = KINDS.get(type(results))
    if kind is None:
        raise ResultsError(f"{type(results).__name__} has no page; allowed: {_allowed()}")
    return kind


def _allowed() -> str:
    words = [*(kind.words for kind in KINDS.values()), *(kind.words for kind in views.KINDS.values())]
    return f"the folder of {', '.join(words)}"
