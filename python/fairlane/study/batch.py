"""The ``[cluster]`` table of a study: jobs of Slurm as workers.

What stands there becomes a shell script. Names are single words of it, options are single lines; what can run code of
its own, as commands before the worker starts or another environment, takes the permission for code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated

from pydantic import AfterValidator, Field

from fairlane.errors import Problem
from fairlane.inputs.problems import Problems
from fairlane.inputs.table import Table
from fairlane.units import SIZE

__all__ = ["Cluster"]

_HARMLESS = frozenset(
    (
        *("exclusive", "contiguous", "requeue", "no-requeue", "overcommit", "oversubscribe", "spread-job", "hold"),
        *("constraint", "qos", "reservation", "nodelist", "exclude", "nodes", "ntasks", "ntasks-per-node"),
        *("cpus-per-task", "cores-per-socket", "sockets-per-node", "threads-per-core", "hint", "mem", "mem-per-cpu"),
        *("mem-per-gpu", "gres", "gpus", "gpus-per-node", "tmp", "time", "time-min", "begin", "deadline", "dependency"),
        *("priority", "nice", "partition", "account", "clusters", "licenses", "switches", "comment", "mail-type"),
        *("mail-user", "C", "q", "w", "x", "N", "n", "c", "p", "A", "t", "M", "L", "s", "O", "d", "b"),
    )
)
"""Options of ``sbatch`` that decide where and when a job runs, not what."""


def _memory(given: str) -> str:
    """Memory as it is written, if it is some."""
    SIZE.parse(given)
    return given


def _word(given: str) -> str:
    """A name that a shell takes for one word, as it stands."""
    if not re.fullmatch(r"[\w.,@:+-]+", given):
        raise Problems(Problem("", "not one word of a job script", given, "letters, digits and _ . , @ : + -"))
    return given


def _option(given: str) -> str:
    """An option that is one line of a job script."""
    if not re.fullmatch(r"-[^\x00-\x1f\x7f\x85\u2028\u2029]+", given):
        raise Problems(Problem("", "not an option of sbatch in one line", given, 'as "--exclusive"'))
    return given


_Word = Annotated[str, AfterValidator(_word)]


class Cluster(Table):
    """Workers that a batch system starts: each job of it is one, and takes as many simulations as it has cores."""

    jobs: int = Field(1, ge=1)
    """How many jobs to submit."""
    cores: int = Field(1, ge=1)
    """Cores of a job."""
    memory: Annotated[str, AfterValidator(_memory)] = "4 GiB"
    """Memory of a job."""
    queue: _Word | None = None
    """Slurm's partition."""
    account: _Word | None = None
    """Slurm's account."""
    walltime: _Word | None = None
    """Slurm's time limit, as ``"01:00:00"``."""
    interface: _Word | None = None
    """Network interface through which workers and this process talk."""
    directives: list[Annotated[str, AfterValidator(_option)]] = Field(default_factory=list)
    """Further options of ``sbatch``, as ``["--exclusive"]``; those that change what runs need ``--allow-code``."""
    skip: list[str] = Field(default_factory=list)
    """Options that are left out if a line of them contains one of these words, as ``["--mem"]``."""
    prologue: list[str] = Field(default_factory=list)
    """Shell commands before the worker starts, as ``["module load python"]``; they need ``--allow-code``."""

    def code(self) -> Iterator[tuple[str, str]]:
        """Key and description of what can run code of its own."""
        if self.prologue:
            yield "prologue", "commands of a shell"
        for at, line in enumerate(self.directives):
            for option in re.findall(r"(?:^|(?<=\s))--?[^\s=]*", line):
                name = option[2:] if option.startswith("--") else option[1:2]
                if name not in _HARMLESS:
                    yield f"directives[{at}]", f"a job with the option {option}, which can change what runs"
