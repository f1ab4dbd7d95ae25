"""Where the time of a study went, summed over its workers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from fairlane.results.text import percent, seconds

if TYPE_CHECKING:
    from fairlane.study.execute import Executed

__all__ = ["profile", "profile_lines"]

MEANING = {
    "simulating": "workers in simulations",
    "set-up": "workers building scenarios and finding compute times",
    "waiting": "workers without a task, or with their answer on its way",
    "writing": "this process storing answers and tables",
}


def profile(executed: Executed, workers: int, wall: float) -> dict[str, float]:
    """Seconds by what they went to. Workers wait for what is left of their share of the wall time."""
    busy = {name: executed.laps.get(name, 0.0) for name in ("simulating", "set-up")}
    waiting = max(0.0, workers * wall - sum(busy.values()))
    writing = executed.laps.get("writing", 0.0)
    return {**busy, "waiting": waiting, "writing": writing, "wall": wall, "workers": float(workers)}


def profile_lines(found: Mapping[str, float]) -> Iterator[str]:
    """The profile as ``fairlane study --profile`` prints it."""
    total = found["wall"] * found["workers"]
    yield f"Where the time went: {found['workers']:.0f} workers for {seconds(found['wall'])}"
    for name, meaning in MEANING.items():
        of = found["wall"] if name == "writing" else total
        share = percent(found[name] / of) if of else ""
        yield f"  {name:<10}  {seconds(found[name]):>8}  {share:>6}  {meaning}"
