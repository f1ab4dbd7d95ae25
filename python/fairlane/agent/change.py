"""Changes step by step, and what is left of one after the process was killed: recognised, then completed or undone.

Before each step the journal says that it begins, so a restart after a kill knows what may have happened: nothing
(``planned``), all or part of the writing (``writing``), all of it (``applied``), part of the undoing (``undoing``). A
change that is in force as it was meant is completed; any other is undone with what the backend saved before. Every step
can be repeated, so a restart that is killed as well does no harm.
"""

from collections.abc import Sequence

from fairlane.agent.backends import Backend
from fairlane.agent.jobs import levels_of
from fairlane.agent.journal import Entry, Journal
from fairlane.agent.system import BackendError


def perform(journal: Journal, backend: Backend, decision: int) -> bool:
    """Carries out a planned change. Whether it is verified; if not, the state before is in force again.

    Raises ``BackendError`` if a change that failed cannot be undone; it stays ``undoing``, and ``recover`` tries again.
    """
    entry = journal.entry(decision)
    try:
        old = backend.save()
    except BackendError as error:
        journal.moved(decision, "undone", f"nothing was written: {error}")
        return False
    journal.moved(decision, "writing", old=old)
    try:
        backend.write(entry.settings)
        journal.moved(decision, "applied")
        backend.verify(entry.settings)
    except BackendError as error:
        _undo(journal, backend, decision, old, str(error))
        return False
    journal.moved(decision, "verified")
    return True


def recover(journal: Journal, backend: Backend) -> Sequence[Entry]:
    """Repairs what a killed process has left of changes with this backend; returns these with their new states.

    Raises ``BackendError`` if something cannot be undone.
    """
    entries = journal.unfinished(backend.name)
    for entry in entries:
        if entry.state == "planned":
            journal.moved(entry.id, "undone", "interrupted before anything was written")
        elif entry.state == "undoing":
            _undo(journal, backend, entry.id, entry.old or "", entry.error or "interrupted while it was undone")
        else:
            _complete(journal, backend, entry)
    return [journal.entry(entry.id) for entry in entries]


def _complete(journal: Journal, backend: Backend, entry: Entry) -> None:
    """A change that was interrupted while or after it was written."""
    try:
        # What is in force as it was meant has been written wholly; it is not written a second time.
        if backend.in_force() != levels_of(entry.settings):
            raise BackendError("interrupted while it was written")
        if entry.state == "writing":
            backend.refresh()
            journal.moved(entry.id, "applied", "interrupted, and found in force after the restart")
        backend.verify(entry.settings)
    except BackendError as error:
        _undo(journal, backend, entry.id, entry.old or "", str(error))
    else:
        journal.moved(entry.id, "verified", "after a restart")


def _undo(journal: Journal, backend: Backend, decision: int, old: str, reason: str) -> None:
    if journal.entry(decision).state != "undoing":
        journal.moved(decision, "undoing", reason)
    try:
        backend.restore(old)
    except BackendError as error:
        journal.noted(decision, f"cannot be undone yet: {error}")
        raise BackendError(f"decision {decision} failed ({reason}) and cannot be undone yet: {error}") from None
    journal.moved(decision, "undone", reason)
