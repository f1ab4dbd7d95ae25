"""States of several places of a network, as devices and hosts, that are read and written at the same time."""

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, TypeVar

_MOST_AT_ONCE = 32  # places
_State = TypeVar("_State")
_Result = TypeVar("_Result")


class Places(Generic[_State]):
    """The state of each place: read when it is first needed, and again after it was written or may have been.

    Args:
        names: The places.
        read: Returns the state of a place.
        write: Turns a place from its state into another one; called again after it was interrupted, with what is there.
    """

    def __init__(
        self, names: Iterable[str], read: Callable[[str], _State], write: Callable[[str, _State, _State], object]
    ) -> None:
        self.names, self._read, self._write = tuple(names), read, write
        self._known: dict[str, _State] = {}

    def states(self, *, anew: bool = False) -> dict[str, _State]:
        """The state of each place; ``anew`` reads those that are known, too."""
        if anew:
            self._known.clear()
        unknown = [name for name in self.names if name not in self._known]
        for name, state in zip(unknown, _each(self._read, unknown), strict=True):
            self._known[name] = state
        return {name: self._known[name] for name in self.names}

    def write(self, wanted: Mapping[str, _State], *, all: bool = False) -> None:
        """Writes the places whose state is not as wanted, or ``all``."""
        before = self.states()
        changed = [name for name, state in before.items() if all or state != wanted[name]]
        for name in changed:
            del self._known[name]
        _each(lambda name: self._write(name, before[name], wanted[name]), changed)


def _each(work: Callable[[str], _Result], names: list[str]) -> list[_Result]:
    """The same for all places at a time; raises the error of the first that fails when all have ended."""
    if len(names) <= 1:
        return [work(name) for name in names]
    with ThreadPoolExecutor(min(len(names), _MOST_AT_ONCE)) as pool:
        return [future.result() for future in [pool.submit(work, name) for name in names]]
