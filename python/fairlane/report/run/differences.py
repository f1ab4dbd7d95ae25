"""A second run beside the one of a page: the same tables with the first run's numbers of links and jobs."""

from dataclasses import replace
from typing import Any

import polars as pl

from fairlane.comparison import compare
from fairlane.comparison.changes import summary
from fairlane.errors import Problem, ScenarioError
from fairlane.report.run.jobs import matrix_of
from fairlane.report.run.links import by_jobs, measured
from fairlane.results.run import Run

SHARED = "a run with jobs and links of the same names"


def differences(run: Run, other: Run, links: int, name: str) -> dict[str, Any]:
    """What ``other`` measured at the links and between the jobs of ``run``, and the change of each job.

    Links and jobs are matched by name; the change of a job is that of ``fairlane compare`` from ``other`` to ``run``.

    Args:
        run: The run of the page.
        other: The run that it is compared with.
        links: How many links the fabric of ``run`` has.
        name: How the other run was given, for errors.

    Raises:
        ScenarioError: the runs have no link, or no job, of the same name.
    """
    matched = _matched(run, other, name)
    found = {
        "measured": measured(matched, links),
        "by_jobs": by_jobs(matched, links),
        "matrix": matrix_of(matched),
        "links_apart": links - matched.ports["link"].n_unique(),
        "jobs_apart": sorted(set(run.jobs["name"]) ^ set(other.jobs["name"])),
    }
    try:
        compared = compare(other, run)
    except ScenarioError:  # the jobs have names in common, so what is missing are iterations
        return {**found, "jobs": [], "sentence": "No job completed iterations in both runs that could be compared."}
    columns = ("name", "workload", "of", "before", "after", "change", "change_low", "change_high", "beyond_noise")
    return {**found, "jobs": compared.table.select(columns).to_dicts(), "sentence": summary(compared)}


def _matched(run: Run, other: Run, name: str) -> Run:
    """``other`` with the links and jobs of ``run``, without those that ``run`` does not have."""
    jobs = set(run.jobs["name"])
    if jobs.isdisjoint(other.jobs["name"]):
        raise ScenarioError(Problem("--compare", "has no job of the run", name, SHARED))
    numbers = run.ports.select("link_name", "link").unique()
    ports = other.ports.drop("link").join(numbers, on="link_name")
    if ports.is_empty() and not run.ports.is_empty():
        raise ScenarioError(Problem("--compare", "has no link of the run: the fabrics differ", name, SHARED))
    both = pl.col("victim").is_in(jobs) & pl.col("aggressor").is_in(jobs)
    table = other.port_interference
    matched = None if table is None else table.filter(both).drop("link").join(numbers, on="link_name")
    cells = other.interference.filter(both)
    return replace(other, jobs=run.jobs, ports=ports, interference=cells, port_interference=matched)
