"""Performing a plan as the tasks of studies are performed, in processes or on Dask, and what comes of it as tables."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import Any

import polars as pl
from typing_extensions import override

from fairlane.core.errors import Problem, ScenarioError
from fairlane.core.wording import plural
from fairlane.papers.deriving import Deriving
from fairlane.papers.folder import Conditional
from fairlane.papers.planning import Plan, Prepared, trusted
from fairlane.papers.reseeding import shift
from fairlane.study.measured import plan_of
from fairlane.study.plan import Plan as Tasks
from fairlane.study.plan import compute
from fairlane.study.replicates import repeated
from fairlane.study.setting import MEASURE, Method
from fairlane.study.sql import Database, QueryError
from fairlane.study.tables import digest_of_answer
from fairlane.study.tasks.closure import sources
from fairlane.study.tasks.executor import Executor
from fairlane.study.tasks.store import Store
from fairlane.study.tasks.task import Answer, Computable, Stopwatch, Task, digest_of


@dataclass(frozen=True)
class Done:
    """A performed task: wall and processor time, s; or the reason why it has no answer."""

    task: Computable
    seconds: float = 0.0
    cpu: float = 0.0
    error: str | None = None


@dataclass(frozen=True)
class Called:
    """A study that is a function of its arguments."""

    method: Method
    arguments: Mapping[str, Any]
    label: str
    cost: float = 100.0

    @cached_property
    def digest(self) -> str:
        """Another one when arguments, files that they name, or the code and the data of its function change."""
        files = [
            Path(argument)
            for argument in self.arguments.values()
            if isinstance(argument, str) and Path(argument).is_file()
        ]
        read = [sha256(path.read_bytes()).hexdigest() for path in files]
        plain = {
            key: argument
            for key, argument in self.arguments.items()
            if not (isinstance(argument, str) and Path(argument) in files)
        }
        key = [plain, read, self.method.name, sources(self.method.file)]
        return sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:32]

    @property
    def description(self) -> Mapping[str, Any]:
        """Its arguments."""
        return self.arguments

    def compute(self, watch: Stopwatch) -> Answer:
        """Calls the function, which returns tables by column."""
        return {"tables": self.method.function()(self.arguments, watch)}


class _CalledPlan(Tasks):
    """The plan of a study that is a function."""

    def __init__(self, task: Called) -> None:
        self._task = task

    @override
    def tasks(self) -> Sequence[Computable]:
        return [self._task]

    @override
    def tables(self, executor: Executor) -> dict[str, pl.DataFrame]:
        answer = executor.answer(self._task)
        if answer is None:
            return {"failures": pl.DataFrame({"error": [executor.failures[self._task.digest].error]})}
        return {name: pl.DataFrame(columns) for name, columns in answer["tables"].items()}


def _tasks_of(prepared: Prepared) -> Tasks:
    if prepared.study is not None:
        return plan_of(prepared.study, trusted(), judge=False)
    assert prepared.method is not None, "it has a function"
    return _CalledPlan(Called(prepared.method, prepared.arguments, prepared.entry.name))


def stored_as(task: Computable) -> str:
    """The digest that the answer of a task is stored by: another one when the simulator or its own method changes."""
    if not isinstance(task, Task):
        return task.digest
    module, measures = task.function.partition(":")[0], task.function == MEASURE
    code: list[str | Path] = [module, *([Path(task.arguments["file"])] if measures else [])]
    controller = None if measures else task.arguments.get("controller", "none")  # a function may use any of them
    key = [task.digest, sources(*code, controller=controller)]
    return sha256(json.dumps(key).encode()).hexdigest()[:32]


@dataclass(frozen=True)
class Outcome:
    """Results of a plan."""

    tables: Database
    """Those of the studies: each study's in a schema of its name, and all of one name together, with a column
    ``study``; and those that the paper makes of them."""
    derived: Mapping[str, pl.DataFrame]
    """Those that the paper makes, by name."""
    failures: Mapping[str, int]
    """Number of failed runs of a study, by study."""
    done: Mapping[str, Done] = field(default_factory=dict)
    """Performed tasks, by digest."""
    tasks: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Digests of the tasks of each study; studies may share tasks."""
    results: Mapping[str, str] = field(default_factory=dict)
    """A digest of the results of each study."""
    repeats: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Sentences about points, and conditions, of each study that change nothing."""
    derived_cpu_s: float = 0.0
    """Processor time of the paper's functions that derive tables, s, whenever they were called."""

    def missing(self, plan: Plan, study: str) -> list[str]:
        """Return the parts of a study that claims need and that are missing, as phrases."""
        if study not in plan.studies:
            return [f"{study}: {plan.left_out.get(study, 'not run')}"]
        if study in self.tasks and not self.tasks[study]:
            return [f"{study}: no condition is left to run"]
        note = plan.left_out.get(study, "")
        gone = [part for part in note.split("; ") if " is not run: " in part]
        count = self.failures.get(study, 0)
        return [*gone, *([f"{plural(count, 'run')} of {study} that failed"] if count else [])]

    def partial(self, plan: Plan) -> bool:
        """Whether a study of the paper was not run, or not in full: what is made of it may lack its tables."""
        return any(self.missing(plan, entry.name) for entry in plan.folder.paper.study)


def parts_of(plan: Plan) -> dict[str, Tasks]:
    """The studies of a plan, as what there is to compute. Raises ``ScenarioError`` if one is wrong."""
    return {name: _tasks_of(prepared) for name, prepared in plan.studies.items()}


def perform(plan: Plan, executor: Executor) -> Outcome:
    """Performs the tasks that the executor's store has no answers of; every answer is stored at once.

    A task that fails twice is reported with its error, and the others go on.
    """
    parts = parts_of(plan)
    compute([*parts.values()], executor)
    return outcome_of(plan, parts, executor)


def outcome_of(plan: Plan, parts: Mapping[str, Tasks], executor: Executor) -> Outcome:
    """The results of a plan whose parts are computed."""
    tables_by_study = {name: part.tables(executor) for name, part in parts.items()}
    counts = {name: tables["failures"].height for name, tables in tables_by_study.items() if "failures" in tables}
    failures = {name: count for name, count in counts.items() if count}
    done = {task.digest: _done(task, executor) for part in parts.values() for task in _every(part)}
    by_study = {name: frozenset(task.digest for task in _every(part)) for name, part in parts.items()}
    results = {
        name: digest_of([digest_of_answer(executor.answer(task) or {}) for task in _every(part)])
        for name, part in parts.items()
    }
    repeats = {
        name: list(
            repeated(
                tables_by_study[name]["runs"],
                tables_by_study[name]["work"] if study.table.measure is None else None,
                once=False,
            )
        )
        for name, study in ((name, one.study) for name, one in plan.studies.items())
        if study is not None
    }
    outcome = Outcome(Database(), {}, failures, done, by_study, results, repeats)
    return _derived(plan, with_tables(plan, tables_by_study, outcome), executor.store)


def _every(part: Tasks) -> Iterator[Computable]:
    return chain(part.calibrations(), part.tasks())


def _done(task: Computable, executor: Executor) -> Done:
    outcome = executor.outcomes.get(task.digest)
    if outcome is None:
        return Done(task, error=executor.failures[task.digest].error)
    return Done(task, outcome.seconds, outcome.cpu)


def with_tables(plan: Plan, tables_by_study: Mapping[str, Mapping[str, pl.DataFrame]], outcome: Outcome) -> Outcome:
    """With the tables of the studies in the database, one of the studies themselves, and one of the replicate."""
    number = plan.options.replicate
    row = {"replicate": [number], "seed": [1 + shift(number)], "variant": [plan.options.variant]}
    outcome.tables.put("replicate", pl.DataFrame(row, schema_overrides={"variant": pl.String}))
    of_all: dict[str, list[pl.DataFrame]] = {}
    for study, tables in tables_by_study.items():
        for name, table in tables.items():
            outcome.tables.put(name, table, study)
            of_all.setdefault(name, []).append(table.select(pl.lit(study).alias("study"), pl.all()))
    for name, parts in of_all.items():
        outcome.tables.put(name, pl.concat(parts, how="diagonal_relaxed"))
    entries = [
        (entry.name, entry.title, entry.figure, plan.left_out.get(entry.name, ""), entry.differs)
        for entry in plan.folder.paper.study
        if entry.name in plan.studies
    ]
    schema = dict.fromkeys(("study", "title", "figure", "note", "differs"), pl.String)
    outcome.tables.put("studies", pl.DataFrame(entries, schema, orient="row"))
    return outcome


def made(plan: Plan, outcome: Outcome, output: Conditional) -> bool:
    """Whether something that is made of some studies is: one of them was run, or all of them without a failure."""
    if output.complete:
        return all(not outcome.missing(plan, name) for name in output.studies)
    return not output.studies or any(name in plan.studies for name in output.studies)


def _derived(plan: Plan, outcome: Outcome, store: Store | None) -> Outcome:
    """With the tables that the paper makes."""
    made_so_far: dict[str, pl.DataFrame] = {}
    deriving = Deriving(plan.folder, outcome.tables, store)
    for output in plan.folder.paper.table:
        if output.name in plan.options.without_tables or not made(plan, outcome, output):
            continue
        try:
            new = deriving.derive(output)
        except QueryError as error:
            if outcome.partial(plan):  # there may be nothing to make it of
                continue
            file = str(plan.folder.path / "paper.toml")
            raise ScenarioError(Problem(f"table {output.name}.sql", str(error), file=file)) from None
        for name, table in new.items():
            outcome.tables.put(name, table)
            made_so_far[name] = table
    return replace(outcome, derived=made_so_far, derived_cpu_s=deriving.cpu_s)
