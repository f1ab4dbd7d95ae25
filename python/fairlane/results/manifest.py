"""The manifest of a folder of results: what wrote it, and the SHA-256 of every file that is read again.

It is written last, so a folder without one is not complete; a file that is not the one that was written is refused by
its name. Figures and pages for people are not listed: they are made from the tables, and never read.
"""

import hashlib
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Literal, Self, TypeVar

import polars as pl
from pydantic import BaseModel, Field, ValidationError

from fairlane.core.errors import ResultsError, writing
from fairlane.core.extension import provenance
from fairlane.inputs.files import read_bytes, replacing
from fairlane.inputs.table import Table

MANIFEST = "manifest.json"
Kind = Literal[
    "run", "study", "control", "advice", "reproduction", "analysis", "saturation", "schedule", "gpcnet", "cables"
]
"""The kinds of folders."""
_Model = TypeVar("_Model", bound=BaseModel)
_Content = TypeVar("_Content")


class _Entry(Table):
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    bytes: int = Field(ge=0)


class _Manifest(Table):
    fairlane: str
    """Version of fairlane that wrote the folder."""
    format: Literal[1] = 1
    """Version of the manifest itself."""
    kind: Kind
    schema_version: int
    """Version of the tables' columns."""
    crates: list[str] | None = None
    """Plug-in crates of the simulator, with their versions, if it was built with any."""
    simulator: str | None = None
    """SHA-256 of the simulator with these crates."""
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
        about = {"fairlane": version("fairlane"), "kind": kind, "schema_version": schema_version, **provenance()}
        manifest = _Manifest.model_validate({**about, "files": files})
        with replacing(path) as scratch:
            scratch.write_text(manifest.model_dump_json(indent=1, exclude_none=True) + "\n", encoding="utf-8")


def create_sealed(
    folder: Path, kind: Kind, schema_version: int, tables: Mapping[str, pl.DataFrame], texts: Mapping[str, str]
) -> None:
    """Makes a folder of tables, as Parquet, and other files by name, with its manifest: all of it or none.

    Raises ``ResultsError`` if that fails.
    """
    with writing(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        unfinished = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
        try:
            for name, table in tables.items():
                table.write_parquet(unfinished / f"{name}.parquet")
            for name, text in texts.items():
                (unfinished / name).write_text(text, encoding="utf-8")
            seal(unfinished, kind, schema_version, [*(f"{name}.parquet" for name in tables), *texts])
            unfinished.chmod(0o755)
            unfinished.rename(folder)
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)


def unseal(folder: Path) -> None:
    """Removes the manifest before files that it lists change. Raises ``ResultsError``."""
    with writing(folder / MANIFEST):
        (folder / MANIFEST).unlink(missing_ok=True)


@dataclass(frozen=True)
class Sealed:
    """A folder with its manifest."""

    folder: Path
    manifest: _Manifest

    @classmethod
    def open(cls, folder: Path, kind: Kind, schema_version: int) -> Self:
        """Reads the manifest. Raises ``ResultsError`` if it is missing, damaged, or of something else."""
        path = folder / MANIFEST
        try:
            manifest = read_as(_Manifest, path)
        except FileNotFoundError:
            message = "is missing: the folder is not complete, or of an earlier version of fairlane; simulate it again"
            raise ResultsError(f"{path}: {message}") from None
        if manifest.kind != kind:
            raise ResultsError(f"{path}: kind is {manifest.kind!r}; expected {kind!r}")
        if manifest.schema_version != schema_version:
            message = f"schema_version is {manifest.schema_version}; this version of fairlane reads {schema_version}"
            raise ResultsError(f"{path}: {message}")
        return cls(folder, manifest)

    def __contains__(self, name: str) -> bool:
        """Whether the manifest lists a file of this name."""
        return name in self.manifest.files

    def path(self, name: str) -> Path:
        """The file of this name, if it is the one that was written. Raises ``ResultsError``."""
        path, entry = self.folder / name, self.manifest.files.get(name)
        if entry is None:
            raise ResultsError(f"{path}: is not listed in {MANIFEST}")
        _compare(path, entry)
        return path


@dataclass(frozen=True)
class Examined:
    """Content of a folder's manifest, and problems of the files that it lists."""

    kind: str
    """Kind of the folder: ``run``, ``study`` ..."""
    version: str
    """Version of fairlane that wrote it."""
    schema_version: int
    """Version of the tables' columns."""
    files: int
    """Number of listed files."""
    problems: tuple[str, ...]
    """One message for each file that is missing or has changed."""


def examine(folder: Path) -> Examined:
    """Compares all files of a folder of any kind and schema version with its manifest.

    Raises ``ResultsError`` if there is no manifest or it is damaged.
    """
    path = folder / MANIFEST
    try:
        manifest = read_as(_Manifest, path)
    except FileNotFoundError:
        message = "is no folder of results, or is not complete" if folder.is_dir() else "there is no such folder"
        raise ResultsError(f"{folder}: {message} ({MANIFEST} is missing)") from None
    problems = []
    for name, entry in manifest.files.items():
        try:
            _compare(folder / name, entry)
        except ResultsError as error:
            problems.append(str(error))
    return Examined(manifest.kind, manifest.fairlane, manifest.schema_version, len(manifest.files), tuple(problems))


def check_listed(path: Path) -> None:
    """Compares a file with the manifest in its folder, if there is one that lists it. Raises ``ResultsError``."""
    manifest = path.parent / MANIFEST
    try:
        if b'"fairlane"' not in read_bytes(manifest)[:200]:
            return
    except OSError:
        return
    entry = read_as(_Manifest, manifest).files.get(path.name)
    if entry is not None:
        _compare(path, entry)


def read_as(kind: type[_Model], path: Path) -> _Model:
    """A JSON file. Raises ``FileNotFoundError``, and ``ResultsError`` with the key if it is not of this kind."""
    return read_json(kind.model_validate_json, path)


def read_json(validate: Callable[[bytes], _Content], path: Path) -> _Content:
    """A JSON file as ``validate`` of pydantic reads it. Raises as ``read_as``."""
    try:
        return validate(read_bytes(path))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"])) or "the file"
        raise ResultsError(f"{path}: {where}: {first['msg']}") from None
    except FileNotFoundError:
        raise
    except OSError as error:
        raise ResultsError(f"{path}: cannot be read: {error.strerror}") from error


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
        message = f"{size} bytes instead of {entry.bytes}" if size != entry.bytes else "its SHA-256 is another"
        raise ResultsError(f"{path}: has changed since it was written ({message}, see {MANIFEST}); simulate it again")
