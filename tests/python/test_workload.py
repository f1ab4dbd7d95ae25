"""Workloads: messages match, compute time is divided as asked, shares are met, users' own are found."""

from collections import Counter, defaultdict
from concurrent.futures import CancelledError
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
import pytest

from fairlane import Scenario, ScenarioError, Simulation, allow_code
from fairlane.core.seeds import Purpose, stream
from fairlane.model.scenario import Resolved
from fairlane.model.scenario.calibrate import calibrate
from fairlane.model.workload import WORKLOADS, FloodPairs, JobScript, Rank, Shift, UniformRandom, Workload
from fairlane.model.workload.grid import grid_shape, neighbours

FABRIC = {"topology": "fat_tree", "hosts": 64, "levels": 2, "radix": 16, "bandwidth": "3.2 GB/s"}
MODELS = {"training", "inference"}
"""These have communicators of their own and take seconds: see ``test_training.py`` and ``test_inference.py``."""


class Recorder:
    """A program builder that remembers what was written."""

    def __init__(self, ranks: int) -> None:
        self.operations: list[list[tuple[Any, ...]]] = [[] for _ in range(ranks)]
        self._open: list[tuple[list[int], int] | None] = []

    def build(self) -> "Recorder":
        return self

    def exchange(self, rank: int, sources: list[int], targets: list[int], size: int, first: int) -> None:
        """What it stands for."""
        for tag, (source, target) in enumerate(zip(sources, targets, strict=True)):
            self.irecv(rank, source, first + 2 * tag, tag, 0)
            self.isend(rank, target, size, first + 2 * tag + 1, tag, 0, False)
        self.wait_all(rank, list(range(first, first + 2 * len(sources))))

    def repeat(self, rank: int, times: int | None) -> None:
        """A loop, which is kept as it is."""
        self._open.append(None)
        self.operations[rank].append(("repeat", times))

    def each(self, rank: int, times: list[int]) -> None:
        """A block for each time, which its end writes out."""
        self._open.append((times, len(self.operations[rank])))

    def end(self, rank: int) -> None:
        """The end of the innermost loop or block."""
        block, written = self._open.pop(), self.operations[rank]
        if block is None:
            written.append(("end",))
            return
        body = written[block[1] :]
        written[block[1] :] = [operation for time in block[0] for operation in (("compute", time), *body)]

    def __getattr__(self, name: str) -> Any:
        return lambda rank, *arguments: self.operations[rank].append((name, *arguments))

    def all(self, name: str) -> list[list[tuple[Any, ...]]]:
        return [[it[1:] for it in operations if it[0] == name] for operations in self.operations]


def record(workload: Workload, ranks: int, monkeypatch: pytest.MonkeyPatch, seed: int = 3) -> Recorder:
    monkeypatch.setattr("fairlane.core.bridge.ProgramBuilder", Recorder)
    program: Any = workload.program(JobScript(ranks, seed=seed, variant=workload.variant), compute=10**9)
    assert isinstance(program, Recorder)
    return program


@pytest.mark.parametrize("ranks", [2, 8, 20, 32])
@pytest.mark.parametrize(
    "name", sorted(set(WORKLOADS) - {"open_loop", "stepped"} - MODELS)
)  # nobody receives, or sends
def test_sends_and_receives_match_and_all_ranks_call_the_same_collectives(
    name: str, ranks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded = record(WORKLOADS[name](), ranks, monkeypatch)
    sent, received, collectives = Counter[Any](), Counter[Any](), defaultdict[int, list[Any]](list)
    for rank, operations in enumerate(recorded.operations):
        for operation, *rest in operations:
            if operation in ("send", "isend"):
                sent[rank, rest[0]] += 1
            elif operation in ("recv", "irecv"):
                received[rest[0], rank] += 1
            elif operation == "collective":
                collectives[rank].append(rest)
    assert sent == received
    assert all(source != target for source, target in sent)
    assert sent or collectives
    assert all(calls == collectives[0] for calls in collectives.values())
    assert len(collectives) in (0, ranks)


@pytest.mark.parametrize("name", sorted(set(WORKLOADS) - {"stepped"} - MODELS))  # it waits for messages
def test_every_workload_runs_and_every_rank_makes_progress(name: str) -> None:
    compute = {} if "compute" in WORKLOADS[name].unused else {"compute": "10 us"}
    job = {"name": name, "ranks": 8, "workload": {"name": name, **compute}}
    simulation = Simulation(Scenario(fabric=FABRIC, jobs=[job]))
    simulation.run_for("10 ms")
    assert min(simulation.progress()[name]) >= 2


class OneByOne(Workload):
    """Uniform random traffic, with every operation written by itself."""

    def communicate(self, rank: Rank, iteration: int) -> None:
        for number in range(self.messages_per_iteration):
            order = rank.job.pattern_stream(f"ring {iteration}.{number}").random(rank.ranks).argsort().tolist()
            before = dict(zip([*order[1:], order[0]], order, strict=True))
            after = {source: target for target, source in before.items()}
            rank.irecv(before[rank.index], tag=number)
            rank.isend(after[rank.index], self.message_size, tag=number)
        rank.wait_all()


@pytest.mark.parametrize("name", WORKLOADS)
@pytest.mark.parametrize("key", ["messages_per_iteration", "distinct_iterations"])
def test_counts_of_every_workload_are_positive(name: str, key: str) -> None:
    with pytest.raises(ScenarioError, match=rf"{key} = 0: out of range; allowed: at least 1"):
        Scenario.read({
            "duration": "1 ms",
            "fabric": FABRIC,
            "jobs": [{"workload": {"name": name, key: 0}, "ranks": 4}],
        })  # fmt: skip


def test_an_exchange_is_what_its_operations_are_one_by_one() -> None:
    digests = []
    for kind in (OneByOne, UniformRandom):
        workload = kind(messages_per_iteration=5, message_size="20 KiB", compute="3 us")
        simulation = Simulation(Scenario(fabric=FABRIC, jobs=[{"ranks": 12, "name": "one", "workload": workload}]))
        simulation.run_for("2 ms")
        digests.append(simulation.digest())
    assert digests[0] == digests[1]


def computed(recorded: Recorder) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Compute times of all ranks and iterations, as parts of Y."""
    return np.array(recorded.all("compute"))[:, :, 0] / 1e9


def test_compute_is_uniform_between_low_and_y_and_varies_by_the_jitter(monkeypatch: pytest.MonkeyPatch) -> None:
    workload = FloodPairs.model_validate(
        {"imbalance": {"kind": "uniform", "low": 0.9}, "jitter": 0.02, "distinct_iterations": 8}
    )
    times = computed(record(workload, 1000, monkeypatch))
    means = times.mean(axis=1)
    assert times.shape == (1000, 8)
    assert 0.9 * 0.98 <= times.min() <= times.max() <= 1.02
    # A uniform distribution on [0.9, 1] has the mean 0.95 and the standard deviation 0.1 / sqrt(12).
    assert abs(means.mean() - 0.95) < 5 * 0.1 / 12**0.5 / 1000**0.5
    assert (np.ptp(times, axis=1) > 0).all()
    assert np.abs(times / means[:, None] - 1).max() < 0.041


def test_one_rank_alone_computes_when_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    workload = FloodPairs.model_validate({"imbalance": "one_rank", "jitter": 0})
    means = computed(record(workload, 16, monkeypatch)).mean(axis=1)
    assert sorted(means) == [0.0] * 15 + [1.0]


def test_growing_imbalance_begins_even_keeps_the_sum_and_ends_uniform(monkeypatch: pytest.MonkeyPatch) -> None:
    growing = {"kind": "growing", "steps": 4, "per_variant": 0.25}
    workload = FloodPairs.model_validate({"imbalance": growing, "jitter": 0, "distinct_iterations": 2})
    times = computed(record(workload, 16, monkeypatch))
    uniform = computed(record(FloodPairs.model_validate({"jitter": 0}), 16, monkeypatch))[:, 0]
    assert times.shape == (16, 4 * 2)
    assert np.ptp(times[:, 0]) == 0
    assert np.allclose(times.sum(axis=0), uniform.sum(), atol=1e-7)
    assert np.allclose(times[:, -1], uniform, atol=1e-8)
    later = computed(record(workload.model_copy(update={"variant": 4}), 16, monkeypatch))
    assert np.allclose(later, uniform[:, None], atol=1e-8)


def test_a_variant_changes_the_jitter_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    plain, again, other = (record(WORKLOADS["random_pairs"](variant=variant), 16, monkeypatch) for variant in (0, 0, 1))
    assert plain.operations == again.operations
    assert plain.all("isend") == other.all("isend")
    assert plain.all("compute") != other.all("compute")
    assert np.abs(computed(plain) / computed(other) - 1).max() < 0.041


def test_random_pairs_join_a_lower_rank_to_an_upper_one_all_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    recorded = record(WORKLOADS["random_pairs"](), 16, monkeypatch)
    partners = [{operation[0] for operation in sends} for sends in recorded.all("isend")]
    assert all(len(partner) == 1 for partner in partners)
    pairs = {(rank, *partner) for rank, partner in enumerate(partners)}
    assert all((high, low) in pairs and (low < 8) != (high < 8) for low, high in pairs)
    assert pairs != {(rank, (rank + 8) % 16) for rank in range(16)}


def test_grids_are_nearly_square_and_have_no_wraparound() -> None:
    assert [grid_shape(ranks) for ranks in (1, 7, 8, 16, 20)] == [(1, 1), (1, 7), (2, 4), (4, 4), (4, 5)]
    assert grid_shape(32, 3) == (2, 4, 4)
    around = [(-1, 0), (0, -1), (0, 1), (1, 0)]
    # 0 1 2 3
    # 4 5 6 7
    assert neighbours(0, (2, 4), around) == [1, 4]
    assert neighbours(6, (2, 4), around) == [2, 5, 7]


@pytest.mark.parametrize("share", [0.35, 0.65, 0.9])
def test_the_slowest_rank_computes_for_the_share_asked_for(share: float) -> None:
    workload = {"name": "flood_pairs", "compute_share": share, "jitter": 0}
    resolved = Scenario(fabric=FABRIC, jobs=[{"name": "job", "ranks": 8, "workload": workload}]).resolve()
    simulation = Simulation(resolved)
    simulation.run_for("40 ms")
    ranks = {name: column.to_numpy() for name, column in simulation.table("ranks").to_dict().items()}
    iterations = (ranks["iterations"] - 1).astype(float)
    part = (resolved.jobs[0].compute or 0) * stream(1, Purpose.COMPUTE, 0).random(8)
    slowest = part.argmax()
    measured = (part * iterations / (ranks["last_mark_ps"] - ranks["first_mark_ps"]))[slowest]
    assert measured == pytest.approx(share, abs=0.01)


def test_a_calibration_ends_when_told_to_and_keeps_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    workload = WORKLOADS["flood_pairs"]()
    alone = Scenario(
        fabric=FABRIC, jobs=[{"ranks": 8, "workload": {"name": "flood_pairs", "compute": "10 us"}}]
    ).resolve()
    slices: list[int] = []
    stop = Event()

    class Watched:
        """An engine during whose third slice Ctrl-C comes."""

        def __init__(self, engine: Any) -> None:
            self.engine = engine

        def __getattr__(self, name: str) -> Any:
            return getattr(self.engine, name)

        def run_window_budget(self, picoseconds: int, max_hops: int) -> None:
            slices.append(picoseconds)
            self.engine.run_window_budget(min(picoseconds, 1000), max_hops)
            if len(slices) == 3:
                stop.set()

    real = Resolved.engine
    monkeypatch.setattr(Resolved, "engine", lambda resolved: Watched(real(resolved)))
    with pytest.raises(CancelledError):
        calibrate(workload, lambda: JobScript(8), alone, stop)
    assert len(slices) == 3
    assert list(tmp_path.rglob("*")) == []


@pytest.mark.parametrize("stored", ["", "12", "[]", "{}", "another number", "\N{SUPERSCRIPT TWO} 0"])
def test_a_stored_compute_time_that_has_changed_is_found_again(
    stored: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    workload = {"name": "flood_pairs", "compute_share": 0.6, "jitter": 0}

    def compute() -> int | None:
        jobs = [{"name": "job", "ranks": 4, "workload": workload}]
        return Scenario(fabric=FABRIC, jobs=jobs).resolve().jobs[0].compute

    found = compute()
    [file] = (tmp_path / "fairlane" / "calibration").iterdir()
    whole = file.read_text()
    changed = whole.replace(f'"compute": {found}', '"compute": 999')
    assert changed != whole
    file.write_text(changed if stored == "another number" else stored)
    assert compute() == found
    assert file.read_text() == whole
    file.unlink()
    file.mkdir()  # where nothing can be stored, the time is found all the same
    assert compute() == found


WAITS = '''
from fairlane.model.workload import Rank, Workload


class Waits(Workload):
    """Ranks 3 and 1 are numbers 0 and 1 of a communicator: 0 sends its second message when 1 has the first."""

    def communicate(self, rank: Rank, iteration: int) -> None:
        rank.comm_dup(5)
        rank.comm_create(6, [3, 1], comm=5)
        if rank.index == 3:
            sent = [rank.isend(1, 512, tag=1, comm=6)]
            rank.collective("barrier", comm=6)
            sent.append(rank.isend(1, 512, tag=2, comm=6))
            rank.collective("barrier", comm=6)
            rank.wait_some(sent)
        if rank.index == 1:
            early, late = rank.irecv(0, tag=1, comm=6), rank.irecv(0, tag=2, comm=6)
            rank.wait_any([late, early])
            rank.collective("barrier", comm=6)
            rank.wait(late)
            rank.collective("barrier", comm=6)
        rank.irecv((rank.index - 1) % 4, comm=5)
        rank.isend((rank.index + 1) % 4, 64, comm=5)
        rank.wait_all()
        if rank.index in (1, 3):
            rank.comm_free(6)
        rank.comm_free(5)
'''


def test_waits_for_one_of_many_and_communicators_that_come_and_go(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(WAITS)
    job = {"name": "waits", "ranks": 4, "workload": {"name": f"{tmp_path}/own.py:Waits", "compute": "1 us"}}
    with allow_code():
        simulation = Simulation(Scenario(fabric=FABRIC, jobs=[job]))
    simulation.run_for("2 ms")
    iterations, calls = simulation.progress()["waits"], simulation.table("calls")
    assert min(iterations) > 2 * 8, "the script has come round"
    found = dict(calls.select("call", "count").iter_rows())
    every = Counter(comm_dup=1, comm_create=1, isend=1, irecv=1, wait_all=1)
    own = {3: Counter(isend=2, wait_some=1, barrier=2), 1: Counter(irecv=2, wait_any=1, wait=1, barrier=2)}
    per_iteration = [every + own.get(rank, Counter()) for rank in range(4)]
    assert set(found) == {call for counts in per_iteration for call in counts}
    for call, count in found.items():
        done, begun = (
            sum(counts[call] * (times + more) for counts, times in zip(per_iteration, iterations, strict=True))
            for more in (0, 1)
        )
        assert done <= count <= begun, call


def test_only_requests_under_way_can_be_waited_for() -> None:
    rank = next(iter(JobScript(2)))
    one, two = rank.irecv(1), rank.irecv(1)
    rank.wait_any()
    assert rank.irecv(1) not in (one, two), "one of them may be under way still"
    rank.wait_all()
    for wait in (rank.wait_some, rank.wait_any, rank.wait_all):
        with pytest.raises(ValueError, match="rank 0 has no request 1 under way"):
            wait([two])


def test_a_job_that_cannot_reach_its_share_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "lazy.py").write_text(
        "from fairlane.model.workload import Workload\n\n\n"
        "class Lazy(Workload):\n    def communicate(self, rank, iteration):\n        pass\n"
    )
    with allow_code(), pytest.raises(ScenarioError, match=r"\[0\].workload.compute_share.* does not communicate"):
        Scenario(fabric=FABRIC, jobs=[{"ranks": 2, "workload": f"{tmp_path}/lazy.py:Lazy"}]).resolve()


OWN = '''
from fairlane.core.units import Size
from fairlane.model.workload import Rank, Workload


class Ring(Workload):
    """Every rank sends to the next."""

    message_size: Size = 1024

    def communicate(self, rank: Rank, iteration: int) -> None:
        rank.irecv((rank.index - 1) % rank.ranks)
        rank.isend((rank.index + 1) % rank.ranks, self.message_size)
        rank.wait_all()
'''


def test_a_workload_of_ones_own_is_found_beside_the_scenario(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(OWN)
    file = tmp_path / "scenario.toml"
    text = '[fabric]\ntopology = "fat_tree"\nhosts = 8\n[[jobs]]\nranks = 4\nworkload = { name = "own.py:Ring"'
    file.write_text(text + ', message_size = "2 KiB", compute = "1 us" }\n')
    scenario = Scenario.load(file, allow_code=True)
    simulation = Simulation(scenario)
    simulation.run_for("100 us")
    assert simulation.jobs == ["Ring"]
    assert min(simulation.progress()["Ring"]) > 1
    file.write_text(text + ', mesage_size = "2 KiB" }\n')
    with pytest.raises(ScenarioError, match=r':6: jobs\[0\].workload.mesage_size .* did you mean "message_size"'):
        Scenario.load(file, allow_code=True)
    file.write_text(text.replace("Ring", "Rng") + " }\n")
    with pytest.raises(ScenarioError, match='did you mean "Ring"'):
        Scenario.load(file, allow_code=True)


def test_streams_differ_by_purpose_and_index_and_repeat() -> None:
    keys = [(purpose, index) for purpose in Purpose for index in range(3)]
    draws = [stream(1, purpose, index).random() for purpose, index in keys]
    assert len(set(draws)) == len(keys)
    assert draws == [stream(1, purpose, index).random() for purpose, index in keys]
    assert not set(draws) & {stream(2, purpose, index).random() for purpose, index in keys}


def test_shift_goes_round_along_each_side() -> None:
    """Tornado on 8 x 8, and to the next of nine groups of eight."""
    tornado = Shift(sides=[8, 8], steps=[3, 3])
    assert [tornado.further(rank, 64, 1) for rank in (0, 5, 63)] == [27, 24, 18]
    assert all(tornado.further(tornado.further(rank, 64, 1), 64, -1) == rank for rank in range(64))
    assert [Shift(sides=[8, 9], steps=[0, 1]).further(rank, 72, 1) for rank in (3, 71)] == [11, 7]
    assert tornado.problem_with(60) == "as many ranks as its sides make, 64"
    with pytest.raises(ValueError, match="one number for each side, 2"):
        Shift(sides=[8, 8], steps=[1])
