"""Carries out a change again and again, killed at every step, and each restart killed at every step as well.

Called with a folder of its own and the parameters of a backend as JSON. A step is a call that something outside of the
process sees: a line of the journal, a file that is replaced, a signal to OpenSM, a call of ``tc``; the process is
killed before and after each. It prints one JSON object a line for each pair of kills: which they were, the state of the
change after a last undisturbed restart, the states that it went through, and what is in force.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

from agents import BY_RANK
from fairlane.cluster.agent.backends import BACKENDS, Surroundings
from fairlane.cluster.agent.backends.base import Backend, DryRun
from fairlane.cluster.agent.journal import Journal, status_of, steps_of
from fairlane.cluster.agent.watch import perform, recover

_KILL = os.kill
_STEPS: list[tuple[Any, str]] = [
    (Journal, "decided"),
    (Journal, "moved"),
    (Journal, "measured"),
    (Path, "replace"),
    (os, "kill"),
    (subprocess, "run"),
]


def _dying(original: Callable[..., Any], passed: "count[int]", at: int) -> Callable[..., Any]:
    def call(*arguments: Any, **options: Any) -> Any:
        if next(passed) == at:
            _KILL(os.getpid(), signal.SIGKILL)
        found = original(*arguments, **options)
        if next(passed) == at:
            _KILL(os.getpid(), signal.SIGKILL)
        return found

    return call


def in_process(work: Callable[[], None], at: int | None) -> bool:
    """Does something in a process of its own, which is killed at a step; whether it came to its end."""
    child = os.fork()
    if not child:
        if at is not None:
            passed = count()
            for owner, name in _STEPS:
                setattr(owner, name, _dying(getattr(owner, name), passed, at))
        work()
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status):
        return False
    if os.waitstatus_to_exitcode(status):
        raise RuntimeError(f"killed at {at}: it failed")
    return True


def main() -> None:
    """Kills at every pair of steps until the work comes to its end undisturbed."""
    folder, data = Path(sys.argv[1]), json.loads(sys.argv[2])
    stride = int(sys.argv[3])
    backend: Backend = BACKENDS.read(data)
    if isinstance(backend, DryRun):
        backend.keep_in(folder / "dry-run.json")
    backend.check(Surroundings(["host0", "host4", "host8"], {0: 0, 1: 1, 2: 2}))

    def change() -> None:
        with Journal(journal) as opened:
            recover(opened, backend)
            perform(opened, backend, opened.decided(backend.name, "change", ["12"], BY_RANK, (), "a test"))

    def restart() -> None:
        with Journal(journal) as opened:
            recover(opened, backend)

    for first in count():
        for second in count(first % stride, stride):
            journal = folder / f"{first}-{second}.db"
            ended = in_process(change, first)
            restarted = in_process(restart, second)
            if not restarted:
                in_process(restart, None)
            found = status_of(journal)
            last = found.decisions[0] if found.decisions else None
            states = [state for _, state, _ in steps_of(journal, last.id)] if last else []
            force = backend.in_force()
            state = last.state if last else None
            if state == "verified":
                backend.verify(BY_RANK)
            line = {"kills": [first, second], "state": state, "states": states, "in_force": force, "ended": ended}
            line["loaded"] = (folder / "loaded.conf").read_text() if (folder / "loaded.conf").exists() else None
            line["file"] = (folder / "qos-policy.conf").read_text() if (folder / "loaded.conf").exists() else None
            sys.stdout.write(json.dumps(line) + "\n")
            in_process(lambda: backend.write(()), None)  # for the next pair, the network is as it was
            backend.in_force()  # read anew: the next process begins with what this one knows
            if restarted:
                break
        if ended:
            return


if __name__ == "__main__":
    main()
