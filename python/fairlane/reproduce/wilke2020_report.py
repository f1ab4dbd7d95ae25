"""Reproducing Wilke and Kenny 2020: cells run, claims judged, tables stored and figures drawn."""

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.resources import files
from pathlib import Path

import polars as pl

from fairlane.errors import Problem, ScenarioError
from fairlane.reproduce.wilke2020 import EXPERIMENTS, Cell, Scale
from fairlane.reproduce.wilke2020_cells import Outcome, run_cells
from fairlane.reproduce.wilke2020_checks import CHECKS, Finding, Measured
from fairlane.reproduce.wilke2020_figures import draw
from fairlane.results.iterations import distribution

__all__ = ["Judged", "cells_of", "reproduce"]


PAPER = "wilke2020"
"""What the paper is called."""


@dataclass(frozen=True)
class Judged:
    """A claim and what was measured."""

    id: str
    claim: str
    findings: Sequence[Finding]
    missing: Sequence[Cell]
    """Cells that the claim needs and that are not there."""

    @property
    def holds(self) -> bool | None:
        """Whether all that was measured is in its band; None if something is missing."""
        return None if self.missing else all(held for _, held in self.findings)


def cells_of(only: str | None = None) -> list[Cell]:
    """The cells of all claims, or of one, each once; raises ``ScenarioError`` if there is no such claim."""
    return list(dict.fromkeys(cell for name in _experiments(only) for cell in EXPERIMENTS[name].cells))


def _experiments(only: str | None) -> list[str]:
    if only is not None and only not in CHECKS:
        raise ScenarioError(Problem.unknown("--only", "claim of wilke2020", only, list(CHECKS), only))
    needed = {name for claim, (names, _) in CHECKS.items() if only in (None, claim) for name in names}
    return [name for name in EXPERIMENTS if name in needed]


def _silently(cell: Cell, words: str) -> None:
    """Hears of a cell and says nothing."""
    del cell, words


def reproduce(
    scale: Scale, folder: Path, *, only: str | None = None, told: Callable[[Cell, str], None] = _silently
) -> list[Judged]:
    """Runs what is missing in ``folder``, judges the claims, stores tables and draws figures.

    Cells on fabrics that ``scale`` leaves out are missing, and so are those that cannot be run.
    """
    cells = [cell for cell in cells_of(only) if cell.fabric in scale.fabrics]
    found = run_cells(cells, scale, folder / "cells", told)
    judged = [_judge(claim, found, scale) for claim in CHECKS if only in (None, claim)]
    for name in _experiments(only):
        draw(name, Measured(found, scale), folder / f"{name}.png")
    _times(found).write_csv(folder / "times.csv", float_precision=9)
    _claims(judged).write_csv(folder / "claims.csv")
    return judged


def _judge(claim: str, cells: Mapping[Cell, Outcome], scale: Scale) -> Judged:
    measured = Measured(cells, scale)
    findings = list(CHECKS[claim][1](measured))
    table = tomllib.loads(files("fairlane.reproduce").joinpath("wilke2020.toml").read_text(encoding="utf-8"))
    words = next(row["claim"] for row in table["claim"] if row["id"] == claim)
    return Judged(claim, words, findings, measured.missing)


def _times(cells: Mapping[Cell, Outcome]) -> pl.DataFrame:
    """A row for each cell: quantiles of its iteration times, s."""
    rows = [
        pl.DataFrame([asdict(cell)]).hstack(
            distribution(outcome.iterations.with_columns(name=pl.lit(str(cell)))).drop("name")
        )
        for cell, outcome in cells.items()
    ]
    return pl.concat(rows) if rows else pl.DataFrame()


def _claims(judged: Sequence[Judged]) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "claim": one.id,
            "paper": one.claim,
            "measured": "; ".join(f"{words}: {'yes' if held else 'no'}" for words, held in one.findings),
            "missing": "; ".join(map(str, one.missing)),
            "holds": {True: "yes", False: "no", None: "-"}[one.holds],
        }
        for one in judged
    )
