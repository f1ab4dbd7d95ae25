"""Messages that are sent while a simulation runs, and their completions."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from operator import index
from typing import Self

from fairlane.core.errors import Problem, ScenarioError
from fairlane.core.units import Kind

__all__ = ["Completion"]


def amount(key: str, given: str | int, kind: Kind) -> int:
    """A whole number, or a text with a unit. Raises ``ScenarioError`` that names the key, also out of range."""
    try:
        number = kind.parse(given) if isinstance(given, str) else index(given)
    except ValueError as error:
        raise ScenarioError(Problem(key, str(error), given)) from None
    except TypeError:
        raise ScenarioError(Problem(key, "no whole number", given, "a whole number, or a text with a unit")) from None
    if not 0 <= number < 2**64:
        raise ScenarioError(Problem(key, "out of range", given, "0 or more, below 2^64"))
    return number


@dataclass(frozen=True)
class Completion:
    """A message that its destination has received. All times are in ps after the start of the simulation."""

    handle: int
    """The number that ``Simulation.send`` returned."""
    time: int
    """Time at which the receive was complete, its CPU overhead included."""
    job: str
    """The job that both ranks are of."""
    source: int
    """The rank that sent it."""
    destination: int
    """The rank that received it."""
    size: int
    """Payload, bytes."""
    tag: int
    """Its tag."""
    sent: int
    """Time at which it was sent."""


@dataclass
class Messages:
    """The messages of a simulation that are not complete, by handle."""

    handles: int = 0
    """Number of messages sent."""
    _sent: dict[int, Completion] = field(default_factory=dict)

    def add(self, message: Completion) -> None:
        """Keeps a message until it is complete."""
        self.handles = message.handle + 1
        self._sent[message.handle] = message

    def complete(self, completed: Iterable[tuple[int, int]]) -> list[Completion]:
        """The messages of these pairs of time and handle."""
        return [replace(self._sent.pop(handle), time=time) for time, handle in completed]

    def copy(self) -> Self:
        """The same messages, to go on by itself."""
        return type(self)(self.handles, dict(self._sent))
