"""How the claims of Yang et al. 2016 are judged: what was measured, and whether it is in its band."""

from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise

from fairlane.reproduce.frames.paper import Check, Finding
from fairlane.reproduce.frames.yang2016.experiments import APPLICATIONS, LABELS, SCHEDULES
from fairlane.reproduce.frames.yang2016.measured import Measured
from fairlane.scheduler.compare import pattern_aware_findings

__all__ = ["CHECKS"]


def _each(measured: Measured, experiment: str) -> Iterator[tuple[str, dict[str, float]]]:
    """The medians of each application that was run, by the first word of a box, ms."""
    for application in APPLICATIONS:
        medians = measured.medians(experiment, application)
        if medians is not None:
            yield application, {box.replace("\n", " "): value for box, value in medians.items()}


def _written(medians: Mapping[str, float]) -> str:
    return ", ".join(f"{box} {value:.2f}" for box, value in medians.items())


def _falls(experiment: str) -> Callable[[Measured], Iterator[Finding]]:
    def judge(measured: Measured) -> Iterator[Finding]:
        for application, medians in _each(measured, experiment):
            values = list(medians.values())
            falls = all(later < earlier for earlier, later in pairwise(values))
            yield f"{LABELS[application]}: median {_written(medians)} ms (falls)", falls

    return judge


def _fixed_aggregate(measured: Measured) -> Iterator[Finding]:
    bands: Mapping[str, tuple[str, str, Callable[[float], bool]]] = {
        "amg": ("5D", "in [0.95, 1.05]", lambda ratio: 0.95 <= ratio <= 1.05),
        "crystal": ("7D", "> 1", lambda ratio: ratio > 1),
        "multigrid": ("7D", "< 1", lambda ratio: ratio < 1),
    }
    for application, medians in _each(measured, "fixed-aggregate"):
        box, band, held = bands[application]
        ratio = medians[box] / medians["3D"]
        yield f"{LABELS[application]}: {box} / 3D {ratio:.3f} ({band})", held(ratio)


def _shapes(measured: Measured) -> Iterator[Finding]:
    best = {"amg": "unbalanced cube", "crystal": "balanced cube", "multigrid": "balanced cube"}
    for application, medians in _each(measured, "shapes"):
        least = min(medians, key=lambda box: medians[box])
        words = f"{LABELS[application]}: least median in the {least} ({best[application]}); {_written(medians)} ms"
        yield words, least == best[application]


def _contiguity(measured: Measured) -> Iterator[Finding]:
    found = {name: medians["units of 16"] / medians["contiguous"] for name, medians in _each(measured, "contiguity")}
    if "amg" in found:
        yield f"AMG: units of 16 / contiguous {found['amg']:.3f} (<= 1.05)", found["amg"] <= 1.05
    if "crystal" in found:
        yield f"Crystal Router: {found['crystal']:.3f} (> 1.05)", found["crystal"] > 1.05
    if "crystal" in found and "multigrid" in found:
        words = f"MultiGrid: {found['multigrid']:.3f} (> Crystal Router's)"
        yield words, found["multigrid"] > found["crystal"]


_UNIT_BANDS: Mapping[str, tuple[tuple[str, str, float, float], ...]] = {
    "amg": (("units of 8", "units of 16", 0.0, 1.03), ("units of 2", "units of 16", 1.04, 1.25)),
    "crystal": (("units of 8", "units of 16", 0.0, 1.05), ("units of 2", "units of 16", 1.07, 1.30)),
    "multigrid": (("units of 16", "side by side", 1.5, float("inf")), ("units of 2", "units of 16", 0.0, 1.3)),
}
"""Of which two boxes the ratio is to be in which band."""


def _unit_size(measured: Measured) -> Iterator[Finding]:
    for application, medians in _each(measured, "unit-size"):
        for box, beside, low, high in _UNIT_BANDS[application]:
            ratio = medians[box] / medians[beside]
            band = f"<= {high:g}" if low == 0 else f">= {low:g}" if high == float("inf") else f"in [{low:g}, {high:g}]"
            yield f"{LABELS[application]}: {box} / {beside} {ratio:.3f} ({band})", low <= ratio <= high


def _pattern_aware(measured: Measured) -> Iterator[Finding]:
    if measured.schedules is not None:
        yield from pattern_aware_findings(measured.schedules)


def _check(judge: Callable[[Measured], Iterator[Finding]], experiment: str, *shown: str) -> Check:
    return Check([experiment], judge, shown, judges_parts=True)


CHECKS: Mapping[str, Check] = {
    "yang.dimensions": _check(_falls("dimensions"), "dimensions"),
    "yang.bandwidth": _check(_falls("bandwidth"), "bandwidth"),
    "yang.fixed-aggregate": _check(_fixed_aggregate, "fixed-aggregate"),
    "yang.shapes": _check(_shapes, "shapes"),
    "yang.contiguity": _check(_contiguity, "contiguity"),
    "yang.unit-size": _check(_unit_size, "unit-size", "unit-size.alone"),
    "yang.pattern-aware": _check(_pattern_aware, SCHEDULES),
}
"""For each claim, what it needs and how it is judged."""
