"""The decision: which of the predicted changes is made, if any, and why. Nothing here looks at the world."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fairlane.core.statistics import Estimate, beyond_noise
from fairlane.core.wording import percent, plural, with_half_width

if TYPE_CHECKING:
    from fairlane.cluster.agent.config import PolicyTable


@dataclass(frozen=True)
class Candidate:
    """A change of one job's service level."""

    job: str
    """Slurm's number of the job."""
    level: int | None
    """The level that it gets; None for the default."""


@dataclass(frozen=True)
class Prediction:
    """Predicted changes by a candidate against the settings in force. Changes are relative: +0.1 is 10% more.

    Of a job with iterations the change is that of its throughput; of a load from counters it is that of the inverse of
    its messages' mean latency.
    """

    candidate: Candidate
    gain: Estimate
    """The mean over jobs, with its interval over replicates."""
    effects: Mapping[str, Estimate]
    """The change of each job."""
    unknown: tuple[str, ...] = ()
    """Jobs that did nothing that can be compared in some replicate."""


@dataclass(frozen=True)
class Decision:
    """A candidate or none, and the reason."""

    chosen: Prediction | None
    """The change to make; None to change nothing."""
    reason: str


def decide(predictions: Sequence[Prediction], policy: "PolicyTable", untried: int = 0) -> Decision:
    """The candidate with the greatest gain among those that the policy allows.

    A gain has to be at least ``min_gain`` with an interval above zero, and beyond noise among all that were tried: of
    many candidates without an effect some would have such an interval by chance. The interval of every job's change
    has to be above a loss of ``max_loss``. ``untried`` is how many candidates there was no time for.
    """
    late = f"; {untried} not tried within twin.time_limit" if untried else ""
    if not predictions:
        message = (
            "no candidate was predicted"
            if late
            else "there is nothing to try: no job with a profile, or no other level"
        )
        return Decision(None, f"{message}{late}")
    clear = beyond_noise([prediction.gain for prediction in predictions])
    refusals = {}
    for prediction, is_clear in zip(predictions, clear, strict=True):
        refusals[prediction.candidate] = next(_refusals(prediction, policy, is_clear), None)
    allowed = [prediction for prediction in predictions if refusals[prediction.candidate] is None]
    if allowed:
        best = max(allowed, key=lambda prediction: (prediction.gain.value, prediction.candidate.job))
        tried = plural(len(predictions), "candidate")
        return Decision(best, f"{_named(best)}: best of {tried}, {len(allowed)} allowed{late}")
    best = max(predictions, key=lambda prediction: prediction.gain.value)
    return Decision(None, f"{_named(best)}: best of {len(predictions)}, refused: {refusals[best.candidate]}{late}")


def _named(prediction: Prediction) -> str:
    level = "the default level" if prediction.candidate.level is None else f"level {prediction.candidate.level}"
    return f"job {prediction.candidate.job} on {level}: {change_in_words(prediction.gain)} on average over jobs"


def change_in_words(of: Estimate) -> str:
    """An estimate of a relative change, with half the width of its interval: "+12.0% ± 3.1%"."""
    return with_half_width(of.value, of.low, of.high, lambda value: percent(value, signed=True))


def _refusals(prediction: Prediction, policy: "PolicyTable", is_clear: bool | None) -> Iterator[str]:
    """Why the policy does not allow it; nothing if it does."""
    gain = prediction.gain
    if gain.low is None:
        yield "its interval is not known"
    elif gain.low <= 0:
        yield "its interval is not above zero"
    if gain.value < policy.min_gain:
        yield f"less than policy.min_gain = {percent(policy.min_gain)}"
    if not is_clear:
        yield "not beyond noise among all candidates"
    if prediction.unknown:
        yield f"job {prediction.unknown[0]} completed nothing within twin.horizon in some replicate"
    for job, effect in prediction.effects.items():
        if effect.low is None or effect.low < -policy.max_loss:
            yield f"job {job} changes {change_in_words(effect)}, and policy.max_loss = {percent(policy.max_loss)}"


WINDOW_S = 60.0


def wait_s(written: Sequence[float], now: float, most: int) -> float:
    """Return the time until the next change is allowed, s.

    ``written`` has the instants of earlier changes in order, ``now`` the present one, both in s since 1970. Changes
    that seem to be in the future, after a clock was set back, count as if they were now.
    """
    recent = [min(at, now) for at in written if at > now - WINDOW_S]
    return max(0.0, recent[-most] + WINDOW_S - now) if len(recent) >= most else 0.0
