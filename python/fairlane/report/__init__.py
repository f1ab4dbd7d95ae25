"""A run as one HTML file: its fabric, who delays whom and where, what jobs measured; it needs no network and no server.

A page may show a second run beside the first. What it contains is data of the run's tables; ``docs/report.md`` says how
it is used.
"""

import json
from pathlib import Path
from typing import Any

from fairlane.errors import Problem, ScenarioError
from fairlane.fabric.view import Fabric
from fairlane.folders import load
from fairlane.report import jobs, links
from fairlane.report.differences import differences
from fairlane.report.page import html
from fairlane.report.sentences import sentences
from fairlane.results.errors import ResultsError, writing
from fairlane.results.run import Run

__all__ = ["data_of", "load_run", "write_report"]

RESOLVED = "resolved.json"


def write_report(run: Run, file: str | Path, compare: Run | None = None, *, compare_name: str = "") -> Path:
    """Writes the page of a run, and returns where it is.

    Args:
        run: The run.
        file: The HTML file to write.
        compare: A run to compare it with: links and jobs are matched by their names.
        compare_name: What the other run is called; by default by its scenario and seed.

    Raises:
        ResultsError: the run does not know its fabric, the page cannot be written, or fairlane was built without the
            JavaScript library.
        ScenarioError: the two runs have no links or no jobs in common.
    """
    path = Path(file)
    page = html(f"{run.meta.scenario} – fairlane", data_of(run, compare, compare_name))
    with writing(path):
        path.write_text(page, "utf-8")
    return path


def load_run(folder: str | Path, key: str) -> Run:
    """The run in a folder. ``key`` is how the command line calls it, for errors.

    Raises:
        ResultsError: there are no results in the folder.
        ScenarioError: they are not those of a run.
    """
    found = load(folder)
    if not isinstance(found, Run):
        words = f"is a {type(found).__name__}; a page is of one run"
        raise ScenarioError(Problem(key, words, str(folder), "the folder of a run"))
    return found


def data_of(run: Run, compare: Run | None = None, compare_name: str = "") -> dict[str, Any]:
    """What the page of a run contains, as JSON: see the modules of this package. Raises as ``write_report``."""
    fabric = Fabric.build(_fabric_spec(run))
    count = len(fabric.links["link"])
    found = {
        "meta": _provenance(run),
        "fabric": links.fabric_of(fabric),
        "measured": links.measured(run, count),
        "by_jobs": links.by_jobs(run, count),
        "samples": links.over_time(run, count),
        "jobs": jobs.jobs_of(run),
        "matrix": jobs.matrix_of(run),
        "latency": jobs.latency_of(run),
        "iterations": jobs.iterations_of(run),
        "calls": jobs.calls_of(run),
        "power": jobs.power_of(run),
        "sentences": sentences(run),
    }
    if compare is None:
        return {**found, "compare": None}
    name = compare_name or compare.headline()
    return {**found, "compare": {"meta": _provenance(compare), **differences(run, compare, count, name)}}


def _provenance(run: Run) -> dict[str, Any]:
    meta = run.meta
    names = ("scenario", "seed", "version", "digest", "started", "simulated_s", "packet_hops", "partial", "notes")
    return {name: getattr(meta, name) for name in names} | {"name": run.folder.name if run.folder else meta.scenario}


def _fabric_spec(run: Run) -> dict[str, Any]:
    """The fabric as the simulator takes it, from what the scenario was resolved to."""
    text = run.source.resolved if run.source else None
    where = run.folder / RESOLVED if run.folder else Path(RESOLVED)
    try:
        spec = json.loads(where.read_text("utf-8") if text is None else text)["fabric"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ResultsError(f"{where}: the fabric of the run cannot be read from it: {error}") from error
    return dict(spec)
