"""What a designed study leaves besides its tables: the data set, its data sheet, and the effects."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import polars as pl

from fairlane.results.study import StudyMeta
from fairlane.results.text import plural
from fairlane.study.effects import PER_JOB, dataset, effects
from fairlane.study.study import Study

if TYPE_CHECKING:
    from fairlane.tasks.store import Store

__all__ = ["DATASET", "EFFECTS", "placement_name", "store_design"]

DATASET, SHEET, EFFECTS = "dataset.parquet", "dataset.md", "effects.parquet"
"""Names of its files."""
MEANING = {
    "point": ("-", "number of the combination"),
    "case": ("-", "the case's name"),
    "placement": ("-", "placement policy, and its seed if it has one of its own"),
    "seed": ("-", "seed of the scenario: points that differ in nothing else are repetitions"),
    "treatment": ("-", "the treatment's name"),
    "job": ("-", "number of the job"),
    "name": ("-", "name of the job"),
    "workload": ("-", "what it does"),
    "ranks": ("-", "how many ranks it has"),
    "interference": ("-", "`on`: beside all other jobs; `off`: alone on the same hosts"),
    "iterations": ("-", "iterations of its slowest rank"),
    "iteration_ms": ("ms", "time of an iteration of its slowest rank: what is measured"),
}


def store_design(study: Study, work: pl.DataFrame, meta: StudyMeta, store: "Store") -> None:
    """Writes data set, data sheet and effects."""
    data = dataset(work, [placement_name(table) for table in study.table.placements or [{}]])
    store.write_table(DATASET, data)
    store.write_table(EFFECTS, effects(data))
    store.write(SHEET, "\n".join(_sheet(study, data, meta)) + "\n")


def placement_name(table: Mapping[str, object]) -> str:
    """What a placement of a study is called."""
    words = [str(table.get("name", "")), *([f"seed {table['seed']}"] if "seed" in table else [])]
    return " ".join(words).strip() or "as in the scenario"


def _sheet(study: Study, data: pl.DataFrame, meta: StudyMeta) -> Iterator[str]:
    design = study.table.design
    sampled = design is not None and design.runs is not None
    yield f"# Data sheet of `{DATASET}`\n"
    kind = "a Sobol' sample of all combinations" if sampled else "every combination"
    rows = f"{data.height} rows, simulated by fairlane {meta.version}"
    yield f"{rows}: study `{meta.study}`, {plural(meta.points, 'point')}, {kind}."
    yield "A row is one job under one condition.\n"
    yield "| column | type | unit | meaning |\n|---|---|---|---|"
    for name, kind_of in data.schema.items():
        unit, words = MEANING.get(name, ("as in the scenario", "a key of the scenario"))
        yield f"| `{name}` | {kind_of} | {unit} | {words} |"
    conditions = [name for name in data.columns if name not in PER_JOB and name != "point"]
    yield "\nValues of conditions:\n"
    for name in conditions:
        values = [str(value) for value in data[name].unique(maintain_order=True).to_list()]
        yield f"- `{name}`: {', '.join(f'`{value}`' for value in values)}"
    yield "\nThe study beside this file makes the same table again, bit for bit, with the same version:\n"
    yield "```console\n$ fairlane study study.toml --out FOLDER\n```\n"
    yield f"Digest of the study's tables: `{meta.digest}`."
    if meta.failures:
        yield (
            f"\n{plural(meta.failures, 'run')} failed and "
            f"{'is' if meta.failures == 1 else 'are'} not in the data set: see `failures.parquet`."
        )
