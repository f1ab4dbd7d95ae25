"""The base of backends, which carry a service level of a job to the network, and the one that changes nothing."""

import json
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from pydantic import PrivateAttr
from typing_extensions import override

from fairlane.cluster.agent.jobs import Setting, levels_of, ordered
from fairlane.cluster.agent.system import BackendError
from fairlane.core.errors import FairlaneError, ScenarioError
from fairlane.inputs.files import parse_json, read_text, write_text
from fairlane.inputs.registry import Named


@dataclass(frozen=True)
class Surroundings:
    """Fabric of the twin and service levels that the agent may give: a backend has to fit them."""

    hosts: Collection[str]
    """The names of the fabric's hosts."""
    lanes: dict[int, int]
    """The virtual lane of each service level that may be in use, the default level included."""
    default: int = 0
    """The service level of everything else."""


class Backend(Named, ABC):
    """Carries service levels of jobs to the network. The fields of a subclass are its parameters.

    Every method may be called again after it was interrupted at any point: ``write`` and ``restore`` end in the same
    state however often they are called, and ``save`` and ``in_force`` change nothing.
    """

    for_connected: ClassVar[bool] = False
    """Whether a level holds for the packets of connections that exist, and not only for those made afterwards."""

    @property
    def sets_weights(self) -> bool:
        """Whether it carries weights of levels (``Setting.weight``), as controllers choose them."""
        return False

    def check(self, surroundings: Surroundings) -> None:
        """Raises ``BackendError`` or ``ScenarioError`` if its parameters do not fit; called once, before all else."""
        del surroundings

    def endpoints(self, host: str, ranks: int) -> Sequence[str]:
        """The names that ``Setting.hosts`` has for a job's ranks on a host: one for each, or one for all of them."""
        del ranks
        return (host,)

    @property
    def absent(self) -> Mapping[str, FairlaneError]:
        """Hosts that did not answer when they were last asked, with the error: no job there may have a level."""
        return {}

    @abstractmethod
    def save(self) -> str:
        """Return the present state as text for the journal; ``restore`` brings it back."""

    @abstractmethod
    def write(self, settings: Sequence[Setting]) -> None:
        """Replaces what the agent has set by ``settings``; without any, the network is as it was without the agent.

        Raises ``BackendError`` if it is refused.
        """

    def refresh(self) -> None:
        """Puts in force what was written wholly, where a killed process may not have come so far. Default: nothing."""

    @abstractmethod
    def in_force(self) -> dict[str, int]:
        """The service level of every host for which the agent's settings are in force now."""

    @abstractmethod
    def restore(self, saved: str) -> None:
        """Brings back the state in which ``save`` returned ``saved``; raises ``BackendError`` if it cannot."""

    def verify(self, settings: Sequence[Setting]) -> None:
        """Raises ``BackendError`` unless exactly ``settings`` are in force."""
        check_levels(settings, self.in_force())


def check_levels(settings: Sequence[Setting], in_force: Mapping[str, int]) -> None:
    """Raises ``BackendError`` unless exactly the levels of ``settings`` are in force, those in ``found`` by host."""
    if in_force != (wanted := levels_of(settings)):
        wrong = sorted(host for host in wanted.keys() | in_force.keys() if wanted.get(host) != in_force.get(host))
        host = wrong[0]
        more = f", and {len(wrong) - 1} more hosts differ" if len(wrong) > 1 else ""
        shown = [str(levels.get(host, "none")) for levels in (wanted, in_force)]
        raise BackendError(f"host {host}: level {shown[0]} was written and {shown[1]} is in force{more}")


class DryRun(Backend):
    """Changes nothing: remembers in a file beside the journal which settings would be in force."""

    for_connected: ClassVar[bool] = True
    _file: Path = PrivateAttr(Path("agent.dry-run.json"))

    def keep_in(self, file: Path) -> None:
        """Sets the file that remembers the settings."""
        self._file = file

    @property
    @override
    def sets_weights(self) -> bool:
        return True

    @override
    def save(self) -> str:
        return json.dumps([setting.written() for setting in self._settings()])

    @override
    def write(self, settings: Sequence[Setting]) -> None:
        try:
            write_text(self._file, json.dumps([setting.written() for setting in settings]) + "\n")
        except ScenarioError as error:
            raise BackendError(str(error)) from None

    @override
    def in_force(self) -> dict[str, int]:
        return levels_of(self._settings())

    @override
    def restore(self, saved: str) -> None:
        self.write([Setting.read(record) for record in json.loads(saved)])

    def _settings(self) -> tuple[Setting, ...]:
        try:
            return ordered(Setting.read(record) for record in parse_json(read_text(self._file)))
        except FileNotFoundError:
            return ()
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise BackendError(f"{self._file}: not the settings of a dry run: {error}; remove it") from None
