"""The manifest of a folder of results: what wrote it, and the SHA-256 of every file that is read again.

It is written last, so a folder without one is not complete; a file that is not the one that was written is refused by
its name. Figures and pages for people are not listed: they are made from the tables, and never read.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path, PurePosixPath
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from fairlane.inputs.files import read_bytes
from fairlane.results.errors import ResultsError, writing

MANIFEST = "manifest.json"
Kind = Literal["run", "study", "control", "advice", "reproduction", "analysis", "saturation"]
"""What a folder can be of."""


class _Entry(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    bytes: int = Field(ge=0)


def _inside(name: str) -> str:
    path = PurePosixPath(name)
    if not name or path.is_absolute() or ".." in path.parts:
        raise ValueError("not the name of a file in the folder")
    return name


class _Manifest(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    fairlane: str
    """Version of fairlane that wrote the folder."""
    format: Literal[1] = 1
    """Version of the manifest itself."""
    kind: Kind
    schema_version: int
    """Version of the tables' columns."""
    files: dict[Annotated[str, Field(max_length=1024)], _Entry]


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def seal(folder: Path, kind: Kind, schema_version: int, names: Iterable[str]) -> None:
    """Writes the manifest of ``folder`` over the files of these names. Raises ``ResultsError``."""
    path = folder / MANIFEST
    with writing(path):
        files = {
            name: _Entry(sha256=sha256_of(folder / name), bytes=(folder / name).stat().st_size)
            for name in sorted(set(names))
        }
        manifest = _Manifest(fairlane=version("fairlane"), kind=kind, schema_version=schema_version, files=files)
        scratch = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            scratch.write_text(manifest.model_dump_json(indent=1) + "\n", encoding="utf-8")
            scratch.replace(path)
        finally:
            scratch.unlink(missing_ok=True)


def unseal(folder: Path) -> None:
    """Takes the manifest away, before files that it lists change. Raises ``ResultsError``."""
    with writing(folder / MANIFEST):
        (folder / MANIFEST).unlink(missing_ok=True)


@dataclass(frozen=True)
class Sealed:
    """A folder with its manifest."""

    folder: Path
    """The folder."""
    manifest: _Manifest
    """What it is to hold."""

    @classmethod
    def open(cls, folder: Path, kind: Kind, schema_version: int) -> Sealed:
        """Reads the manifest. Raises ``ResultsError`` if it is missing, damaged, or of something else."""
        path = folder / MANIFEST
        try:
            content = read_bytes(path)
        except FileNotFoundError:
            words = "is missing: the folder is not complete, or of an earlier version of fairlane; simulate it again"
            raise ResultsError(f"{path}: {words}") from None
        except OSError as error:
            raise ResultsError(f"{path}: cannot be read: {error.strerror}") from error
        found = _parsed(path, content)
        if found.kind != kind:
            raise ResultsError(f"{path}: kind is {found.kind!r}; expected {kind!r}")
        if found.schema_version != schema_version:
            words = f"schema_version is {found.schema_version}; this version of fairlane reads {schema_version}"
            raise ResultsError(f"{path}: {words}")
        return cls(folder, found)

    def __contains__(self, name: str) -> bool:
        """Whether a file of this name is to be there."""
        return name in self.manifest.files

    def path(self, name: str) -> Path:
        """The file of this name, if it is the one that was written. Raises ``ResultsError``."""
        path, entry = self.folder / name, self.manifest.files.get(name)
        if entry is None:
            raise ResultsError(f"{path}: is not listed in {MANIFEST}")
        _compare(path, entry)
        return path


def check_listed(path: Path) -> None:
    """Compares a file with the manifest beside it, if there is one that lists it. Raises ``ResultsError``."""
    manifest = path.parent / MANIFEST
    try:
        content = read_bytes(manifest)
    except OSError:
        return
    if b'"fairlane"' not in content[:200]:
        return
    entry = _parsed(manifest, content).files.get(path.name)
    if entry is not None:
        _compare(path, entry)


def _parsed(path: Path, content: bytes) -> _Manifest:
    try:
        return _Manifest.model_validate_json(content)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise ResultsError(f"{path}: {where or 'the file'}: {first['msg']}") from None


def _compare(path: Path, entry: _Entry) -> None:
    try:
        if path.exists() and not path.is_file():  # a device has no end
            raise ResultsError(f"{path}: is not a plain file")
        size = path.stat().st_size
        same = size == entry.bytes and sha256_of(path) == entry.sha256
    except FileNotFoundError:
        raise ResultsError(f"{path}: is missing") from None
    except OSError as error:
        raise ResultsError(f"{path}: cannot be read: {error.strerror}") from error
    if not same:
        words = f"{size} bytes instead of {entry.bytes}" if size != entry.bytes else "its SHA-256 is another"
        raise ResultsError(f"{path}: has changed since it was written ({words}, see {MANIFEST}); simulate it again")
