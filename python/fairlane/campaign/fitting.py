"""Fitting: the parameters of messages and links, on isolated runs only.

Nothing that was measured beside an aggressor is used. What is made small is the mean of the absolute logarithms of
simulated over measured medians, over the isolated cells on which variants are chosen; by the downhill simplex of J. A.
Nelder and R. Mead (Comput. J. 7, 1965) over the ranges of the parameters. The result is ``fitted.toml``, whose values
predictions then have in place of the defaults.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import log
from pathlib import Path
from typing import Any

import numpy

from fairlane.campaign.cells import Cell, Cells
from fairlane.campaign.file import CampaignFile, CampaignParameter
from fairlane.campaign.simulating import Model
from fairlane.errors import Problem, ScenarioError
from fairlane.inputs.files import load_sealed, save_sealed
from fairlane.reproduce.space import Value
from fairlane.tasks.executor import Executor

FITTED = "fitted.toml"
"""The file of fitted values, beside ``campaign.toml``."""
ROUNDS = 120
"""How many combinations of values are tried."""
_STEP = 0.15  # of a range, the side of the first simplex


@dataclass(frozen=True)
class Fit:
    """Values of the fitted parameters, and how near they come."""

    values: Mapping[str, Value]
    error: float
    """The mean of the absolute logarithms of simulated over measured medians."""
    tried: int
    medians: Sequence[tuple[Cell, float, float]]
    """The cells, with measured and simulated median, s."""


def values_of(campaign: CampaignFile) -> Mapping[str, Value]:
    """The values in ``fitted.toml``, if there is one. Raises ``ScenarioError`` if it has changed or names others."""
    file = campaign.folder / FITTED
    if not file.is_file():
        return {}
    data, problem = load_sealed(file)
    if problem is not None:
        raise ScenarioError(problem)
    known = [one.name for one in campaign.fitted]
    for name in data["values"]:
        if name not in known:
            raise ScenarioError(Problem.unknown(f"values.{name}", "parameter", name, known, name).at(str(file), None))
    return dict(data["values"])


def fit(
    campaign: CampaignFile,
    cells: Cells,
    executor: Executor,
    *,
    rounds: int = ROUNDS,
    report: Callable[[str], None] = lambda _words: None,
) -> Fit:
    """Fits the parameters with ``fit = true`` on the isolated cells of ``judging.choose``.

    Raises ``ScenarioError`` if there is none of them, or no parameter to fit.
    """
    names = campaign.fitted
    if not names:
        raise campaign.refuse(
            Problem("parameter", "nothing to fit", allowed="at least one [[parameter]] with fit = true")
        )
    wanted = [cell for cell in cells.of(campaign.judging.choose) if cell.isolated and cell.key in cells.measured]
    if not wanted:
        raise ScenarioError(
            Problem("DIR", "no isolated cell of judging.choose has measured values", str(campaign.folder))
        )
    best: list[Fit] = []

    def error(places: Any) -> float:
        values = {one.name: one.at(_within(place)) for one, place in zip(names, places, strict=True)}
        medians = _medians(Model(campaign, cells, values), wanted, cells, executor)
        found = float(numpy.mean([abs(log(simulated / measured)) for _, measured, simulated in medians]))
        outside = float(numpy.abs(places - numpy.clip(places, 0, 1)).sum())
        if not outside and (not best or found < best[-1].error):
            best.append(Fit(values, found, 0, medians))
            shown = ", ".join(f"{one.name} = {one.shown(values[one.name])}" for one in names)
            report(f"mean error {found:.1%}: {shown}")
        return found + outside

    from scipy.optimize import minimize

    start = numpy.array([_place(one) for one in names])
    simplex = numpy.vstack([start, *(start + (_STEP if at <= 0.5 else -_STEP) * side for at, side in _sides(start))])
    found = minimize(error, start, method="Nelder-Mead", options={"maxfev": rounds, "initial_simplex": simplex})
    return Fit(best[-1].values, best[-1].error, int(found.nfev), best[-1].medians)


def save(found: Fit, campaign: CampaignFile) -> Path:
    """Writes ``fitted.toml``. Raises ``ScenarioError``."""
    path = campaign.folder / FITTED
    rows = [
        f"{cell}: measured {measured:.4g} s, simulated {simulated:.4g} s" for cell, measured, simulated in found.medians
    ]
    save_sealed({"error": found.error, "tried": found.tried, "values": dict(found.values), "cells": rows}, path)
    return path


def _sides(start: Any) -> list[tuple[float, Any]]:
    return list(zip(start, numpy.eye(len(start)), strict=True))


def _within(place: float) -> float:
    return min(max(float(place), 0.0), 1 - 1e-9)


def _place(one: CampaignParameter) -> float:
    """Where the default is in its range, from 0 to 1."""
    if one.levels:
        return ([*one.levels].index(str(one.default)) + 0.5) / len(one.levels)
    (low, high), usual = one.ends, float(one.usual)
    if one.scale == "log":
        return (log(usual) - log(low)) / (log(high) - log(low))
    return (usual - low) / (high - low)


def _medians(
    model: Model, wanted: Sequence[Cell], cells: Cells, executor: Executor
) -> Sequence[tuple[Cell, float, float]]:
    tasks = {cell: model.task(cell, 1) for cell in wanted}
    executor.run(tasks.values())
    found = []
    for cell, task in tasks.items():
        answer = executor.answer(task)
        assert answer is not None, "the first failure ends it"
        found.append((cell, cells.measured[cell.key]["median_s"].value, float(numpy.median(answer["times_s"]))))
    return found
