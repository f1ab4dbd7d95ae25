"""Machines that do not answer: the others are asked at the same time, and these again after some time.

On a large cluster some machine is always down, and asking it takes as long as the limit for an answer.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from fairlane.core.errors import FairlaneError

AGAIN_S = 300.0
"""Time until a machine that did not answer is asked again, s."""
_MOST_AT_ONCE = 32
_Result = TypeVar("_Result")


class Absent:
    """The machines that did not answer when they were last asked.

    Args:
        error: What asking such a machine raises; any other error is one of the caller.
        clock: Returns the time, s.
    """

    def __init__(self, error: type[FairlaneError], clock: Callable[[], float] = time.monotonic) -> None:
        self._error, self._clock = error, clock
        self._since: dict[str, float] = {}
        self._errors: dict[str, FairlaneError] = {}

    @property
    def errors(self) -> Mapping[str, FairlaneError]:
        """The error of each."""
        return self._errors

    def ask(
        self, question: Callable[[str], _Result], names: Sequence[str], *, others: bool = False
    ) -> dict[str, _Result]:
        """The results of those that answer; others are left out, and not asked again before ``AGAIN_S``.

        If none answers, and no ``others`` do, that may not be because of them: raises the error of the first one, and
        asks all of them the next time.
        """
        now = self._clock()
        due = [name for name in names if name not in self._since or now - self._since[name] >= AGAIN_S]
        results = {}
        for name, outcome in zip(due, each(lambda name: self._caught(question, name), due), strict=True):
            if isinstance(outcome, FairlaneError):
                self._since[name], self._errors[name] = self._clock(), outcome
            else:
                self._forget(name)
                results[name] = outcome
        if names and not results and not others:
            error = self._errors[(due or names)[0]]
            for name in names:
                self._forget(name)
            raise error
        return results

    def _caught(self, question: Callable[[str], _Result], name: str) -> _Result | FairlaneError:
        try:
            return question(name)
        except self._error as error:
            return error

    def _forget(self, name: str) -> None:
        self._since.pop(name, None)
        self._errors.pop(name, None)


def each(work: Callable[[str], _Result], names: Sequence[str]) -> list[_Result]:
    """The same for all machines at a time; raises the error of the first that fails when all have ended."""
    if len(names) <= 1:
        return [work(name) for name in names]
    with ThreadPoolExecutor(min(len(names), _MOST_AT_ONCE)) as pool:
        return [future.result() for future in [pool.submit(work, name) for name in names]]
