"""A first configuration of an agent for a cluster: a dry run, with placeholders for what jobs and switches do."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import tomlkit

from fairlane.agent.config import AgentConfig
from fairlane.errors import ScenarioError
from fairlane.fabric import Wiring
from fairlane.inputs.files import write_text
from fairlane.scenario import Scenario
from fairlane.scenario.starter import STARTER, Choice, fabric_table
from fairlane.slurm import slurm_names

_LEVELS = {"service_levels": 2, "lanes": 2, "arbiter": {"name": "weighted_round_robin", "weights": [1, 4]}}


def agent_starter(wiring: Wiring, file: Path, choice: Choice, source: str) -> str:
    """The configuration for a fabric that is in ``file`` beside it.

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
    document["fabric"] = fabric_table(wiring, file)
    document["qos"] = _LEVELS
    other = {name: host for host, name in zip(wiring.hosts, slurm_names(wiring.hosts), strict=True) if name != host}
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


def write_starters(texts: Mapping[Path, str], more: Sequence[Path], agent: Path | None) -> None:
    """Writes a scenario and a configuration ``agent``, and reads them as the commands will.

    None of them, nor of ``more``, is left if that fails. Raises ``ScenarioError``.
    """
    try:
        for file, text in texts.items():
            write_text(file, text)
            if file == agent:
                AgentConfig.from_file(file)
            else:
                Scenario.load(file).decide()
    except (ScenarioError, OSError):
        for file in (*texts, *more):
            file.unlink(missing_ok=True)
        raise
