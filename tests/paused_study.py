"""``fairlane study`` that stops when so many answers are stored: it prints a line and waits forever for the others."""

import sys
from concurrent.futures import wait
from typing import Any
from unittest.mock import patch

from fairlane.cli import main
from fairlane.study.tasks.store import Store

__all__ = ["paused"]


def paused(answers: int) -> None:
    """The command of this process's arguments."""
    keep, stored = Store.keep, list[object]()

    def kept(self: Store, *found: Any) -> None:
        keep(self, *found)
        stored.append(found)

    def waiting(*futures: Any, **options: Any) -> Any:
        if len(stored) >= answers:
            print(f"{answers} stored", flush=True)
            sys.stdin.read()
        return wait(*futures, **options)

    with patch.object(Store, "keep", kept), patch("fairlane.study.tasks.executor.wait", waiting):
        main()
