"""Expands a QoS strategy into service levels, lanes and an arbiter."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from fairlane.errors import Problem
from fairlane.inputs.problems import Problems, validated
from fairlane.inputs.registry import blamed
from fairlane.qos import JobShare

if TYPE_CHECKING:
    from fairlane.scenario.models import Qos
    from fairlane.scenario.scenario import Scenario

BESIDE = {"strategy", "lanes"}
"""Keys that are allowed together with a strategy."""


def expand(qos: "Qos", jobs: Sequence[JobShare]) -> tuple["Qos", Mapping[str, int]]:
    """The table that the strategy stands for, and the service level of each job that has one of its own."""
    if qos.strategy is None or qos.expand is None:
        return qos, {}
    try:
        found = qos.expand(jobs)
        given = {"sl2vl": list(found.sl2vl), "kinds": dict(found.kinds), "arbiter": dict(found.arbiter)}
    except ValueError as error:
        raise Problems(Problem("qos.strategy", str(error), qos.strategy)) from None
    except Exception as error:
        problem = blamed(qos.expand, "qos.strategy", error)
        if problem is None:
            raise
        raise Problems(problem) from error
    try:
        return validated(type(qos), {"lanes": qos.lanes, **given}), found.jobs
    except Problems as problems:
        words = f"the strategy {qos.strategy} makes of the jobs: "
        raise Problems(*(replace(one, message=words + one.message).under("qos") for one in problems.problems)) from None


def said_twice(scenario: "Scenario") -> Iterator[Problem]:
    """Keys that the QoS strategy sets, too."""
    name = scenario.qos.strategy
    if name is None:
        return
    keys = [f"qos.{key}" for key in type(scenario.qos).model_fields if key in scenario.qos.model_fields_set - BESIDE]
    for at, job in enumerate(scenario.jobs):
        keys += [
            f"jobs[{at}].{key}"
            for key, value in (("service_level", job.service_level), ("service_levels", job.service_levels))
            if value is not None
        ]
    for key in keys:
        yield Problem(key, f"is set by the QoS strategy {name}", allowed="either this key or qos.strategy")
