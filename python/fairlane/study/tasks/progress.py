"""Shows on standard error how far tasks are: a bar on a terminal, else a line now and then."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from fairlane.core.wording import seconds
from fairlane.sim.runner.progress import FIRST_LINE_S, LINES_S
from fairlane.study.tasks.task import Computable

MOST_SHARES = 4
"""Shares of running tasks that are shown at most."""


class TaskProgress:
    """Counts what is done. The time left is estimated from what the tasks cost, by what they have cost so far.

    There is no estimate before the first of them is completed.
    """

    def __init__(self, *, wanted: bool, console: Console | None = None) -> None:
        self._console, self._wanted = console or Console(stderr=True), wanted
        self._what = ""
        self._started = time.monotonic()
        self._next = self._started + FIRST_LINE_S
        self._count = self._total = 0
        self._spent = self._cost = self._known = self._partly = 0.0
        self._shares: list[float] = []
        columns = (TextColumn("{task.description:<14}"), BarColumn(bar_width=30), TextColumn("{task.fields[text]}"))
        self._bar = Progress(*columns, console=self._console, transient=True, auto_refresh=False)
        self._task = self._bar.add_task("", total=1.0, text="")

    def stage(self, what: str) -> None:
        """Name the next tasks."""
        self._what = what

    def __enter__(self) -> TaskProgress:
        if self._wanted and self._console.is_terminal:
            self._bar.start()
        return self

    def __exit__(self, *_error: object) -> None:
        if self._wanted and self._console.is_terminal:
            self._bar.stop()

    def begin(self, tasks: Iterable[Computable], known: Iterable[Computable]) -> None:
        """These tasks are to be done; the known ones are."""
        every, finished = list(tasks), list(known)
        self._started = time.monotonic()
        self._total, self._count = len(every), len(finished)
        self._cost, self._spent = sum(task.cost for task in every), sum(task.cost for task in finished)
        self._known = self._spent

    def done(self, task: Computable) -> None:
        """One more task is over."""
        self._count += 1
        self._spent += task.cost

    def text(self, workers: int) -> str:
        """Format the tasks that are done and under way and the remaining time, or that there is no worker."""
        if not workers and self._count < self._total:
            return f"{self._count} of {self._total}, no worker is there"
        now = self._spent + self._partly - self._known
        # Shares of running tasks say too little: a task begins slowly, and its first share may be next to nothing.
        measured = self._spent > self._known
        left = (time.monotonic() - self._started) * (self._cost - self._known - now) / now if measured else None
        estimate = f", about {seconds(left)} left" if left and left > 0 else ""
        shares = [f"{100 * share:.0f}%" for share in self._shares if 0 < share < 1]
        inside = f", running: {', '.join(shares[:MOST_SHARES])}{', ...' if len(shares) > MOST_SHARES else ''}"
        return f"{self._count} of {self._total}{inside if shares else ''}{estimate}"

    def update(self, workers: int, under_way: Sequence[tuple[Computable, float | None]] = ()) -> None:
        """Refreshes the display if it is due; of each running task the share that is done, if that is known."""
        self._shares = [share or 0.0 for _, share in under_way]
        self._partly = sum(task.cost * (share or 0.0) for task, share in under_way)
        if not workers and self._spent == self._known:
            self._started = time.monotonic()  # what comes before the first worker says nothing about the others
        if not self._wanted:
            return
        if self._console.is_terminal:
            share = (self._spent + self._partly) / self._cost if self._cost else 1.0
            self._bar.update(self._task, description=self._what, completed=share, text=self.text(workers), refresh=True)
        elif time.monotonic() >= self._next:
            self._next = time.monotonic() + LINES_S
            self._console.print(f"{self._what}: {self.text(workers)}", soft_wrap=True, highlight=False)
