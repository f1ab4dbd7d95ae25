"""The compiled simulator that is loaded: the package's own, or one that ``fairlane build`` made with plug-in crates.

A build is a library and its record, ``build.json``, in a folder beside the package: whoever may install packages may
build, and what is built is part of the environment. The variable ``FAIRLANE_CORE`` names another folder. A build is
loaded only by the fairlane that it was made for: of the same version, platform and compiled simulator.
"""

import json
import os
import sys
import sysconfig
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache
from hashlib import sha256
from importlib import import_module
from importlib.machinery import ExtensionFileLoader
from importlib.metadata import version
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from fairlane.core.errors import Problem, ScenarioError

ENVIRONMENT = "FAIRLANE_CORE"
"""The environment variable that names the folder of a build."""
RECORD = "build.json"
AGAIN = "build again: fairlane build"
_CORE = "fairlane._core"
_PACKAGE = Path(__file__).parents[1]
DEFAULT_FOLDER = _PACKAGE.with_name("fairlane_build")


@dataclass(frozen=True)
class Crate:
    """A plug-in crate."""

    name: str
    version: str
    path: str
    """Its folder when it was built."""

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


@dataclass(frozen=True)
class Conditions:
    """What a build and the fairlane that loads it have in common."""

    fairlane: str
    """Version of the package."""
    abi: str
    """Binary interface: that of Python, and the platform."""
    core: str
    """SHA-256 of the package's own compiled simulator."""

    @classmethod
    def here(cls) -> "Conditions":
        """Those of this fairlane."""
        own = sha256()
        for file in _own_files(_PACKAGE):
            own.update(file.read_bytes())
        return cls(version("fairlane"), f"abi3-{sysconfig.get_platform()}", own.hexdigest())


@dataclass(frozen=True)
class Build:
    """A compiled simulator with plug-in crates."""

    folder: Path
    file_name: str
    """Name of the extension module, which has the start of its SHA-256."""
    conditions: Conditions
    crates: tuple[Crate, ...]
    debug: bool = False
    """Whether conservation laws are checked while it runs."""

    @property
    def file(self) -> Path:
        """The extension module."""
        return self.folder / self.file_name

    @classmethod
    def read(cls, folder: Path) -> "Build | None":
        """The build in a folder; None if there is none. Raises ``ScenarioError`` if its record is damaged."""
        path = folder / RECORD
        try:
            data = json.loads(path.read_text("utf-8"))
            crates = tuple(Crate(**crate) for crate in data["crates"])
            return cls(folder, data["file_name"], Conditions(**data["conditions"]), crates, data["debug"])
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise ScenarioError(Problem.of_file(path, f"is no record of a build ({error}); {AGAIN}")) from None

    def record(self) -> str:
        """The text of the record."""
        data = {"conditions": asdict(self.conditions), "file_name": self.file_name, "debug": self.debug}
        return json.dumps({**data, "crates": [asdict(crate) for crate in self.crates]}, indent=1) + "\n"

    def problem(self) -> Problem | None:
        """Why this fairlane cannot load it, if it cannot."""
        made, here = self.conditions, Conditions.here()
        if made.fairlane != here.fairlane:
            words = f"was built for fairlane {made.fairlane}, and this is {here.fairlane}"
        elif made.abi != here.abi:
            words = f"was built for {made.abi}, and this is {here.abi}"
        elif made.core != here.core:
            words = f"was built for another compiled simulator than that in {_PACKAGE}"
        elif not self.file.is_file():
            words = f"{self.file_name} is missing"
        else:
            return None
        return Problem.of_file(self.folder / RECORD, f"{words}; {AGAIN}")


@cache
def active() -> Build | None:
    """The build that is loaded in place of the package's own simulator.

    Raises ``ScenarioError`` if ``FAIRLANE_CORE`` names a folder without one.
    """
    named = os.environ.get(ENVIRONMENT)
    build = Build.read(Path(named) if named else DEFAULT_FOLDER)
    if named and build is None:
        raise ScenarioError(Problem(ENVIRONMENT, f"there is no {RECORD}", named, "a folder of fairlane build --out"))
    return build


def load() -> ModuleType:
    """Import the compiled simulator as ``fairlane._core``. Raises ``ScenarioError`` if it is of another fairlane."""
    build = active()
    if build is None:
        return import_module(_CORE)
    if problem := build.problem():
        raise ScenarioError(problem)
    return loaded(build.file)


def loaded(library: Path) -> ModuleType:
    """A library as ``fairlane._core``, unchecked. Raises what its initialisation raises."""
    spec = spec_from_file_location(_CORE, library, loader=ExtensionFileLoader(_CORE, str(library)))
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.modules[_CORE] = module
    vars(sys.modules["fairlane"])["_core"] = module
    return module


def files(package: Path) -> list[Path]:
    """The compiled simulator of a package's folder: of this package, that of the active build if there is one."""
    build = active() if package == _PACKAGE else None
    return [build.file] if build else _own_files(package)


def provenance() -> Mapping[str, Any]:
    """What results record of the active build: its crates, and the SHA-256 of its library; nothing without one."""
    build = active()
    if build is None:
        return {}
    return {"crates": [str(crate) for crate in build.crates], "simulator": sha256(build.file.read_bytes()).hexdigest()}


def _own_files(package: Path) -> list[Path]:
    return sorted([*package.glob("_core.*.so"), *package.glob("_core*.pyd")])
