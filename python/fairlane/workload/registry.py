"""Workloads by name: those of the package, and users' own from a file."""

import importlib.util
import sys
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, ConfigDict, PlainSerializer

from fairlane.errors import Problem
from fairlane.inputs.code import Code, may_run
from fairlane.inputs.document import current_document
from fairlane.inputs.problems import Problems, validated
from fairlane.workload import WORKLOADS
from fairlane.workload.base import Workload

__all__ = ["Unread", "WorkloadField", "file_of", "files_of", "find_workload", "name_of", "read_workload"]

_OWN = "fairlane_workload_"


class Unread(Workload):
    """Stands for a workload whose code is not to run: it takes any parameters, and has no program."""

    model_config = ConfigDict(extra="allow")


def find_workload(name: str) -> type[Workload]:
    """The class behind ``flood_pairs`` or ``path/to/file.py:ClassName``; ``Problems`` if there is none.

    Code of one's own runs only with permission: see ``fairlane.inputs.code``.
    """
    file, colon, class_name = name.rpartition(":")
    if colon and file.endswith(".py"):
        return _from_file(current_document.get().folder / file, class_name, name)
    if name not in WORKLOADS:
        raise Problems(Problem.unknown("", "workload", name, [*WORKLOADS, '"file.py:ClassName"'], name))
    return WORKLOADS[name]


def _from_file(file: Path, class_name: str, name: str) -> type[Workload]:
    """Imports a file under a name of its own and picks the workload from it."""
    if not file.is_file():
        raise Problems(Problem("", f"there is no file {str(file)!r}", name))
    if not may_run(Code(file, class_name), name):
        return type(class_name, (Unread,), {"__doc__": "It has not been read."})
    module_name = f"{_OWN}{sha256(str(file.resolve()).encode()).hexdigest()[:16]}"
    spec = importlib.util.spec_from_file_location(module_name, file)
    if spec is None or spec.loader is None:
        raise Problems(Problem("", f"{str(file)!r} cannot be imported", name))
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise Problems(
            Problem("", f"{str(file)!r} cannot be imported: {type(error).__name__}: {error}", name)
        ) from error
    defined = {
        key: value
        for key, value in vars(module).items()
        if isinstance(value, type) and issubclass(value, Workload) and value.__module__ == module_name
    }
    if class_name not in defined:
        raise Problems(Problem.unknown("", f"workload class in {str(file)!r}", class_name, list(defined), name))
    return defined[class_name]


def read_workload(given: Any) -> Any:
    """A name, or a table with ``name`` and parameters, as a workload; a workload stays itself."""
    if isinstance(given, Workload):
        return given
    table = {"name": given} if isinstance(given, str) else given
    if not isinstance(table, dict) or not isinstance(table.get("name"), str):
        raise ValueError("expected a workload's name, or a table with its `name` and parameters")
    try:
        found = find_workload(table["name"])
    except Problems as problems:
        under = "" if isinstance(given, str) else "name"
        raise Problems(*(problem.under(under) for problem in problems.problems)) from None
    return validated(found, {key: value for key, value in table.items() if key != "name"})


def name_of(workload: Workload) -> str:
    """The name in ``WORKLOADS``, or that of the class for a user's own."""
    return next((name for name, known in WORKLOADS.items() if type(workload) is known), type(workload).__name__)


def file_of(workload: Workload) -> str | None:
    """The file that a user's own workload was found in by ``file.py:ClassName``; None for any other."""
    module = type(workload).__module__
    return sys.modules[module].__file__ if module.startswith(_OWN) else None


def files_of(workloads: Iterable[Workload | None]) -> list[str]:
    """The code that these workloads are, as ``Ring of own.py``; each once."""
    named = [(workload, file_of(workload)) for workload in workloads if workload is not None]
    return list(dict.fromkeys(f"{name_of(workload)} of {file}" for workload, file in named if file))


def _written(workload: Workload) -> dict[str, Any]:
    """What reads it again: a user's own is named with its file."""
    file = file_of(workload)
    return {"name": f"{file}:{name_of(workload)}" if file else name_of(workload), **workload.parameters()}


WorkloadField = Annotated[Workload, BeforeValidator(read_workload), PlainSerializer(_written)]
"""A model's field that takes a workload's name, a table with its name and parameters, or a workload."""
