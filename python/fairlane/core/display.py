"""Methods of results that draw, as ``Run.plot``.

The room ``views`` registers the functions behind them; it is imported when one is first called.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any

_METHODS: dict[str, Callable[..., Any]] = {}


def register(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register the function that a method calls, as ``Results.plot``."""

    def keep(function: Callable[..., Any]) -> Callable[..., Any]:
        _METHODS[name] = function
        return function

    return keep


def method(name: str) -> Callable[..., Any]:
    """Return the function behind a method."""
    import_module("fairlane.views.methods")
    return _METHODS[name]
