"""What a paper's reproduction consists of: a folder with a ``Paper``, and beside it the claims in ``claims.toml``.

A paper says which tasks its experiments take, and puts the answers together; claims are judged and figures drawn from
what was measured. Performing tasks, going on where it was stopped, printing and the report are the same for all.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import polars as pl

from fairlane.tasks.task import Computable

__all__ = ["Check", "Done", "Finding", "Keeping", "Measured", "Options", "Paper", "Picture", "Selection"]

Finding = tuple[str, bool]
"""What was measured, in words with its band, and whether it is within."""


@dataclass(frozen=True)
class Options:
    """How much of a paper is run."""

    quick: bool = False
    """A scaled version, in a few minutes."""
    placements: int | None = None
    """At most so many placements of each experiment."""
    periods: int | None = None
    """At most so many iterations of a controller."""
    beside: Sequence[str] = ()
    """Controllers that are run and shown beside the paper's own; no claim is judged by them."""
    cabling: str | None = None
    """How the machine is cabled, other than by default."""

    @property
    def given(self) -> set[str]:
        """Those that say something and that not every paper has."""
        return {name for name in ("placements", "periods", "beside", "cabling") if getattr(self, name)}


@dataclass(frozen=True)
class Done:
    """What came of a task."""

    task: Computable
    answer: Mapping[str, Any] | None
    """None if it failed."""
    seconds: float = 0.0
    """Wall time that it took when it was performed."""
    cpu: float = 0.0
    """Processor time that it took."""
    error: str | None = None
    """Why it has no answer."""


@dataclass(frozen=True)
class Picture:
    """A figure in the folder of a reproduction."""

    file: str
    title: str


class Measured(Protocol):
    """All that was measured for a paper."""

    def missing(self, experiment: str) -> Sequence[str]:
        """What claims about an experiment would need and is not there, in words."""

    def tables(self) -> Mapping[str, pl.DataFrame]:
        """The tables to keep, by the name of their file."""

    def draw(self, folder: Path) -> Sequence[Picture]:
        """Draws the figures that can be drawn into a folder."""


@runtime_checkable
class Keeping(Protocol):
    """What was measured for a paper that has more to keep than its tables."""

    def keep(self, folder: Path) -> None:
        """Stores it in a folder."""


class Selection(Protocol):
    """Experiments of a paper that are to be run, each as much as wanted."""

    @property
    def tasks(self) -> Mapping[Any, Computable]:
        """What is to be computed; experiments may share some. Keys are the paper's own."""

    @property
    def left_out(self) -> Mapping[str, str]:
        """Experiments that are not run as in the paper, and how they differ."""

    def measured(self, done: Mapping[Any, Done]) -> Measured:
        """Puts together what came of the tasks."""


@dataclass(frozen=True)
class Check:
    """How a claim is judged."""

    experiments: Sequence[str]
    """Those whose results it needs."""
    judge: Callable[[Any], Iterable[Finding]]
    """What was measured, from the paper's own ``Measured``: the claim holds if all of it does."""
    shown: Sequence[str] = ()
    """Experiments that belong to it and do not decide about it."""
    judges_parts: bool = False
    """Whether ``judge`` copes with what is missing. Such findings are shown and decide nothing."""


@dataclass(frozen=True)
class Paper:
    """A paper."""

    name: str
    """That of its folder."""
    title: str
    """What it is, in a line."""
    experiments: Sequence[str]
    """All of them, in the paper's order."""
    checks: Mapping[str, Check]
    """For each claim, how it is judged."""
    select: Callable[[Sequence[str], Options], Selection]
    """Chooses what some experiments take."""
    options: frozenset[str] = frozenset()
    """Which ones it has of those that not every paper has."""
    cablings: Sequence[str] = ()
    """How its machine may be cabled, the default first."""
