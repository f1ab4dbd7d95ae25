"""Finds the compute time with which a job, alone on its hosts, computes for a given share of its time.

The share is that of the rank that computes longest: its compute time an iteration over the time from one mark to the
next, the part that is not timed included. Bursts are left out: a pause is neither computation nor communication. The
share rises with the compute time, so a bracketing root finder gets there in a few short simulations. Results are kept
in the user's cache, by everything that they depend on.
"""

import inspect
import json
from collections.abc import Callable
from concurrent.futures import CancelledError
from contextlib import suppress
from dataclasses import replace
from functools import cache
from hashlib import sha256
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

from fairlane.core import bridge
from fairlane.core.drive import End, Slice, drive
from fairlane.core.errors import ScenarioError
from fairlane.core.tables import Iterations
from fairlane.inputs.files import load_sealed, save_sealed
from fairlane.model.fabric.graph import columns
from fairlane.model.workload.base import Workload
from fairlane.model.workload.builder import JobScript

if TYPE_CHECKING:
    from fairlane.model.scenario.resolved import Resolved

ITERATIONS = 6  # iterations of a measurement; the first one is the warm-up
PRECISION = 0.003  # tolerance of the share
STALLED = 0.0005  # if doubling the compute time raises the share by less than this, the target cannot be reached
FIRST_GUESS = 10**6  # compute time, ps, on which the time for communication is measured first
STEP = Slice(hops=50_000, window=10**9, growth=2, longest=10**15)
"""Simulated time between two counts of the iterations."""


class CalibrationError(Exception):
    """The target share cannot be reached."""


def calibrate(workload: Workload, script: Callable[[], JobScript], alone: "Resolved", stop: Event) -> int:
    """The compute time in picoseconds; ``alone`` is the scenario with this job only, ``script`` begins its program.

    Raises ``CancelledError`` soon after ``stop`` is set, ``CalibrationError`` if the share cannot be reached.
    """
    file = _cache_file(workload, script(), alone)
    with suppress(ScenarioError):
        data, damage = load_sealed(file)
        if damage is None and data.get("key") == file.name:
            return int(data["compute"])
    compute = _search(workload, script, alone, stop)
    with suppress(OSError, ScenarioError):  # if it cannot be stored, as on a full disk, it is computed again next time
        file.parent.mkdir(parents=True, exist_ok=True)
        save_sealed({"key": file.name, "compute": compute}, file)
    return compute


def _search(workload: Workload, script: Callable[[], JobScript], alone: "Resolved", stop: Event) -> int:
    from scipy.optimize import brentq

    target = workload.target_share

    @cache
    def share(compute: int) -> float:
        return isolated_share(workload, script, alone, compute, stop)

    def excess(compute: float) -> float:
        difference = share(round(compute)) - target if compute else -target
        return 0.0 if abs(difference) < PRECISION else difference

    if share(FIRST_GUESS) > 0.999:
        raise CalibrationError("the rank that computes longest does not communicate")
    if share(FIRST_GUESS) == 0.0:
        raise CalibrationError("no computation is long enough: communication takes all of the time")
    # If no rank's communication overlapped with another's computation, this would be it.
    lower, upper = 0, max(1, round(FIRST_GUESS * (1 / share(FIRST_GUESS) - 1) * target / (1 - target)))
    while excess(upper) < 0:
        lower, upper = upper, 2 * upper
        if share(upper) < target and share(upper) - share(lower) < STALLED:
            reached = f"{share(upper):.0%} of its time"
            raise CalibrationError(f"the rank that computes longest waits for others' computations: {reached} at most")
    return round(brentq(excess, lower, upper, xtol=1.0, rtol=1e-4)) if excess(upper) else upper


def isolated_share(
    workload: Workload, script: Callable[[], JobScript], alone: "Resolved", compute: int, stop: Event
) -> float:
    """The share of its time that the rank with the most compute time computes, alone and without jitter, for this Y."""
    parts = workload.parts(script())
    program = workload.model_copy(update={"burst": None}).program(script(), compute, steady=True)
    simulation = replace(alone, jobs=(replace(alone.jobs[0], program=program),)).engine()
    enough = Iterations([alone.jobs[0].name], ITERATIONS)
    if drive(simulation, done=enough, every=STEP, stop=stop) is End.STOPPED:
        raise CancelledError
    ranks, slowest = columns(simulation.table("ranks")), int(parts.argmax())
    span = int(ranks["last_mark"][slowest]) - int(ranks["first_mark"][slowest])
    if span <= 0:
        raise CalibrationError("the rank that computes longest completes no iteration")
    return compute * float(parts[slowest]) * (int(ranks["iterations"][slowest]) - 1) / span


def _cache_file(workload: Workload, script: JobScript, alone: "Resolved") -> Path:
    """The name is a digest of everything that the result depends on, the simulator included."""
    from platformdirs import user_cache_path

    key = {
        "spec": alone.spec,
        "workload": [type(workload).__qualname__, workload.parameters()],
        "parts": workload.parts(script).tolist(),
        "key": script.key,
        "simulator": _stamp(bridge.LIBRARY),
        "code": [_stamp(__file__), _code_of(workload)],
    }
    digest = sha256(json.dumps(key, sort_keys=True, default=str).encode()).hexdigest()
    return user_cache_path("fairlane") / "calibration" / digest[:32]


def _code_of(workload: Workload) -> list[int]:
    """Size and modification time of the workload's file, which users may edit."""
    try:
        return _stamp(inspect.getfile(type(workload)))
    except (OSError, TypeError):
        return []


def _stamp(file: str) -> list[int]:
    """Size and modification time of a file."""
    stat = Path(file).stat()
    return [stat.st_size, stat.st_mtime_ns]
