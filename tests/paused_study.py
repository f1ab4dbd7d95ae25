"""``fairlane study`` that stops when so many answers are stored: it prints a line and waits forever for the others."""

import sys
from typing import Any

from fairlane.cli import main
from fairlane.tasks import executor
from fairlane.tasks.store import Store

__all__ = ["paused"]


def paused(answers: int) -> None:
    """The command of this process's arguments."""
    wait, keep, stored = executor.wait, Store.keep, list[object]()

    def kept(self: Store, *found: Any) -> None:
        keep(self, *found)
        stored.append(found)

    def waiting(*futures: Any, **options: Any) -> Any:
        if len(stored) >= answers:
            print(f"{answers} stored", flush=True)
            sys.stdin.read()
        return wait(*futures, **options)

    Store.keep, executor.wait = kept, waiting  # type: ignore[method-assign, assignment]
    main()
