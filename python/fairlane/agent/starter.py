"""A first configuration of an agent for a cluster: a dry run, with placeholders for what jobs and switches do."""

from collections.abc import Mapping, Sequence
from typing import Any

import tomlkit

from fairlane.scenario.starter import STARTER, Choice
from fairlane.slurm import slurm_names

_LEVELS = {"service_levels": 2, "lanes": 2, "arbiter": {"name": "weighted_round_robin", "weights": [1, 4]}}


def agent_starter(hosts: Sequence[str], table: Mapping[str, Any], choice: Choice, source: str) -> str:
    """The configuration for a fabric with these hosts, whose table ``fabric`` is ``table``.

    It has a profile for each pattern of ``choice.workloads``, and one for all other jobs.
    """
    document = tomlkit.document()
    for line in (
        f"A first configuration of fairlane agent for {source}, written by fairlane init: a dry run.",
        "Placeholders: what the switches do (fairlane qos import opensm.conf), and the profiles, which say what jobs",
        "send. The first profile whose pattern fits a job's name counts.",
    ):
        document.add(tomlkit.comment(line))
    document["journal"] = "agent.db"
    document["fabric"] = dict(table)
    document["qos"] = _LEVELS
    other = {name: host for host, name in zip(hosts, slurm_names(hosts), strict=True) if name != host}
    document["slurm"] = {"socket": "agent.socket", **({"hosts": other} if other else {})}
    profiles = tomlkit.aot()
    for pattern, workload in {**choice.workloads, "*": choice.workloads.get("*", STARTER)}.items():
        profile = tomlkit.table()
        profile["name"] = pattern
        profile["workload"] = workload
        if choice.ranks_per_host > 1:
            profile["ranks_per_host"] = choice.ranks_per_host
        profiles.append(profile)
    document["profile"] = profiles
    document["policy"] = {"levels": [1]}
    return tomlkit.dumps(document)
