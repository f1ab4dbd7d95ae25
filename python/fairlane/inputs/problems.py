"""Translate pydantic's errors to problems with file, key, line, allowed values and nearest name; keys renamed since."""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from fairlane.core.errors import Problem, ScenarioError, nearest
from fairlane.inputs.document import Document, KeyPath, dotted, undotted

_Model = TypeVar("_Model", bound=BaseModel)

_BOUNDS = {
    "greater_than": "above",
    "greater_than_equal": "at least",
    "less_than": "below",
    "less_than_equal": "at most",
}

_TABLE = ("is no table", "a table, as { key = value } or under a heading of its own")
_KINDS = {
    "model_type": _TABLE,
    "dict_type": _TABLE,
    "list_type": ("is no list", "a list, as [ ... ], or [[tables]] of this name"),
}
"""pydantic's names of wrong kinds of values, with messages and allowed values."""


class Problems(ValueError):
    """Problems that a validator found, with keys relative to what it validates. Pydantic carries it out."""

    def __init__(self, *problems: Problem) -> None:
        self.problems = problems
        super().__init__("; ".join(str(problem) for problem in problems))


@contextmanager
def under(key: str) -> Iterator[None]:
    """Within, the keys of ``Problems`` are relative to ``key``."""
    try:
        yield
    except Problems as problems:
        raise Problems(*(problem.under(key) for problem in problems.problems)) from None


@contextmanager
def refusing(key: str = "") -> Iterator[None]:
    """Within, ``Problems`` are raised as a ``ScenarioError`` with keys relative to ``key``."""
    try:
        yield
    except Problems as problems:
        raise ScenarioError(problem.under(key) for problem in problems.problems) from None


def validated(model: type[_Model], data: Any) -> _Model:
    """``data`` as a ``model``, for use in the validators of other models: it raises ``Problems``."""
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise Problems(*unfold(error, model)) from None


def located(problems: Iterable[Problem], document: Document) -> list[Problem]:
    """The problems with their places in the document, in the order of the file."""
    placed = [document.locate(problem, undotted(problem.key)) for problem in problems]
    return sorted(placed, key=lambda problem: problem.line or 0)


def unfold(error: ValidationError, model: type[BaseModel]) -> Iterator[Problem]:
    """Every problem in a validation error of ``model``, with keys relative to it."""
    for detail in error.errors(include_url=False):
        if not _is_meant(detail):
            continue
        path = tuple(step for step in detail["loc"] if step != "[key]" and not _is_kind(step))
        cause = detail.get("ctx", {}).get("error")
        if isinstance(cause, Problems):
            yield from (problem.under(dotted(path)) for problem in cause.problems)
        else:
            yield _translate(detail, path, model)


def _is_kind(step: int | str) -> bool:
    """Whether pydantic means no key by it, but one of several kinds of value: a name, a list or a table."""
    return isinstance(step, str) and step.startswith(("literal[", "list[", "table["))


def _is_meant(detail: ErrorDetails) -> bool:
    """Say whether the problem is of the kind of value that was given, where a name or a list may stand."""
    if not any(_is_kind(step) for step in detail["loc"]):
        return True
    if detail["type"] == "literal_error":
        return not isinstance(detail["input"], list)
    return detail["type"] != "list_type"


def _translate(detail: ErrorDetails, path: KeyPath, model: type[BaseModel]) -> Problem:
    key, name, given = dotted(path), str(path[-1]) if path else "", detail["input"]
    value = given if isinstance(given, str | int | float | bool) else None
    match detail["type"]:
        case "extra_forbidden":
            owner = _owner(model, path[:-1])
            return unknown(key, "key", name, list(owner.model_fields) if owner else [], value)
        case "missing":
            owner = _owner(model, path[:-1])
            return Problem(key, "missing", allowed=owner.model_fields[name].description if owner else None)
        case "literal_error":
            names = re.findall(r"'([^']*)'", detail["ctx"]["expected"])
            return Problem(key, "unknown name", value, ", ".join(names), nearest(str(given), names))
        case "greater_than" | "greater_than_equal" | "less_than" | "less_than_equal" as bound:
            return Problem(key, "out of range", value, f"{_BOUNDS[bound]} {next(iter(detail['ctx'].values()))}")
        case "value_error":
            return Problem(key, str(detail["ctx"]["error"]), value)
        case kind:
            message, allowed = _KINDS.get(kind, (detail["msg"][0].lower() + detail["msg"][1:], None))
            return Problem(key, message, value, allowed)


def _owner(model: type[BaseModel], path: KeyPath) -> type[BaseModel] | None:
    """The model that validates the table at ``path`` below ``model``."""
    owner: type[BaseModel] | None = model
    for step in path:
        if isinstance(step, str):
            if owner is None or step not in owner.model_fields:
                return None
            owner = _model_in(owner.model_fields[step].annotation)
    return owner


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """The model within an annotation such as ``list[Job] | None``."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((model for part in get_args(annotation) if (model := _model_in(part))), None)


RENAMED = {
    "counters_at": ("switch_counters", "departures"),
    "direct": ("minimal", "random"),
    "every": ("poll_interval", "flit"),
    "least": ("min", "max"),
    "leave_out": ("exclude", "path"),
    "most": ("max", "min"),
    "onward_waiting": ("input_queueing", "departures"),
    "panel": ("chart", "each"),
    "period": ("distinct_iterations", "jitter"),
    "share": ("weight", "workload"),
    "strategy": ("name", "mapping"),
}
"""By old name, the new one and another name that is allowed in the same place. The second identifies the place, because
most old names have a meaning elsewhere: ``strategy`` in ``[qos]``, for example, and ``period`` of a controller."""

INSIDE = {"hosts": ("placement", "ranks_per_host")}
"""By key, the key in whose table it stands, and another name that is allowed in the same place."""


def unknown(key: str, kind: str, given: str, allowed: Sequence[str], value: Any = None) -> Problem:
    """The problem of an unknown key or name; the message has its new name or its place, if it has one."""
    new, neighbour = RENAMED.get(given, ("", ""))
    if new in allowed and neighbour in allowed:
        return Problem(key, f'renamed: this {kind} is now "{new}"', value)
    table, neighbour = INSIDE.get(given, ("", ""))
    if table in allowed and neighbour in allowed:
        return Problem(key, f"is a key of {table}: {table} = {{ {given} = ... }}", value)
    return Problem.unknown(key, kind, given, allowed, value)
