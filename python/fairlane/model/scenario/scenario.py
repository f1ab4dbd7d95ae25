"""The scenario: one fabric, its jobs, and how long they run."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import typing_extensions
from pydantic import ModelWrapValidatorHandler, ValidationError, model_validator

from fairlane.core.errors import Problem, ScenarioError
from fairlane.core.units import DURATION
from fairlane.core.wording import html_table, plural
from fairlane.inputs.document import Document, current_document, override
from fairlane.inputs.problems import Problems, located, unfold
from fairlane.model.scenario.checks import check
from fairlane.model.scenario.resolve import decide, resolve, with_background
from fairlane.model.scenario.resolved import Resolved
from fairlane.model.scenario.simulators import Applied, with_model
from fairlane.model.scenario.tables import ScenarioTables


class Scenario(ScenarioTables):
    """Jobs on a fabric: their hosts, programs, service levels, and the simulated time.

    Read one with ``Scenario.load``, or build it from the same tables::

        Scenario(
            fabric={"topology": "fat_tree", "hosts": 64, "levels": 2},
            jobs=[{"workload": "flood_pairs", "ranks": 8, "count": 2}],
            duration="20 ms",
        )

    Raises ``ScenarioError`` with everything that is wrong.
    """

    if not TYPE_CHECKING:  # type checkers know the keys from the fields

        def __init__(self, **tables: Any) -> None:
            document = current_document.get()
            try:
                super().__init__(**tables)
            except ValidationError as error:
                raise ScenarioError(located(unfold(error, Scenario), document)) from None

    @model_validator(mode="before")
    @classmethod
    def _ends(cls, given: Any) -> Any:
        until = given.get("until") if isinstance(given, dict) else None
        if isinstance(until, dict) and "at_most" in until:
            return {"duration": until["at_most"], **given}
        return given

    @model_validator(mode="wrap")
    @classmethod
    def _with_model(cls, given: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        filled, applied = with_model(given)
        try:
            scenario = handler(filled)
        except ValidationError as error:
            if not applied.keys:
                raise
            raise Problems(*(_blaming(given["model"], applied, problem) for problem in unfold(error, cls))) from None
        scenario._applied = applied
        return scenario

    @model_validator(mode="after")
    def _sensible(self) -> Self:
        problems = list(check(self))
        if problems:
            raise Problems(*problems)
        return self

    @classmethod
    def load(
        cls,
        path: str | Path,
        *,
        set: Iterable[str] = (),
        seed: int | None = None,
        duration: str | None = None,
        allow_code: bool = False,
    ) -> Self:
        """Reads a TOML file; ``set`` has assignments such as ``network.mtu="2 KiB"`` that replace what it says.

        Code that it names, as the workload ``own.py:Ring``, runs only with ``allow_code``.
        """
        document = Document.read(Path(path), allow_code=allow_code)
        options = {"seed": seed, "duration": duration}
        for assignment in (*set, *(f"{key}={value}" for key, value in options.items() if value is not None)):
            document.set(assignment)
        document.data.setdefault("name", Path(path).stem)
        return cls.of(document)

    @classmethod
    def of(cls, document: Document) -> Self:
        """The scenario that a document holds."""
        with override(current_document, document):
            return cls(**document.data)

    @property
    def text(self) -> str:
        """The scenario as TOML: the file's own words, unless it was built or changed in Python, or by assignments."""
        import tomlkit

        document = None if self._copied else self._document
        if document and document.text and not document.assignments:
            return document.text
        data = (document and document.data) or self.model_dump(
            mode="json", exclude_none=True, exclude_unset=True, exclude_defaults=True
        )
        return tomlkit.dumps(data)

    @typing_extensions.override
    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """As pydantic's; with ``update``, ``text`` is that of the copy's own values."""
        copied = super().model_copy(update=update, deep=deep)
        copied._copied = self._copied or bool(update)
        return copied

    def resolve(self) -> Resolved:
        """Everything decided: hosts, lanes, compute times, programs. The same scenario always resolves alike.

        Raises ``ScenarioError`` for what only building it can find out, such as weights that do not fit the lanes.
        """
        with self._located():
            return resolve(self)

    def decide(self) -> Resolved:
        """As ``resolve``, but without programs: nothing is calibrated, and no program is generated."""
        with self._located():
            return decide(self)

    def with_background(self) -> Self:
        """The same with the jobs of its table ``background`` drawn and added to its own; itself if it has none.

        Simulations do so by themselves. Raises ``ScenarioError``.
        """
        with self._located():
            return with_background(self)

    @contextmanager
    def _located(self) -> Iterator[None]:
        """Within, ``Problems`` are raised as a ``ScenarioError`` with their places in the file."""
        try:
            yield
        except Problems as problems:
            raise self.error(problems) from None

    def error(self, problems: Problems) -> ScenarioError:
        """The error for problems found after reading, with their places in the file."""
        return ScenarioError(located(problems.problems, self._document))

    def __repr__(self) -> str:
        return f"<Scenario {self}>"

    def _repr_html_(self) -> str:
        rows = [(name, job.kind, "" if job.ranks is None else job.ranks) for job in self.jobs for name in job.names()]
        return html_table(f"Scenario {self}", ("job", "workload", "ranks"), rows)

    def __str__(self) -> str:
        jobs = sum(job.count for job in self.jobs)
        return f"{self.name}: {plural(jobs, 'job')} on {self.fabric.topology} for {DURATION.format(self.duration)}"


def _blaming(model: str, applied: Applied, problem: Problem) -> Problem:
    """The problem with the model named, if that has set the key."""
    message = f"{problem.message} (the model {model} sets this key)"
    return replace(problem, message=message) if problem.key in applied.keys else problem
