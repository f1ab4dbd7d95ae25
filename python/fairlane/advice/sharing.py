"""What jobs share: adapters, and links by the weights of their lanes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fairlane.scenario import Resolved
    from fairlane.scenario.resolved import ResolvedJob

__all__ = ["adapters", "cap_of", "link_share", "weights"]

UNCAPPED_W = 115.0
"""What the table has where nothing caps a job: the greatest power of a socket of the Catalyst study."""


def adapters(job: ResolvedJob, rails: int) -> set[int]:
    """The adapters that a job sends through."""
    policy = job.rails or {}
    if policy.get("only") is not None:
        return {int(policy["only"])}
    return set(policy.get("ranks") or range(rails))


def cap_of(job: ResolvedJob) -> float:
    """The cap of a job's sockets, W."""
    return UNCAPPED_W if job.power is None or job.power.cap is None else job.power.cap


def weights(resolved: Resolved) -> list[float] | None:
    """What the lanes weigh against each other; None for an arbiter that has no weights."""
    lanes = max(resolved.tables["qos"]["sl2vl"]) + 1
    arbiter = resolved.tables["qos"].get("arbiter") or {}
    given = arbiter.get("params", {}).get("weights")
    if given is not None:
        return [float(one) for one in given]
    return [1.0] if lanes == 1 else None


def link_share(resolved: Resolved, number: int) -> float:
    """A job's share of a link that all jobs want: its lane's by weight, and of that one part in as many as use it.

    Arbiters without weights share equally here, which is right for one lane only.
    """
    levels = resolved.tables["qos"]["sl2vl"]
    lanes = [levels[job.service_level or 0] for job in resolved.jobs]
    heavy = weights(resolved) or [1.0] * (max(levels) + 1)
    whole = sum(heavy[lane] for lane in set(lanes))
    own: int = lanes[number]
    return float(heavy[own] / whole / lanes.count(own))
