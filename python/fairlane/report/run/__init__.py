"""The page of a run: its fabric, who delays whom and where, what jobs measured."""

import json
from pathlib import Path
from typing import Any

from fairlane.fabric.view import Fabric
from fairlane.report.meta import meta_of
from fairlane.report.run import jobs, links
from fairlane.report.run.differences import differences
from fairlane.report.run.sentences import sentences
from fairlane.results.errors import ResultsError
from fairlane.results.run import Run
from fairlane.wording import plural, seconds

RESOLVED = "resolved.json"


def data_of(run: Run, compare: Run | None = None, compare_name: str = "") -> dict[str, Any]:
    """What the page of a run contains, as JSON: see the modules of this package.

    Raises ``ResultsError`` if the run does not know its fabric, ``ScenarioError`` if the two runs have no links or no
    jobs in common.
    """
    fabric = Fabric.build(_fabric_spec(run))
    count = len(fabric.links["link"])
    found = {
        "meta": _meta(run, hosts=fabric.hosts),
        "fabric": links.fabric_of(fabric),
        "measured": links.measured(run, count),
        "by_jobs": links.by_jobs(run, count),
        "samples": links.over_time(run, count),
        "jobs": jobs.jobs_of(run),
        "lost": jobs.lost_of(run),
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
    return {**found, "compare": {"meta": _meta(compare), **differences(run, compare, count, name)}}


def _meta(run: Run, hosts: int | None = None) -> dict[str, Any]:
    meta = run.meta
    name = run.folder.name if run.folder else meta.scenario
    facts = [plural(run.jobs.height, "job"), *([] if hosts is None else [plural(hosts, "host")])]
    facts += [f"{seconds(meta.simulated_s)} simulated", f"seed {meta.seed}"]
    facts += ["partial: interrupted"] if meta.partial else []
    provenance = {
        "run": name,
        "scenario": meta.scenario,
        "seed": meta.seed,
        "fairlane": meta.version,
        "started": meta.started,
        "digest of the results": meta.digest,
    }
    return meta_of(meta.scenario, name, facts, provenance, meta.notes)


def _fabric_spec(run: Run) -> dict[str, Any]:
    """The fabric as the simulator takes it, from what the scenario was resolved to."""
    text = run.source.resolved if run.source else None
    where = run.folder / RESOLVED if run.folder else Path(RESOLVED)
    try:
        spec = json.loads(where.read_text("utf-8") if text is None else text)["fabric"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ResultsError(f"{where}: the fabric of the run cannot be read from it: {error}") from error
    return dict(spec)
