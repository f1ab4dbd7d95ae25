"""Results as one HTML file, which needs no network and no server: their view, written by ``views.page``.

A page may show a second result of the same kind beside the first. ``docs/report.md`` says how pages are used.

A page contains the library Vega, about 1 MB, and its data with single precision; the CSV files that it saves have all
rows. Pages follow the system's light or dark theme, have colours that are safe for colour-blind readers, and are used
by keyboard as well: arrows move the fabric or between cells of the matrix, ``+`` and ``-`` zoom. An axis is logarithmic
where the largest value is more than ten times the smallest, or the slowest iteration of a job takes more than five
times the median. Data that would make it too large are reduced, and the page says so:

- Queueing delay between jobs: the 120,000 largest values, each for a link and a pair of jobs.
- Samples: successive intervals are merged until there are at most 400, and at most 450,000 values for all links. Values
  have 8 bits on a square-root scale: their error is at most 0.4% of the largest value.
- Ports: 200 dots for each class, evenly spaced in order, the extremes among them.
- Time per iteration: at most 160 points for each job, each the mean of the iterations since the previous point.
- Latencies: eight buckets per power of two, and at most 6,000 steps, of the jobs with the longest tails.
- Jobs over time: 160,000 bars for all allocators together; the jobs that run shortest are omitted.
- Studies: above 4,000 cells, conditions in place of points, and then workloads in place of jobs; above 120 rows of
  effects, the greatest and the least; above 2,000 dots, evenly spaced ones.
- Figures of a paper: 10,000 rows, evenly spaced, and the 100 least and greatest of each column; boxes are of up to
  100,000, with 60 values beyond the whiskers of each.
"""

from pathlib import Path

from fairlane.core.errors import Problem, ScenarioError, writing
from fairlane.results.base import Results
from fairlane.study.folders import load
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
    stored = all(result.folder for result in every)
    return page(view_of(every, () if stored else ("first", compare_name or "second")[: len(every)]))


def load_results(folder: str | Path, key: str) -> Results:
    """The results in a folder. ``key`` is how the command line calls it, for errors.

    Raises:
        ResultsError: there are no results in the folder.
        ScenarioError: results of this kind have no page.
    """
    results = load(folder)
    if type(results) not in KINDS:
        allowed = f"the folder of {', '.join(kind.words for kind in KINDS.values())}"
        raise ScenarioError(Problem(key, f"is a {type(results).__name__}, which has no page", str(folder), allowed))
    return results
