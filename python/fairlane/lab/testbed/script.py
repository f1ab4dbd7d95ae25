"""Operations of the ranks of a job: written by fairlane's workloads, executed by MPI processes."""

from collections.abc import Sequence
from typing import Any

from fairlane.model.workload.base import Workload
from fairlane.model.workload.builder import JobScript

_BLOCKING = 0  # the request of blocking calls: in loops of workloads none is under way then


class Script:
    """Takes the calls that a workload makes to the simulator's program builder."""

    def __init__(self, ranks: int) -> None:
        self.lines: list[list[str]] = [[] for _ in range(ranks)]
        """Operations of each rank."""
        self._open: list[list[tuple[int, Sequence[int]] | None]] = [[] for _ in range(ranks)]
        self.refused = ""
        """Why it cannot be run by the testbed; empty if it can."""

    def text(self, rank: int) -> str:
        """The script of a rank."""
        return "".join(f"{line}\n" for line in self.lines[rank])

    def compute(self, rank: int, picoseconds: int) -> None:
        """Works for so long."""
        self._add(rank, "compute", picoseconds // 1000)

    def send(self, rank: int, to: int, size: int, tag: int = 0, comm: int = 0, synchronous: bool = False) -> None:
        """Sends, and waits until the send is complete."""
        self.isend(rank, to, size, _BLOCKING, tag, comm, synchronous)
        self._add(rank, "wait", _BLOCKING)

    def isend(
        self, rank: int, to: int, size: int, request: int, tag: int = 0, comm: int = 0, synchronous: bool = False
    ) -> None:
        """Starts to send."""
        if tag or comm or synchronous:
            self._refuse("synchronous sends" if synchronous else "tags or communicators")
        self._add(rank, "isend", to, size, request)

    def recv(self, rank: int, source: int | None, tag: int | None = None, comm: int = 0) -> None:
        """Receives."""
        self.irecv(rank, source, _BLOCKING, tag, comm)
        self._add(rank, "wait", _BLOCKING)

    def irecv(self, rank: int, source: int | None, request: int, tag: int | None = None, comm: int = 0) -> None:
        """Starts to receive."""
        if source is None or tag or comm:
            self._refuse("receives from any rank" if source is None else "tags or communicators")
        self._add(rank, "irecv", source, request)

    def wait(self, rank: int, request: int) -> None:
        """Waits for a request."""
        self.wait_all(rank, [request])

    def wait_all(self, rank: int, requests: Sequence[int]) -> None:
        """Waits for requests."""
        self._add(rank, "wait", *requests)

    def collective(self, rank: int, kind: str, volume: Any = 0, comm: int = 0, root: int = 0) -> None:
        """Takes part in an all-to-all; refuses other collectives."""
        if kind != "alltoall" or not isinstance(volume, int) or comm or root:
            self._refuse(f"the collective {kind}")
        self._add(rank, kind, volume)

    def mark_progress(self, rank: int) -> None:
        """Marks the end of an iteration."""
        self._add(rank, "mark")

    def repeat(self, rank: int, times: int | None) -> None:
        """Begins a loop."""
        self._open[rank].append(None)
        self._add(rank, "repeat", times or 0)

    def each(self, rank: int, times: Sequence[int]) -> None:
        """Begins a block for each compute time: written out at its end."""
        self._open[rank].append((len(self.lines[rank]), times))

    def end(self, rank: int) -> None:
        """Ends a loop or a block."""
        block = self._open[rank].pop()
        if block is None:
            self._add(rank, "end")
            return
        start, times = block
        lines = self.lines[rank]
        body, lines[start:] = lines[start:], []
        for time in times:
            self.compute(rank, time)
            lines += body

    def build(self) -> "Script":
        """Itself."""
        return self

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)

        def refused(*_given: object) -> None:
            self._refuse(name)

        return refused

    def _add(self, rank: int, *operation: object) -> None:
        self.lines[rank].append(" ".join(map(str, operation)))

    def _refuse(self, what: str) -> None:
        self.refused = self.refused or f"has {what}, which the testbed does not run"


def script_of(workload: Workload, ranks: int, *, seed: int = 1, job: int = 0) -> Script:
    """The scripts of a job's ranks, with the random numbers that the simulated job has."""
    recorder: Any = Script(ranks)
    script = JobScript(ranks, seed=seed, job=job, builder=recorder)
    workload.program(script, workload.compute or 0)
    return recorder  # type: ignore[no-any-return]
