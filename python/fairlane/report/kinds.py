"""The kinds of results that have a page. A new kind is a package in this folder, one in ``browser``, and a line."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from fairlane.results.base import Results

Data = Callable[[Any, Any, str], dict[str, Any]]
"""What a page contains, of results, others to compare them with (or None), and what these are called."""


@dataclass(frozen=True)
class Kind:
    """A kind of results."""

    name: str
    """Folder of its modules in ``browser``."""
    words: str
    """What it is, for errors."""
    data_of: Data


KINDS: Mapping[type[Results], Kind] = {}
