"""From the cells' rows to what claims and figures are about: I_D, I_B, I_Q, W and improvement per job and placement."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import polars as pl

from fairlane.controller.process_prioritization import State
from fairlane.reproduce.paper import Done
from fairlane.reproduce.savoie2020.cells import SCHEMA, Cell
from fairlane.reproduce.savoie2020.experiment import CONTROL, DEFAULT

__all__ = ["Results"]


@dataclass
class Results:
    """The rows of all finished cells, by experiment and treatment."""

    rows: dict[tuple[str, str], pl.DataFrame] = field(default_factory=dict)
    defaults: Mapping[str, str] = field(default_factory=dict)
    """The experiment whose default runs another one shares, by that one's name."""
    failed: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """How many cells failed, by experiment and treatment."""

    @classmethod
    def of(cls, done: Mapping[Cell, Done], defaults: Mapping[str, str] | None = None) -> "Results":
        """Puts together what the cells hold."""
        found: dict[tuple[str, str], list[pl.DataFrame]] = {}
        failed = Counter((cell.experiment, cell.treatment) for cell, one in done.items() if one.answer is None)
        for cell, one in done.items():
            if one.answer is not None:
                rows = pl.DataFrame(dict(one.answer), schema=SCHEMA)
                placed = rows.with_columns(placement=pl.lit(cell.placement, pl.Int32))
                found.setdefault((cell.experiment, cell.treatment), []).append(placed)
        return cls({key: pl.concat(frames) for key, frames in sorted(found.items())}, defaults or {}, failed)

    def default(self, experiment: str) -> tuple[str, str]:
        """Under which key the experiment's default runs are."""
        return (self.defaults.get(experiment, experiment), DEFAULT)

    def has(self, experiment: str, treatment: str = CONTROL) -> bool:
        """Whether both the treatment and the default of the experiment are there."""
        return (experiment, treatment) in self.rows and self.default(experiment) in self.rows

    def jobs(self, experiment: str, treatment: str = CONTROL) -> pl.DataFrame:
        """A row for each placement and job: iterations by default, alone and treated, both W, and the improvement.

        Sums over all periods, those in which the algorithm searches included, of the placements that have both.
        """
        keys = ["placement", "job", "workload"]
        pairs = self.pairs(experiment, treatment)
        sums = pairs.group_by(keys, maintain_order=True).agg(
            pl.col("iterations", "default_iterations", "isolated_iterations").sum()
        )
        treated, default, alone = pl.col("iterations"), pl.col("default_iterations"), pl.col("isolated_iterations")
        return sums.with_columns(
            w_default=pl.when(alone > 0).then(default / alone - 1),
            w_treated=pl.when(alone > 0).then(treated / alone - 1),
            improvement=pl.when(default > 0).then(treated / default - 1),
        )

    def rerouted(self, experiment: str, beside: str = "small.static") -> pl.DataFrame | None:
        """The jobs of ``beside`` with what they do by default in ``experiment``, as ``rerouted_iterations``.

        ``w_rerouted`` is against the jobs alone under the routing of ``beside``, as W with QoS is. None if something
        is missing.
        """
        if not self.has(beside) or (experiment, DEFAULT) not in self.rows:
            return None
        keys = ["placement", "job"]
        sums = (
            self.rows[experiment, DEFAULT].group_by(keys).agg(pl.col("iterations").sum().alias("rerouted_iterations"))
        )
        alone = pl.col("isolated_iterations")
        joined = self.jobs(beside).join(sums, on=keys, maintain_order="left")
        return joined.with_columns(w_rerouted=pl.when(alone > 0).then(pl.col("rerouted_iterations") / alone - 1))

    def pairs(self, experiment: str, treatment: str = CONTROL) -> pl.DataFrame:
        """A row for each placement, period and job, with the default beside the treatment."""
        default = self.rows[self.default(experiment)].select(
            "placement",
            "period",
            "job",
            pl.col("iterations").alias("default_iterations"),
            pl.col("isolated_iterations"),
        )
        treated = self.rows[experiment, treatment].drop("isolated_iterations")
        return treated.join(default, on=["placement", "period", "job"], how="inner", maintain_order="left")

    def progress(self, experiment: str, treatment: str = CONTROL) -> pl.DataFrame:
        """For each placement and number of accepted configurations: the mean improvement over jobs and periods.

        Where the algorithm starts over, its configurations are given up, and it has accepted none.
        """
        default, accepted = pl.col("state") == State.DEFAULT, pl.col("accepted").cast(pl.Int32)
        change = pl.when(pl.col("default_iterations") > 0).then(pl.col("iterations") / pl.col("default_iterations") - 1)
        by_period = (
            self.pairs(experiment, treatment)
            .group_by("placement", "period", maintain_order=True)
            .agg(change.mean().alias("improvement"), pl.col("accepted").first(), pl.col("state").first())
            .sort("placement", "period")
            .with_columns(starts=(default & ~default.shift(1, fill_value=False)).cum_sum().over("placement"))
            .with_columns(adopted=accepted.shift(1, fill_value=0).cum_sum().over("placement", "starts"))
        )
        return by_period.group_by("placement", "adopted", maintain_order=True).agg(pl.col("improvement").mean())
