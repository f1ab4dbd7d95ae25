"""How the claims of Patki et al. 2016 are judged: what was measured, and whether it is in its band."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from fairlane.reproduce.frames.paper import Check, Finding
from fairlane.reproduce.frames.patki2016.experiments import LABELS, RAILS
from fairlane.reproduce.frames.patki2016.measured import Measured

__all__ = ["CHECKS", "best_placements", "variation"]

_LEAST = 3.0
"""What run times of FT vary by with both adapters, at least: greatest over least."""


def variation(measured: Measured, application: str, rails: str) -> float:
    """Greatest over least run time of the conditions of Fig. 1 with these adapters, each the mean of its seeds."""
    times = measured.means("rails", lambda cell: (cell.application, cell.rails) == (application, rails)).values()
    return max(times) / min(times)


def _dual_rail(measured: Measured) -> Iterator[Finding]:
    found = {rails: variation(measured, "ft", rails) for rails in RAILS}
    yield (
        f"FT, both adapters: greatest over least run time {found['both']:.2f} (>= {_LEAST:g})",
        found["both"] >= _LEAST,
    )
    bound = found["both"] / 2
    for rails in ("0", "1"):
        yield f"FT, only adapter {rails}: {found[rails]:.2f} (<= {bound:.2f})", found[rails] <= bound


def best_placements(measured: Measured) -> dict[tuple[str, int | None, int], dict[int, tuple[str, float]]]:
    """Of each application, interference and level, by cap: the placement with the least run time, and what it gains.

    The gain is the second-best run time over the best, less one; run times are means over seeds.
    """
    found: dict[tuple[str, int | None, int], dict[int, tuple[str, float]]] = {}
    groups: dict[tuple[str, int | None, int, int], dict[str, float]] = {}
    for cell, time in measured.means("power", lambda _: True).items():
        groups.setdefault((cell.application, cell.beside, cell.level, cell.cap), {})[cell.placement] = time
    for (application, beside, level, cap), times in groups.items():
        first, second = sorted(times, key=lambda name: times[name])[:2]
        found.setdefault((application, beside, level), {})[cap] = (first, times[second] / times[first] - 1)
    return found


def _placement(measured: Measured) -> Iterator[Finding]:
    yield _spread(measured)
    yield _level(measured)
    changing = {
        key: best for key, best in best_placements(measured).items() if len({it for it, _ in best.values()}) > 1
    }
    if not changing:
        yield "the best placement is the same under all caps for every application and level (differs)", False
        return
    # The one in which the smaller of both gains is greatest.
    (application, beside, level), best = max(
        changing.items(), key=lambda item: min(gain for _, gain in item[1].values())
    )
    where = f"alone at level {level}" if beside is None else f"at level {level} beside interference"
    parts = ", ".join(f"{cap} W {name} (by {gain:.1%})" for cap, (name, gain) in best.items())
    words = f"best placement differs in {len(changing)} cases, as {LABELS[application]} {where}: {parts}"
    yield f"{words}; {_alike(measured, application, beside, level, best)} (differs)", True


def _alike(
    measured: Measured, application: str, beside: int | None, level: int, best: Mapping[int, tuple[str, float]]
) -> str:
    """With how many seeds the best placement of each cap is the one that is the best on average."""
    times = measured.times(
        "power", lambda cell: (cell.application, cell.beside, cell.level) == (application, beside, level)
    )
    parts = []
    for cap, (name, _) in best.items():
        seeds = sorted({cell.seed for cell in times if cell.cap == cap})
        own = {
            seed: {cell.placement: time for cell, time in times.items() if (cell.cap, cell.seed) == (cap, seed)}
            for seed in seeds
        }
        whole = {seed: by for seed, by in own.items() if name in by and len(by) > 1}
        parts.append(f"{sum(min(by, key=by.__getitem__) == name for by in whole.values())} of {len(whole)}")
    return f"the same with {', '.join(parts)} seeds"


def _spread(measured: Measured) -> Finding:
    """Kripke, spread over packed with the same cap and level: the least."""
    times = measured.means("power", lambda cell: cell.application == "kripke")
    ratios = {
        cell: time / times[replace(cell, placement="packed")]
        for cell, time in times.items()
        if cell.placement == "spread"
    }
    best = min(ratios, key=lambda cell: ratios[cell])
    where = "alone" if best.beside is None else f"level {best.level} beside interference"
    return f"Kripke: spread / packed {ratios[best]:.3f} at {best.cap} W, {where} (< 1)", ratios[best] < 1


def _level(measured: Measured) -> Finding:
    """Level 0 beside interference over level 3 alone, with the same cap and placement: the greatest."""
    alone = measured.means("power", lambda cell: cell.beside is None)
    beside = measured.means("power", lambda cell: (cell.level, cell.beside) == (0, 0))
    ratios = {cell: time / alone[replace(cell, level=3, beside=None)] for cell, time in beside.items()}
    most = max(ratios, key=lambda cell: ratios[cell])
    worse = sum(ratio > 1 for ratio in ratios.values())
    words = f"level 0 beside interference over level 3 alone: > 1 in {worse} of {len(ratios)} cases"
    return f"{words}, at most {ratios[most]:.2f} ({LABELS[most.application]}, {most.placement}) (> 1)", worse > 0


CHECKS: Mapping[str, Check] = {
    "patki.dual-rail": Check(["rails"], _dual_rail, ["alone", "neighbour"]),
    "patki.placement": Check(["power"], _placement),
}
"""For each claim, what it needs and how it is judged."""
