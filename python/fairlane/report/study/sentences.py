"""A sentence for each figure of a study's page, which says what the data in it show."""

from functools import partial
from typing import Any

from fairlane.plot.treatments import run_kinds
from fairlane.report.study.effects import needed
from fairlane.results.study import StudyResults
from fairlane.study.conditions import varied
from fairlane.study.replication import outer_unit
from fairlane.wording import listed, percent, plural, with_half_width

Rows = list[dict[str, Any]]


def sentences(study: StudyResults, effects: dict[str, Rows], terms: Rows | None) -> dict[str, str]:
    """The sentences, by the figures' names: of those that the study has data for."""
    names = [kind.name for kind in run_kinds(study.work)]
    treated = any(row["improvement"] is not None for row in effects["treatment"])
    column = "improvement" if treated else "w"
    made = {
        "effects": _effects(effects["treatment"], names, column),
        "extremes": _extremes(effects["job"], names, column),
        "cells": _cells(effects["job"], column, study),
        "replicates": _replicates(effects["treatment"], names, column, study),
        "sweeps": _sweeps(study),
        "periods": _periods(study),
        "design": _design(terms) if terms else None,
    }
    return {name: words for name, words in made.items() if words is not None}


def _known(rows: Rows, column: str) -> Rows:
    return sorted((row for row in rows if row[column] is not None), key=lambda row: row[column])


def _change(row: dict[str, Any], column: str) -> str:
    value, low, high = (row[f"{column}{end}"] for end in ("", "_low", "_high"))
    return with_half_width(value, low, high, partial(percent, signed=True))


def _against(column: str) -> str:
    return "the default run" if column == "improvement" else "the isolated run"


def _effects(rows: Rows, names: list[str], column: str) -> str:
    known = _known(rows, column)
    if not known:
        return "No job could be compared."
    best, worst = known[-1], known[0]
    found = f"{names[best['run']]}: {_change(best, column)} throughput against {_against(column)}, mean over jobs"
    if len(known) == 1:
        return f"{found}."
    return f"{found}; {names[worst['run']]}: {_change(worst, column)}."


def _extremes(rows: Rows, names: list[str], column: str) -> str | None:
    known = _known(rows, column)
    if len({row["name"] for row in known}) < 2:
        return None
    worst, best = known[0], known[-1]
    if worst[column] >= 0:
        first = f"No treatment costs a job throughput: the least gain is {_change(worst, column)}"
        first = first if column == "improvement" else f"The lowest W is {_change(worst, column)}"
        return f"{first} ({worst['name']}, {names[worst['run']]})."
    cost = f"{names[worst['run']]} costs {worst['name']} most: {_change(worst, column)} throughput"
    if column == "w":
        return f"{worst['name']} loses most against its isolated run: {_change(worst, column)} throughput."
    return f"{cost}; {best['name']} gains most, {_change(best, column)} with {names[best['run']]}."


def _cells(rows: Rows, column: str, study: StudyResults) -> str:
    values = study.work[column].drop_nulls()
    jobs = plural(len({row["name"] for row in rows}), "job")
    words = f"{jobs} at {plural(study.meta.points, 'point')}"
    if values.is_empty():
        return f"{words}, none of which could be compared."
    worse = int((values < 0).sum())
    return f"{words}: {worse} of {len(values)} cells have less throughput than {_against(column)}."


def _replicates(rows: Rows, names: list[str], column: str, study: StudyResults) -> str:
    unit = outer_unit(study.work)
    known = _known(rows, column)
    if not any(row[f"{column}_low"] is not None for row in known):
        most = max((row["units"] for row in known), default=0)
        words = f"There is no interval: with {plural(most, unit)} it is not known how much effects vary"
        return f"{words}; three are needed."
    open_ = [(names[row["run"]], needed(row, column)) for row in known]
    unsure = [f"{name} (about {count:,} {unit}s)" for name, count in open_ if count is not None]
    if not unsure:
        return f"All {len(known)} intervals exclude zero." if len(known) > 1 else "The interval excludes zero."
    words = f"The intervals of {listed(unsure)} include zero"
    return f"{words}; in brackets what would be needed if the means stay as they are."


def _sweeps(study: StudyResults) -> str | None:
    names = varied(study.work)
    if not names:
        return None
    each = [f"{name} ({plural(study.work[name].n_unique(), 'value')})" for name in names]
    return f"The study varies {listed(each)}."


def _periods(study: StudyResults) -> str | None:
    if study.periods.is_empty():
        return None
    periods = int(study.periods["period"].n_unique())
    return f"{plural(periods, 'period')} of {listed(study.periods['treatment'].unique(maintain_order=True).to_list())}."


def _design(terms: Rows) -> str:
    known = [row for row in terms if row["share"] is not None and row["term"] != "residual"]
    if not known:
        return "The sample separates no factor from the others."
    most = max(known, key=lambda row: row["share"])
    return f"{most['term']} explains most of the variance for {most['name']}: {percent(most['share'])}."
