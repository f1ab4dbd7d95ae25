"""Code that an input names, as ``own.py:Ring``: it runs only if who starts fairlane permits it.

Permission is an option (``--allow-code``), an argument (``allow_code=True``), the context ``allow_code``, the variable
``FAIRLANE_ALLOW_CODE=1`` of the environment, or an answer at the terminal. Code in a folder of results never runs.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path

from fairlane.core.errors import Problem
from fairlane.inputs.document import current_document, override
from fairlane.inputs.problems import Problems

ENVIRONMENT = "FAIRLANE_ALLOW_CODE"  # the environment variable that permits code if it is ``1``
_RESULTS = (("run.json", "resolved.json"), ("spec.json", "answers"), ("study.json", "work.parquet"))
"""Files that are together in a folder of results."""
_ALLOWED = f"--allow-code, {ENVIRONMENT}=1 or, in Python, allow_code=True"


@dataclass(frozen=True)
class Code:
    """Code that an input names."""

    file: Path  # the file that would run
    name: str  # what is taken from it

    def __str__(self) -> str:
        return f"{self.name} of {self.file}"


_ask: ContextVar[Callable[[Code], bool] | None] = ContextVar("_ask", default=None)
_listed: ContextVar[list[Code] | None] = ContextVar("_listed", default=None)


@contextmanager
def allow_code(wanted: bool = True) -> Iterator[None]:
    """Permits, within, that code runs which scenarios and studies name; with ``wanted`` false nothing changes."""
    document = current_document.get()
    with override(current_document, replace(document, allow_code=document.allow_code or wanted)):
        yield


def asking(ask: Callable[[Code], bool]) -> AbstractContextManager[None]:
    """Within, ``ask`` decides about code that is not permitted otherwise."""
    return override(_ask, ask)


@contextmanager
def listing() -> Iterator[list[Code]]:
    """Within, code that is not permitted is noted in the list instead of refused, and does not run."""
    codes: list[Code] = []
    with override(_listed, codes):
        yield codes


def may_run(code: Code, value: str) -> bool:
    """Whether code runs now; False where it is only listed. Raises ``Problems`` if it is not permitted."""
    folder = _results_around(code.file)
    if folder is not None:
        message = f"is code in the folder of results {str(folder)!r}, where none runs"
        raise Problems(Problem("", message, value, "a file outside"))
    if _permitted():
        return True
    listed = _listed.get()
    if listed is not None:
        if code not in listed:
            listed.append(code)
        return False
    ask = _ask.get()
    if ask is not None and ask(code):
        return True
    raise Problems(Problem("", f"runs code, {code}, which is not permitted", value, _ALLOWED))


def check_permission(key: str, what: str) -> None:
    """Raises ``Problems`` unless code is permitted that is no file, as a command of a shell."""
    if not _permitted():
        raise Problems(Problem(key, f"runs {what}, which is not permitted", allowed=_ALLOWED))


def _permitted() -> bool:
    return current_document.get().allow_code or os.environ.get(ENVIRONMENT) == "1"


def _results_around(file: Path) -> Path | None:
    """The folder of results that a file is in, however deep."""
    for folder in file.resolve().parents:
        if any(all((folder / name).exists() for name in names) for names in _RESULTS) or _has_manifest(folder):
            return folder
    return None


def _has_manifest(folder: Path) -> bool:
    """Whether there is a manifest, as fairlane leaves one in every folder that it writes."""
    try:
        with (folder / "manifest.json").open("rb") as file:
            return b'"fairlane"' in file.read(200)
    except OSError:
        return False
