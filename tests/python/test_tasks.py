"""Tasks: performed once, stored with checksums, tried again, stopped in time, and found again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from concurrent.futures import Future
from concurrent.futures import wait as wait_for
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from fairlane.core.errors import FairlaneError, Problem, ResultsError, RunError, ScenarioError
from fairlane.study.tasks.executor import Executor
from fairlane.study.tasks.pools import Threads
from fairlane.study.tasks.store import Store
from fairlane.study.tasks.task import Answer, Computable, Outcome, Stopwatch, digest_of, perform
from small_study import Here
from waiting import HANG_S

STARTED = datetime(2026, 1, 2)


@dataclass
class Square:
    """A task that squares a number, and fails as often as it is told."""

    number: int
    failures: int = 0
    error: Exception = field(default_factory=lambda: ArithmeticError("no such luck"))
    computed: int = 0

    @property
    def label(self) -> str:
        return f"square of {self.number}"

    @property
    def cost(self) -> float:
        return float(self.number)

    @property
    def digest(self) -> str:
        return digest_of(self.number)

    @property
    def description(self) -> Mapping[str, Any]:
        return {"number": self.number}

    def compute(self, _watch: Stopwatch) -> Answer:
        self.computed += 1
        if self.computed <= self.failures:
            raise self.error
        return {"square": self.number**2}


class OneByOne(Here):
    """This process as the only worker, which takes a task when the outcome of the last one has been looked at.

    Each takes 10 s of processor time.
    """

    def submit(self, task: Computable) -> Future[Outcome]:
        pool = self

        class Looked(Future[Outcome]):
            def exception(self, timeout: float | None = None) -> BaseException | None:
                pool.room = 1
                return super().exception(timeout)

        self.room, future = 0, Looked()
        future.set_result(replace(perform(task), cpu=10.0))
        return future


def opened(folder: Path, spec: Mapping[str, Any], *, resume: bool = False) -> Store:
    return Store.open(
        "sweep", "small", spec, {}, out=folder, started=STARTED, resume=resume, complete=lambda _folder: False, code=[]
    )


def test_a_task_is_performed_once_and_those_that_take_long_first() -> None:
    order: list[int] = []

    class Noted(Square):
        def compute(self, watch: Stopwatch) -> Answer:
            order.append(self.number)
            return super().compute(watch)

    with Executor(Here()) as executor:
        answers = executor.run([Noted(1), Noted(3), Noted(2), Noted(3)])
        executor.run([Noted(2)])
    assert order == [3, 2, 1]
    assert answers == {digest_of(number): {"square": number**2} for number in (1, 2, 3)}
    assert executor.performed == 3


def test_threads_compute_the_same(tmp_path: Path) -> None:
    tasks = [Square(number) for number in range(20)]
    with Executor(Threads(4), Store(tmp_path)) as executor:
        executor.run(tasks)
    assert [executor.answer(task) for task in tasks] == [{"square": number**2} for number in range(20)]
    assert Store(tmp_path).digests() == {task.digest for task in tasks}


def test_threads_that_are_closed_stop_what_they_are_at() -> None:
    begun = Event()

    class Endless(Square):
        def compute(self, watch: Stopwatch) -> Answer:
            begun.set()
            watch.reached(0.25)
            assert watch.stop is not None
            watch.stop.wait()
            raise RunError("stopped")

    pool = Threads(1)
    futures = [pool.submit(Endless(1)), pool.submit(Square(2))]
    assert begun.wait(HANG_S)
    assert pool.share(futures[0]) == 0.25
    pool.close()
    assert futures[0].result().error == "stopped"
    assert futures[1].cancelled()


def test_what_fails_is_tried_again_and_then_named(tmp_path: Path) -> None:
    once, always = Square(1, failures=1), Square(2, failures=9)
    executor = Executor(Here(), Store(tmp_path))
    executor.run([once, always, Square(3)])
    assert executor.answer(once) == {"square": 1}
    assert executor.answer(Square(3)) == {"square": 9}
    assert (once.computed, always.computed) == (2, 2)
    (failure,) = executor.failures.values()
    assert failure.error == "ArithmeticError: no such luck"
    assert failure.description is not None
    assert (tmp_path / failure.description).read_text() == "# square of 2\nnumber = 2\n"
    executor.run([always])
    assert always.computed == 2, "a failure is not tried a third time"


@pytest.mark.parametrize(
    ("error", "raised", "words"),
    [
        (ScenarioError(Problem("mtu", "too small", 1)), ScenarioError, "mtu = 1: too small"),
        (RunError("stuck at 3 ns", slug="deadlock"), RunError, "square of 2: stuck at 3 ns"),
        (ValueError("odd"), RunError, "square of 2: ValueError: odd"),
    ],
)
def test_the_first_failure_can_end_it(error: Exception, raised: type[FairlaneError], words: str) -> None:
    last = Square(1)
    executor = Executor(OneByOne(), attempts=1, first_failure_ends=True)
    with pytest.raises(raised, match=words) as found:
        executor.run([Square(2, failures=1, error=error), last])
    if isinstance(found.value, RunError):
        assert found.value.slug == getattr(error, "slug", "failed"), "an error of fairlane keeps its kind"
    assert last.computed == 0, "the longest comes first, and nothing after it"


def test_no_task_begins_when_the_processor_time_is_used_up(tmp_path: Path) -> None:
    tasks = [Square(number) for number in range(1, 5)]
    words = r"20\.0 s of processor time used, the limit is 15 s; 2 tasks left; .*--resume"
    with pytest.raises(RunError, match=words) as found:
        Executor(OneByOne(), Store(tmp_path), cpu_limit_s=15).run(tasks)
    assert found.value.slug == "limit"
    again = Executor(OneByOne(), Store(tmp_path), cpu_limit_s=20)
    again.run(tasks)
    assert again.performed == 2, "what was stored is not computed again"
    assert [task.computed for task in tasks] == [1, 1, 1, 1]
    assert again.outcomes[tasks[3].digest].cpu == 10.0, "that of the first time"


def test_ctrl_c_keeps_what_is_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    finished: set[int] = set()

    def interrupted(futures: Mapping[Future[Outcome], Square], **_options: object) -> None:
        wait_for(futures)
        finished.update(task.number for task in futures.values())
        raise KeyboardInterrupt

    monkeypatch.setattr("fairlane.study.tasks.executor.wait", interrupted)
    with Executor(Threads(2), Store(tmp_path)) as executor, pytest.raises(KeyboardInterrupt):
        executor.run([Square(1), Square(2), Square(3)])
    assert finished >= {2, 3}
    assert Store(tmp_path).digests() == set(map(digest_of, finished))


def test_a_stored_answer_that_has_changed_is_computed_again(tmp_path: Path) -> None:
    task = Square(7)
    Executor(Here(), Store(tmp_path)).run([task])
    path = tmp_path / "answers" / f"{task.digest}.json"
    whole = path.read_text()
    for damaged in (whole.replace("49", "48"), whole[:-3], "[]", ""):
        assert damaged != whole
        path.write_text(damaged)
        store = Store(tmp_path)
        assert store.get(task) is None
        assert store.damaged == [f"answers/{path.name}"]
    store = Store(tmp_path)
    executor = Executor(Here(), store)
    executor.run([task])
    assert (executor.performed, task.computed) == (1, 2)
    found = Store(tmp_path).get(task)
    assert found is not None
    assert found.answer == {"square": 49}


def test_a_folder_goes_on_only_if_it_is_of_the_same(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    Executor(Here(), opened(folder, {"loads": [1, 2]})).run([Square(1)])
    assert opened(folder, {"loads": [1, 2]}, resume=True).digests() == {digest_of(1)}
    with pytest.raises(ResultsError, match=r"cannot resume, the sweep has changed: loads\[1\] was 2, is 3"):
        opened(folder, {"loads": [1, 3]}, resume=True)
    with pytest.raises(ResultsError, match="exists and is not an empty directory"):
        opened(folder, {"loads": [1, 2]})
    with pytest.raises(ResultsError, match=r"no sweep to resume \(spec.json is missing\)"):
        opened(tmp_path / "nothing", {}, resume=True)


@pytest.mark.parametrize(("version", "shown"), [(None, 1), (9, 9)])
def test_a_folder_of_another_schema_version_is_refused(tmp_path: Path, version: int | None, shown: int) -> None:
    opened(tmp_path / "out", {})
    path = tmp_path / "out" / "spec.json"
    spec = json.loads(path.read_text())
    del spec["schema_version"]
    path.write_text(json.dumps(spec if version is None else {"schema_version": version, **spec}))
    with pytest.raises(ResultsError, match=f"schema_version is {shown}; this version of fairlane reads 2"):
        opened(tmp_path / "out", {}, resume=True)


def test_undo_leaves_the_users_own_folder(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    for name in ("own", "new"):
        opened(tmp_path / name, {}).undo()
    assert [path.name for path in tmp_path.iterdir()] == ["own"]
    assert not list((tmp_path / "own").iterdir())
