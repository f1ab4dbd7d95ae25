"""Runs a campaign's scripts on a testbed of this machine: its hosts are the allocation, Open MPI starts the ranks."""

import os
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from fairlane.cluster.agent.system import call
from fairlane.core.errors import Problem, ScenarioError
from fairlane.core.signals import HANG_S
from fairlane.lab.testbed import machine
from fairlane.lab.testbed.file import TestbedFile
from fairlane.lab.testbed.machine import MeasurementError, TestbedError
from fairlane.lab.testbed.mpi import mpirun_options, write_agent
from fairlane.lab.testbed.plan import CONTROL, Plan
from fairlane.papers.campaign.script import Campaign


def check(campaign: Campaign, file: TestbedFile) -> None:
    """Raises ``ScenarioError`` if a testbed has too few hosts, ``TestbedError`` if this machine cannot have one."""
    hosts, nodes = len(file.fabric.hosts), max(cell.nodes for cell in campaign.cells)
    if nodes > hosts:
        raise ScenarioError(Problem("--testbed", f"has {hosts} hosts, and there are cells of {nodes} nodes", file.name))
    machine.check()


def run(folder: Path, scripts: Sequence[Path], file: TestbedFile, report: Callable[[str], object] = str) -> None:
    """Compiles the program and runs the scripts, one for each number of nodes.

    Raises ``TestbedError`` if the machine cannot have the testbed, ``MeasurementError`` if cells have failed.
    """
    call(["mpicc", "-O2", "-o", str(folder / "measure"), str(folder / "measure.c")], HANG_S, TestbedError)
    with machine.established(Plan(file.fabric)) as scratch:
        options = mpirun_options(file.measure.eager_threshold, write_agent(scratch), scratch)
        for script in scripts:
            allocation = _spread(file.fabric.hosts, int(script.stem.partition("-")[2]))
            report(f"{script.stem}: {', '.join(allocation)}")
            _run(script, allocation, options, scratch)


def _spread(hosts: Sequence[str], nodes: int) -> list[str]:
    """So many hosts, evenly spread over the switches."""
    return [hosts[at * len(hosts) // nodes] for at in range(nodes)]


def _run(script: Path, allocation: Sequence[str], options: Sequence[str], scratch: Path) -> None:
    listed = scratch / "hosts"
    listed.write_text("".join(f"{host}\n" for host in allocation))
    command = machine.dying_with_parent(machine.inside(CONTROL, ["bash", str(script.resolve()), str(listed)]))
    environment = {"LAUNCHER_OPTIONS": " ".join(options), "OMPI_MCA_btl_base_warn_component_unused": "0"}
    outside = {name: value for name, value in os.environ.items() if not name.startswith("SLURM_")}
    with script.with_suffix(".log").open("wb") as printed:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=printed,
            stderr=subprocess.STDOUT,
            env=outside | environment,
            check=False,
        )
    if done.returncode:
        raise MeasurementError(f"{script}: ended with code {done.returncode}: see {script.with_suffix('.log')}")
