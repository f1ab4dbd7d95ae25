"""Attribute lost time to jobs: one sentence, which the terminal, the figures and the report page share.

The victim is the job whose throughput falls most against its isolated run. With leave-one-out runs (``lost_time``) the
culprit is the job without which an iteration of the victim is shortest. Without them no culprit is named: the sentence
says whose packets the victim's wait for, as queueing delay, which is not lost time.

*The time that each job loses because of each other job, by leave-one-out runs.* A leave-one-out run has all jobs but
one, the aggressor, on the same hosts with the same programs and random numbers. What an iteration of a victim takes
longer in the co-run than there is the time that the aggressor costs it. Queueing delay is not lost time: a job that is
idle when its packets wait loses nothing, and a wait of a few packets can hold up all ranks. Lost times of several
aggressors need not add up to the loss against the isolated run: where two of them congest the same link, either may be
harmless without the other.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import polars as pl

from fairlane.core.tables import PS, Work
from fairlane.core.wording import listed, percent, seconds, with_half_width
from fairlane.model.scenario.resolved import BACKGROUND, ResolvedJob
from fairlane.results.derive import interval
from fairlane.results.milestones import common, milestones
from fairlane.results.milestones import lost_time as lost
from fairlane.results.run import Run
from fairlane.results.schemas import RUN, types
from fairlane.results.views import Interference


@dataclass(frozen=True)
class LeftOut:
    """A leave-one-out run."""

    aggressor: str
    """Aggressor that it leaves out."""
    jobs: Sequence[int]
    """The numbers of its jobs among those of the co-run."""
    work: Work
    """Work of the jobs."""


def lost_time(
    labels: Sequence[ResolvedJob], together: Work, alone: Sequence[Work | None], without: Sequence[LeftOut]
) -> pl.DataFrame:
    """The table of lost time: a row for each aggressor and each job that completed iterations with and without it."""
    return pl.DataFrame(list(_rows(labels, together, alone, without)), schema=types(RUN["lost_time"]))


def _rows(
    labels: Sequence[ResolvedJob], together: Work, alone: Sequence[Work | None], without: Sequence[LeftOut]
) -> Iterator[dict[str, Any]]:
    here = milestones(together, [label.start for label in labels])
    isolated = {job: milestones(run, [labels[job].start])[0] for job, run in enumerate(alone) if run is not None}
    for left in without:
        there = milestones(left.work, [labels[job].start for job in left.jobs])
        for number, job in enumerate(left.jobs):
            label = labels[job]
            lost_of_job = lost(here[job], there[number]) if label.iterates and not label.background else None
            if lost_of_job is None:
                continue
            compared, estimate = lost_of_job
            rest = common(there[number], isolated[job]) if job in isolated else None
            yield {
                "victim": label.name,
                "aggressor": left.aggressor,
                "compared_iterations": compared.iterations,
                "compared_ps": compared.at,
                "without_compared_ps": compared.reference_at,
                "warm_up": compared.warm_up,
                "lost_s": estimate.value,
                "lost_low_s": estimate.low,
                "lost_high_s": estimate.high,
                "lost_share": 1 - compared.reference_at / compared.at,
                **interval("w_without", rest.estimate if rest else None),
            }


NOTICEABLE = 0.005
"""A job is called slowed down when it does this share less than isolated."""
HINT = "Queueing delay is not lost time: fairlane run --leave-one-out attributes the time that jobs lose."
ALMOST_ALL = 0.995
"""Share of the lost time from which on all of it is said to be one job's."""
Floats = npt.NDArray[np.float64]


def slowed_down(jobs: pl.DataFrame) -> pl.DataFrame:
    """The jobs with enough iterations that are slowed down beyond noise, most first."""
    certain = pl.col("w_high").is_null() | (pl.col("w_high") < 0)
    enough = pl.col("ten_iterations_ps").is_null()
    return jobs.filter(pl.col("w").is_not_null(), enough, certain, pl.col("w") < -NOTICEABLE).sort("w")


@dataclass(frozen=True)
class LostTime:
    """The table of lost time as matrices: a row for each victim, a column for each aggressor.

    Victims that are slowed down beyond noise are first, by W, then the others by the sum of their row; aggressors are
    in the order of the sums of their columns. Cells without a row in the table are not a number.
    """

    victims: list[str]
    aggressors: list[str]
    lost: Floats
    """Time that the victim loses per iteration because of the aggressor, s."""
    low: Floats
    high: Floats
    """Ends of the 95% interval."""
    share: Floats
    """Lost time as a share of the victim's time in the co-run."""
    queueing: Floats
    """Queueing delay of the victim's packets that the aggressor's caused, s."""

    @classmethod
    def of(cls, run: Run) -> Self | None:
        """The matrices of ``run``; None without leave-one-out runs, or if no job completed an iteration."""
        table = run.lost_time
        if table is None or table.is_empty():
            return None
        slowed = slowed_down(run.jobs)["name"].to_list()
        sums = {key: table.group_by(key).agg(pl.col("lost_share").sum()) for key in ("victim", "aggressor")}
        victims, aggressors = (
            matrices.sort("lost_share", key, descending=[True, False])[key].to_list() for key, matrices in sums.items()
        )
        victims.sort(key=lambda name: slowed.index(name) if name in slowed else len(slowed))
        matrices = {name: np.full((len(victims), len(aggressors)), np.nan) for name in _MATRICES.values()}
        rows, columns = ({name: at for at, name in enumerate(names)} for names in (victims, aggressors))
        for row in table.iter_rows(named=True):
            for column, name in _MATRICES.items():
                value = row[column]
                matrices[name][rows[row["victim"]], columns[row["aggressor"]]] = np.nan if value is None else value
        return cls(victims, aggressors, queueing=_queueing(run, victims, aggressors), **matrices)

    @property
    def certain(self) -> npt.NDArray[np.bool_]:
        """Whether the lost time's interval is on one side of zero; without an interval, whether it is noticeable."""
        known = np.isfinite(self.low) & np.isfinite(self.high)
        return np.where(known, (self.low > 0) | (self.high < 0), np.abs(self.share) > NOTICEABLE)


_MATRICES = {"lost_s": "lost", "lost_low_s": "low", "lost_high_s": "high", "lost_share": "share"}


def _queueing(run: Run, victims: list[str], aggressors: list[str]) -> Floats:
    """Queueing delay by victim and aggressor, s; that of the background's jobs is summed."""
    matrix = Interference.of(run)
    number = {name: at for at, name in enumerate(matrix.labels)}
    foreground = {name for name in aggressors if name in number}
    drawn = [at for name, at in number.items() if name not in foreground]
    members = [drawn if name == BACKGROUND else [number[name]] for name in aggressors]
    rows = [number[name] for name in victims]
    return np.array([[matrix.others[row, of].sum() for of in members] for row in rows])


def headline(run: Run) -> str | None:
    """Name the job that loses most time, and the one that costs it most; None if neither is known."""
    slowed, compared = slowed_down(run.jobs), run.jobs["w"].count() > 0
    if lost := LostTime.of(run):
        return _attributed(lost, slowed, none_slowed(run.jobs) if compared else None)
    matrix = Interference.of(run)
    if not matrix.others.any():
        return "No job's packets wait for another's" if matrix.own.any() else None
    if compared and not slowed.is_empty():
        victim = slowed.row(0, named=True)
        first, tied = _losers(run.jobs, slowed)
        victims = f"{first} most to other jobs: W {percent(victim['w'], signed=True)}"
        row = matrix.labels.index(victim["name"])
        behind = _largest_cell(matrix, row, f"{victim['name']}'s" if tied else "Its")
        return f"{victims}. {behind}" if behind else f"{victims}, but none of its packets waits for another's"
    shares = matrix.share(matrix.others)
    row = int(np.unravel_index(int(shares.argmax()), shares.shape)[0])
    cell = _largest_cell(matrix, row, f"{matrix.labels[row]}'s")
    quiet = none_slowed(run.jobs)
    return f"{quiet}. {cell}" if quiet else cell


def _losers(jobs: pl.DataFrame, slowed: pl.DataFrame) -> tuple[str, bool]:
    """Subject and verb: the jobs whose W is the lowest within noise; and whether there are several."""
    lowest = slowed["w"][0]
    names = slowed.filter(pl.col("w") <= lowest + NOTICEABLE)["name"].to_list()
    losers = f"{listed(names)} {'lose' if len(names) > 1 else 'loses'}"
    worse = jobs.filter(pl.col("ten_iterations_ps").is_not_null(), pl.col("w") < lowest)
    return losers if worse.is_empty() else f"Of the jobs with enough iterations, {losers}", len(names) > 1


def none_slowed(jobs: pl.DataFrame) -> str | None:
    """Say that no job is slowed down, of those with enough iterations; None if there are none of them."""
    few = pl.col("ten_iterations_ps").is_not_null()
    if jobs.filter(pl.col("w").is_not_null(), ~few).is_empty():
        return None
    unsure = jobs.filter(few, pl.col("w") < -NOTICEABLE)
    return (
        "No job is slowed down by the others" if unsure.is_empty() else "No job with enough iterations is slowed down"
    )


def _largest_cell(matrix: Interference, row: int, whose: str) -> str | None:
    """For whose packets those of a job are queued longest."""
    delays = matrix.others[row]
    if not delays.any():
        return None
    aggressor = int(delays.argmax())
    share = percent(float(matrix.share(matrix.others)[row, aggressor]))
    amount = f"{seconds(float(delays[aggressor]))}, {share} of its rank time"
    return f"{whose} largest queueing delay is behind {matrix.labels[aggressor]}: {amount}"


def _attributed(lost: LostTime, slowed: pl.DataFrame, quiet: str | None) -> str:
    """The sentence with leave-one-out runs."""
    known = slowed.filter(pl.col("name").is_in(lost.victims))
    if known.is_empty():
        if quiet:
            return quiet
        row = int(np.nanmax(lost.share, axis=1).argmax())
        return _without_total(lost, row)
    victim = known.row(0, named=True)
    row = lost.victims.index(victim["name"])
    column = int(np.nanargmax(lost.lost[row]))
    total = (victim["compared_ps"] - victim["isolated_compared_ps"]) / victim["compared_iterations"] * PS
    w = f"W {percent(victim['w'], signed=True)}"
    name, aggressor = victim["name"], lost.aggressors[column]
    if not lost.certain[row, column] or lost.lost[row, column] <= 0:
        return f"{name} loses {seconds(total)} per iteration ({w}), and as much without any single one of the others"
    if lost.lost[row, column] >= ALMOST_ALL * total:
        return f"{name} loses {seconds(total)} per iteration ({w}), all of it because of {aggressor}"
    amount = _amount(lost, row, column)
    return f"Of the {seconds(total)} per iteration that {name} loses ({w}), {amount} are due to {aggressor}"


def _without_total(lost: LostTime, row: int) -> str:
    column = int(np.nanargmax(lost.lost[row]))
    if not lost.certain[row, column] or lost.lost[row, column] <= 0:
        return "No job loses time because of any one other"
    victim, aggressor = lost.victims[row], lost.aggressors[column]
    return f"{victim} loses {_amount(lost, row, column)} per iteration because of {aggressor}"


def _amount(lost: LostTime, row: int, column: int) -> str:
    cell = cell_of(lost, row, column)
    return with_half_width(cell["lost_s"], cell["lost_s_low"], cell["lost_s_high"], seconds)


def cell_of(lost: LostTime, row: int, column: int) -> dict[str, Any]:
    """A cell of the matrices, its values by name; None where there is none."""
    named = {"lost_s": lost.lost, "lost_s_low": lost.low, "lost_s_high": lost.high, "share": lost.share}
    values = {key: None if np.isnan(of[row, column]) else float(of[row, column]) for key, of in named.items()}
    return {"victim": lost.victims[row], "aggressor": lost.aggressors[column], **values}


def largest(lost: LostTime, most: int) -> list[tuple[int, int]]:
    """Places of the cells with most lost time, most first."""
    order = np.argsort(np.where(np.isnan(lost.share), -np.inf, lost.share), axis=None)[::-1]
    places = [divmod(int(at), lost.share.shape[1]) for at in order[:most]]
    return [at for at in places if np.isfinite(lost.share[at])]
