"""A QoS strategy: small jobs before large ones."""

from collections.abc import Sequence

from fairlane.model.qos import Expansion, JobShare


def small_first(jobs: Sequence[JobShare], /) -> Expansion:
    """A service level for each job, in strict priority: the fewer hosts, the higher."""
    if len(jobs) > 16:
        raise ValueError(f"there are 16 service levels, and {len(jobs)} jobs")
    levels = {job.name: level for level, job in enumerate(jobs)}
    order = sorted(jobs, key=lambda job: job.hosts)
    return Expansion(
        sl2vl=list(levels.values()),
        jobs=levels,
        arbiter={"name": "strict_priority", "order": [levels[job.name] for job in order]},
    )
