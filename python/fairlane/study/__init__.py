"""Studies: a scenario over placements, seeds, parameters and treatments, against default and isolated runs.

A study file becomes a plan of cells; their tasks are performed by workers, every answer is stored at once, and the
answers become tables. A kind of treatment is one file in ``treatments`` and one line there.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fairlane.study.running import run
    from fairlane.study.study import Study

__all__ = ["Study", "run"]

_HOME = {"Study": "fairlane.study.study", "run": "fairlane.study.running"}


def __getattr__(name: str) -> Any:
    """Imports a public name on first use (PEP 562)."""
    if name not in _HOME:
        raise AttributeError(f"module 'fairlane.study' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return __all__
