"""The folder of a study or a sweep of loads while it is under way.

Every answer is written at once, with its SHA-256, and found again by its digest.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from hashlib import sha256
from importlib.metadata import version
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairlane.inputs.parse import parse_json
from fairlane.inputs.reading import MOST_STORED, read_bytes
from fairlane.results.errors import ResultsError, writing
from fairlane.results.store import is_folder_of
from fairlane.study.sources import sources

if TYPE_CHECKING:
    import polars as pl

    from fairlane.study.plan import Plan
    from fairlane.study.task import Computable, Recognised

__all__ = ["Store", "unfinished"]

SPEC = "spec.json"
CELLS = "cells.json"
ANSWERS = "answers"
FAILED = "failed"


class Store:
    """A folder of answers. ``kind`` says what it is of, in messages; ``spec`` is all that its answers depend on."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        """Where it is."""
        self.damaged: list[str] = []
        """Stored answers that have changed since they were stored: they are computed again."""
        self._found = True

    @classmethod
    def begin(cls, folder: Path, kind: str, spec: Mapping[str, Any], files: Mapping[str, str]) -> Store:
        """A new folder, with ``files``: texts by name. Raises ``ResultsError`` if it cannot be made."""
        store = cls(folder)
        store._found = folder.exists()
        with writing(folder / ANSWERS):
            (folder / ANSWERS).mkdir(parents=True)
        try:
            for name, text in files.items():
                store.write(name, text)
            store.write(SPEC, json.dumps(_identity(kind, spec), indent=1))
        except ResultsError:
            store.undo()
            raise
        return store

    def undo(self) -> None:
        """Takes a new folder back, as far as that is possible; one that was there before is left empty."""
        shutil.rmtree(self.folder, ignore_errors=True)
        if self._found:
            self.folder.mkdir(exist_ok=True)

    @classmethod
    def resume(cls, folder: Path, kind: str, spec: Mapping[str, Any]) -> Store:
        """A folder that is there. Raises ``ResultsError`` if it is of something else, naming what differs."""
        try:
            before = parse_json(read_bytes(folder / SPEC, MOST_STORED))
        except FileNotFoundError:
            raise ResultsError(f"{folder}: holds no {kind} that could go on ({SPEC} is missing)") from None
        except (OSError, ValueError) as error:
            words = f"{SPEC}: cannot be read: {getattr(error, 'strerror', None) or error}"
            raise ResultsError(f"{folder}: holds no {kind} that could go on ({words})") from None
        difference = next(_differences(before, _identity(kind, spec)), None)
        if difference is not None:
            key, was, now = difference
            changed = f"{key.removeprefix(f'{kind}.')} was {_shown(was)}, is {_shown(now)}"
            raise ResultsError(f"{folder}: cannot go on, the {kind} has changed: {changed}")
        return cls(folder)

    def write(self, name: str, content: str | bytes) -> None:
        """A file, whole or not at all. Raises ``ResultsError`` if it cannot be written."""
        path = self.folder / name
        scratch = path.with_name(f".{path.name}.{os.getpid()}")
        with writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                scratch.write_bytes(content.encode() if isinstance(content, str) else content)
                scratch.replace(path)
            except OSError:
                scratch.unlink(missing_ok=True)
                raise

    def write_table(self, name: str, table: pl.DataFrame) -> None:
        """A table as Parquet, in the same way."""
        content = BytesIO()
        table.write_parquet(content)
        self.write(name, content.getvalue())

    def answer(self, task: Recognised) -> dict[str, Any] | None:
        """What was found out about a task before. Raises ``ResultsError`` if it cannot be read.

        An answer that is not the one that was stored is none: it is named in ``damaged``, and computed again.
        """
        name = f"{ANSWERS}/{task.digest}.json"
        try:
            found = parse_json(read_bytes(self.folder / name, MOST_STORED))
        except FileNotFoundError:
            return None
        except OSError as error:
            raise ResultsError(f"{self.folder / name}: cannot be read: {error.strerror}") from error
        except ValueError:  # a machine that went down may leave half an answer
            found = None
        whole = isinstance(found, dict) and isinstance(found.get("answer"), dict) and found.get("task") == task.digest
        if whole and found.pop("sha256", None) == _checksum(found):
            return dict(found)
        if name not in self.damaged:
            self.damaged.append(name)
        return None

    def foreign(self) -> bool:
        """Whether there is something in the folder, and neither answers nor failures."""
        try:
            names = {path.name for path in self.folder.iterdir()}
        except OSError:  # there is no such folder
            return False
        return bool(names) and names.isdisjoint((ANSWERS, FAILED))

    def digests(self) -> set[str]:
        """Of which tasks there are answers."""
        try:
            return {path.stem for path in (self.folder / ANSWERS).glob("[!.]*.json")}
        except OSError:  # as of a name that is too long
            return set()

    def keep(self, task: Recognised, found: Mapping[str, Any]) -> None:
        """Stores what was found out about a task."""
        record = {"task": task.digest, "label": task.label, **found}
        self.write(f"{ANSWERS}/{task.digest}.json", json.dumps({"sha256": _checksum(record), **record}))

    def fail(self, task: Computable) -> str:
        """Stores what a task that failed is about; its file, seen from the folder."""
        import tomlkit

        name = f"{FAILED}/{task.digest}.toml"
        self.write(name, f"# {task.label}\n{tomlkit.dumps(dict(task.written))}")
        return name

    def describe(self, plan: Plan) -> None:
        """Stores what each cell consists of: its scenario as it was worked out, and the answers that are its runs."""
        cells = [
            {
                "point": str(cell.point),
                "scenario": cell.written.data,
                "baselines": {
                    name: {"default": baseline.default.digest, "alone": [it and it.digest for it in baseline.alone]}
                    for name, baseline in cell.baselines.items()
                },
                "treatments": {name: task.digest for name, task in cell.runs.items()},
            }
            for cell in plan.cells
        ]
        self.write(CELLS, json.dumps(cells))


def unfinished(name: str, kind: str, complete: Callable[[Path], bool]) -> Path:
    """The latest folder in ``runs`` with this name that is not complete. Raises ``ResultsError`` if there is none."""
    specs = sorted(Path("runs").glob(f"*/{SPEC}"), key=lambda path: path.stat().st_mtime)
    own = [path.parent for path in specs if is_folder_of(path.parent.name, name)]
    open_ones = [folder for folder in own if not complete(folder)]
    if not open_ones:
        raise ResultsError(f"runs: there is no unfinished {kind} {name!r} to go on with; name its folder with --out")
    return open_ones[-1]


def _checksum(record: Mapping[str, Any]) -> str:
    """The SHA-256 of a stored answer with all that is said of it, as JSON."""
    return sha256(json.dumps(record).encode()).hexdigest()


def _identity(kind: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    return {"version": version("fairlane"), "sources": sources(), kind: spec}


def _differences(before: Any, now: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Where two specifications differ: dotted path, then, now."""
    if isinstance(before, dict) and isinstance(now, dict):
        for key in dict.fromkeys([*before, *now]):
            yield from _differences(before.get(key), now.get(key), f"{path}.{key}".lstrip("."))
    elif isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        for at, (one, other) in enumerate(zip(before, now, strict=True)):
            yield from _differences(one, other, f"{path}[{at}]")
    elif before != now:
        yield path, before, now


def _shown(value: Any) -> str:
    return "not there" if value is None else json.dumps(value)
