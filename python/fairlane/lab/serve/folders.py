"""List a folder of results: runs and other kinds, finished or in progress, with their provenance.

Symbolic links are not followed, so nothing outside the folder is listed or read. A folder that cannot be read is listed
with the reason; one that vanishes while it is read is left out.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from fairlane.core.errors import FairlaneError
from fairlane.inputs.files import parse_json, read_bytes
from fairlane.results.live import Found, live_folder, read_live, stored_name
from fairlane.results.manifest import MANIFEST
from fairlane.study.tasks.store import ANSWERS, FAILED, SPEC

DEEPEST = 8
"""Folders within each other that are looked into."""
MOST_FOLDERS = 20_000
"""Folders that are looked at; more are not listed."""
_MOST_META = 4 << 20  # bytes of a file of provenance
KINDS = ("run", "study", "saturation", "gpcnet", "cables", "advice", "schedule", "reproduction")
"""Kinds of folders, by their manifests, that have a page; that of a robustness map is a reproduction."""
_METAS = {kind: f"{kind}.json" for kind in KINDS}
_UNFINISHED = {"sweep": "saturation", "survey": "cables"}  # kinds by what their specification calls them

Status = Literal["in progress", "finished", "partial", "not complete", "killed", "failed", "broken"]


@dataclass(frozen=True)
class Entry:
    """A folder of results, or of a run in progress."""

    path: str
    """Path from the folder that is served; empty for that folder itself."""
    kind: str
    status: Status
    note: str | None = None
    """Reason why it is broken or not complete."""
    scenario: str | None = None
    seed: int | None = None
    started: str | None = None
    """Time of its start, ISO 8601; of kinds that do not say, of its end."""
    digest: str | None = None
    share: float | None = None
    """Of a run in progress how much is done."""


class OutsideError(Exception):
    """A path that leads out of the folder that is served, or that could not be one in it."""


def within(root: Path, given: str) -> Path:
    """The path of ``given``, which is relative to ``root``, the resolved path of a folder.

    Raises ``OutsideError`` if it leads out of ``root``, directly or by a symbolic link, or to something hidden.
    """
    parts = given.split("/") if given else []
    if any(not part or part.startswith(".") or "\0" in part or "\\" in part for part in parts):
        raise OutsideError
    path = root.joinpath(*parts)
    try:
        followed = path.resolve()
    except (OSError, RuntimeError):  # a name that is too long, or links in a circle
        raise OutsideError from None
    if followed != path:
        raise OutsideError
    return path


class Folders:
    """Reads a folder again and again, and what has not changed only once."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.truncated = False
        """Whether there were more folders than were looked at."""
        self._known: dict[str, tuple[object, Entry]] = {}

    def entries(self) -> list[Entry]:
        """All results and runs in progress, the latest first."""
        by_path = {entry.path: entry for entry in self._below()}
        self._known = {path: known for path, known in self._known.items() if path in by_path}
        return sorted(by_path.values(), key=lambda entry: (entry.started or "", entry.path), reverse=True)

    def entry(self, path: str) -> Entry | None:
        """Return the entry at a path; None if there is none. Raises ``OutsideError``."""
        folder = within(self.root, path)
        return self._results(folder, path) or (self._running(folder, path) if path else None)

    def _below(self) -> Iterator[Entry]:
        waiting, looked = [(self.root, "", 0)], 0
        self.truncated = False
        while waiting:
            folder, path, depth = waiting.pop()
            looked += 1
            if looked > MOST_FOLDERS:
                self.truncated = True
                return
            entry = self._results(folder, path)
            if entry is not None:
                yield entry
                if entry.kind == "run":
                    continue
            for name in _folders_in(folder):
                if (run := stored_name(name)) and not run.startswith("."):
                    below = f"{path}/{run}" if path else run
                    running = self._running(folder / run, below)
                    if running is not None and not (entry := self._results(folder / run, below)):
                        yield running
                elif depth < DEEPEST and not name.startswith(".") and not (entry and name in {ANSWERS, FAILED}):
                    waiting.append((folder / name, f"{path}/{name}" if path else name, depth + 1))

    def _results(self, folder: Path, path: str) -> Entry | None:
        """The results in a folder, if there are any."""
        signature = [_signature(folder / name) for name in (MANIFEST, *_METAS.values(), SPEC)]
        if not any(signature):
            return None
        known = self._known.get(path)
        if known is not None and known[0] == signature:
            return known[1]
        try:
            entry = _read(folder, path)
        except FileNotFoundError:  # it has just been removed
            return None
        except (OSError, ValueError) as error:
            message = getattr(error, "strerror", None) or str(error) or "cannot be read"
            entry = Entry(path, _kind_by_files(folder), "broken", message.replace(f"{folder}/", ""))
        self._known[path] = (signature, entry)
        return entry

    def _running(self, folder: Path, path: str) -> Entry | None:
        """The run that will be stored in a folder, or would have been."""
        try:
            if live_folder(folder).is_symlink():
                return None
            live = read_live(folder)
        except OSError:  # a name that is too long
            return None
        except FairlaneError as error:
            return Entry(path, "run", "broken", str(error).replace(f"{folder.parent}/", ""))
        return None if live is None else _entry_of(live, path)


def _entry_of(live: Found, path: str) -> Entry:
    state = live.state
    started = state.started.astimezone(UTC).isoformat(timespec="seconds")
    entry = Entry(path, "run", "in progress", None, state.scenario, state.seed, started, share=state.progress.share)
    if live.alive:
        return entry
    if state.phase == "failed":
        return replace(entry, status="failed", note=state.error)
    return replace(entry, status="killed", note=f"process {state.pid} on {state.machine} has ended without results")


def _folders_in(folder: Path) -> list[str]:
    """The names of folders in a folder that can stand in an address; none if it cannot be read."""
    try:
        with os.scandir(folder) as entries:
            names = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []
    return sorted((name for name in names if name.isprintable() and "\\" not in name), reverse=True)


def _signature(path: Path) -> object:
    """Return numbers that change when a plain file is replaced; None if it is none."""
    try:
        status = path.lstat()
    except OSError:
        return None
    return (status.st_ino, status.st_mtime_ns, status.st_size)


def _kind_by_files(folder: Path) -> str:
    kinds = [kind for kind, name in _METAS.items() if (folder / name).exists()]
    return kinds[0] if kinds else "unknown"


def _read(folder: Path, path: str) -> Entry:
    """Raises ``OSError`` or ``ValueError`` if it cannot be read."""
    if _signature(folder / MANIFEST) is None:
        return _unfinished(folder, path)
    kind = str(_object(folder / MANIFEST).get("kind", ""))[:40] or "unknown"
    meta = _object(folder / _METAS[kind]) if kind in _METAS else {}
    failures = meta.get("failures")
    return Entry(
        path,
        kind,
        "partial" if meta.get("partial") is True or meta.get("interrupted") is True else "finished",
        f"{failures} of its runs failed" if isinstance(failures, int) and failures > 0 else None,
        _text(meta, "scenario", "study", "paper", "name"),
        meta["seed"] if isinstance(meta.get("seed"), int) else None,
        _when(meta, folder / MANIFEST),
        _text(meta, "digest"),
    )


def _unfinished(folder: Path, path: str) -> Entry:
    """A folder without a manifest: one that is not complete, or none that this version reads."""
    if _signature(folder / SPEC) is None:
        if _kind_by_files(folder) == "unknown":
            raise FileNotFoundError
        raise ValueError(f"{MANIFEST} is missing: it is not complete, or of an earlier version")
    known = set(_object(folder / SPEC)) - {"schema_version", "version", "sources"}
    kind = min(known, default="unknown")
    message = "it is being computed, or was interrupted: --resume continues"
    return Entry(path, _UNFINISHED.get(kind, kind), "not complete", message, started=_when({}, folder / SPEC))


def _object(path: Path) -> Mapping[str, Any]:
    if path.is_symlink():
        raise ValueError(f"{path.name} is a symbolic link")
    try:
        value = parse_json(read_bytes(path, _MOST_META))
    except ValueError:
        raise ValueError(f"{path.name} is not valid JSON") from None
    if not isinstance(value, dict):
        raise ValueError(f"{path.name} has no keys")
    return value


def _text(meta: Mapping[str, Any], *keys: str) -> str | None:
    return next((value[:200] for key in keys if isinstance(value := meta.get(key), str)), None)


def _when(meta: Mapping[str, Any], file: Path) -> str:
    try:
        moment = datetime.fromisoformat(meta["started"])
    except (KeyError, TypeError, ValueError):
        moment = datetime.fromtimestamp(file.stat().st_mtime, UTC)
    return moment.astimezone(UTC).isoformat(timespec="seconds")
