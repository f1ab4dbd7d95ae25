"""Where the time of a study went, summed over its workers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from fairlane.results.text import percent, seconds

__all__ = ["profile", "profile_lines"]

MEANING = {
    "simulating": "workers in simulations",
    "set-up": "workers building scenarios and finding compute times",
    "waiting": "workers starting, without a task, or with their answer on its way",
    "planning": "this process reading the study and trying every scenario, before workers start",
    "writing": "this process storing answers and tables",
}
OF_WORKERS = ("simulating", "set-up", "waiting")


def profile(laps: Mapping[str, float], workers: int, spent: float, wall: float) -> dict[str, float]:
    """Seconds by what they went to: ``spent`` with workers, of ``wall``. What workers do not use, they wait."""
    busy = {name: laps.get(name, 0.0) for name in ("simulating", "set-up")}
    waiting = max(0.0, workers * spent - sum(busy.values()))
    own = {name: laps.get(name, 0.0) for name in ("planning", "writing")}
    return {**busy, "waiting": waiting, **own, "spent": spent, "wall": wall, "workers": float(workers)}


def profile_lines(found: Mapping[str, float]) -> Iterator[str]:
    """The profile as ``fairlane study --profile`` prints it."""
    yield f"Where the time went: {seconds(found['wall'])}, of these {seconds(found['spent'])} with {_workers(found)}"
    for name, meaning in MEANING.items():
        of = found["spent"] * found["workers"] if name in OF_WORKERS else found["wall"]
        share = percent(found[name] / of) if of else ""
        yield f"  {name:<10}  {seconds(found[name]):>8}  {share:>6}  {meaning}"


def _workers(found: Mapping[str, float]) -> str:
    return "1 worker" if found["workers"] == 1 else f"{found['workers']:.0f} workers"
