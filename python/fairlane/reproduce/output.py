"""What a reproduction leaves in its folder: tables and figures of experiments, the claims, and what cells took."""

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from fairlane.reproduce.experiment import CONTROL, DEFAULT, Experiment
from fairlane.reproduce.figures import draw_experiment, draw_progress, draw_rerouted
from fairlane.reproduce.report import Judged, Reproduction
from fairlane.reproduce.results import Results

__all__ = ["store"]


def store(found: Reproduction, folder: Path) -> None:
    """Writes everything."""
    for name, (experiment, _) in found.plan.experiments.items():
        shown = [it for it in experiment.treatments if it != DEFAULT and found.results.has(name, it)]
        for treatment in shown:
            suffix = "" if treatment == CONTROL else f"-{treatment}"
            found.results.jobs(name, treatment).write_csv(folder / f"{name}{suffix}.csv", float_precision=4)
        if shown:
            draw_experiment(experiment, found.results, folder / f"{name}.png", shown)
        elif experiment.routing is not None:
            _rerouted(experiment, found.results, folder)
    static = [name for name in found.plan.experiments if name.endswith(".static") and found.results.has(name)]
    if static:
        draw_progress(found.results, static, folder / "progress.png")
    _claims(found.judged).write_csv(folder / "claims.csv")
    _cells(found).write_csv(folder / "cells.csv", float_precision=1)


def _rerouted(experiment: Experiment, results: Results, folder: Path) -> None:
    """Another routing without control, beside control: of the experiment that has the same jobs."""
    cells = results.rerouted(experiment.name)
    if cells is not None:
        cells.write_csv(folder / f"{experiment.name}.csv", float_precision=4)
        draw_rerouted(experiment, cells, folder / f"{experiment.name}.png")


def _claims(judged: Sequence[Judged]) -> pl.DataFrame:
    rows = [
        {
            "claim": one.claim.id,
            "where": one.claim.where,
            "paper": one.claim.claim,
            "measured": "; ".join(words for words, _ in one.findings) or f"not run: {', '.join(one.missing)}",
            "holds": {True: "yes", False: "no", None: "-"}[one.holds] + (" (scaled)" if one.scaled else ""),
        }
        for one in judged
    ]
    return pl.DataFrame(rows)


def _cells(found: Reproduction) -> pl.DataFrame:
    """What each cell has taken, s."""
    rows = [
        {
            "experiment": done.cell.experiment,
            "placement": done.cell.placement,
            "treatment": done.cell.treatment,
            "periods": done.cell.scale.periods,
            "period": done.cell.scale.period,
            "draws": done.cell.scale.draws,
            "wall_s": done.seconds,
            "cpu_s": done.cpu,
            "error": done.error,
        }
        for done in found.cells
    ]
    return pl.DataFrame(rows, schema_overrides={"draws": pl.Int32, "error": pl.String})
