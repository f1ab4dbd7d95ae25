"""Running the cells of Wilke and Kenny 2020: each until its foreground is done, stored at once, kept for ever."""

import json
import os
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

import polars as pl

from fairlane import _core
from fairlane.errors import FairlaneError, RunError
from fairlane.reproduce.wilke2020 import FOREGROUND, Cell, Scale, scenario
from fairlane.results import derive
from fairlane.results.derive import JobLabel
from fairlane.results.measured import Measured, frame, marks
from fairlane.results.ports import by_link
from fairlane.scenario import Resolved

__all__ = ["Outcome", "run_cell", "run_cells"]

BUDGET = 200_000
"""Packet-hops of a slice."""


@dataclass(frozen=True)
class Outcome:
    """What a cell measured."""

    iterations: pl.DataFrame
    """The foreground's iterations: rank, iteration, at_ps, seconds."""
    ports: pl.DataFrame
    """One row per port: role, bytes, and its shares of time."""
    about: Mapping[str, Any]
    """Simulated time, packet-hops, wall time, digest."""


def run_cell(cell: Cell, scale: Scale) -> Outcome:
    """Simulates a cell; raises ``FairlaneError`` if that is not possible."""
    started = time.monotonic()
    resolved = scenario(cell, scale).resolve()
    built = time.monotonic()
    try:
        engine = _until_done(resolved)
    except _core.RunError as error:
        raise RunError(str(error), slug=error.slug) from None
    measured = Measured.of(engine)
    labels = [JobLabel(job.name, job.workload) for job in resolved.jobs]
    found = marks(engine)
    if found.is_empty():
        raise RunError(f"{cell}: the foreground has not made an iteration in {scale.limit}", slug="limit")
    links = derive.links(*_links(resolved))
    return Outcome(
        iterations=derive.iterations(labels, found).select("rank", "iteration", "at_ps", "seconds"),
        ports=by_link(derive.ports(links, measured)).select(
            "link", "role", "class", "bytes", "port_active_share", "port_stalled_share", "max_queue"
        ),
        about={
            "cell": str(cell),
            "scale": scale.name,
            "version": version("fairlane"),
            "simulated_ps": measured.now,
            "packet_hops": measured.packet_hops,
            "digest": measured.digest,
            "build_s": built - started,
            "wall_s": time.monotonic() - started,
        },
    )


def _links(resolved: Resolved) -> tuple[pl.DataFrame, list[str]]:
    fabric = _core.Fabric(json.dumps(resolved.tables["fabric"]))
    return frame(fabric.links()), fabric.classes()


def _until_done(resolved: Resolved) -> _core.Simulation:
    """Until the foreground, the last job, has made its iterations; background jobs never end."""
    assert resolved.jobs[-1].name == FOREGROUND, "the foreground is the last job"
    engine, foreground = resolved.engine(), len(resolved.jobs) - 1
    while not (engine.finished or engine.now >= resolved.duration):
        engine.run_window_budget(resolved.duration, BUDGET)
        ranks = frame(engine.table("ranks")).filter(pl.col("job") == foreground)
        if (ranks["finished"] != 0).all():
            break
    return engine


def _mark(cell: Cell, scale: Scale) -> str:
    """Names what a cell is: another name for anything that gives other results."""
    key = [version("fairlane"), scenario(cell, scale).model_dump(mode="json")]
    return sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:10]


def run_cells(
    cells: Iterable[Cell], scale: Scale, folder: Path, told: Callable[[Cell, str], None]
) -> dict[Cell, Outcome]:
    """Runs the cells that ``folder`` does not have yet, one after the other, and reads the others.

    ``told`` hears of each how long it took or why it is not there; one that fails does not stop the others.
    """
    folder.mkdir(parents=True, exist_ok=True)
    found = {}
    for cell in dict.fromkeys(cells):
        try:
            path = folder / f"{cell}-{_mark(cell, scale)}"
            known = path.with_suffix(".json").is_file()
            found[cell] = _read(path) if known else _write(run_cell(cell, scale), path)
            told(cell, "was there" if known else f"{found[cell].about['wall_s']:.1f} s")
        except FairlaneError as error:
            told(cell, str(error))
    return found


def _write(outcome: Outcome, path: Path) -> Outcome:
    """Stores both tables, and then what says that they are whole."""
    outcome.iterations.write_parquet(path.with_suffix(".iterations.parquet"))
    outcome.ports.write_parquet(path.with_suffix(".ports.parquet"))
    scratch = path.with_suffix(f".{os.getpid()}")
    scratch.write_text(json.dumps(outcome.about, indent=2), encoding="utf-8")
    scratch.replace(path.with_suffix(".json"))
    return outcome


def _read(path: Path) -> Outcome:
    about = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    iterations, ports = (pl.read_parquet(path.with_suffix(f".{name}.parquet")) for name in ("iterations", "ports"))
    return Outcome(iterations, ports, about)
