"""Libraries that only some commands need, and the extras that install them: ``pip install "fairlane[predict]"``."""

from importlib import import_module
from typing import Literal

from fairlane.errors import FairlaneError

EXTRAS = {
    "predict": "sklearn",
    "schedule": "networkx",
    "dask": "distributed",
    "serve": "tornado",
    "timeline": "perfetto",
}
"""For each extra a module that it brings; ``papers`` brings those of the first two."""


class MissingExtraError(FairlaneError, ImportError):
    """A library of an extra is not installed."""


def require(extra: Literal["predict", "schedule", "dask", "serve", "timeline"]) -> None:
    """Raises ``MissingExtraError``, which names the command that installs it, if the library of an extra is missing."""
    try:
        import_module(EXTRAS[extra])
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != EXTRAS[extra]:
            raise
        raise MissingExtraError(f'{EXTRAS[extra]} is not installed: pip install "fairlane[{extra}]"') from None
