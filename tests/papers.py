"""Papers at the size of a test: plans with other changes for ``--quick``, points of their studies, verdicts."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from fairlane.model.scenario import Scenario
from fairlane.papers.deriving import Deriving
from fairlane.papers.folder import Change
from fairlane.papers.judging import Finding, findings
from fairlane.papers.planning import Options, Plan, plan_of
from fairlane.papers.reproduce import Reproduction, conclude, folder_of
from fairlane.papers.running import stored_as
from fairlane.study.sql import Database
from fairlane.study.study import Study
from fairlane.study.tasks.executor import Executor
from fairlane.study.tasks.store import Store
from small_study import Here


def small(name: str, only: str | Sequence[str], changes: Mapping[str, Mapping[str, Any]]) -> Plan:
    """The quick plan of a claim, or of several, with further changes, by study or for all with the key ``*``."""
    folder = folder_of(name)
    entries = [
        entry.model_copy(
            update={"quick": entry.quick.updated(Change(**{**changes.get("*", {}), **changes.get(entry.name, {})}))}
        )
        for entry in folder.paper.study
    ]
    folder.__dict__["paper"] = folder.paper.model_copy(update={"study": entries})
    wanted = [only] if isinstance(only, str) else only
    return plan_of(folder, [claim for claim in folder.claims if claim.id in wanted], Options(quick=True))


def performed(chosen: Plan, out: Path) -> Reproduction:
    """The plan, run in this process."""
    with Executor(Here(), Store(out, stored_as)) as executor:
        return conclude(chosen, executor, out)


def stored_tables(name: str, out: Path) -> set[str]:
    """The tables beside a paper's page that the command has written, too; fails if their columns are others."""
    pages = Path(__file__).parents[1] / "docs" / "reproduction" / name
    both = {path.name for path in out.iterdir() if path.suffix in (".csv", ".parquet") and (pages / path.name).exists()}
    for file in both:
        read = pl.read_csv if file.endswith(".csv") else pl.read_parquet
        assert read(pages / file).columns == read(out / file).columns, f"{name}: {file}"
    return both


def study_of(chosen: Plan, name: str) -> Study:
    """A study of the plan."""
    found = chosen.studies[name].study
    assert found is not None
    return found


def scenarios(chosen: Plan, name: str, **levels: Any) -> list[Scenario]:
    """The scenarios of a study's points with these levels of factors."""
    study = study_of(chosen, name)
    return [
        study.scenario(point)
        for point in study.points()
        if all(point.parameters.get(key, getattr(point, key, None)) == value for key, value in levels.items())
    ]


def tables_of(paper: str, database: Database, count: int | None = None) -> Database:
    """The database with the tables that a paper derives from others, or the first few of them."""
    folder = folder_of(paper)
    for one in folder.paper.table[:count]:
        for name, table in Deriving(folder, database).derive(one).items():
            database.put(name, table)
    return database


def judged(paper: str, claim: str, database: Database) -> list[Finding]:
    """The findings of one claim of a paper."""
    (found,) = [one for one in folder_of(paper).claims if one.id == claim]
    return list(findings(found, database))


def held(paper: str, claim: str, database: Database) -> list[bool]:
    """Which clauses of a claim hold."""
    return [one.holds for one in judged(paper, claim, database)]
