"""One-sided communication: windows, operations on them, and what opens and closes them."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from fairlane.core import bridge
from fairlane.model.workload.writer import Request, Writer


@dataclass
class _Window:
    """Epochs that a rank has open of a window."""

    fenced: bool = False
    locked: set[int] = field(default_factory=set)
    all_locked: bool = False
    started: frozenset[int] | None = None
    posted: bool = False

    def allows(self, target: int) -> bool:
        """Whether an operation at ``target`` is within an epoch."""
        started = self.started is not None and target in self.started
        return self.fenced or self.all_locked or target in self.locked or started


class OneSidedCalls(Writer):
    """The calls of one-sided communication.

    A window is a number that the rank chooses. Operations need an epoch: ``win_fence``, ``win_lock``, ``win_lock_all``
    or ``win_start`` opens one. Whatever MPI does not allow raises ``ValueError``.
    """

    def __init__(self, index: int, builder: bridge.ProgramBuilder) -> None:
        super().__init__(index, builder)
        self._windows: dict[int, _Window] = {}

    def win_create(self, win: int, *, comm: int = 0) -> None:
        """Creates a window with the number ``win`` over all ranks of ``comm``; a collective call."""
        self._refuse(win in self._windows, f"has a window {win} already")
        self._windows[win] = _Window()
        self._builder.win_create(self.index, win, comm)

    def win_free(self, win: int) -> None:
        """Frees a window; a collective call over its ranks."""
        window = self._window(win)
        within = window.locked or window.all_locked or window.started is not None or window.posted
        self._refuse(within, f"frees window {win} within an epoch")
        del self._windows[win]
        self._builder.win_free(self.index, win)

    def put(self, win: int, target: int, size: int) -> None:
        """Writes ``size`` bytes to the target."""
        self._rma("put", win, target, size)

    def get(self, win: int, target: int, size: int) -> None:
        """Reads ``size`` bytes from the target."""
        self._rma("get", win, target, size)

    def accumulate(self, win: int, target: int, size: int) -> None:
        """Combines ``size`` bytes with what is at the target."""
        self._rma("accumulate", win, target, size)

    def get_accumulate(self, win: int, target: int, size: int) -> None:
        """Combines ``size`` bytes with what is at the target, and reads what was there before."""
        self._rma("get_accumulate", win, target, size)

    def fetch_and_op(self, win: int, target: int, size: int = 8) -> None:
        """A ``get_accumulate`` of one element."""
        self._rma("get_accumulate", win, target, size)

    def compare_and_swap(self, win: int, target: int, size: int = 8) -> None:
        """Replaces an element at the target if it is equal to another; two elements go there and one comes back."""
        self._rma("compare_and_swap", win, target, size)

    def rput(self, win: int, target: int, size: int) -> Request:
        """A ``put`` that can be waited for; the request is complete when the target has everything."""
        return self._rma_with_request("put", win, target, size)

    def rget(self, win: int, target: int, size: int) -> Request:
        """A ``get`` that can be waited for."""
        return self._rma_with_request("get", win, target, size)

    def raccumulate(self, win: int, target: int, size: int) -> Request:
        """An ``accumulate`` that can be waited for."""
        return self._rma_with_request("accumulate", win, target, size)

    def rget_accumulate(self, win: int, target: int, size: int) -> Request:
        """A ``get_accumulate`` that can be waited for."""
        return self._rma_with_request("get_accumulate", win, target, size)

    def win_fence(self, win: int) -> None:
        """Ends the operations that came before and opens the next epoch. Every rank of the window takes part."""
        self._window(win).fenced = True
        self._builder.win_fence(self.index, win)

    def win_lock(self, win: int, target: int, *, exclusive: bool = True) -> None:
        """Locks the target's part of the window, and waits until it has the lock."""
        window = self._window(win)
        is_locked = window.all_locked or target in window.locked
        self._refuse(is_locked, f"has a lock of rank {target} on window {win} already")
        window.locked.add(target)
        self._builder.win_lock(self.index, win, target, exclusive)

    def win_unlock(self, win: int, target: int) -> None:
        """Waits for the rank's operations at the target, and releases the lock."""
        window = self._window(win)
        self._refuse(target not in window.locked, f"has no lock of rank {target} on window {win}")
        window.locked.remove(target)
        self._builder.win_unlock(self.index, win, target)

    def win_lock_all(self, win: int) -> None:
        """Takes a shared lock of every rank of the window."""
        window = self._window(win)
        self._refuse(window.all_locked or window.locked, f"has a lock on window {win} already")
        window.all_locked = True
        self._builder.win_lock_all(self.index, win)

    def win_unlock_all(self, win: int) -> None:
        """Waits for the rank's operations, and releases the locks."""
        window = self._window(win)
        self._refuse(not window.all_locked, f"has not locked all of window {win}")
        window.all_locked = False
        self._builder.win_unlock_all(self.index, win)

    def win_flush(self, win: int, target: int | None = None) -> None:
        """Waits until the rank's operations are complete at the target, or (None) at all."""
        self._window(win)
        self._builder.win_flush(self.index, win, target)

    def win_post(self, win: int, origins: Iterable[int]) -> None:
        """Opens this rank's part of the window to ``origins``."""
        window = self._window(win)
        self._refuse(window.posted, f"has opened window {win} already: win_wait comes first")
        window.posted = True
        self._builder.win_post(self.index, win, list(origins))

    def win_start(self, win: int, targets: Iterable[int]) -> None:
        """Waits until ``targets`` have opened the window to this rank."""
        window, group = self._window(win), list(targets)
        self._refuse(window.started is not None, f"accesses window {win} already: win_complete comes first")
        window.started = frozenset(group)
        self._builder.win_start(self.index, win, group)

    def win_complete(self, win: int) -> None:
        """Ends the epoch of ``win_start``: waits for the rank's operations and notifies the targets."""
        window = self._window(win)
        self._refuse(window.started is None, f"does not access window {win}: win_start comes first")
        window.started = None
        self._builder.win_complete(self.index, win)

    def win_wait(self, win: int) -> None:
        """Waits until every rank that ``win_post`` named has called ``win_complete``."""
        window = self._window(win)
        self._refuse(not window.posted, f"has not opened window {win}: win_post comes first")
        window.posted = False
        self._builder.win_wait(self.index, win)

    def _window(self, win: int) -> _Window:
        if win not in self._windows:
            known = ", ".join(map(str, sorted(self._windows))) or "none"
            raise ValueError(f"rank {self.index} has no window {win}; it has: {known}")
        return self._windows[win]

    def _rma(self, kind: str, win: int, target: int, size: int, request: Request | None = None) -> None:
        if not self._window(win).allows(target):
            opens = "win_fence, win_lock, win_lock_all or win_start comes first"
            raise ValueError(f"rank {self.index}: {kind} at rank {target} on window {win} outside of an epoch: {opens}")
        self._builder.rma(self.index, kind, win, target, size, request)

    def _rma_with_request(self, kind: str, win: int, target: int, size: int) -> Request:
        request = self._request(f"r{kind}")
        self._rma(kind, win, target, size, request)
        return request
