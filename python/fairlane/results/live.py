"""The state of a run in progress, in a folder that other processes can read, and by which they can ask it to stop.

Beside the folder ``NAME`` of a run, which appears when everything is in it, there is ``.NAME.live`` while it is
simulated:

- ``state.json``, replaced as a whole about once a second: ``State``;
- ``lock``, on which the simulating process has a lock. The kernel releases it when the process ends in whatever way, so
  a state without a lock is of a process that was killed, whatever has got its number since;
- ``stop``, made by whoever wants the run to end.

The folder is removed when the run is stored. If a run ends with an error, it stays, with the error in its state.
Nothing is read from it but ``stop``, and what cannot be written there does not disturb the run.
"""

import os
import shutil
import time
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal, Self

from pydantic import Field

from fairlane.core.errors import ResultsError
from fairlane.inputs.files import is_taken, take
from fairlane.inputs.table import Table
from fairlane.results.manifest import read_as

STATE, LOCK, STOP = "state.json", "lock", "stop"
_PREFIX, _SUFFIX = ".", ".live"


class Progress(Table):
    """Progress of the simulations of a run."""

    simulated_s: float = 0.0
    """Simulated time of the co-run, s."""
    duration_s: float = 0.0
    """Simulated time to reach, s."""
    share: float = 0.0
    """Share of all simulations that is done, isolated runs included, from 0 to 1."""
    packet_hops: int = 0
    """Packet-hops of the co-run."""
    hops_per_s: float | None = None
    """Packet-hops of the co-run per second of wall time, since the state before."""
    elapsed_s: float = 0.0
    """Wall time since the simulations began, s."""
    left_s: float | None = None
    """Wall time left if everything goes on at the speed so far, s; None if that is not known."""
    isolated: int = 0
    """Jobs that are also simulated in isolation."""
    isolated_done: int = 0
    """Number of them that are done."""


class History(Table):
    """The course of the co-run so far: at instants of wall time, some of the states before."""

    elapsed_s: tuple[float, ...] = ()
    simulated_s: tuple[float, ...] = ()
    hops_per_s: tuple[float, ...] = ()


class Jobs(Table):
    """Work of jobs so far, by job."""

    name: tuple[str, ...] = ()
    workload: tuple[str, ...] = ()
    ranks: tuple[int, ...] = ()
    iterations: tuple[int, ...] = ()
    """Iterations of the slowest rank."""
    seconds_per_iteration: tuple[float | None, ...] = ()
    """Mean simulated time per iteration so far, s; None if that is not known."""
    w: tuple[float | None, ...] = ()
    """Throughput change against the isolated run, over all iterations that both have completed, warm-up included."""
    at_s: tuple[tuple[float, ...], ...] = ()
    """Simulated times at which iterations were completed, some of them."""
    time_s: tuple[tuple[float, ...], ...] = ()
    """Mean time per iteration since the one before in ``at_s``."""


class Matrix(Table):
    """The interference matrix so far: cells with their jobs' numbers."""

    victim: tuple[int, ...] = ()
    aggressor: tuple[int, ...] = ()
    queueing_s: tuple[float, ...] = ()
    kept: float = 1.0
    """The share of all queueing delay that is in these cells: below 1 if there are too many."""


class BusyLinks(Table):
    """The links with the highest utilisation so far."""

    name: tuple[str, ...] = ()
    active_share: tuple[float, ...] = ()
    stalled_share: tuple[float, ...] = ()


class State(Table):
    """State of a run in progress."""

    format: Literal[1] = 1
    version: str
    """Version of fairlane that simulates."""
    scenario: str
    seed: int
    started: datetime
    pid: int
    """Process that simulates, on the machine ``machine``."""
    machine: str
    written: float = Field(default_factory=time.time)
    """Time of writing, seconds since 1970."""
    phase: Literal["simulating", "storing", "failed"] = "simulating"
    error: str | None = None
    """Why it failed."""
    measured_s: float | None = None
    """Simulated time of the measurements in ``jobs``, ``matrix`` and ``links``, s; None if there are none yet."""
    progress: Progress = Progress()
    history: History = History()
    jobs: Jobs = Jobs()
    matrix: Matrix = Matrix()
    links: BusyLinks = BusyLinks()


def live_folder(folder: Path) -> Path:
    """Return the folder of the state of a run that will be stored in ``folder``."""
    whole = folder.absolute()
    return whole.with_name(f"{_PREFIX}{whole.name}{_SUFFIX}")


def stored_name(live: str) -> str | None:
    """The name of the folder that a run will be stored in, by that of its live folder; None if it is none."""
    name = live[len(_PREFIX) : -len(_SUFFIX)]
    return name if name and live == f"{_PREFIX}{name}{_SUFFIX}" else None


@dataclass(frozen=True)
class Found:
    """A live folder as another process sees it."""

    state: State
    alive: bool
    """Whether the process that simulates is there."""


def read_live(folder: Path) -> Found | None:
    """The state of the run that will be stored in ``folder``; None if there is none.

    Raises ``ResultsError`` if what is there is no state of this version of fairlane.
    """
    live = live_folder(folder)
    alive = _is_locked(live)  # first, so that a state that is read with no lock is the last one
    try:
        return Found(read_as(State, live / STATE), alive)
    except (FileNotFoundError, NotADirectoryError):
        return None


def request_stop(folder: Path) -> bool:
    """Asks the run that will be stored in ``folder`` to stop; whether a process is there that can."""
    live = live_folder(folder)
    if not _is_locked(live):
        return False
    try:
        os.close(os.open(live / STOP, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
    except FileNotFoundError:  # it has ended in the meantime
        return False
    except OSError as error:
        raise ResultsError(f"{live / STOP}: cannot be written: {error.strerror}") from error
    return True


def _is_locked(live: Path) -> bool:
    try:
        lock = os.open(live / LOCK, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return is_taken(lock)
    except OSError:
        return False
    finally:
        os.close(lock)


class LiveFolder:
    """The live folder of a run, held by the process that simulates it."""

    def __init__(self, live: Path, lock: int) -> None:
        self._live, self._lock = live, lock
        self._scratch = live / f".{STATE}"

    @classmethod
    def create(cls, folder: Path) -> Self | None:
        """Makes it, or takes over what a process that was killed has left; None if it cannot be made.

        Raises ``ResultsError`` if another process simulates a run into ``folder``.
        """
        live = live_folder(folder)
        try:
            live.mkdir(parents=True, exist_ok=True)
            lock = os.open(live / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
        except OSError:
            return None
        try:
            if not take(lock):
                raise ResultsError(f"{folder}: another process simulates a run into it; choose another")
            for name in (STOP, STATE):
                (live / name).unlink(missing_ok=True)
        except OSError:  # as of a file system without locks
            os.close(lock)
            return None
        except ResultsError:
            os.close(lock)
            raise
        return cls(live, lock)

    @property
    def stop_requested(self) -> bool:
        """Whether somebody has asked the run to stop."""
        return (self._live / STOP).exists()

    def write(self, state: State) -> None:
        """Replaces the state; if that cannot be done, the one before stays."""
        with suppress(OSError):
            self._scratch.write_text(state.model_dump_json(), "utf-8")
            self._scratch.replace(self._live / STATE)

    def close(self, *, keep: bool = False) -> None:
        """Ends it; ``keep`` leaves the state."""
        if not keep:
            shutil.rmtree(self._live, ignore_errors=True)
        os.close(self._lock)
