"""What answers depend on besides what was asked: the code that makes them, as it stands on this machine.

A version number does not change while one works at a checkout; the files do. Which files those are is computed from
what they import (``closure``).
"""

import sys
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

from fairlane.inputs.registry import code_of_packages
from fairlane.tasks.closure import code

STUDY = ("fairlane.study.pinned", "fairlane.study.measured", "fairlane.study.method")
"""The modules of the functions that the tasks of studies name."""
_CONTROLLERS = "fairlane.controller"


def sources(*entries: str | Path, controller: str | None = None) -> str:
    """A digest of the code behind modules and files, by default the tasks of studies; and of installed plug-ins.

    That is all of fairlane that they import, the compiled simulator included. With the name of a ``controller``,
    controllers that are built in and that it does not use do not count.
    """
    return code_digest(entries or STUDY, controller, tuple(sys.path))


@lru_cache
def code_digest(entries: tuple[str | Path, ...], controller: str | None, _path: tuple[str, ...]) -> str:
    """The same for packages that are looked for in ``_path``; kept, as files do not change while a program runs."""
    home = code().home
    found = sha256()
    for path in code().files(entries, _of_other_controllers(controller)):
        name = path.relative_to(home).as_posix() if home in path.parents else path.name
        found.update(f"{name}\0".encode())
        found.update(sha256(path.read_bytes()).digest())
    found.update("\0".join(code_of_packages()).encode())
    return found.hexdigest()[:16]


def _of_other_controllers(controller: str | None) -> set[tuple[str, str]]:
    """The imports by which the package of controllers knows the others."""
    from fairlane.controller import CONTROLLERS

    modules = {name: kind.__module__.split(".")[2] for name, kind in CONTROLLERS.builtin.items()}
    others = {*modules.values()} - {modules.get(controller or "")}
    return {(_CONTROLLERS, f"{_CONTROLLERS}.{module}") for module in others} if controller is not None else set()
