"""Studies: effects of treatments, by job, cell and parameter, how certain they are; times by condition."""

from collections.abc import Iterator, Mapping

import polars as pl

from fairlane.comparison import Side, compare
from fairlane.comparison.changes import Comparison
from fairlane.errors import ScenarioError
from fairlane.results.milestones import FEW_ITERATIONS
from fairlane.results.notes import few, stops, sufficient
from fairlane.results.study import StudyResults
from fairlane.statistics import COVERAGE
from fairlane.study.conditions import timeless
from fairlane.views.model import Chart, View, lines_of, remarks_of
from fairlane.views.study.conditions import condition_charts
from fairlane.views.study.effects import (
    cells_chart,
    changes_chart,
    effects_of,
    extremes,
    extremes_table,
    forest,
    has_extremes,
    replicates,
)
from fairlane.views.study.parameters import periods_chart, sweep_charts, terms_chart, terms_of, terms_table
from fairlane.views.study.series import DEFAULT, Compared, alone_everywhere
from fairlane.views.study.tables import (
    MOST_SINGLE,
    by_condition,
    by_repetition,
    failures_table,
    measured_charts,
    measured_table,
    measured_tables,
)
from fairlane.views.study.work import headline, work_charts
from fairlane.views.tables import Bad, Table
from fairlane.wording import listed, plural, seconds

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
    """What each study found, or what it is a study of."""
    for name, study in studies.items():
        words = (name in compared.studies and headline(compared, name)) or study.headline()
        yield f"{name}: {words}" if len(studies) > 1 else words


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
    effects = effects_of(compared) if compared.effects else None
    extreme = effects is not None and has_extremes(effects, compared.effect)
    tables, terms = measured_tables(studies), terms_of(studies)
    yield forest(compared, effects) if effects is not None else None
    yield changes_chart(against, _CHANGES) if against else None
    yield from work_charts(compared)
    if effects is not None:
        yield extremes(compared, effects) if extreme else None
        yield replicates(compared, effects)
    yield from condition_charts(compared)
    yield cells_chart(compared) if compared.effects else None
    yield from sweep_charts(compared)
    yield periods_chart(compared)
    yield from measured_charts(tables)
    yield terms_chart(terms) if terms else None
    if compared.series:
        yield by_condition(compared)
        yield from by_repetition(compared)
    if effects is not None and extreme:
        yield extremes_table(compared, effects)
    yield from (measured_table(name, table) for name, table in tables.items())
    yield terms_table(terms) if terms else None
    yield failures_table(studies)


def _changes(compared: Compared) -> tuple[dict[str, Comparison], list[str]]:
    """The changes from each other study to the first one, and why there are none."""
    found: dict[str, Comparison] = {}
    apart: list[str] = []
    names = list(compared.studies)
    for name in names[1:]:
        first, other = (Side(one, compared.studies[one]) for one in (names[0], name))
        try:
            found[name] = compare(other, first)
        except ScenarioError as error:
            apart.append(f"{first.name} is not compared with {name}: {error}.")
    return found, apart


def _about(compared: Compared) -> Iterator[str]:
    """What columns are."""
    if not compared.series:
        return
    effects = []
    if compared.co_running:
        effects.append("W: throughput change against the isolated run.")
        if compared.treated:
            effects.append("Improvement: throughput change against the default run.")
        effects.append("Means over jobs, placements and seeds.")
    else:
        effects.append("Every scenario has one job, so there is no W. Means over placements and seeds.")
    interval = f"±: {COVERAGE:.0%} interval over {compared.units}; of a single run over its iterations."
    yield " ".join([*effects, interval])


def _remarks(study: StudyResults) -> Iterator[str]:
    """What is weak about the figures, what failed."""
    work = study.work
    if study.measured is None and work.height:
        apart = [name for name in ("placement", "seed") if work[name].n_unique() > 1]
        points = work["point"].n_unique()
        if apart and points > MOST_SINGLE:
            yield f"By {' and '.join(apart)}, {points} rows: see the table work, or fairlane report."
        without = timeless(work)
        yield from [without] if without else []
        yield from comparison_notes(work)
    yield from study.meta.notes
    for failure in study.failures.head(MOST_FAILURES).iter_rows(named=True):
        what = f"{failure['treatment']} run" + (f" of {failure['job']}" if failure["job"] else "")
        where = f"point {failure['point']}, {what}: {failure['error']}; see {failure['scenario']}"
        yield Bad(f"failed twice: {where}")
    if study.failures.height > MOST_FAILURES:
        yield Bad(f"... and {study.failures.height - MOST_FAILURES} others: see the table failures")


def comparison_notes(work: pl.DataFrame) -> Iterator[str]:
    """Sentences about rows that cannot be compared, or hardly."""
    if "ten_iterations_ps" not in work.columns or alone_everywhere(work):
        return
    default = work.filter(pl.col("treatment") == DEFAULT, pl.col("baseline") == "")
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
    return {
        "folder": study.folder,
        "study": meta.study,
        "fairlane": meta.version,
        "started": meta.started,
        "simulations": meta.simulations,
        "digest of the tables": meta.digest,
    }
