"""What answers depend on besides what was asked: the simulator itself, as it stands on this machine.

A version number does not change while one works at a checkout; the files do.
"""

import sys
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

from fairlane.inputs.registry import code_of_packages

APART = (
    "advice",
    "analysis",
    "cli",
    "doctor",
    "models",
    "plot",
    "predict",
    "report",
    "reproduce",
    "results",
    "serve",
    "study",
    "tasks",
)
"""Packages that no number of a simulation comes from, but for ``COUNTING``."""
COUNTING = (
    "advice/fingerprint.py",
    "results/derive.py",
    "results/latency.py",
    "engine/tables.py",
    "results/milestones.py",
    "results/schemas.py",
    "results/tables.py",
    "study/work.py",
    "study/measured.py",
    "study/sql.py",
)
"""What makes answers of tasks out of a simulation's counters."""


def sources(controller: str | None = None) -> str:
    """A digest of the compiled simulator, the slowdown models of the scheduler, and the Python of inputs and plug-ins.

    With the name of a ``controller``, other controllers that are built in do not count.
    """
    return code_digest(controller, tuple(sys.path))


@lru_cache
def code_digest(controller: str | None, _path: tuple[str, ...]) -> str:
    """The same for packages that are looked for in ``_path``; kept, as files do not change while a program runs."""
    home = Path(__file__).parent.parent
    found = sha256()
    models = home.glob("scheduler/**/*.toml")
    for path in sorted([*home.rglob("*.py"), *models, *home.glob("_core.*.so"), *home.glob("_core*.pyd")]):
        inside = path.relative_to(home)
        apart = inside.parts[0] in APART and inside.as_posix() not in COUNTING
        if not apart and not of_another_controller(inside, controller):
            found.update(f"{inside.as_posix()}\0".encode())
            found.update(sha256(path.read_bytes()).digest())
    found.update("\0".join(code_of_packages()).encode())
    return found.hexdigest()[:16]


def of_another_controller(path: Path, controller: str | None) -> bool:
    """Whether the file, or the folder that it is in, is that of another controller."""
    from fairlane.controller import CONTROLLERS

    known = CONTROLLERS.builtin.items()
    modules = {name: kind.__module__.partition("fairlane.controller.")[2].split(".")[0] for name, kind in known}
    module = Path(path.parts[1]).stem if path.parts[0] == "controller" else None
    return controller is not None and module in modules.values() and module != modules.get(controller)
