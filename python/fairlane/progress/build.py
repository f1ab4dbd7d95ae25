"""Sources of libfairlane-progress for a machine, and the libraries, as far as its compilers are there."""

import shutil
import subprocess
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from fairlane.errors import FairlaneError, Problem, ScenarioError
from fairlane.inputs.files import write_text

SOURCES = ("fairlane_progress.h", "fairlane_progress.c", "fairlane_progress.f90", "fairlane_pmpi.c", "Makefile")


@dataclass(frozen=True)
class Library:
    """Library that make builds, and its compiler."""

    target: str
    variable: str
    """The variable of the Makefile that names the compiler."""
    compiler: str


LIBRARIES = (
    Library("libfairlane-progress.so", "CC", "cc"),
    Library("libfairlane-progress.a", "CC", "cc"),
    Library("libfairlane-pmpi.so", "MPICC", "mpicc"),
    Library("fairlane_progress_fortran.o", "FC", "gfortran"),
)


@dataclass(frozen=True)
class Built:
    """A library, or why there is none."""

    target: str
    missing: str | None = None
    """The program that is not installed."""


def build(folder: Path, **compilers: str | None) -> list[Built]:
    """Writes the sources into a folder and builds what the installed compilers can.

    Args:
        folder: New, empty, or with an earlier build.
        compilers: Names of the compilers by variable of the Makefile (``CC``, ``MPICC``, ``FC``); those of the
            Makefile by default. One that is named has to be there.

    Raises:
        ScenarioError: The folder has other files, or a named compiler is not installed.
        FairlaneError: A compiler ends with an error.
    """
    if folder.exists() and not folder.is_dir():
        raise ScenarioError(Problem("--out", "is not a folder", str(folder)))
    others = [path.name for path in folder.iterdir()] if folder.exists() else []
    if others and "fairlane_progress.h" not in others:
        raise ScenarioError(Problem("--out", "exists and is not empty; choose another folder", str(folder)))
    for variable, compiler in compilers.items():
        if compiler is not None and shutil.which(compiler) is None:
            raise ScenarioError(Problem(f"--{variable.lower()}", "is not installed", compiler))
    folder.mkdir(parents=True, exist_ok=True)
    for name in SOURCES:
        write_text(folder / name, (files("fairlane.progress") / "c" / name).read_text("utf-8"))
    return [_built(folder, library, compilers.get(library.variable) or library.compiler) for library in LIBRARIES]


def _built(folder: Path, library: Library, compiler: str) -> Built:
    for program in ("make", compiler):
        if shutil.which(program) is None:
            return Built(library.target, program)
    command = ["make", "-C", str(folder), library.target, f"{library.variable}={compiler}"]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode:
        raise FairlaneError(f"{' '.join(command)}: ended with code {done.returncode}:\n{done.stderr.strip()}")
    return Built(library.target)
