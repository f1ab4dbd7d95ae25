"""The condition of an application: its power cap, and what it shares with others: adapters, links by lane weights."""

from typing import Any

from fairlane.advice.question import Point, Question
from fairlane.scenario import Resolved
from fairlane.scenario.resolved import ResolvedJob

UNCAPPED_W = 115.0
"""What the table has where nothing caps a job: the greatest power of a socket of the Catalyst study."""


def condition(question: Question, point: Point, utilisation: float | None) -> dict[str, Any]:
    """The columns of an alternative in a table of runs.

    ``utilisation`` is the neighbours' mean utilisation of links; None for the application isolated.
    """
    job = point.decided.jobs[question.number]
    own = _adapters(job, question.rails)
    co_run = utilisation is not None
    others = [one for at, one in enumerate(point.decided.jobs) if at != question.number] if co_run else []
    theirs = {rail for one in others for rail in _adapters(one, question.rails)}
    return {
        "case": question.scenario.name,
        "application": job.workload,
        "rails": point.choice.rails,
        "placement": point.choice.placement,
        "seed": point.seed,
        "cap_w": UNCAPPED_W if job.power is None or job.power.cap is None else job.power.cap,
        "adapters": len(own) / question.rails,
        "co_scheduled": question.scenario.name if co_run else None,
        "service_level": point.choice.service_level if co_run else None,
        "link_share": link_share(point.decided, question.number) if co_run else None,
        "adapters_shared": len(own & theirs) / len(own),
        "interference_utilisation": utilisation or 0.0,
    }


def _adapters(job: ResolvedJob, rails: int) -> set[int]:
    """The adapters that a job sends through."""
    policy = job.rails or {}
    if policy.get("only") is not None:
        return {int(policy["only"])}
    return set(policy.get("ranks") or range(rails))


def weights(resolved: Resolved) -> list[float] | None:
    """The weights of the lanes; None for an arbiter that has no weights."""
    lanes = max(resolved.tables["qos"]["sl2vl"]) + 1
    arbiter = resolved.tables["qos"].get("arbiter") or {}
    given = arbiter.get("params", {}).get("weights")
    if given is not None:
        return [float(one) for one in given]
    return [1.0] if lanes == 1 else None


def link_share(resolved: Resolved, number: int) -> float:
    """A job's share of a link that all jobs want: its lane's by weight, divided by the number of jobs in the lane.

    Arbiters without weights share equally here, which is right for one lane only.
    """
    levels = resolved.tables["qos"]["sl2vl"]
    lanes = [levels[job.service_level or 0] for job in resolved.jobs]
    heavy = weights(resolved) or [1.0] * (max(levels) + 1)
    whole = sum(heavy[lane] for lane in set(lanes))
    own: int = lanes[number]
    return float(heavy[own] / whole / lanes.count(own))
