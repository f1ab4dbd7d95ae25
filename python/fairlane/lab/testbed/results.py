"""Results of a testbed: measured and predicted W with 95% intervals, effects of treatments, and their folder.

Measured values are independent over repetitions, predicted ones over replicates. In a repetition the isolated and the
common phases of a job belong together, and so do treated and untreated ones, in the same way as in simulations.
"""

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from math import isfinite, nan
from pathlib import Path
from typing import Any

import polars as pl

from fairlane.core.errors import Problem, ScenarioError, writing
from fairlane.core.statistics import Estimate, beyond_noise, difference, independent
from fairlane.inputs.files import write_text
from fairlane.lab.testbed.file import TestbedFile
from fairlane.lab.testbed.measure import ISOLATED, TOGETHER
from fairlane.lab.testbed.simulate import Fit

MOST_DIFFERENCE = 0.10
"""Up to this difference predicted and measured W count as equal."""
LEAST_CORRELATION = 0.8
"""Rank correlation from which on the order of jobs counts as right."""


def measured_w(times: pl.DataFrame) -> dict[str, list[float]]:
    """W of each job by repetition, of rows of ``times_per_iteration``."""
    return _changes(times, ISOLATED, TOGETHER)


def measured_effect(times: pl.DataFrame, kind: str) -> dict[str, list[float]]:
    """The improvement of each job in phases of a kind against those without service levels, by repetition."""
    return _changes(times, TOGETHER, kind)


def predicted_effect(
    untreated: Mapping[str, Sequence[float]], treated: Mapping[str, Sequence[float]]
) -> dict[str, list[float]]:
    """The improvement of each job by replicate, from its W with and without a treatment."""
    return {
        job: [(1 + after) / (1 + before) - 1 for before, after in zip(values, treated[job], strict=True)]
        for job, values in untreated.items()
    }


def _changes(times: pl.DataFrame, reference: str, kind: str) -> dict[str, list[float]]:
    keys = ["repetition", "job"]
    both = times.filter(pl.col("kind") == reference).join(times.filter(pl.col("kind") == kind), on=keys)
    ratio = pl.col("seconds_per_iteration") / pl.col("seconds_per_iteration_right") - 1
    rows = both.sort("repetition").select("job", change=ratio)
    jobs = times["job"].unique(maintain_order=True).to_list()
    return {job: rows.filter(pl.col("job") == job)["change"].to_list() for job in jobs}


@dataclass(frozen=True)
class Verdict:
    """Agreement of predictions with measurements."""

    spearman: float
    """Rank correlation of measured and predicted W over jobs; not a number with fewer than two jobs."""
    most_difference: float
    """The largest absolute difference of W, and of which job."""
    most_different: str
    signs: tuple[int, int]
    """Effects beyond noise whose predicted sign is right, and how many there are."""

    def lines(self) -> list[str]:
        """The same in words, each with its limit."""
        right, effects = self.signs
        order = "not defined" if not isfinite(self.spearman) else f"{self.spearman:.2f}"
        sentences = [
            f"order of jobs: Spearman {order}, wanted at least {LEAST_CORRELATION}",
            f"largest difference of W: {100 * self.most_difference:.1f} points ({self.most_different}), "
            f"wanted at most {100 * MOST_DIFFERENCE:.0f}",
        ]
        if effects:
            sentences.append(f"sign of effects beyond noise: {right} of {effects} right")
        return sentences


def comparison(measured: Mapping[str, Sequence[float]], predicted: Mapping[str, Sequence[float]]) -> pl.DataFrame:
    """A row for each job: measured and predicted value, and their difference, each with ``_low`` and ``_high``."""
    rows = []
    for job, values in measured.items():
        left, right = _mean(values), _mean(predicted[job])
        columns = {"measured": left, "predicted": right, "difference": difference(left, right)}
        rows.append(
            {"job": job} | {key: value for name, estimates in columns.items() for key, value in _row(name, estimates)}
        )
    return pl.DataFrame(rows, infer_schema_length=None)


def effects(
    treatment: str, measured: Mapping[str, Sequence[float]], predicted: Mapping[str, Sequence[float]]
) -> pl.DataFrame:
    """As ``comparison`` for a treatment's effect, with ``beyond_noise`` of the measured one, and ``sign_right``."""
    table = comparison(measured, predicted)
    noise = beyond_noise([_mean(values) for values in measured.values()])
    right = (pl.col("measured").sign() == pl.col("predicted").sign()) if table.height else pl.lit(None)
    return table.select(
        pl.lit(treatment).alias("treatment"),
        pl.all(),
        pl.Series("beyond_noise", noise, pl.Boolean),
        right.alias("sign_right"),
    )


def judge(of_w: pl.DataFrame, of_effects: pl.DataFrame | None) -> Verdict:
    """Whether predictions agree with measurements, of the tables of ``comparison`` and ``effects``."""
    from scipy import stats

    spearman = nan
    if of_w.height > 1:
        spearman = float(stats.spearmanr(of_w["measured"], of_w["predicted"]).statistic)
    worst = of_w.sort(pl.col("difference").abs(), descending=True).row(0, named=True)
    clear = None if of_effects is None else of_effects.filter(pl.col("beyond_noise"))
    signs = (0, 0) if clear is None else (int(clear["sign_right"].sum()), clear.height)
    return Verdict(spearman, abs(worst["difference"]), worst["job"], signs)


def _mean(values: Sequence[float]) -> Estimate:
    return independent([value for value in values if isfinite(value)]) or Estimate(nan)


def _row(name: str, estimate: Estimate) -> list[tuple[str, float | None]]:
    return [(name, estimate.value), (f"{name}_low", estimate.low), (f"{name}_high", estimate.high)]


META = "testbed.json"
"""The file with the testbed's file, the host model and the verdict."""
MEASURED = "measured"
"""The folder with a file for each repetition."""
_MEASURED_KEYS = ("seed", "fabric", "jobs", "qos", "measure")


@dataclass(frozen=True)
class Results:
    """Measurements and predictions."""

    file: TestbedFile
    fit: Fit
    w: pl.DataFrame
    """Measured and predicted W: a row for each job."""
    effects: pl.DataFrame | None
    """Measured and predicted effects of treatments: a row for each treatment and job."""
    verdict: Verdict
    control: pl.DataFrame | None = None
    """Changes by the agent's settings: a row for each job."""
    decisions: tuple[str, ...] = ()
    """Decisions that the agent reported."""
    steered: pl.DataFrame | None = None
    """Changes by a controller: a row for each job and one for their mean."""
    periods: pl.DataFrame | None = None
    """The periods of the controller: a row for each repetition, period and job."""
    costs: tuple[str, ...] = ()
    """Times of reading progress and changing settings, as lines."""

    @property
    def tables(self) -> dict[str, pl.DataFrame]:
        """The tables by name."""
        frames = {"w": self.w, "effects": self.effects, "agent": self.control, "steered": self.steered}
        return {name: table for name, table in frames.items() if table is not None}

    def save(self, folder: Path) -> None:
        """Writes tables and ``testbed.json`` into a folder."""
        for name, table in self.tables.items():
            with writing(folder / f"{name}.csv"):
                table.write_csv(folder / f"{name}.csv", float_precision=6)
        if self.periods is not None:
            with writing(folder / "periods.parquet"):
                self.periods.write_parquet(folder / "periods.parquet")
        write_text(folder / META, json.dumps(self.written(), indent=1) + "\n")

    def written(self) -> dict[str, Any]:
        """Return what is stored besides the tables."""
        return {
            **measured_keys(self.file),
            "host_model": asdict(self.fit.model),
            "isolated_measured_s": dict(self.fit.measured_s),
            "isolated_simulated_s": dict(self.fit.simulated_s),
            "spearman": self.verdict.spearman,
            "most_difference": self.verdict.most_difference,
            "signs": list(self.verdict.signs),
            "decisions": list(self.decisions),
            "costs": list(self.costs),
        }


def measured_keys(file: TestbedFile) -> dict[str, Any]:
    """The parts of the file on which measurements depend."""
    keys: dict[str, Any] = file.model_dump(mode="json", include=set(_MEASURED_KEYS), exclude_none=True)
    keys["measure"].pop("repetitions")
    return {"testbed": keys}


def prepare(folder: Path, file: TestbedFile, *, resume: bool) -> None:
    """Makes the folder of results, or finds that it has measurements of the same testbed.

    Raises ``ScenarioError`` if it has others, or is not empty and ``resume`` is false.
    """
    meta = folder / MEASURED / META
    if folder.exists() and any(folder.iterdir()):
        if not resume:
            raise ScenarioError(Problem("--out", "directory exists; choose another or pass --resume", str(folder)))
        stored = json.loads(meta.read_text(encoding="utf-8")) if meta.is_file() else None
        if stored != measured_keys(file):
            message = "has measurements of another testbed or none"
            raise ScenarioError(Problem("--out", message, str(folder), "the folder of the same testbed, or a new one"))
        return
    meta.parent.mkdir(parents=True, exist_ok=True)
    write_text(meta, json.dumps(measured_keys(file), indent=1) + "\n")


def fresh(folder: Path) -> Path:
    """A folder without what an earlier run of the agent has left in it."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return folder
