"""The page of a job log's schedules: jobs over time, waits, slowdowns, utilisation, allocators compared."""

from typing import Any

from fairlane.errors import Problem, ScenarioError
from fairlane.report.meta import meta_of
from fairlane.report.schedule.distributions import by_size, distributions
from fairlane.report.schedule.jobs import jobs_of
from fairlane.report.schedule.load import load_of
from fairlane.report.schedule.sentences import difference, sentences
from fairlane.results.schedule import ScheduleResults
from fairlane.wording import plural


def data_of(found: ScheduleResults, compare: ScheduleResults | None = None, compare_name: str = "") -> dict[str, Any]:
    """What the page of schedules contains, as JSON: see the modules of this package.

    Raises ``ScenarioError`` if two have no allocator in common.
    """
    data = {
        "meta": _meta(found),
        "hosts": found.meta.hosts,
        "jobs": jobs_of(found),
        "verified": found.meta.verified,
        "sentences": sentences(found),
        **_measured(found),
    }
    if compare is None:
        return {**data, "compare": None}
    if set(found.allocators["allocator"]).isdisjoint(compare.allocators["allocator"]):
        words = f"has no allocator of the schedules: {', '.join(found.allocators['allocator'])}"
        allowed = "schedules with an allocator of the same name"
        raise ScenarioError(Problem("--compare", words, compare_name, allowed))
    sentence = difference(found, compare)
    return {**data, "compare": {"meta": _meta(compare), "sentence": sentence, **_measured(compare)}}


def _measured(found: ScheduleResults) -> dict[str, Any]:
    """What is shown of both of two results."""
    return {
        "allocators": found.allocators.to_dicts(),
        "load": load_of(found),
        "distributions": distributions(found),
        "sizes": by_size(found),
    }


def _meta(found: ScheduleResults) -> dict[str, Any]:
    meta = found.meta
    name = found.folder.name if found.folder else meta.log
    facts = [plural(found.placed["job"].n_unique(), "job"), plural(meta.hosts, "host")]
    facts += [plural(found.allocators.height, "allocator"), f"arrival-rate factor {meta.load:g}"]
    params = meta.fabric.get("params", {})
    fabric = [str(meta.fabric.get("topology")), *(f"{key} {value}" for key, value in params.items())]
    provenance = {
        "folder": name,
        "job log": meta.log,
        "SHA-256 of the log": meta.log_sha256,
        "fabric": ", ".join(fabric),
        "model of slowdowns": meta.model or "none: run times of the log",
        "arrival-rate factor": f"{meta.load:g}",
        "seed": meta.seed,
        "fairlane": meta.version,
        "digest of the tables": meta.digest,
    }
    return meta_of(f"{meta.log.split('.')[0]}: schedules", name, facts, provenance, meta.notes)
