"""The loop that drives every simulation: where it ends and why, what it reports, and how long its slices are."""

import json
import time
from threading import Event

import pytest

from fairlane import RunError
from fairlane.core.drive import End, Engine, Slice, drive
from fairlane.core.tables import Iterations
from fake_engine import MS, FakeEngine

JOBS = [{"name": "flood", "hosts": [0, 1], "pace": MS}, {"name": "pairs", "hosts": [0, 1, 1], "pace": 2 * MS}]
SPEC = json.dumps({"jobs": JOBS})


class Recorded(FakeEngine):
    """Remembers its slices; a million packet-hops, or ``ms_per_s`` ms of simulated time, take a second."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, ms_per_s: float = float("inf")) -> None:
        super().__init__(SPEC)
        self.clock, self.budgets, self.ends = 100.0, list[int](), list[int]()
        self.ms_per_s = ms_per_s
        monkeypatch.setattr(time, "monotonic", lambda: self.clock)

    def run_window_budget(self, picoseconds: int, max_hops: int) -> bool:
        now, hops = self.now, self.packet_hops
        super().run_window_budget(picoseconds, max_hops)
        self.clock += (self.packet_hops - hops) / 1e6 + (self.now - now) / MS / self.ms_per_s
        self.budgets.append(max_hops)
        self.ends.append(self.now)
        return self.now >= picoseconds


class Watch:
    """Looks every 3 ms."""

    def __init__(self) -> None:
        self.due = 3 * MS
        self.seen: list[int] = []

    def look(self, engine: Engine) -> None:
        self.seen.append(engine.now)
        self.due = (engine.now // (3 * MS) + 1) * 3 * MS


def test_it_ends_at_the_instant_or_when_every_rank_has_finished() -> None:
    class Ends(FakeEngine):
        def run_window_budget(self, picoseconds: int, max_hops: int) -> bool:
            return super().run_window_budget(min(picoseconds, 3 * MS), max_hops)

        @property
        def finished(self) -> bool:
            return self.now >= 3 * MS

    engine = Ends(SPEC)
    assert drive(engine, 2 * MS) is End.TIME
    assert engine.now == 2 * MS
    assert drive(engine, 100 * MS) is End.FINISHED
    assert engine.now == 3 * MS


def test_it_ends_when_stopped_or_out_of_budget() -> None:
    engine, stop = FakeEngine(SPEC), Event()
    end = drive(engine, 100 * MS, progress=lambda engine: stop.set() if engine.now >= 40 * MS else None, stop=stop)
    assert (end, end.complete) == (End.STOPPED, False)
    assert 40 * MS <= engine.now < 100 * MS
    assert drive(engine, 1000 * MS, budget=5000, every=Slice(hops=1000)) is End.BUDGET
    before = engine.packet_hops
    assert drive(engine, 1000 * MS, budget=0) is End.BUDGET
    assert engine.packet_hops == before


@pytest.mark.parametrize("ms_per_s", [0.5, 50, float("inf")])
def test_where_a_condition_ends_it_does_not_depend_on_wall_time(
    monkeypatch: pytest.MonkeyPatch, ms_per_s: float
) -> None:
    engine = Recorded(monkeypatch, ms_per_s)
    end = drive(engine, done=lambda engine: engine.now >= 20 * MS, every=Slice(window=MS, growth=2, longest=8 * MS))
    assert end is End.DONE
    assert [instant // MS for instant in engine.ends] == [1, 3, 7, 15, 23]


def test_slices_follow_the_speed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A million packet-hops a second: a tenth of a second is a hundred thousand, unless simulated time ends it."""
    engine = Recorded(monkeypatch)
    drive(engine, 10_000 * MS)
    assert 50_000 <= min(engine.budgets[10:]) <= max(engine.budgets[10:]) < 200_001
    slow = Recorded(monkeypatch, ms_per_s=100.0)
    drive(slow, 1000 * MS)
    spans = [after - before for before, after in zip(slow.ends[10:-1], slow.ends[11:-1], strict=False)]
    assert 5 * MS <= min(spans) <= max(spans) <= 20 * MS
    assert set(slow.budgets) == {20_000}, "no slice used its packet-hops up"


def test_watchers_look_when_due_and_at_the_end() -> None:
    watch = Watch()
    drive(FakeEngine(SPEC), 10 * MS, watchers=[watch])
    assert [instant // MS for instant in watch.seen] == [3, 6, 9, 10]


def test_iterations_are_waited_for_and_standstill_is_an_error() -> None:
    names = ["flood", "pairs"]
    engine = FakeEngine(SPEC)
    assert drive(engine, done=Iterations(names, 4), every=Slice(window=MS)) is End.DONE
    assert min(map(min, engine.progress())) == 5

    class Apart(FakeEngine):
        """One rank of the second job makes no iteration after the third."""

        def progress(self) -> list[list[int]]:
            first, second = super().progress()
            return [first, [min(3, second[0]), *second[1:]]]

    with pytest.raises(
        RunError, match=r"job pairs, rank 0 stands still after 3 iterations while rank 1 goes on"
    ) as one:
        drive(Apart(SPEC), done=Iterations(names, 100), every=Slice(window=10 * MS))
    assert one.value.slug == "stuck"

    class Halts(FakeEngine):
        def progress(self) -> list[list[int]]:
            return [[min(2, done) for done in ranks] for ranks in super().progress()]

    with pytest.raises(RunError, match="job flood stands still after 2 iterations"):
        drive(Halts(SPEC), done=Iterations(names, 4, patience=10), every=Slice(window=MS))
