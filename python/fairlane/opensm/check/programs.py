"""The programs of a simulated subnet, and the Debian packages that have them."""

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from fairlane.errors import Problem, ScenarioError

PACKAGES: Mapping[str, str] = {
    "opensm": "opensm",
    "ibsim": "ibsim-utils",
    "dump_fts": "infiniband-diags",
    "setpriv": "util-linux",
}
"""The package of each program."""
SIMULATED_UMAD = "libumad2sim.so"
"""Of ``ibsim-utils``: connects a program's management datagrams with the simulated subnet."""
_SYSTEM = "/usr/sbin:/sbin"  # where a user's PATH does not lead
_LIBRARIES = ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib")


@dataclass(frozen=True)
class Programs:
    """Where they are."""

    path: str
    """The value of PATH with which they are found."""
    umad2sim: Path
    """``libumad2sim``."""


def search_path() -> str:
    """PATH with the folders of system programs."""
    return f"{os.environ.get('PATH', os.defpath)}:{_SYSTEM}"


def missing_programs() -> dict[str, str]:
    """The package of each program that is not installed."""
    path = search_path()
    found = {name: package for name, package in PACKAGES.items() if shutil.which(name, path=path) is None}
    return found if _library() else found | {SIMULATED_UMAD: PACKAGES["ibsim"]}


def find_programs() -> Programs:
    """The programs. Raises ``ScenarioError`` with the packages of those that are missing."""
    missing, library = missing_programs(), _library()
    if missing or library is None:
        packages = " ".join(dict.fromkeys(missing.values()))
        words = f"not installed: {', '.join(missing)}"
        raise ScenarioError(Problem("sm check", words, allowed=f"with the packages of Debian: apt install {packages}"))
    return Programs(search_path(), library)


def _library() -> Path | None:
    own = [folder for folder in os.environ.get("LD_LIBRARY_PATH", "").split(":") if folder]
    places = (Path(folder) / "umad2sim" / SIMULATED_UMAD for folder in (*_LIBRARIES, *own))
    return next((place for place in places if place.exists()), None)
