"""A job as Slurm knows it, and what Slurm prints in place of a job's nodes."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self


def printable(text: str) -> str:
    """A text that users chose, as the name of a job: control characters and lone surrogates become U+FFFD."""
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in text)


def assigned(nodes: str) -> str:
    """The node list that Slurm printed; empty for what it prints of a job without nodes.

    This is ``(null)`` or a reason such as ``(Priority)`` of squeue, and ``None assigned`` of sacct.
    """
    text = nodes.strip()
    return "" if text.startswith("(") or text.lower() == "none assigned" else text


@dataclass(frozen=True)
class SlurmJob:
    """A job that has nodes."""

    id: str
    """Slurm's number of the job, as text."""
    nodes: tuple[str, ...]
    """Its nodes, by Slurm's names."""
    name: str = ""
    account: str = ""
    partition: str = ""
    user: str = ""

    def written(self) -> dict[str, Any]:
        """As JSON."""
        return {**asdict(self), "nodes": list(self.nodes)}

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> Self:
        """From ``written``."""
        return cls(**{**data, "nodes": tuple(data["nodes"])})
