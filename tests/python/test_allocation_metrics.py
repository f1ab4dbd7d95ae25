"""Metrics of allocations in closed form, the mappings of ranks to hosts, and the command that shows them."""

import json
import os
import subprocess
import sys
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlane import Scenario
from fairlane.cli.main import execute
from fairlane.core.errors import ScenarioError
from fairlane.model.fabric.view import Fabric
from fairlane.model.placement import mapping, measure
from fairlane.model.placement.mapping import HopBytes, Slots, hop_bytes
from fairlane.model.placement.metrics import pieces

SCENARIO = """
[fabric]
topology = "torus"
sides = [4, 4, 2]
[placement]
name = "box"
shape = [2, 2, 2]
[[jobs]]
name = "first"
ranks = 8
workload = {{ name = "nearest_neighbor", compute = "1 us" }}
[[jobs]]
name = "second"
ranks = 8
workload = {{ name = "all_to_all", compute = "1 us" }}
{more}
"""


def torus(*sides: int, mesh: bool = False, hosts: int = 1) -> Fabric:
    params = {"sides": list(sides), "mesh": mesh, "hosts_per_switch": hosts}
    return Fabric.build({"topology": "torus", "params": params, "routing": "dimension_order"})


@given(sides=st.lists(st.integers(1, 5), min_size=1, max_size=3), mesh=st.booleans())
@settings(max_examples=40)
def test_distances_on_tori_and_meshes_are_sums_over_dimensions(sides: list[int], mesh: bool) -> None:
    fabric = torus(*sides, mesh=mesh)
    at = np.stack(np.unravel_index(np.arange(fabric.hosts), sides, order="F"), axis=1)
    apart = np.abs(at[:, None] - at[None])
    steps = apart if mesh else np.minimum(apart, np.array(sides) - apart)
    assert (fabric.distances(range(fabric.hosts)) == steps.sum(axis=2)).all()


def test_a_whole_torus_has_the_mean_distance_and_diameter_of_theory() -> None:
    # A ring of an even side s has s/4 on average over all pairs, a host with itself among them; those are left out.
    found = measure(torus(4, 6, 8), {"all": range(192)})["all"]
    assert found.average_distance == pytest.approx((4 + 6 + 8) / 4 * 192 / 191)
    assert found.diameter == 2 + 3 + 4
    assert (found.hosts, found.switches, found.pieces, found.contiguity, found.shared) == (192, 192, 1, 1.0, 0.0)
    assert found.links == 192 * 6


def test_a_box_in_a_larger_mesh_is_as_on_paper() -> None:
    # 2 x 2 x 2 of a mesh: each of 8 hosts has 3 at distance 1, 3 at 2, 1 at 3; 12 edges, both ways.
    fabric = torus(4, 4, 4, mesh=True)
    found = measure(fabric, {"box": [0, 1, 4, 5, 16, 17, 20, 21]})["box"]
    assert found.average_distance == pytest.approx((3 * 1 + 3 * 2 + 3) / 7)
    assert (found.diameter, found.pieces, found.links) == (3, 1, 24)


def test_shared_links_are_those_on_both_jobs_routes() -> None:
    # On a line the hosts 0 and 3 use the links between 0, 1, 2, 3, both ways; 1 and 2 use the two in the middle.
    line = torus(8, mesh=True)
    found = measure(line, {"wide": [0, 3], "inner": [1, 2], "far": [6, 7]})
    assert {name: (one.links, one.shared) for name, one in found.items()} == {
        "wide": (6, pytest.approx(1 / 3)),
        "inner": (2, 1.0),
        "far": (2, 0.0),
    }
    assert found["wide"].pieces == 2
    assert found["wide"].contiguity == 0.5


@given(data=st.data())
@settings(max_examples=25)
def test_links_used_are_exactly_those_of_the_routes(data: st.DataObject) -> None:
    fabric = torus(3, 4)
    hosts = data.draw(st.lists(st.integers(0, 11), min_size=1, max_size=5, unique=True))
    expected = {link for a, b in permutations(hosts, 2) for link in fabric.route(a, b)}
    assert set(np.flatnonzero(fabric.job_links(hosts)).tolist()) == expected


def test_pieces_are_planes_apart_subtrees_and_groups() -> None:
    assert sorted(pieces(torus(4, 4), [0, 1, 5, 10, 15])) == [1, 1, 3]
    assert pieces(torus(4, 4), [0, 3, 12, 15]) == [4]  # around the ends
    tree = Fabric.build(
        {"topology": "fat_tree", "params": {"hosts": 16, "levels": 3, "radix": 4}, "routing": "d_mod_k"}
    )
    assert sorted(pieces(tree, [0, 2, 3, 4, 12])) == [1, 1, 3]


def test_several_ranks_on_a_host_count_once() -> None:
    found = measure(torus(4), {"job": [0, 0, 1, 1]})["job"]
    assert (found.hosts, found.average_distance) == (2, 1.0)


def slots(fabric: Fabric, hosts: list[int], traffic: np.ndarray[Any, Any]) -> Slots:
    return Slots(hosts, lambda: fabric.distances(hosts), lambda: traffic)


@given(seed=st.integers(0, 200))
@settings(max_examples=25)
def test_hop_bytes_is_never_worse_than_linear_and_small_ones_are_near_the_best(seed: int) -> None:
    rng = np.random.default_rng(seed)
    fabric, ranks = torus(3, 2, mesh=True), 6
    traffic = rng.integers(0, 5, (ranks, ranks)).astype(float)
    np.fill_diagonal(traffic, 0)
    apart = fabric.distances(range(ranks))
    places = np.array(HopBytes().places(slots(fabric, list(range(ranks)), traffic)))
    assert sorted(places) == list(range(ranks))
    cost = hop_bytes(traffic, apart, places)
    assert cost <= hop_bytes(traffic, apart, np.arange(ranks))
    best = min(hop_bytes(traffic, apart, np.array(order)) for order in permutations(range(ranks)))
    assert cost <= 1.15 * best


def test_hop_bytes_unfolds_a_ring_on_hosts_in_random_order() -> None:
    ranks = 16
    traffic = np.roll(np.eye(ranks), 1, axis=1) * 100
    hosts = np.random.default_rng(3).permutation(ranks).tolist()
    fabric = torus(4, 4)
    places = np.array(HopBytes().places(slots(fabric, hosts, traffic)))
    apart = fabric.distances(hosts)
    # The least that a ring can cost is one link a message, and a torus of even sides has such a ring.
    assert hop_bytes(traffic, apart, places) <= 1.25 * ranks * 100
    assert hop_bytes(traffic, apart, np.arange(ranks)) > 1.8 * ranks * 100


PLACES = """
import numpy
from fairlane.model.placement.mapping import HopBytes, Slots

at = numpy.array(numpy.unravel_index(numpy.arange(64), (4, 4, 4))).T
apart = numpy.abs(at[:, None] - at[None])
distances = numpy.minimum(apart, 4 - apart).sum(axis=-1).astype(float)
order = numpy.random.default_rng(3).permutation(64)
traffic = numpy.where(distances == 1, 1000.0, 0.0)[numpy.ix_(order, order)]
print(HopBytes().places(Slots(list(range(64)), lambda: distances, lambda: traffic)))
"""


@pytest.mark.parametrize("kernel", ["Prescott", "Sandybridge"])
def test_hop_bytes_are_the_same_on_every_processor(kernel: str) -> None:
    """A torus on a torus has many equal solutions; kernels of the BLAS for older processors add in other orders."""
    settings = {"OPENBLAS_CORETYPE": kernel, "OPENBLAS_NUM_THREADS": "2"}
    here, there = (
        subprocess.run(
            [sys.executable, "-c", PLACES], env={**os.environ, **more}, capture_output=True, check=True
        ).stdout
        for more in ({"OPENBLAS_NUM_THREADS": "1"}, settings)
    )
    assert here == there


@given(seed=st.integers(0, 2**32), ranks=st.integers(2, 40))
@settings(max_examples=25)
def test_hop_bytes_compute_with_whole_numbers_without_rounding(seed: int, ranks: int) -> None:
    """Flows over many orders of magnitude: the gradient is that of integers of any size, as are the inner products."""
    rng = np.random.default_rng(seed)
    traffic = np.floor(10 ** rng.uniform(0, 12, (ranks, ranks)))
    flow = mapping._whole(traffic + traffic.T, mapping._FLOW)
    links = mapping._whole(np.triu(rng.uniform(0, 20, (ranks, ranks))), mapping._LINKS)
    at = np.floor(rng.dirichlet(np.ones(ranks), ranks) * mapping._ONE)
    gradient = flow @ at @ links
    exact = flow.astype(int).astype(object) @ at.astype(int) @ links.astype(int)
    assert (gradient == exact).all()
    most = mapping._FLOW * mapping._ONE * mapping._LINKS
    assert gradient.max() <= most
    worst = np.full((mapping.MOST_RANKS, mapping.MOST_RANKS), 2.0 * most)
    assert mapping._inner(worst, np.full_like(worst, 2 * mapping._ONE / mapping.MOST_RANKS)) <= 2**53


def scenario(**placement: Any) -> Scenario:
    job = {"name": "job", "ranks": 16, "workload": {"name": "nearest_neighbor", "compute": "1 us"}}
    fabric = {"topology": "torus", "sides": [4, 4]}
    return Scenario(fabric=fabric, placement={"name": "linear", **placement}, jobs=[job])


def test_blocks_of_a_grid_of_ranks_get_hosts_that_follow_each_other() -> None:
    found = scenario(mapping={"name": "blocked", "grid": [4, 4], "block": [2, 2]}).resolve().jobs[0].hosts
    assert found == (0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15)


def test_a_scenario_is_mapped_by_the_bytes_that_its_workload_sends() -> None:
    # A 4 x 4 grid of ranks on a 4 x 4 torus: every message goes over one link, if the ranks are where they belong.
    from fairlane.model.pattern import observe, program_of

    table = scenario(name="random", mapping="hop_bytes")
    traffic = observe(program_of(table.jobs[0].source, 16)).total.astype(float)
    fabric = torus(4, 4)
    hops = {
        name: hop_bytes(traffic, fabric.distances(found.resolve().jobs[0].hosts), np.arange(16)) / traffic.sum()
        for name, found in {"hop_bytes": table, "linear": scenario(name="random")}.items()
    }
    assert hops["hop_bytes"] <= 1.2
    assert hops["linear"] > 1.6


@pytest.mark.parametrize(
    ("mapping", "words"),
    [
        (
            {"name": "blocked", "grid": [4, 3], "block": [2, 1]},
            "placement.mapping.grid = [4, 3]: has 12 ranks, and the job 16",
        ),
        (
            {"name": "blocked", "grid": [4, 4], "block": [3, 1]},
            "placement.mapping.block = [3, 1]: does not divide the grid",
        ),
        ({"name": "blocked", "grid": [4, 4], "block": [2]}, "allowed: 2 sides"),
        ({"name": "blocked", "grid": [4, 4]}, "placement.mapping.block: missing"),
        ("hopbytes", 'unknown mapping; allowed: linear, blocked, hop_bytes, "file.py:Name"; did you mean "hop_bytes"?'),
    ],
)
def test_mappings_that_do_not_fit_are_refused(mapping: Any, words: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        scenario(mapping=mapping).resolve()
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("fabric", "strategy"),
    [
        ('topology = "torus"\nsides = [4, 4, 2]', "units"),
        ('topology = "torus"\nsides = [4, 4]\nhosts_per_switch = 2', "units"),
        ('topology = "fat_tree"\nhosts = 32\nlevels = 3\nradix = 8', "units"),
        ('topology = "dragonfly"\ngroups = 4\nswitches_per_group = 4\nhosts_per_switch = 2\nglobal_links = 1', "units"),
    ],
)
def test_place_shows_a_table_and_draws_every_sort_of_fabric(
    fabric: str, strategy: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = SCENARIO.format(more="").replace('topology = "torus"\nsides = [4, 4, 2]', fabric)
    text = text.replace('name = "box"\nshape = [2, 2, 2]', f'name = "{strategy}"\nsize = 4')
    (tmp_path / "s.toml").write_text(text, encoding="utf-8")
    assert execute(["place", str(tmp_path / "s.toml"), "-o", str(tmp_path / "s.svg")]) == 0
    printed = capsys.readouterr().out
    assert all(word in printed for word in ("first", "second", "pieces", "shared"))
    assert "free" in (tmp_path / "s.svg").read_text(encoding="utf-8")


def test_place_prints_json_and_says_what_does_not_fit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "s.toml").write_text(SCENARIO.format(more=""), encoding="utf-8")
    assert execute(["place", str(tmp_path / "s.toml"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["first"]["hosts_of_ranks"] == [0, 1, 4, 5, 16, 17, 20, 21]
    assert found["second"]["pieces"] == 1
    assert execute(["place", str(tmp_path / "s.toml"), "--set", "placement.shape=[5,1,1]"]) == 2
    assert "does not fit the grid; allowed: within 4 x 4 x 2" in capsys.readouterr().err


def test_loads_are_sums_over_routes() -> None:
    fabric = torus(4, 3, 2)
    hosts = [0, 5, 7, 23, 11]
    traffic = np.random.default_rng(1).random((5, 5))
    expected = np.zeros(len(fabric.links["link"]))
    for (a, source), (b, destination) in permutations(enumerate(hosts), 2):
        expected[fabric.route(source, destination)] += traffic[a, b]
    assert fabric.loads(hosts, traffic) == pytest.approx(expected)
    with pytest.raises(IndexError, match="24 hosts"):
        fabric.loads([0, 24], np.ones((2, 2)))
    with pytest.raises(ValueError, match="each pair"):
        fabric.loads(hosts, np.ones((2, 2)))
