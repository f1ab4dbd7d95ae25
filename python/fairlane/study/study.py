"""A study: read from its file, with the scenario of every point, placement and seed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from math import prod
from pathlib import Path
from typing import Any

from fairlane.core.errors import Problem, ScenarioError
from fairlane.core.wording import html_table, plural
from fairlane.inputs.code import check_permission
from fairlane.inputs.document import Document, KeyPath, current_document, dotted, override, undotted
from fairlane.inputs.problems import Problems
from fairlane.model.scenario import Scenario
from fairlane.study.design import combinations
from fairlane.study.repetition import Repeat, Repetition
from fairlane.study.replicates import key_of
from fairlane.study.setting import Change, Method, Point, changes, steps_of
from fairlane.study.table import Case, StudyTable


class Study:
    """A study file, read and checked. Raises ``ScenarioError`` with everything that is wrong."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self.table = StudyTable.from_document(document)
        self.name = self.table.name or (document.file.stem if document.file else "study")
        """Its name."""
        self._base = self._scenario_document()
        self._base.data.setdefault("name", self._base.file.stem if self._base.file else self.name)

    @classmethod
    def load(cls, path: str | Path, *, set: Iterable[str] = (), allow_code: bool = False) -> Study:
        """Reads a TOML file; ``set`` has assignments such as ``seeds=[1]`` that replace what it says.

        Code that its scenario names, as the workload ``own.py:Ring``, runs only with ``allow_code``.
        """
        document = Document.read(Path(path), allow_code=allow_code)
        for assignment in set:
            document.set(assignment)
        return cls(document)

    def __repr__(self) -> str:
        return f"<Study {self._headline()}>"

    def _repr_html_(self) -> str:
        rows = [(name, type(treatment).__name__) for name, treatment in self.treatments.items()]
        return html_table(f"Study {self._headline()}", ("treatment", "kind"), rows)

    def _headline(self) -> str:
        points, treatments = sum(1 for _ in self.points()), len(self.treatments)
        return f"{self.name}: {plural(points, 'point')}, {plural(treatments, 'treatment')}"

    @property
    def treatments(self) -> Mapping[str, Any]:
        """The treatments by name."""
        return self.table.treatments

    @property
    def folder(self) -> str:
        """Folder to which paths in its scenario are relative."""
        return str(self._base.folder.resolve())

    @property
    def text(self) -> str:
        """The study as TOML: the text of the file, unless assignments changed it."""
        import tomlkit

        return self._document.text if not self._document.assignments else tomlkit.dumps(self._document.data)

    @property
    def spec(self) -> dict[str, Any]:
        """Everything that a simulation of it depends on, as plain data.

        Where it runs is not included, nor how precise it is to be: a study can be resumed with other replicates.
        """
        apart: dict[str, Any] = dict.fromkeys(("cluster", "scenario", "name"), True)
        apart["repeat"] = (
            {"precision", "at_most", "of", "length", "bias"} if isinstance(self.table.repeat, Repeat) else True
        )
        table = self.table.model_dump(mode="json", exclude_none=True, exclude=apart)
        spec: dict[str, Any] = json.loads(json.dumps({**table, "scenario": self._base.data}, default=str))
        return spec

    def check_code(self) -> None:
        """Raises ``ScenarioError`` if its cluster's jobs can run code of their own, and that is not permitted."""
        if self.table.cluster is not None:
            with self._reading():
                for key, what in self.table.cluster.code():
                    check_permission(f"cluster.{key}", what)

    def method(self, trusted: Iterable[Path] = ()) -> Method:
        """The function that measures its runs; in a folder that is ``trusted`` it needs no permission.

        Raises ``ScenarioError`` if there is none or it may not run.
        """
        with self._reading():
            try:
                asked = self.table.measure
                return Method.of(self._document.folder, (asked and asked.function) or "", trusted)
            except Problems as problems:
                raise Problems(*(problem.under("measure.function") for problem in problems.problems)) from None

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Context in which code is permitted as in the study's file, and errors get their position in it."""
        try:
            with override(current_document, self._document):
                yield
        except Problems as problems:
            raise ScenarioError(self.error(problem) for problem in problems.problems) from None

    def _scenario_document(self) -> Document:
        given, own = self.table.scenario, self._document
        if isinstance(given, str):
            path = own.folder / given
            try:
                there = path.is_file()
            except OSError as error:  # as of a name that is too long
                raise ScenarioError(
                    own.locate(Problem("scenario", f"{error.strerror}", given), ("scenario",))
                ) from None
            if not there:
                problem = Problem("scenario", f"there is no file {str(path)!r}", given)
                raise ScenarioError(own.locate(problem, ("scenario",)))
            return Document.read(path, allow_code=own.allow_code)
        inside = {path[1:]: line for path, line in own.lines.items() if path[0] == "scenario" and len(path) > 1}
        return Document(deepcopy(given), own.file, "", inside, allow_code=own.allow_code)

    def points(self, replicates: Mapping[str, int] | None = None) -> Iterator[Point]:
        """Every combination of cases, parameters, placements and seeds, or those that the design has chosen.

        Of a study with ``repeat`` each condition has as many replicates, by default those that are always there.
        """
        table = self.table
        cases: list[tuple[int, Case | None]] = [*enumerate(table.cases)] or [(0, None)]
        lists = [*table.parameters.values(), *map(list, table.factors.values())]
        own = self._base.data.get("seed", 1)
        for first, *levels in self._chosen([len(cases), *map(len, lists), *table.grid]):
            values = [of[level] for of, level in zip(lists, levels, strict=False)]
            _, case = cases[first]
            condition = key_of(case.name if case else None, self._parameters(values))
            count = None if replicates is None else replicates.get(condition, 0)
            for repetition in table.repetitions(levels[len(lists) :], own, count):
                yield from self._point(cases[first], values, repetition)

    def _parameters(self, values: Sequence[Any]) -> dict[str, Any]:
        """Values of parameters and levels of factors, by name."""
        return dict(zip([*self.table.parameters, *self.table.factors], values, strict=True))

    def _point(
        self, of_case: tuple[int, Case | None], values: Sequence[Any], repetition: Repetition
    ) -> Iterator[Point]:
        """The point with these levels, unless a rule leaves it out."""
        table = self.table
        (at, case), parameters, (number, placement, seed, key) = of_case, self._parameters(values), repetition
        levels = {**parameters, "case": case.name if case else None, "seed": seed}
        rules = [(which, rule) for which, rule in enumerate(table.rules) if rule.holds(levels)]
        if any(rule.skip for _, rule in rules):
            return
        changed = changes(table.set, ("set",))
        changed += changes(case.set, ("cases", at, "set")) if case else []
        changed += [(steps_of(key), parameters[key], ("parameters", key)) for key in table.parameters]
        for name, of in table.factors.items():
            changed += changes(of[parameters[name]], ("factors", name, parameters[name]))
        for which, rule in rules:
            changed += changes(rule.set, ("rules", which, "set"))
        changed += _placed(placement, number) if placement else []
        changed += [(("seed",), seed, (key,))] if key else []
        yield Point(case.name if case else None, parameters, number, seed, tuple(changed))

    def _chosen(self, levels: list[int]) -> Iterator[tuple[int, ...]]:
        """The levels of each combination that is run."""
        design = self.table.design
        if design is None or design.runs is None:
            return combinations(levels)
        if design.runs > prod(levels):
            problem = Problem("design.runs", "more than there are combinations", design.runs, f"2 to {prod(levels)}")
            raise ScenarioError(self.error(problem))
        return combinations(levels, design.runs, design.seed)

    def scenario(self, point: Point, treatment: str | None = None, *, background: bool = True) -> Scenario:
        """A point's scenario, or what a treatment makes of it, with its background jobs drawn unless asked otherwise.

        Raises ``ScenarioError``.
        """
        document = self.written(point, treatment)
        with override(current_document, document):
            scenario = Scenario(**document.data)
            return scenario.with_background() if background else scenario

    def written(self, point: Point, treatment: str | None = None) -> Document:
        """A point's scenario as a document that is not checked yet. Raises ``ScenarioError``."""
        changed = list(point.changes)
        if treatment is not None:
            changed += changes(self.treatments[treatment].set, ("treatments", treatment, "set"))
        base = self._base
        document = Document(deepcopy(base.data), base.file, "", dict(base.lines), allow_code=base.allow_code)
        replaced = set[KeyPath]()
        for path, value, source in changed:
            table = source[: source.index("qos") + 1] if path[:1] == ("qos",) and "qos" in source else ()
            if table and table not in replaced and "strategy" in document.data.get("qos", {}):
                document.take(("qos",), {}, self.place(table))  # a strategy sets all keys, so others replace it
            replaced.add(table)
            if path[:1] == ("placement",) and len(path) > 1:  # a placement by number changes its seed
                _as_table(document.data, "placement")
            try:
                document.take(path, deepcopy(value), self.place(source))
            except LookupError as error:
                problem = Problem(dotted(source), str(error.args[0]))
                raise ScenarioError(self._document.locate(problem, source)) from None
        # Another placement policy in a treatment has the point's seed: default and treated runs are compared by point.
        seed = next((table["seed"] for table in _placements_of(point) if "seed" in table), None)
        if treatment is not None and seed is not None:
            _as_table(document.data, "placement").setdefault("seed", seed)
        return document

    def place(self, path: KeyPath) -> tuple[str, int | None, KeyPath]:
        """The file and line (or the option) where the study sets a key, and how the key is called there."""
        located = self._document.locate(Problem("", ""), path)
        return located.file or "the study", located.line, undotted(located.key) or path

    def error(self, problem: Problem) -> Problem:
        """The problem, with its position in the study file."""
        return self._document.locate(problem, undotted(problem.key))


def _as_table(data: dict[str, Any], key: str) -> dict[str, Any]:
    """The table of a key, written out where it is a name."""
    given = data.setdefault(key, {})
    if isinstance(given, str):
        data[key] = given = {"name": given}
    return given if isinstance(given, dict) else {}


def _placements_of(point: Point) -> Iterator[Mapping[str, Any]]:
    """The placement of a point as the study lists it: a table, or single keys."""
    for path, value, source in point.changes:
        if source[:1] == ("placements",) and path[:1] == ("placement",):
            yield value if len(path) == 1 else {str(path[-1]): value}


def _placed(table: Mapping[str, Any], number: int) -> list[Change]:
    """A placement with a name replaces the scenario's, one without changes its seed."""
    if "name" in table:
        return [(("placement",), dict(table), ("placements", number))]
    return [(("placement", key), value, ("placements", number, key)) for key, value in table.items()]
