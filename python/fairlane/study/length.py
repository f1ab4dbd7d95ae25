"""Run length against number of replicates: chosen by a pilot, so that a precision costs the least processor time.

The pilot is the first replicates of every condition, of the scenario's duration. A simulation that ends earlier is the
beginning of a longer one, so each replicate of the pilot also says what every shorter length would have measured on the
same placement. Of each effect, the mean over jobs,

- the *components of variance*, between replicates and within a run, say how many replicates of a length are needed;
- the *cost* of a replicate is estimated from its packet-hops, and from measured constants for the set-up of simulations
  and the calibration of compute times: it does not depend on the machine;
- the *shift*, the mean over the pilot of the difference between a length and the whole duration, has an interval.

Lengths differ by a factor of root two, down to that in which every job of the pilot completes 20 iterations: of fewer
no warm-up is found. The cheapest is chosen for which the interval of every shift lies within the accepted one. That is
a test of equivalence for each (D. J. Schuirmann, J. Pharmacokinet. Biopharm. 15, 1987), and all have to pass, so their
number needs no correction. Lengths below a rejected one are taken to be shifted more, and not tested. If none is
cheaper, the whole duration is kept, and the pilot's replicates count. Where the largest number of replicates is too
few, the length that needs fewest is the cheapest.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt

import numpy
from numpy.typing import NDArray

from fairlane.core.statistics import Estimate, independent
from fairlane.core.statistics.components import Components, runs_needed
from fairlane.core.wording import fine_percent, percent, plural, seconds, with_half_width
from fairlane.results.study import PilotEffect, RunLength
from fairlane.sim.runner.precision import ENOUGH
from fairlane.study.cells import DEFAULT
from fairlane.study.repetition import Repeat

SHIFTED = "shorter ones may shift the results by more than is accepted"
CHEAPEST = "no shorter one takes less processor time"
MORE = "shorter ones need more replicates than repeat.at_most allows"
FEW = f"in shorter ones some job may complete fewer than {ENOUGH} iterations"
"""Why replicates last for the whole duration."""

Values = NDArray[numpy.float64]


@dataclass(frozen=True)
class Effect:
    """An effect in the pilot."""

    condition: str
    treatment: str
    components: Components
    values: Callable[[int], Values]
    """Of a length, ps, the value of each replicate."""


@dataclass(frozen=True)
class Condition:
    """A condition in the pilot."""

    fixed: float
    """Cost of a replicate without simulated time."""
    rate: float
    """Cost of a replicate for each ps."""
    effects: Sequence[Effect]

    def needed(self, length: int, asked: Repeat) -> int:
        """Return how many replicates of a length its effects need."""
        most = max(runs_needed(of.components.variance(length), asked.precision) for of in self.effects)
        return max(asked.at_least, most)


@dataclass(frozen=True)
class _Expected:
    """A length and what a precision is expected to take with it."""

    length: int
    needed: int
    """Replicates that the precision takes, even if these are more than there may be."""
    cost: float
    half_width: float


def lengths(duration: int, shortest: int) -> Iterator[int]:
    """Yield the lengths that may be chosen, ps, with three significant digits, the longest first."""
    yield duration
    step, length = 1, duration
    while (length := int(float(f"{duration / sqrt(2) ** step:.2e}"))) >= max(1, shortest):
        yield length
        step += 1


def choose(asked: Repeat, duration: int, shortest: int, conditions: Sequence[Condition]) -> RunLength:
    """Choose the length with which the precision costs least, by a pilot of ``duration`` ps; with its reasons."""
    effects = [effect for condition in conditions for effect in condition.effects]
    expected = {length: _expected(asked, length, duration, conditions) for length in lengths(duration, shortest)}
    order = sorted(expected.values(), key=lambda one: (max(0, one.needed - asked.at_most), one.cost, -one.length))
    shifts: dict[int, Sequence[Estimate]] = {}
    chosen = expected[duration]
    for candidate in order:
        if candidate.length == duration:
            break
        if candidate.length > max(shifts, default=0):  # assumed: shorter ones are shifted more
            shifts[candidate.length] = [_shift(effect, candidate.length, duration) for effect in effects]
            if all(_within(shift, asked.accepted) for shift in shifts[candidate.length]):
                chosen = candidate
                break
    return RunLength(
        duration_ps=duration,
        length_ps=chosen.length,
        kept_because="" if chosen.length < duration else _reason(chosen, [*expected.values()], shifts),
        pilot=asked.at_least * len(conditions),
        accepted=asked.accepted,
        replicates=min(chosen.needed, asked.at_most),
        replicates_of_duration=min(expected[duration].needed, asked.at_most),
        cost_s=chosen.cost,
        cost_of_duration_s=expected[duration].cost,
        expected_half_width=chosen.half_width,
        compared_ps=max(shifts, default=None),
        effects=list(_recorded(effects, duration, shifts[max(shifts)] if shifts else None)),
    )


def _reason(kept: _Expected, expected: Sequence[_Expected], shifts: Mapping[int, Sequence[Estimate]]) -> str:
    if shifts:
        return SHIFTED
    if len(expected) == 1:
        return FEW
    return MORE if any(other.cost < kept.cost for other in expected) else CHEAPEST


def _recorded(effects: Sequence[Effect], duration: int, shifts: Sequence[Estimate] | None) -> Iterator[PilotEffect]:
    for at, effect in enumerate(effects):
        shift = None if shifts is None else shifts[at]
        yield PilotEffect(
            condition=effect.condition,
            treatment=effect.treatment,
            between=sqrt(effect.components.between),
            within=sqrt(effect.components.within / duration),
            shift=shift and shift.value,
            shift_low=shift and shift.low,
            shift_high=shift and shift.high,
        )


def _expected(asked: Repeat, length: int, duration: int, conditions: Sequence[Condition]) -> _Expected:
    needed = [condition.needed(length, asked) for condition in conditions]
    few = max(1.0, sum(needed) / asked.at_most)
    begun = asked.at_least if length == duration else 0
    cost = sum(
        max(0.0, count / few - begun) * (condition.fixed + condition.rate * length)
        for count, condition in zip(needed, conditions, strict=True)
    )
    return _Expected(length, sum(needed), cost, asked.precision * sqrt(few))


def _shift(effect: Effect, length: int, duration: int) -> Estimate:
    found = independent((effect.values(length) - effect.values(duration)).tolist())
    assert found is not None, "a pilot has replicates"
    return found


def _within(shift: Estimate, accepted: float) -> bool:
    return shift.low is not None and shift.high is not None and -accepted <= shift.low <= shift.high <= accepted


def sentence(choice: RunLength) -> str:
    """Describe a choice."""
    pilot, whole = plural(choice.pilot, "replicate"), _time(choice.duration_ps)
    if choice.kept_because:
        shift = f": {_shift_of(choice)}" if choice.kept_because == SHIFTED else ""
        return f"Runs last for the scenario's duration, {whole}, by a pilot of {pilot}: {choice.kept_because}{shift}."
    share = (choice.cost_s or 0.0) / (choice.cost_of_duration_s or 1.0)
    counts = f"{plural(choice.replicates or 0, 'replicate')} in place of {choice.replicates_of_duration:,}"
    expected = f"{counts} and {share:.0%} of the further processor time are expected"
    return f"Runs last {_time(choice.length_ps)} by a pilot of {pilot} of {whole}: {expected}; {_shift_of(choice)}."


def _shift_of(choice: RunLength) -> str:
    """Describe the shift whose interval reaches farthest."""
    known = [of for of in choice.effects if of.shift is not None]
    largest = max(known, key=lambda of: max(abs(of.shift_low or 0.0), abs(of.shift_high or 0.0)))
    where = ", ".join(name for name in (largest.treatment, largest.condition) if name and name != DEFAULT)
    shift = with_half_width(
        largest.shift or 0.0, largest.shift_low, largest.shift_high, lambda share: percent(share, signed=True)
    )
    effect = f" for {where}" if where and len(known) > 1 else ""
    length, allowed = _time(choice.compared_ps or 0), f"±{fine_percent(choice.accepted)} is accepted"
    return f"runs of {length} shift results by {shift}{effect} on the same placements, {allowed}"


def _time(length: int) -> str:
    return seconds(length * 1e-12)
