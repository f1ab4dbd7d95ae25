"""The folder of a study, or of another set of tasks: every answer is written at once, with its SHA-256.

An answer is found again by the digest of its task. What has changed since it was stored is computed again.
"""

import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from hashlib import sha256
from importlib.metadata import version
from io import BytesIO
from pathlib import Path
from typing import Any, Self

import polars as pl

from fairlane.core.errors import FairlaneError, ResultsError, writing
from fairlane.inputs.files import MOST_STORED, parse_json, read_bytes
from fairlane.results.manifest import Kind, seal, unseal
from fairlane.results.run import is_folder_of, new_folder
from fairlane.study.tasks.closure import sources
from fairlane.study.tasks.task import Computable, Outcome

SCHEMA_VERSION = 2
"""Version of the layout of a folder of answers."""
SPEC = "spec.json"
ANSWERS = "answers"
FAILED = "failed"


class Store:
    """A folder of answers, by the digest of their tasks or another ``key``."""

    def __init__(self, folder: Path, key: Callable[[Computable], str] = lambda task: task.digest) -> None:
        self.folder = folder
        self.key = key
        """The name that a task's answer is stored by."""
        self.damaged: list[str] = []
        """Stored answers that have changed since they were stored: they are computed again."""
        self._found = folder.exists()
        self._answers = ANSWERS

    def section(self, name: str) -> "Store":
        """A store in the same folder whose answers are in a subfolder of this name; both share ``damaged``."""
        other = Store(self.folder, self.key)
        other._answers, other.damaged = name, self.damaged
        return other

    @classmethod
    def open(
        cls,
        kind: str,
        name: str,
        spec: Mapping[str, Any],
        files: Mapping[str, str],
        *,
        code: Sequence[str | Path],
        out: Path | None,
        started: datetime,
        resume: bool,
        complete: Callable[[Path], bool],
    ) -> Self:
        """A new folder, or with ``resume`` an existing one.

        Args:
            kind: What it is of, in messages: ``study``, ``sweep``.
            name: The name that a new folder in ``runs/`` begins with.
            spec: All that its answers depend on, besides the tasks.
            files: Texts that a new folder gets, by name.
            code: Modules or files of the functions that compute its answers.
            out: The folder; None for a new one in ``runs/``, or for the latest there that is not complete.
            started: The time that a new folder is named after.
            resume: Whether to continue in an existing folder.
            complete: Whether a folder has nothing left to do.

        Raises:
            ResultsError: The folder cannot be made, or it is of something else: the message says what differs.
        """
        identity = {
            "schema_version": SCHEMA_VERSION,
            "version": version("fairlane"),
            "sources": sources(*code),
            kind: json.loads(json.dumps(spec)),
        }
        if resume:
            return cls(out or _unfinished(name, kind, complete))._checked(kind, identity)
        store = cls(new_folder(name, started, out))
        with writing(store.folder / ANSWERS):
            (store.folder / ANSWERS).mkdir(parents=True)
        try:
            for file, text in files.items():
                store.write(file, text)
            store.write(SPEC, json.dumps(identity, indent=1))
        except ResultsError:
            store.undo()
            raise
        return store

    @classmethod
    def kept(cls, kind: str, folder: Path, spec: Mapping[str, Any], code: Sequence[str | Path]) -> Self:
        """A new folder, or an existing one of the same ``spec``. Raises ``ResultsError`` as ``open``."""
        return cls.open(
            kind,
            folder.name,
            spec,
            {},
            code=code,
            out=folder,
            started=datetime.now(),
            resume=(folder / SPEC).is_file(),
            complete=lambda _folder: False,
        )

    def _checked(self, kind: str, identity: Mapping[str, Any]) -> Self:
        """This folder, if it is of the same. Raises ``ResultsError``, naming what differs."""
        none = f"{self.folder}: no {kind} to resume"
        try:
            before = parse_json(read_bytes(self.folder / SPEC, MOST_STORED))
        except FileNotFoundError:
            raise ResultsError(f"{none} ({SPEC} is missing)") from None
        except (OSError, ValueError) as error:
            message = f"{SPEC}: cannot be read: {getattr(error, 'strerror', None) or error}"
            raise ResultsError(f"{none} ({message})") from None
        stored_version = before.get("schema_version", 1) if isinstance(before, dict) else None
        if stored_version != SCHEMA_VERSION:
            message = f"schema_version is {stored_version}; this version of fairlane reads {SCHEMA_VERSION}"
            raise ResultsError(f"{none} ({SPEC}: {message})")
        difference = next(_differences(before, identity), None)
        if difference is not None:
            key, was, now = difference
            changed = f"{key.removeprefix(f'{kind}.')} was {_shown(was)}, is {_shown(now)}"
            raise ResultsError(f"{self.folder}: cannot resume, the {kind} has changed: {changed}")
        return self

    @contextmanager
    def undone_without_answers(self) -> Iterator[None]:
        """Removes the folder after an error within if it has no answers: wrong input leaves nothing half-written."""
        try:
            yield
        except FairlaneError:
            if not self.digests():
                self.undo()
            raise

    def undo(self) -> None:
        """Removes a new folder, as far as possible; one that existed before is left empty."""
        shutil.rmtree(self.folder, ignore_errors=True)
        if self._found:
            self.folder.mkdir(exist_ok=True)

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

    def finish(
        self, kind: Kind, schema_version: int, tables: Mapping[str, pl.DataFrame], files: Mapping[str, str]
    ) -> None:
        """Stores the results of all tasks: tables as Parquet, then other files, and the manifest over them.

        Raises ``ResultsError`` if that fails; the folder is then not complete.
        """
        unseal(self.folder)
        for name, table in tables.items():
            content = BytesIO()
            table.write_parquet(content)
            self.write(f"{name}.parquet", content.getvalue())
        for name, text in files.items():
            self.write(name, text)
        seal(self.folder, kind, schema_version, [*(f"{name}.parquet" for name in tables), *files])

    def get(self, task: Computable) -> Outcome | None:
        """The stored outcome of a task; None if there is none. Raises ``ResultsError`` if it cannot be read.

        An answer that is not the one that was stored is none: it is named in ``damaged``, and computed again.
        """
        key = self.key(task)
        name = f"{self._answers}/{key}.json"
        try:
            record = parse_json(read_bytes(self.folder / name, MOST_STORED))
        except FileNotFoundError:
            return None
        except OSError as error:
            raise ResultsError(f"{self.folder / name}: cannot be read: {error.strerror}") from error
        except ValueError:  # a machine that went down may leave half an answer
            record = None
        whole = isinstance(record, dict) and isinstance(record.get("answer"), dict) and record.get("task") == key
        if whole and record.pop("sha256", None) == _checksum(record):
            return Outcome(record["answer"], laps=record.get("laps", {}), cpu=record.get("cpu", 0.0))
        if name not in self.damaged:
            self.damaged.append(name)
        return None

    def keep(self, task: Computable, outcome: Outcome) -> None:
        """Stores the answer of a task."""
        kept = {"answer": outcome.answer, "laps": outcome.laps, "cpu": outcome.cpu}
        key = self.key(task)
        record = {"task": key, "label": task.label, **kept}
        self.write(f"{self._answers}/{key}.json", json.dumps({"sha256": _checksum(record), **record}))

    def fail(self, task: Computable) -> str:
        """Stores what a task that failed is about; its file, seen from the folder."""
        import tomlkit

        name = f"{FAILED}/{self.key(task)}.toml"
        self.write(name, f"# {task.label}\n{tomlkit.dumps(_given(task.description))}")
        return name

    def foreign(self) -> bool:
        """Whether there is something in the folder, and neither answers nor failures."""
        try:
            names = {path.name for path in self.folder.iterdir()}
        except OSError:  # there is no such folder
            return False
        return bool(names) and names.isdisjoint((ANSWERS, FAILED))

    def digests(self) -> set[str]:
        """Digests of the tasks with answers."""
        try:
            return {path.stem for path in (self.folder / self._answers).glob("[!.]*.json")}
        except OSError:  # as of a name that is too long
            return set()


def _unfinished(name: str, kind: str, complete: Callable[[Path], bool]) -> Path:
    """The latest folder in ``runs`` with this name that is not complete. Raises ``ResultsError`` if there is none."""
    specs = sorted(Path("runs").glob(f"*/{SPEC}"), key=lambda path: path.stat().st_mtime)
    folders = [path.parent for path in specs if is_folder_of(path.parent.name, name)]
    open_ones = [folder for folder in folders if not complete(folder)]
    if not open_ones:
        raise ResultsError(f"runs: no unfinished {kind} {name!r} to resume; name its folder with --out")
    return open_ones[-1]


def _given(data: Any) -> Any:
    """Plain data without keys that are None, for which TOML has no word."""
    if isinstance(data, Mapping):
        return {key: _given(value) for key, value in data.items() if value is not None}
    return [_given(value) for value in data] if isinstance(data, list | tuple) else data


def _checksum(record: Mapping[str, Any]) -> str:
    """The SHA-256 of a stored answer with all that is said of it, as JSON."""
    return sha256(json.dumps(record).encode()).hexdigest()


def _differences(before: Any, now: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Yield the differences of two specifications: dotted path, former value, present value."""
    if isinstance(before, dict) and isinstance(now, dict):
        for key in dict.fromkeys([*before, *now]):
            yield from _differences(before.get(key), now.get(key), f"{path}.{key}".lstrip("."))
    elif isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        for at, (old, new) in enumerate(zip(before, now, strict=True)):
            yield from _differences(old, new, f"{path}[{at}]")
    elif before != now:
        yield path, before, now


def _shown(value: Any) -> str:
    return "not there" if value is None else json.dumps(value)
