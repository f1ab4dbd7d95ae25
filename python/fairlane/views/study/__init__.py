"""Studies: effects of treatments, by job, cell and parameter, how certain they are; times by condition."""

from collections.abc import Iterator, Mapping

import polars as pl

from fairlane.core.errors import ScenarioError
from fairlane.core.statistics import COVERAGE
from fairlane.core.wording import listed, plural, seconds
from fairlane.results.milestones import FEW_ITERATIONS
from fairlane.results.notes import few, stops, sufficient
from fairlane.results.study import StudyResults
from fairlane.study.comparison import Comparison, Side, compare
from fairlane.study.conditions import timeless
from fairlane.views.model import Chart, View, lines_of, remarks_of
from fairlane.views.study import conditions, effects, parameters, tables, work
from fairlane.views.study.series import DEFAULT, Compared, alone_everywhere
from fairlane.views.tables import Bad, Table

PICTURES = {
    "work": "improvement of each job and W by workload and treatment",
    "conditions": "time per iteration, W and improvement by condition",
    "effects": "effects of treatments with their intervals",
    "comparison": "changes of jobs against another study",
    "extremes": "the worst, average and best job of each treatment",
    "replicates": "effects by placement or seed",
    "cells": "effects by job and point",
    "sweeps": "effects by the values of each parameter",
    "periods": "iterations by period of controllers",
    "design": "shares of the variance by factor",
    "measured": "columns of tables that a study measures",
}
"""Its pictures, and what they show."""
_CHANGES = "Throughput of the first study's jobs against those of the others, over placements and seeds of both."
MOST_FAILURES = 5
"""With more failures than this, the others are only counted."""


def view(studies: Mapping[str, StudyResults]) -> View:
    """One study, or several against each other."""
    compared = Compared.of(studies)
    against, apart = _changes(compared)
    return View(
        title=", ".join(dict.fromkeys(study.meta.study for study in studies.values())),
        headline="\n".join(_headlines(studies, compared)),
        facts=lines_of(studies, _facts),
        parts=[part for part in _parts(studies, compared, against) if part],
        remarks=[*_about(compared), *remarks_of(studies, _remarks), *apart],
        provenance={name: _provenance(study) for name, study in studies.items()},
    )


def _headlines(studies: Mapping[str, StudyResults], compared: Compared) -> Iterator[str]:
    """Yield the main result of each study, or its subject."""
    for name, study in studies.items():
        line = (name in compared.studies and work.headline(compared, name)) or study.headline()
        yield f"{name}: {line}" if len(studies) > 1 else line


def _facts(study: StudyResults) -> str:
    meta = study.meta
    shared = meta.runs - meta.simulations
    again = f" ({plural(shared, 'run')} the same as another)" if shared > 0 else ""
    failed = f", {meta.failures} failed" if meta.failures else ""
    counts = f"{plural(meta.points, 'point')}, {plural(meta.runs, 'run')}, {plural(meta.simulations, 'simulation')}"
    return f"{meta.study}: {counts}{again}{failed}, {seconds(meta.wall_s)}"


def _parts(
    studies: Mapping[str, StudyResults], compared: Compared, against: Mapping[str, Comparison]
) -> Iterator[Table | Chart | None]:
    estimates = effects.effects_of(compared) if compared.effects else None
    extreme = estimates is not None and effects.has_extremes(estimates, compared.effect)
    measured, terms = tables.measured_tables(studies), parameters.terms_of(studies)
    yield effects.forest(compared, estimates) if estimates is not None else None
    yield effects.changes_chart(against, _CHANGES) if against else None
    yield from work.work_charts(compared)
    if estimates is not None:
        yield effects.extremes(compared, estimates) if extreme else None
        yield effects.replicates(compared, estimates)
    yield from conditions.condition_charts(compared)
    yield effects.cells_chart(compared) if compared.effects else None
    yield from parameters.sweep_charts(compared)
    yield parameters.periods_chart(compared)
    yield from tables.measured_charts(measured)
    yield parameters.terms_chart(terms) if terms else None
    if compared.studies:
        yield tables.by_condition(compared)
        yield from tables.by_repetition(compared)
    if estimates is not None and extreme:
        yield effects.extremes_table(compared, estimates)
    yield from (tables.measured_table(name, table) for name, table in measured.items())
    yield parameters.terms_table(terms) if terms else None
    yield tables.failures_table(studies)


def _changes(compared: Compared) -> tuple[dict[str, Comparison], list[str]]:
    """The changes from each other study to the first one, and why there are none."""
    comparisons: dict[str, Comparison] = {}
    apart: list[str] = []
    names = list(compared.studies)
    for name in names[1:]:
        first, other = (Side(side, compared.studies[side]) for side in (names[0], name))
        try:
            comparisons[name] = compare(other, first)
        except ScenarioError as error:
            apart.append(f"{first.name} is not compared with {name}: {error}.")
    return comparisons, apart


def _about(compared: Compared) -> Iterator[str]:
    """Yield explanations of columns."""
    if not compared.studies:
        return
    improvement = " Improvement: throughput change against the default run." if compared.treated else ""
    w = f"W: throughput change against the isolated run.{improvement} Means over jobs, placements and seeds."
    if not compared.co_running:
        w = "Every scenario has one job, so there is no W. Means over placements and seeds."
    yield f"{w} ±: {COVERAGE:.0%} interval over {compared.units}; of a single run over its iterations."


def _remarks(study: StudyResults) -> Iterator[str]:
    """Yield the weaknesses of the figures, and failures."""
    rows = study.work
    if study.measured is None and rows.height:
        apart = [name for name in ("placement", "seed") if rows[name].n_unique() > 1]
        points = rows["point"].n_unique()
        if apart and points > tables.MOST_SINGLE:
            yield f"By {' and '.join(apart)}, {points} rows: see the table work, or fairlane report."
        without = timeless(rows)
        yield from [without] if without else []
        yield from comparison_notes(rows)
    yield from study.meta.notes
    for failure in study.failures.head(MOST_FAILURES).iter_rows(named=True):
        what = f"{failure['treatment']} run" + (f" of {failure['job']}" if failure["job"] else "")
        where = f"point {failure['point']}, {what}: {failure['error']}; see {failure['scenario']}"
        yield Bad(f"failed twice: {where}")
    if study.failures.height > MOST_FAILURES:
        yield Bad(f"... and {study.failures.height - MOST_FAILURES} others: see the table failures")


def comparison_notes(table: pl.DataFrame) -> Iterator[str]:
    """Sentences about rows that cannot be compared, or hardly."""
    if "ten_iterations_ps" not in table.columns or alone_everywhere(table):
        return
    default = table.filter(pl.col("treatment") == DEFAULT, pl.col("baseline") == "")
    names = {"without": default.filter(pl.col("w").is_null()), "hardly": few(default)}
    for kind, rows in names.items():
        if rows.is_empty():
            continue
        jobs = listed(rows["name"].unique(maintain_order=True).to_list())
        where = f"{jobs}, {rows.height} of {plural(default.height, 'default run')} of a job"
        time = sufficient(rows)
        begin = "No W without a completed iteration" if kind == "without" else "Too few iterations for a reliable W"
        yield f"{begin}: {where}" + (f"; {FEW_ITERATIONS} take about {time}{stops(rows)}." if time else ".")


def _provenance(study: StudyResults) -> dict[str, object]:
    meta = study.meta
    made = {"fairlane": meta.version, "started": meta.started, "simulations": meta.simulations}
    return {"folder": study.folder, "study": meta.study, **made, "digest of the tables": meta.digest}
