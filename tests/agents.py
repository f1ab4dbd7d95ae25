"""Small agents: configurations, a squeue that prints what it is given, and an OpenSM that only reads its policy."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fairlane.cluster.agent.config import AgentConfig
from fairlane.cluster.agent.jobs import Setting, levels_of
from waiting import HANG, wait_for

CONFIG = f"""
journal = "agent.db"

[fabric]
topology = "fat_tree"
hosts = 16
levels = 2
leaf_down = 4
leaf_up = 1
bandwidth = "10 Gb/s"

[qos]
service_levels = 3
arbiter = {{ name = "weighted_round_robin", weights = [1, 4, 1] }}

[slurm]
socket = "agent.socket"
squeue = ["@python", "squeue.py"]
timeout = "{HANG}"
poll = "{HANG}"
hosts = {{ "n[1-16]" = "host[0-15]" }}

[[profile]]
name = "solver*"
workload = {{ name = "all_to_all", message_size = "2 KiB", compute = "10 us" }}

[[profile]]
name = "io*"
workload = {{ name = "all_to_all", message_size = "64 KiB", compute = "10 us" }}

[policy]
levels = [1, 2]
max_loss = 0.5

[twin]
warm_up = "200 us"
horizon = "2 ms"
replicates = 3
threads = 1
time_limit = "{HANG}"
"""
"""A solver that shares the up links of leaf switches with a job that writes: level 1 is made for the solver."""
SOLVER = {"job_id": 12, "name": "solver", "job_state": ["RUNNING"], "nodes": "n[1,5,9,13]"}
WRITER = {"job_id": 13, "name": "io", "job_state": ["RUNNING"], "nodes": "n[2,6,10,14]"}
BOTH = (SOLVER, WRITER)
_SQUEUE = "import pathlib, sys; sys.stdout.write(pathlib.Path({file!r}).read_text())"
OPENSM = Path(__file__).with_name("fake_opensm.py")
POLICY = """qos-levels
    qos-level
        name: DEFAULT
        sl: 0
    end-qos-level
end-qos-levels
"""
OPERATOR = """# our own policy
port-groups
    port-group
        name: storage
        port-name: nfs1/P1, nfs2/P1
    end-port-group
end-port-groups
qos-levels
    qos-level
        name: DEFAULT   # of all others
        sl: 0
    end-qos-level
    qos-level
        name: storage
        sl: 3
    end-qos-level
end-qos-levels

qos-match-rules
    qos-match-rule
        source: storage
        qos-level-name: storage
    end-qos-match-rule
end-qos-match-rules
"""
"""A policy of somebody who has a level already."""
IMPATIENT = "100 ms"
"""A timeout for an OpenSM that does not answer at all."""
SETTINGS = (Setting("12", 1, ("host0", "host4")),)
BY_RANK = (*SETTINGS, Setting("13", 2, ("host8",), 0, 3.0))
"""The same, and a level with a weight of a rank of another job."""


def config_file(folder: Path, text: str = CONFIG, jobs: Sequence[Any] = BOTH) -> Path:
    """An agent.toml in a folder, whose squeue prints these jobs."""
    slurm_has(folder, jobs)
    script = folder / "squeue.py"
    script.write_text(_SQUEUE.format(file=str(folder / "jobs.json")))
    text = text.replace('"@python", "squeue.py"', f"{json.dumps(sys.executable)}, {json.dumps(str(script))}")
    (folder / "agent.toml").write_text(text)
    return folder / "agent.toml"


def config(folder: Path, text: str = CONFIG, jobs: Sequence[Any] = BOTH) -> AgentConfig:
    """The same, read."""
    return AgentConfig.from_file(config_file(folder, text, jobs))


def slurm_has(folder: Path, jobs: Sequence[Any]) -> None:
    """From now on squeue prints these jobs."""
    (folder / "jobs.json").write_text(json.dumps({"jobs": list(jobs), "errors": []}))


@contextmanager
def opensm(folder: Path, policy: str = POLICY, interpreter: str = sys.executable) -> Iterator[dict[str, Any]]:
    """An OpenSM that reads its policy on SIGHUP; yields the parameters of the backend for it.

    ``loaded.conf`` in the folder is what it has read last.
    """
    (folder / "qos-policy.conf").write_text(policy)
    process = subprocess.Popen([interpreter, OPENSM, str(folder)])
    try:
        wait_for((folder / "opensm.pid").exists, "the OpenSM of the tests", process)
        name = Path(f"/proc/{process.pid}/comm").read_text().strip()
        yield {
            "name": "opensm",
            "policy": str(folder / "qos-policy.conf"),
            "log": str(folder / "osm.log"),
            "pid_file": str(folder / "opensm.pid"),
            "process": name,
            "timeout": HANG,
        }
    finally:
        process.kill()
        process.wait()


def killed(folder: Path, backend: dict[str, Any], stride: int = 1) -> list[dict[str, Any]]:
    """What ``killed_agent`` reports."""
    return reported("killed_agent.py", folder, json.dumps(backend), stride)


def reported(script: str, *arguments: object) -> list[dict[str, Any]]:
    """The objects that a script beside this file prints."""
    folder = Path(__file__).parent
    paths = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, str(folder / script), *map(str, arguments)]
    environment = os.environ | {"PYTHONPATH": paths}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def check_killed(rows: list[dict[str, Any]], fewest: int) -> None:
    """After the last restart a change is in force wholly or not at all, and the journal says so."""
    wanted = levels_of(BY_RANK)
    for row in rows:
        assert row["state"] in (None, "verified", "undone"), row
        assert row["in_force"] == (wanted if row["state"] == "verified" else {}), row
        assert row["states"].count("writing") <= 1, "written twice"
        assert row["states"].count("verified") + row["states"].count("undone") == (row["state"] is not None), row
    assert {row["state"] for row in rows} == {None, "verified", "undone"}, "each of these can be left"
    assert len({row["kills"][0] for row in rows}) >= fewest
    assert rows[-1]["ended"]
    assert rows[-1]["states"] == ["planned", "writing", "applied", "verified"]
