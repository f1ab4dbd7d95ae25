"""Fitting: the parameters of messages and links, on isolated runs only.

Nothing that was measured beside an aggressor is used. What is made small is the sum over the isolated cells on which
variants are chosen of a robust loss (``soft_l1`` of scipy, near to the absolute value beyond 10%) of the logarithm of
simulated over measured median, by the trust-region method of scipy's ``least_squares`` within the ranges of the
parameters. The result is ``fitted.toml``, whose values predictions then have in place of the defaults.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import log
from pathlib import Path
from typing import Any

import numpy

from fairlane.core.errors import Problem, ScenarioError
from fairlane.inputs.files import load_sealed, save_sealed
from fairlane.papers.campaign.cells import Cell, Cells
from fairlane.papers.campaign.file import CampaignFile, CampaignParameter
from fairlane.papers.campaign.predicting import simulated
from fairlane.papers.campaign.simulating import Model
from fairlane.papers.space import Value
from fairlane.study.tasks.executor import Executor

FITTED = "fitted.toml"
"""The file of fitted values, beside ``campaign.toml``."""
ROUNDS = 6
"""Steps that are tried; each simulates the cells once, and once more for each parameter."""
_STEP = 0.04  # of a range, by which each parameter is changed to see what it does
_LOSS = 0.1  # logarithms of ratios beyond it count as they are, smaller ones by their square


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
    known = [parameter.name for parameter in campaign.fitted]
    for name in data["values"]:
        if name not in known:
            raise ScenarioError(Problem.unknown(f"values.{name}", "parameter", name, known, name).at(str(file), None))
    return dict(data["values"])


def model_of(cells: Cells, assignments: Sequence[str] = ()) -> Model:
    """The model with its fitted values, and those of assignments ``NAME=VALUE``. Raises ``ScenarioError``."""
    given = {}
    known = {parameter.name: parameter for parameter in cells.campaign.parameter}
    for assignment in assignments:
        name, _, value = assignment.partition("=")
        if not value:
            raise ScenarioError(Problem("--set", "has no value", assignment, "NAME=VALUE"))
        if name not in known:
            raise ScenarioError(Problem.unknown("--set", "parameter", name, [*known], name))
        given[name] = known[name].value_of(value)
    model = Model(cells.campaign, cells, {**values_of(cells.campaign), **given})
    model.check()
    return model


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
    parameters = campaign.fitted
    if not parameters:
        allowed = "at least one [[parameter]] with fit = true"
        raise campaign.refuse(Problem("parameter", "nothing to fit", allowed=allowed))
    wanted = [cell for cell in cells.of(campaign.judging.choose) if cell.isolated and cell.key in cells.measured]
    if not wanted:
        raise ScenarioError(
            Problem("DIR", "no isolated cell of judging.choose has measured values", str(campaign.folder))
        )
    measured = [cells.measured[cell.key]["median_s"].value for cell in wanted]
    fits: dict[tuple[float, ...], tuple[Any, Fit]] = {}

    def tried(*places: Any) -> list[Any]:
        """The logarithms of the ratios at these places of the parameters in their ranges, simulated together."""
        values = [
            {parameter.name: parameter.at(_within(at)) for parameter, at in zip(parameters, place, strict=True)}
            for place in places
        ]
        table = simulated([Model(campaign, cells, chosen) for chosen in values], wanted, executor)["cells"]
        for number, (place, chosen) in enumerate(zip(places, values, strict=True)):
            medians = [*zip(wanted, measured, table.filter(point=number)["median_s"].to_list(), strict=True)]
            logs = numpy.log([median / target for _, target, median in medians])
            fits[tuple(place)] = logs, Fit(chosen, float(numpy.abs(logs).mean()), 0, medians)
        return [fits[tuple(place)][0] for place in places]

    def error(place: Any) -> Any:
        if tuple(place) not in fits:
            tried(place)
            fitted = fits[tuple(place)][1]
            shown = (f"{parameter.name} = {parameter.shown(fitted.values[parameter.name])}" for parameter in parameters)
            report(f"mean error {fitted.error:.1%}: {', '.join(shown)}")
        return fits[tuple(place)][0]

    def slopes(place: Any) -> Any:
        sides = [_STEP if at < 1 - _STEP else -_STEP for at in place]
        near = tried(*(place + numpy.diag(sides)))
        return numpy.transpose([(logs - error(place)) / side for logs, side in zip(near, sides, strict=True)])

    from scipy.optimize import least_squares

    start = [min(max(_place(parameter), 1e-6), 1 - 1e-6) for parameter in parameters]
    best = least_squares(error, start, slopes, (0, 1), loss="soft_l1", f_scale=_LOSS, max_nfev=rounds)
    return replace(fits[tuple(best.x)][1], tried=len(fits))


def save(fitted: Fit, campaign: CampaignFile) -> Path:
    """Writes ``fitted.toml``. Raises ``ScenarioError``."""
    path = campaign.folder / FITTED
    rows = [f"{cell}: measured {measured:.4g} s, simulated {median:.4g} s" for cell, measured, median in fitted.medians]
    save_sealed({"error": fitted.error, "tried": fitted.tried, "values": dict(fitted.values), "cells": rows}, path)
    return path


def _within(place: float) -> float:
    return min(max(float(place), 0.0), 1 - 1e-9)


def _place(parameter: CampaignParameter) -> float:
    """Return the place of the default in its range, from 0 to 1."""
    if parameter.levels:
        return ([*parameter.levels].index(str(parameter.default)) + 0.5) / len(parameter.levels)
    (low, high), usual = parameter.ends, float(parameter.usual)
    if parameter.scale == "log":
        return (log(usual) - log(low)) / (log(high) - log(low))
    return (usual - low) / (high - low)
