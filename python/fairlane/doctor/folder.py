"""A folder of results: what wrote it, and whether every file is the one that was written."""

from collections.abc import Iterator
from pathlib import Path

from fairlane.doctor.check import Check, Status
from fairlane.results.errors import ResultsError
from fairlane.results.manifest import Examined, examine


def checks(folder: Path) -> Iterator[Check]:
    """Of one folder. Raises ``ResultsError`` if there are no results of fairlane in it."""
    yield from _checks(folder, examine(folder))


def _checks(folder: Path, found: Examined) -> Iterator[Check]:
    from importlib.metadata import version

    here = version("fairlane")
    data = {"kind": found.kind, "version": found.version, "schema_version": found.schema_version}
    words = f"a {found.kind}, written by fairlane {found.version}, schema_version {found.schema_version}"
    if found.version != here:
        todo = f"to compare numbers, simulate it again with fairlane {here}"
        yield Check("results", Status.WARNING, words, todo=todo, data=data)
    else:
        yield Check("results", Status.OK, words, data=data)
    for problem in found.problems:
        yield Check("file", Status.BROKEN, problem, todo="simulate it again")
    if not found.problems:
        yield Check("files", Status.OK, f"{found.files} files are as they were written")
    if found.kind == "run" and not found.problems:
        yield _readable(folder)


def _readable(folder: Path) -> Check:
    from fairlane.results.store import load_run

    try:
        meta = load_run(folder).meta
    except ResultsError as error:
        return Check("run", Status.BROKEN, str(error), todo="simulate it again")
    words = f"scenario {meta.scenario}, seed {meta.seed}, digest {meta.digest}"
    status, todo = (Status.WARNING, "it was interrupted: simulate it again") if meta.partial else (Status.OK, "")
    data = {"scenario": meta.scenario, "seed": meta.seed, "digest": meta.digest, "partial": meta.partial}
    return Check("run", status, words, todo=todo, data=data)
