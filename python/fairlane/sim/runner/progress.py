"""Shows on standard error how far the simulations are: bars on a terminal, a line now and then elsewhere."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from fairlane.core.drive import Engine
from fairlane.core.wording import plural, seconds, significant, time_unit

FIRST_LINE_S = 2.0  # wall time before the first line, s: what is done by then needs none
LINES_S = 10.0  # wall time between lines, s


class StopRequestedError(Exception):
    """Another process has asked for the end of the run."""


@dataclass
class Gauge:
    """Progress of a simulation; one thread writes it, another reads it."""

    duration: int  # simulated time to reach, ps
    now: int = 0  # simulated time reached, ps
    packet_hops: int = 0  # packet-hops so far
    started: float | None = None  # when it began, on the monotonic clock, s
    finished: bool = False  # whether nothing follows
    spent: float = 0.0  # wall time of the parts that are over, s
    since: float | None = None  # when the part began that is simulated now
    probe: Callable[[Engine], None] | None = None  # looks at the simulation, on its own thread

    def reach(self, engine: Engine) -> None:
        """The simulation has come this far."""
        self.now, self.packet_hops = min(engine.now, self.duration), engine.packet_hops
        if self.probe is not None:
            self.probe(engine)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Within, the simulation runs."""
        self.since = time.monotonic()
        self.started = self.since if self.started is None else self.started
        try:
            yield
        finally:
            self.spent += time.monotonic() - self.since
            self.since = None

    @property
    def share(self) -> float:
        """Share of it that is done, from 0 to 1."""
        return 1.0 if self.finished or self.now >= self.duration else self.now / self.duration

    @property
    def seconds(self) -> float:
        """Wall time spent on it so far, s."""
        since = self.since
        return self.spent + (time.monotonic() - since if since is not None else 0.0)


@contextmanager
def display(together: Gauge, others: Mapping[str, Sequence[Gauge]], *, wanted: bool) -> Iterator[Callable[[], None]]:
    """Within, calls show the gauges: bars on a terminal, lines elsewhere, nothing if not ``wanted``.

    ``others`` are other simulations by kind.
    """
    if not wanted:
        yield lambda: None
        return
    console = Console(stderr=True)
    kinds = {kind: gauges for kind, gauges in others.items() if gauges}
    if console.is_terminal:
        with Bars(console, together, kinds) as bars:
            yield bars.update
    else:
        yield Lines(console, together, kinds).update


class Bars:
    """A bar for the jobs together and one for each kind of other simulations."""

    def __init__(self, console: Console, together: Gauge, others: Mapping[str, Sequence[Gauge]]) -> None:
        self._together, self._others = together, others
        width = max(len(kind) for kind in ("isolated", *others))
        self._bars = Progress(
            TextColumn(f"{{task.description:<{width}}}"),
            BarColumn(bar_width=30),
            TextColumn("{task.fields[reached]:>18}"),
            TextColumn("{task.fields[speed]:>22}"),
            TimeRemainingColumn(compact=True),
            TextColumn("left"),
            console=console,
            transient=True,
        )
        self._first = self._bars.add_task("co-run", total=1.0, reached="", speed="")
        self._kinds = {
            kind: self._bars.add_task(kind, total=float(len(gauges)), reached="", speed="")
            for kind, gauges in others.items()
        }

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._bars.stop()

    def update(self) -> None:
        """Moves the bars."""
        together = self._together
        self._bars.update(self._first, completed=together.share, reached=_reached(together), speed=_speed([together]))
        for kind, task in self._kinds.items():
            gauges = self._others[kind]
            self._bars.update(
                task, completed=sum(gauge.share for gauge in gauges), reached=_done(gauges), speed=_speed(gauges)
            )


class Lines:
    """A line now and then, for logs."""

    def __init__(self, console: Console, together: Gauge, others: Mapping[str, Sequence[Gauge]]) -> None:
        self._console, self._together, self._others = console, together, others
        self._next = time.monotonic() + FIRST_LINE_S

    def update(self) -> None:
        """Prints a line if the last one is long enough ago."""
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + LINES_S
        text = f"co-run: {_reached(self._together)}, {_speed([self._together])}"
        text += "".join(f"; {kind}: {_done(gauges)}" for kind, gauges in self._others.items())
        every = [self._together, *(gauge for gauges in self._others.values() for gauge in gauges)]
        self._console.print(f"{text}{_left(every)}", soft_wrap=True, highlight=False)


def _done(gauges: Sequence[Gauge]) -> str:
    return f"{sum(gauge.share == 1 for gauge in gauges)} of {plural(len(gauges), 'job')}"


def _reached(gauge: Gauge) -> str:
    factor, unit = time_unit(gauge.duration * 1e-12)
    return f"{gauge.now * 1e-12 / factor:.1f} of {significant(gauge.duration * 1e-12 / factor, 4)} {unit}"


def _speed(gauges: Sequence[Gauge]) -> str:
    spent = sum(gauge.seconds for gauge in gauges)
    hops = sum(gauge.packet_hops for gauge in gauges)
    return f"{hops / spent / 1e6:.2f} M packet-hops/s" if spent > 0 else ""


def _left(gauges: Sequence[Gauge]) -> str:
    left = seconds_left(gauges)
    return "" if left is None else f"; about {seconds(left)} left"


def seconds_left(gauges: Sequence[Gauge]) -> float | None:
    """The wall time left if everything goes on at the speed of the simulations so far, s; None at the beginning."""
    started = [gauge.started for gauge in gauges if gauge.started is not None]
    done = sum(gauge.share for gauge in gauges)
    if not started or done == 0:
        return None
    elapsed = time.monotonic() - min(started)
    return elapsed * (len(gauges) - done) / done
