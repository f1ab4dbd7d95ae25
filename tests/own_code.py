"""Code of a user's own of every kind, in a file beside a scenario, and scenarios that name some of it."""

from pathlib import Path

__all__ = ["CODE", "NAMES", "STUDY", "ran", "scenario"]

CODE = """
from pathlib import Path

from matplotlib.figure import Figure

from fairlane.sim.controller import Controller, Settings
from fairlane.model.placement import PlacementPolicy
from fairlane.model.placement.mapping import Mapping
from fairlane.model.qos import Expansion
from fairlane.model.workload import Rank, Workload

Path(__file__).with_name("ran").touch()


class Pairs(Workload):
    hops: int = 1

    def communicate(self, rank: Rank, iteration: int) -> None:
        rank.irecv(rank.index ^ 1)
        rank.isend(rank.index ^ 1, self.message_size)
        rank.wait_all()


class Last(PlacementPolicy):
    offset: int = 0

    def allocate(self, free, request, fabric):
        return [host + self.offset for host in free[-request.hosts:]]


class Backwards(Mapping):
    def places(self, slots):
        return list(reversed(range(len(slots.hosts))))


class Quiet(Controller):
    def observe(self, work):
        return Settings()


def one_lane(jobs):
    if len(jobs) > 2:
        raise KeyError("too many")
    return Expansion(sl2vl=[0], arbiter={"name": "weighted_round_robin"})


def picture(run):
    figure = Figure()
    figure.add_subplot().plot([1, 1 / run.jobs.height])
    return figure
"""
"""The file ``own.py``. It notes beside it that it was run."""
NAMES = ("Pairs", "Last", "Backwards", "one_lane")
"""What a scenario can name: a workload, a placement, a mapping and a QoS strategy."""
STUDY = """
scenario = "scenario.toml"
[treatments.quiet]
controller = { name = "own.py:Quiet", service_levels = 2 }
period = "50 us"
periods = 2
"""


def scenario(*names: str) -> str:
    """A scenario that names these of ``NAMES``, and names of fairlane in place of the others."""
    strategy = '[qos]\nstrategy = "own.py:one_lane"' if "one_lane" in names else ""
    placement = "own.py:Last" if "Last" in names else "linear"
    mapping = "own.py:Backwards" if "Backwards" in names else "linear"
    workload = '"own.py:Pairs", hops = 2' if "Pairs" in names else '"flood_pairs"'
    return f"""
duration = "200 us"
[fabric]
topology = "fat_tree"
hosts = 8
levels = 1
[placement]
name = "{placement}"
mapping = "{mapping}"
{strategy}
[[jobs]]
name = "own"
ranks = 4
workload = {{ name = {workload}, compute = "5 us" }}
"""


def ran(file: Path) -> bool:
    """Whether the code beside this file has been run since this was asked last."""
    mark = file.with_name("ran")
    found = mark.exists()
    mark.unlink(missing_ok=True)
    return found
