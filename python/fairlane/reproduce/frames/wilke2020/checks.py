"""How the claims of Wilke and Kenny 2020 are judged: what was measured, and whether it is in its band."""

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from fairlane.errors import BuildError, ScenarioError
from fairlane.reproduce.frames.paper import Check, Finding
from fairlane.reproduce.frames.wilke2020.experiments import (
    DRAGONFLIES,
    FAT_TREES,
    NOBODY,
    STRATEGIES,
    Cell,
    Scale,
    scenario,
)
from fairlane.reproduce.frames.wilke2020.measured import Floats, Measured, interval

__all__ = ["CHECKS", "lanes_needed"]

PAR, MIN_PAR = DRAGONFLIES
TREE, TAPER = FAT_TREES
TREATED = STRATEGIES[1:]
SLOW = (*DRAGONFLIES, TAPER)
"""The fabrics that Sweep3D suffers on."""


def lanes_needed(fabric: str, scale: Scale) -> int:
    """The least number of lanes with which Split-Priority is not refused; 0 if it cannot be had at all."""
    from fairlane.scenario.resolve import decide

    plain = scenario(Cell(fabric, "allreduce", NOBODY, "split_priority"), scale)
    for lanes in range(1, 65):
        try:
            decide(plain.model_copy(update={"qos": plain.qos.model_copy(update={"lanes": lanes})}))
        except (BuildError, ScenarioError, ValueError):
            continue
        return lanes
    return 0


def _virtual_lanes(measured: Measured) -> Iterator[Finding]:
    bands: tuple[tuple[str, str, Callable[[int], bool]], ...] = (
        (PAR, "= 24", lambda lanes: lanes == 24),
        (MIN_PAR, "<= 16", lambda lanes: 0 < lanes <= 16),
        (TREE, "= 4", lambda lanes: lanes == 4),
    )
    for fabric, band, held in bands:
        lanes = lanes_needed(fabric, measured.scale)
        yield f"{fabric}: {lanes} lanes ({band})", held(lanes)


def _spread(rates: Mapping[int, Floats], beside: Mapping[int, Floats]) -> tuple[float, float]:
    """Mean over sizes of the throughput as a part of that ``beside``, and of the coefficient of variation."""
    parts = [float(rates[size].mean() / beside[size].mean()) for size in rates]
    return float(np.mean(parts)), float(np.mean([one.std() / one.mean() for one in rates.values()]))


def _ping_pong(measured: Measured) -> Iterator[Finding]:
    cells = {strategy: Cell(PAR, "ping_pong", "halo3d", strategy) for strategy in STRATEGIES}
    if not measured.has(*cells.values()):
        return
    isolated = measured.throughput(cells["isolate"])
    steady = _spread(isolated, isolated)[1]
    for strategy in STRATEGIES[:-1]:
        part, spread = _spread(measured.throughput(cells[strategy]), isolated)
        yield f"{strategy}: throughput {part:.2f} of isolate's (< 1)", part < 1
        yield f"variation of isolate {steady:.3f} (< half of {strategy}'s {spread:.3f})", steady < spread / 2


def _min_par(measured: Measured) -> Iterator[Finding]:
    cells = [Cell(fabric, "ping_pong", "halo3d", "split_priority") for fabric in DRAGONFLIES]
    if not measured.has(*cells):
        return
    first, second = (measured.throughput(cell) for cell in cells)
    overlap = []
    for size in first:
        (low, high), (other_low, other_high) = interval(first[size]), interval(second[size])
        overlap.append(low <= other_high and other_low <= high)
    share = sum(overlap) / len(overlap)
    yield f"intervals overlap at {share:.0%} of the sizes (>= 70%)", share >= 0.7


def _halo3d(measured: Measured) -> Iterator[Finding]:
    for strategy in STRATEGIES:
        cells = {fabric: Cell(fabric, "halo3d", "halo3d", strategy) for fabric in (*FAT_TREES, *DRAGONFLIES)}
        if measured.has(*cells.values()):
            tree = max(measured.median(cells[fabric]) for fabric in FAT_TREES)
            dragonfly = min(measured.median(cells[fabric]) for fabric in DRAGONFLIES)
            words = f"{strategy}: slower Fat Tree {tree * 1e3:.3f} ms (< faster Dragonfly {dragonfly * 1e3:.3f} ms)"
            yield words, tree < dragonfly
    for fabric in (*FAT_TREES, *DRAGONFLIES):
        beside = [Cell(fabric, "halo3d", background, "none") for background in (NOBODY, "fft", "halo3d")]
        if measured.has(*beside):
            alone, fft, halo = (measured.median(cell) for cell in beside)
            part = abs(fft - alone) / abs(halo - alone) if halo != alone else float("inf")
            yield f"{fabric}: FFT changes the median {part:.2f} times as much as Halo3D (<= 0.25)", part <= 0.25
    none, split = (Cell(TREE, "halo3d", "halo3d", strategy) for strategy in STRATEGIES[:2])
    if measured.has(none, split):
        part = measured.median(split) / measured.median(none)
        yield f"fat-tree: median of split_priority {part:.3f} of none's (< 1)", part < 1


def _fft(measured: Measured) -> Iterator[Finding]:
    for fabric in (*DRAGONFLIES, *FAT_TREES):
        cells = {strategy: Cell(fabric, "fft", "halo3d", strategy) for strategy in STRATEGIES}
        there = [strategy for strategy, cell in cells.items() if measured.has(cell)]
        if "none" not in there or "split_priority" not in there:
            continue
        tails = {strategy: measured.tail(cells[strategy]) for strategy in there}
        best = min(tails, key=lambda strategy: tails[strategy])
        yield f"{fabric}: least p99 under {best} (split_priority)", best == "split_priority"
        for strategy in there:
            if strategy in ("bandwidth_weight", "isolate"):
                part = tails[strategy] / tails["none"]
                yield f"{fabric}: p99 of {strategy} {part:.2f} of none's (<= 0.6)", part <= 0.6


def _allreduce(measured: Measured) -> Iterator[Finding]:
    def reach(fabric: str, strategy: str) -> float | None:
        cell = Cell(fabric, "allreduce", "halo3d", strategy)
        return float(measured.times(cell).max()) / measured.median(cell) if measured.has(cell) else None

    for fabric in (*DRAGONFLIES, TREE):
        found = reach(fabric, "none")
        if found is not None:
            held = found <= 3 if fabric == TREE else found >= 5
            yield f"{fabric}, none: max / median {found:.1f} ({'<= 3' if fabric == TREE else '>= 5'})", held
    for fabric in (*DRAGONFLIES, *FAT_TREES):
        for strategy in TREATED:
            found = reach(fabric, strategy)
            if found is not None:
                yield f"{fabric}, {strategy}: max / median {found:.1f} (<= 3)", found <= 3


def _sweep3d(measured: Measured) -> Iterator[Finding]:
    for fabric in SLOW:
        alone = Cell(fabric, "sweep3d", NOBODY, "none")
        for strategy in STRATEGIES:
            cell = Cell(fabric, "sweep3d", "halo3d", strategy)
            if measured.has(alone, cell):
                part = measured.median(cell) / measured.median(alone)
                band = ">= 1.5" if strategy == "none" else "<= 1.25"
                held = part >= 1.5 if strategy == "none" else part <= 1.25
                yield f"{fabric}, {strategy}: median {part:.2f} of that alone ({band})", held
    par, min_par = (Cell(fabric, "sweep3d", "halo3d", "split_priority") for fabric in DRAGONFLIES)
    if measured.has(par, min_par):
        part = measured.median(min_par) / measured.median(par)
        yield f"split_priority: median under MIN/PAR {part:.3f} of that under PAR (>= 1)", part >= 1


def _port_counters(measured: Measured) -> Iterator[Finding]:
    cells = {fabric: Cell(fabric, "halo3d", "halo3d", "split_priority") for fabric in (PAR, *FAT_TREES)}
    if not measured.has(*cells.values()):
        return
    reach, stalled = {}, {}
    for fabric, cell in cells.items():
        active = measured.share(cell, "port_active_share")
        reach[fabric] = float(np.quantile(active, 0.99) / np.median(active))
        stalled[fabric] = float(measured.share(cell, "port_stalled_share").mean())
    for fabric in FAT_TREES:
        words = f"{fabric}: p99 / median of active time {reach[fabric]:.2f} (< {PAR}'s {reach[PAR]:.2f})"
        yield words, reach[fabric] < reach[PAR]
        words = f"{fabric}: stalled {stalled[fabric]:.4f} of the time (< a tenth of {PAR}'s {stalled[PAR]:.4f})"
        yield words, stalled[fabric] < 0.1 * stalled[PAR]


def _check(judge: Callable[[Measured], Iterator[Finding]], *experiments: str, shown: Sequence[str] = ()) -> Check:
    return Check(experiments, judge, shown, judges_parts=True)


CHECKS: Mapping[str, Check] = {
    "wilke.virtual-lanes": _check(_virtual_lanes),
    "wilke.pingpong": _check(_ping_pong, "pingpong"),
    "wilke.pingpong.min-par": _check(_min_par, "pingpong.min-par"),
    "wilke.halo3d": _check(_halo3d, "halo3d", shown=["halo3d.scaling"]),
    "wilke.fft": _check(_fft, "fft", shown=["fft.scaling"]),
    "wilke.allreduce": _check(_allreduce, "allreduce"),
    "wilke.sweep3d": _check(_sweep3d, "sweep3d"),
    "wilke.port-counters": _check(_port_counters, "port-counters"),
}
"""For each claim, what it needs and how it is judged."""
