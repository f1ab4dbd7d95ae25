"""A small simulation whose results are known, in a process of its own: a core that crashes ends only that process."""

import json
import os
import signal
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from importlib.resources import as_file, files
from time import perf_counter
from typing import Any

from fairlane.limits import HANG_S

_CHILD = "import sys; from fairlane.doctor.selftest import {function}; sys.stdout.write({function}())"


class ChildError(Exception):
    """The process did not answer; the message says why."""


def expected_digest() -> str:
    """The digest that the simulation has on every platform."""
    text = (files("fairlane.doctor") / "expected.toml").read_text("utf-8")
    return str(tomllib.loads(text)["digest"])


def ask(function: str) -> Mapping[str, Any]:
    """What ``core`` or ``simulate`` answers in a new process. Raises ``ChildError``."""
    command = [sys.executable, "-P", "-c", _CHILD.format(function=function)]
    environment = os.environ | {"MPLBACKEND": "Agg"}
    try:
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=HANG_S, check=False)
    except subprocess.TimeoutExpired:
        raise ChildError(f"no answer within {HANG_S:g} s") from None
    except OSError as error:
        raise ChildError(f"{sys.executable}: cannot be started: {error.strerror}") from None
    if done.returncode < 0:
        name = signal.Signals(-done.returncode).name
        raise ChildError(f"the process was ended by {name}")
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        raise ChildError(lines[-1] if lines else f"the process ended with code {done.returncode}")
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def core() -> str:
    """How the compiled simulator was built, as JSON."""
    from fairlane import _core

    return json.dumps({**_core.build_info(), "file": _core.__file__})


def simulate() -> str:
    """Digest, packet-hops and wall time of the simulation, as JSON."""
    from fairlane.scenario import Scenario
    from fairlane.simulation import Simulation

    with as_file(files("fairlane.doctor") / "scenario.toml") as file:
        scenario = Scenario.load(file).resolve()
    simulation = Simulation(scenario, threads=1)
    start = perf_counter()
    simulation.run_until(scenario.duration)
    seconds = perf_counter() - start
    return json.dumps({"digest": simulation.digest(), "packet_hops": simulation.packet_hops, "seconds": seconds})
