"""A scenario and a study that take no time, for the tests of how studies are computed."""

from concurrent.futures import Future
from typing import Any

from fairlane.study.tasks.task import Computable, Outcome, perform

SCENARIO = """
name = "small"
duration = "300 us"
[fabric]
topology = "fat_tree"
hosts = 16
levels = 2
radix = 8
bandwidth = "3.2 GB/s"
[qos]
service_levels = 2
lanes = 2
arbiter = { name = "weighted_round_robin", weights = [1, 7] }
[[jobs]]
name = "flood"
ranks = 4
count = 2
workload = { name = "flood_pairs", compute = "5 us", messages_per_iteration = 4 }
[[jobs]]
name = "ring"
ranks = 6
workload = { name = "nearest_neighbor", compute = "5 us", messages_per_iteration = 2 }
"""
STUDY = """
scenario = "small.toml"
seeds = [1, 2]
placements = 2
[treatments.first]
set = { "jobs[0].service_level" = 1 }
"""
CONTROLLED = """
[treatments.controlled]
controller = { name = "process_prioritization", service_levels = 2 }
period = "50 us"
periods = 3
"""


class Here:
    """This process as the only worker: no other has to start."""

    ready = workers = 1

    def __init__(self, *_: Any) -> None:
        self.room = 1

    def submit(self, task: Computable) -> Future[Outcome]:
        future: Future[Outcome] = Future()
        future.set_result(perform(task))
        return future

    def share(self, _future: Future[Outcome]) -> float | None:
        return None

    def close(self) -> None:
        pass


class Interrupted(Here):
    """A worker at which somebody presses Ctrl-C after so many tasks."""

    def __init__(self, tasks: int) -> None:
        super().__init__()
        self.left = tasks

    def submit(self, task: Computable) -> Future[Outcome]:
        if not self.left:
            raise KeyboardInterrupt
        self.left -= 1
        return super().submit(task)
