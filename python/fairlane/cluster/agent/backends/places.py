"""States of several places of a network, as devices and hosts, that are read and written at the same time."""

from collections.abc import Callable, Iterable, Mapping
from typing import Generic, TypeVar

from fairlane.cluster.agent.absent import Absent, each
from fairlane.cluster.agent.system import NoAnswerError

_State = TypeVar("_State")


class Places(Generic[_State]):
    """The state of each place: read when it is first needed, and again after it was written or may have been.

    A place that does not answer has none, as long as another one answers.

    Args:
        names: The places.
        read: Returns the state of a place; raises ``NoAnswerError`` if it does not answer.
        write: Turns a place from its state into another one; called again after it was interrupted, with what is there.
    """

    def __init__(
        self, names: Iterable[str], read: Callable[[str], _State], write: Callable[[str, _State, _State], object]
    ) -> None:
        self.names, self._read, self._write = tuple(names), read, write
        self.absent = Absent(NoAnswerError)
        self._known: dict[str, _State] = {}

    def states(self, *, anew: bool = False) -> dict[str, _State]:
        """The state of each place that answers; ``anew`` reads those that are known, too."""
        if anew:
            self._known.clear()
        unknown = [name for name in self.names if name not in self._known]
        self._known |= self.absent.ask(self._read, unknown, others=bool(self._known))
        return {name: self._known[name] for name in self.names if name in self._known}

    def write(self, wanted: Mapping[str, _State], *, all: bool = False, restoring: bool = False) -> None:
        """Writes the places whose state is not as wanted, or ``all``.

        Places that do not answer are left as they are if nothing is wanted there, or when ``restoring``; otherwise
        nothing is written, and ``BackendError`` raised.
        """
        before = self.states()
        for name, error in self.absent.errors.items():
            if wanted[name] and not restoring:
                raise error
        changed = [name for name, state in before.items() if all or state != wanted[name]]
        for name in changed:
            del self._known[name]
        each(lambda name: self._write(name, before[name], wanted[name]), changed)
