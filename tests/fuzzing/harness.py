"""Workers are given inputs one by one, watched, and killed and replaced when one takes too long or too much memory."""

import json
import os
import selectors
import subprocess
import sys
import time
from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from waiting import HANG_S

__all__ = ["LONGEST_S", "MOST_BYTES", "Finding", "Outcome", "fuzz"]

LONGEST_S = 20.0
"""Processor time that an input may take, s: it does not depend on what else the machine does."""
MOST_BYTES = 2 * 10**9
"""How much memory a worker may have."""
RENEW = 400
"""A worker is replaced after so many inputs, so that what libraries keep does not add up."""
POLL_S = 0.05


@dataclass(frozen=True)
class Finding:
    """An input that did not end as it should."""

    number: int
    reader: str
    command: list[str]
    error: str


@dataclass
class Outcome:
    """Findings, readers and exit codes of all inputs."""

    findings: list[Finding] = field(default_factory=list)
    readers: Counter[str] = field(default_factory=Counter)
    """Inputs, by reader."""
    ended: dict[int, int] = field(default_factory=dict)
    """Exit codes, by the input's number."""


class _Worker:
    """A process and the input that it is at."""

    def __init__(self, seed: int, folder: Path) -> None:
        tests = Path(__file__).parents[1]
        paths = os.pathsep.join([str(tests), os.environ.get("PYTHONPATH", "")])
        environment = {**os.environ, "PYTHONPATH": paths, "MPLBACKEND": "Agg", "POLARS_MAX_THREADS": "1"}
        with (folder.parent / f"{folder.name}.log").open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "fuzzing.worker", str(seed), str(folder)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=environment,
                cwd=tests.parent,
            )
        self._lines = selectors.DefaultSelector()
        assert self._process.stdout is not None
        os.set_blocking(self._process.stdout.fileno(), False)
        self._lines.register(self._process.stdout, selectors.EVENT_READ)
        self._rest = b""
        self._messages: deque[bytes] = deque()
        self.done = 0
        ready, _ = self._until("ready")
        if not ready:
            raise RuntimeError(f"a worker does not start; see {folder}.log")

    def perform(self, number: int) -> tuple[dict[str, object], str]:
        """What the worker says of an input; an error in words if it had to be killed or died."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{number}\n".encode())
        self._process.stdin.flush()
        begun, error = self._until("begun")
        if error:
            return {"number": number, "reader": "?", "command": []}, error
        found, error = self._until("number", LONGEST_S)
        self.done += 1
        return found or begun, error

    def _until(self, key: str, cpu: float = float("inf")) -> tuple[dict[str, object], str]:
        end, used = time.monotonic() + HANG_S, self._cpu() + cpu
        while time.monotonic() < end:
            self._read()
            while self._messages:
                found: dict[str, object] = json.loads(self._messages.popleft())
                if key in found:
                    return found, ""
            code = self._process.poll()
            if code is not None:
                return {}, f"the process died with {code}"
            if self._cpu() > used:
                self.kill()
                return {}, f"no answer in {cpu:g} s of processor time"
            size = self._size()
            if size > MOST_BYTES:
                self.kill()
                return {}, f"{size / 1e9:.1f} GB of memory"
        self.kill()
        return {}, f"no answer in {HANG_S:g} s"

    def _read(self) -> None:
        """Takes in what the worker has said; more than one line may come at once."""
        assert self._process.stdout is not None
        if self._lines.select(POLL_S):
            self._rest += self._process.stdout.read() or b""
        *lines, self._rest = self._rest.split(b"\n")
        self._messages.extend(lines)

    def _size(self) -> int:
        """Memory of the process and of those that it has started."""
        found = 0
        for pid in (self._process.pid, *_children(self._process.pid)):
            try:
                words = Path(f"/proc/{pid}/statm").read_text().split()
            except OSError:
                continue
            found += int(words[1]) * os.sysconf("SC_PAGE_SIZE")
        return found

    def _cpu(self) -> float:
        """Processor time of the process and of those that it has started, s."""
        ticks = 0
        for pid in (self._process.pid, *_children(self._process.pid)):
            try:
                words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            ticks += sum(map(int, words[11:15]))
        return ticks / os.sysconf("SC_CLK_TCK")

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def kill(self) -> None:
        for pid in _children(self._process.pid):
            try:
                os.kill(pid, 9)
            except ProcessLookupError:
                continue
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()


def _children(pid: int) -> list[int]:
    try:
        return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def fuzz(numbers: Iterable[int], seed: int, folder: Path, told: bool = False) -> Outcome:
    """Reads the inputs of these numbers, one after the other; inputs with findings stay in ``folder``."""
    outcome, worker, generation = Outcome(), None, 0
    try:
        for number in numbers:
            if worker is None or not worker.alive or worker.done >= RENEW:
                if worker is not None:
                    worker.kill()
                generation += 1
                worker = _Worker(seed, folder / f"worker-{os.getpid()}-{generation}")
            found, killed = worker.perform(number)
            outcome.readers[str(found["reader"])] += 1
            error = killed or str(found.get("error", ""))
            if "code" in found:
                outcome.ended[number] = int(str(found["code"]))
            if error:
                command = found["command"]
                assert isinstance(command, list)
                outcome.findings.append(Finding(number, str(found["reader"]), command, error))
                if told:
                    last = error.strip().splitlines()[-1]
                    print(f"{number} {found['reader']}: {' '.join(map(str, command))}\n    {last}", flush=True)
            if told and sum(outcome.readers.values()) % 500 == 0:
                print(f"{sum(outcome.readers.values())} inputs, {len(outcome.findings)} findings", flush=True)
    finally:
        if worker is not None:
            worker.kill()
    return outcome
