"""Placement strategies: laws that hold for each, and what is particular to each."""

import re
from collections.abc import Iterator
from functools import cache
from itertools import combinations, permutations, product
from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlane.core.errors import ScenarioError
from fairlane.core.seeds import Purpose, stream
from fairlane.inputs.problems import Problems
from fairlane.model.fabric.view import Fabric
from fairlane.model.placement import (
    LIST,
    PLACEMENTS,
    Communication,
    PlacementPolicy,
    Request,
    entries,
    fill,
    hosts_needed,
)
from fairlane.model.placement.box import named_shape
from fairlane.model.placement.grid import coordinates, host_order
from fairlane.model.placement.metrics import pieces
from fairlane.model.scenario import Scenario
from fairlane.sim.simulation import Simulation


@cache
def torus(*sides: int, hosts: int = 1, mesh: bool = False) -> Fabric:
    parameters = {"sides": list(sides), "hosts_per_switch": hosts, "mesh": mesh}
    return Fabric.build({"topology": "torus", "params": parameters, "routing": "dimension_order"})


def tree(hosts: int = 16) -> Fabric:
    """Three levels: with 16 hosts leaves of 2 and subtrees of 4."""
    parameters = {"hosts": hosts, "levels": 3, "radix": 4}
    return Fabric.build({"topology": "fat_tree", "params": parameters, "routing": "d_mod_k"})


DRAGON = {"groups": 4, "switches_per_group": 3, "hosts_per_switch": 2, "global_links": 1}
DRAGONFLY = Fabric.build({"topology": "dragonfly", "params": DRAGON, "routing": "minimal"})
TORUS, FLAT, TREE = torus(4, 3, 2), torus(4, hosts=4), tree()
EXAMPLES: list[tuple[str, Fabric, dict[str, Any]]] = [
    ("random", TORUS, {}),
    ("packed", TREE, {}),
    ("spread", TREE, {}),
    ("linear", TORUS, {}),
    ("linear", TORUS, {"curve": "snake", "fit": "first"}),
    ("linear", TORUS, {"curve": "hilbert", "fit": "best"}),
    ("box", TORUS, {}),
    ("box", TORUS, {"shape": "prism", "fit": "best"}),
    ("box", TORUS, {"shape": "plane"}),
    ("box", torus(4, 3, 2, mesh=True), {"shape": [3, 2, 2], "fit": "best"}),
    ("units", TORUS, {"size": 4}),
    ("units", TORUS, {"size": 3, "order": "random", "curve": "hilbert"}),
    ("units", TREE, {"size": 2, "order": "first"}),
    ("domain", TREE, {"of": "leaf", "fit": "first"}),
    ("groups", DRAGONFLY, {"count": 2}),
    ("groups", DRAGONFLY, {"count": 4, "longest": 1}),
    ("domain", TREE, {"of": "subtree"}),
    ("domain", DRAGONFLY, {"of": "group", "split": False}),
    ("fragmented", TREE, {}),
    ("pattern", TORUS, {}),
    ("pattern", DRAGONFLY, {"wait": False}),
]


def rng(seed: int = 1) -> np.random.Generator:
    return stream(seed, Purpose.PLACEMENT, 0)


def make(name: str, **parameters: Any) -> PlacementPolicy:
    return PLACEMENTS[name].model_validate(parameters)


def take(strategy: PlacementPolicy, free: list[int], count: int, fabric: Fabric) -> list[int] | None:
    return strategy.allocate(free, Request(count, rng()), fabric)


def leaves_used(fabric: Fabric, hosts: list[int]) -> int:
    return len({fabric.leaf_of[host] for host in hosts})


def test_every_strategy_is_among_the_examples() -> None:
    assert {name for name, _, _ in EXAMPLES} == set(PLACEMENTS.builtin)


@pytest.mark.parametrize(("name", "fabric", "parameters"), EXAMPLES)
@given(data=st.data())
@settings(max_examples=40)
def test_an_allocation_is_distinct_free_hosts_of_the_right_number_or_nothing(
    name: str, fabric: Fabric, parameters: dict[str, Any], data: st.DataObject
) -> None:
    free = sorted(data.draw(st.sets(st.integers(0, fabric.hosts - 1), min_size=1)))
    counts = data.draw(st.lists(st.integers(1, len(free) + 1), min_size=1, max_size=3))
    requests = [Request(count, rng(at)) for at, count in enumerate(counts)]
    found = make(name, **parameters).allocate_together(free, requests, fabric)
    taken = [host for hosts in found for host in hosts or ()]
    assert len(taken) == len(set(taken))
    assert set(taken) <= set(free)
    assert all(hosts is None or len(hosts) == count for hosts, count in zip(found, counts, strict=True))


ANY = [
    *((name, {}) for name in ("random", "packed", "spread", "linear")),
    ("domain", {"of": "leaf"}),
    ("units", {"size": 1}),
]


@pytest.mark.parametrize(("name", "parameters"), ANY)
@given(free=st.sets(st.integers(0, 15), min_size=1), data=st.data())
@settings(max_examples=30)
def test_strategies_that_take_any_hosts_find_them_exactly_if_enough_are_free(
    name: str, parameters: dict[str, Any], free: set[int], data: st.DataObject
) -> None:
    count = data.draw(st.integers(1, 17))
    found = take(make(name, **parameters), sorted(free), count, TREE)
    assert (found is None) == (count > len(free))


@pytest.mark.parametrize("count", [1, 2, 3, 4])
@given(data=st.data())
@settings(max_examples=20)
def test_groups_takes_hosts_of_exactly_so_many_groups(count: int, data: st.DataObject) -> None:
    hosts = data.draw(st.integers(count, 6 * count))
    seed = data.draw(st.integers(0, 100))
    found = make("groups", count=count).allocate(range(24), Request(hosts, rng(seed)), DRAGONFLY)
    assert found is not None
    assert len(found) == hosts
    assert len({host // 6 for host in found}) == count


def test_groups_refuses_more_groups_than_there_are() -> None:
    with pytest.raises(Problems, match="1 to 4"):
        make("groups", count=5).check(DRAGONFLY, [8])
    with pytest.raises(Problems, match="no groups"):
        make("groups", count=1).check(TREE, [8])


@given(free=st.sets(st.integers(0, 15), min_size=1), data=st.data())
def test_packed_uses_as_few_leaves_as_possible(free: set[int], data: st.DataObject) -> None:
    count = data.draw(st.integers(1, len(free)))
    room = {leaf: sum(FLAT.leaf_of[host] == leaf for host in free) for leaf in range(4)}
    fewest = next(
        size
        for size in range(1, 5)
        if any(sum(room[leaf] for leaf in chosen) >= count for chosen in combinations(room, size))
    )
    assert leaves_used(FLAT, take(make("packed"), sorted(free), count, FLAT) or []) == fewest


@given(free=st.sets(st.integers(0, 15), min_size=1), data=st.data())
def test_spread_uses_as_many_leaves_as_possible(free: set[int], data: st.DataObject) -> None:
    count = data.draw(st.integers(1, len(free)))
    most = min(count, leaves_used(FLAT, list(free)))
    assert leaves_used(FLAT, take(make("spread"), sorted(free), count, FLAT) or []) == most


def test_linear_takes_the_lowest_and_ranks_fill_hosts_in_order() -> None:
    assert take(make("linear"), [3, 4, 5, 9], 3, TREE) == [3, 4, 5]
    assert fill([9, 3], 4, 2) == [9, 9, 3, 3]
    assert hosts_needed(9, 2) == 5


def test_linear_in_a_row_takes_the_first_or_the_shortest_stretch() -> None:
    free = [0, 1, 2, 3, 6, 8, 9, 10]
    assert take(make("linear", fit="any"), free, 5, TREE) == [0, 1, 2, 3, 6]
    assert take(make("linear", fit="first"), free, 3, TREE) == [0, 1, 2]
    assert take(make("linear", fit="best"), free, 3, TREE) == [8, 9, 10]
    assert take(make("linear", fit="best"), free, 5, TREE) is None


@given(free=st.sets(st.integers(0, 15), min_size=1), data=st.data())
def test_fragments_keep_the_order_of_hosts(free: set[int], data: st.DataObject) -> None:
    hosts = take(make("fragmented"), sorted(free), data.draw(st.integers(1, len(free))), FLAT) or []
    assert hosts == sorted(hosts)


def test_fragments_are_longer_than_single_hosts_and_no_longer_than_leaves_in_a_row() -> None:
    params = {"hosts": 4096, "levels": 3, "radix": 32}
    large = Fabric.build({"topology": "fat_tree", "params": params, "routing": "d_mod_k"})
    hosts = np.array(take(make("fragmented"), list(range(4096)), 512, large))
    runs = 1 + int((np.diff(hosts) > 1).sum())
    # Runs have 1 to 16 hosts, 8.5 on average; an eighth of them is taken, and some of those are neighbours.
    assert 512 / 16 < runs < 1.2 * 512 / 8.5
    taken_at_random = 512 * (1 - 512 / 4096)
    assert runs < taken_at_random / 4


def test_random_depends_on_the_seed_alone_and_is_fair() -> None:
    free = list(range(16))
    picked = [make("random").allocate(free, Request(4, rng(seed)), TREE) for seed in range(2000)]
    assert picked[0] == make("random").allocate(free, Request(4, rng(0)), TREE)
    counts = np.bincount(np.array(picked).ravel(), minlength=16)
    # Each host is picked with probability 1/4: 500 of 2000 times, with a standard deviation of sqrt(2000/4*3/4) = 19.4.
    assert np.abs(counts - 500).max() < 5 * 19.4


@pytest.mark.parametrize("curve", ["snake", "hilbert"])
@pytest.mark.parametrize("sides", [(4, 4), (4, 4, 4), (4, 8, 4), (8, 4, 4, 4), (16, 16, 8)])
def test_curves_visit_every_host_and_go_from_neighbour_to_neighbour(curve: Any, sides: tuple[int, ...]) -> None:
    fabric = torus(*sides)
    order = host_order(fabric, curve)
    assert sorted(order) == list(range(fabric.hosts))
    places = coordinates(fabric, sides)[order]
    assert (np.abs(np.diff(places, axis=0)).sum(axis=1) == 1).all()


def test_the_snake_is_that_of_a_drawing() -> None:
    assert host_order(torus(3, 3), "snake") == [0, 1, 2, 5, 4, 3, 6, 7, 8]
    assert host_order(torus(3, 2, 2), "snake") == [0, 1, 2, 5, 4, 3, 9, 10, 11, 8, 7, 6]
    assert host_order(torus(3, 3), "number") == list(range(9))
    assert sorted(host_order(torus(3, 5, hosts=2), "hilbert")) == list(range(30))


def boxes(sides: tuple[int, ...], shape: tuple[int, ...], *, ring: bool) -> Iterator[tuple[int, frozenset[int]]]:
    """Every place of a box, the first by number first, written out coordinate by coordinate."""
    strides = [prod(sides[:at]) for at in range(len(sides))]
    for start in product(*map(range, reversed(sides))):
        corner = start[::-1]
        cells = [tuple(c + o for c, o in zip(corner, offset, strict=True)) for offset in product(*map(range, shape))]
        if ring or all(c < side for cell in cells for c, side in zip(cell, sides, strict=True)):
            numbers = (sum(c % s * t for c, s, t in zip(cell, sides, strides, strict=True)) for cell in cells)
            yield sum(c * t for c, t in zip(corner, strides, strict=True)), frozenset(numbers)


@given(data=st.data())
@settings(max_examples=150)
def test_a_box_is_found_exactly_if_one_is_free(data: st.DataObject) -> None:
    sides = tuple(data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)))
    shape = tuple(data.draw(st.integers(1, side)) for side in sides)
    mesh, rotate = data.draw(st.booleans()), data.draw(st.booleans())
    fabric = torus(*sides, mesh=mesh)
    busy = data.draw(st.sets(st.integers(0, fabric.hosts - 1), max_size=max(1, fabric.hosts // 4)))
    free = [host for host in range(fabric.hosts) if host not in busy]
    fit = data.draw(st.sampled_from(["first", "best"]))
    count = data.draw(st.integers(1, prod(shape)))
    found = take(make("box", shape=list(shape), rotate=rotate, fit=fit), free, count, fabric)
    turned = list(permutations(shape)) if rotate else [shape]
    turned = [one for one in dict.fromkeys(turned) if all(a <= b for a, b in zip(one, sides, strict=True))]
    places = [list(boxes(sides, one, ring=not mesh)) for one in turned]
    whole = [[cells for _, cells in one if cells <= set(free)] for one in places]
    if found is None:
        assert not any(whole)
        return
    chosen = next(one for one in whole if one)
    assert any(set(found) <= cells for cells in chosen)
    if fit == "first" and count == prod(shape):
        assert set(found) == chosen[0]
    if fit == "best" and count == prod(shape):
        assert touching(fabric, set(found), free) == min(touching(fabric, set(cells), free) for cells in chosen)


def touching(fabric: Fabric, box: set[int], free: list[int]) -> int:
    """Free hosts beside a box, counted link by link; a host at two of its faces counts twice, as on two sides."""
    ends = zip(fabric.links["from_switch"].tolist(), fabric.links["to_switch"].tolist(), strict=True)
    joined = {(a, b) for a, b in ends if a in box and b in set(free) - box}
    return len({b for _, b in joined})


@pytest.mark.parametrize("shape", ["cube", "prism", "plane", [3, 2, 1]])
@given(busy=st.sets(st.integers(0, 23), max_size=8), count=st.integers(1, 6))
@settings(max_examples=30)
def test_boxes_are_in_one_piece(shape: Any, busy: set[int], count: int) -> None:
    free = [host for host in range(24) if host not in busy]
    found = take(make("box", shape=shape), free, count, TORUS)
    assert found is None or len(pieces(TORUS, found)) == 1


def test_named_shapes_are_those_of_the_torus_papers() -> None:
    sides = (16, 16, 8)
    assert named_shape("cube", 216, sides) == (6, 6, 6)
    assert named_shape("prism", 216, sides) == (9, 8, 3)
    assert named_shape("cube", 125, sides) == (5, 5, 5)
    assert named_shape("cube", 100, sides) == (5, 5, 4)
    assert named_shape("cube", 64, sides) == (4, 4, 4)
    assert named_shape("prism", 64, sides) == (8, 4, 2)
    assert named_shape("plane", 64, sides) == (8, 8, 1)
    assert named_shape("plane", 100, sides) == (10, 10, 1)
    assert named_shape("plane", 300, sides) is None
    assert named_shape("cube", 2048, sides) == sides


def test_units_are_interleaved_among_the_jobs_of_a_placement() -> None:
    requests = [Request(4, rng()), Request(3, rng()), Request(6, rng())]
    found = make("units", size=2).allocate_together(range(16), requests, TREE)
    assert found == [[0, 1, 6, 7], [2, 3, 8], [4, 5, 10, 11, 12, 13]]


@given(size=st.sampled_from([1, 2, 4, 8]), count=st.integers(1, 16), seed=st.integers(0, 99))
def test_random_units_are_whole(size: int, count: int, seed: int) -> None:
    found = make("units", size=size, order="random").allocate(range(16), Request(count, rng(seed)), TREE) or []
    starts = found[::size]
    assert found == [start + at for start in starts for at in range(size)][:count]
    assert all(start % size == 0 for start in starts)


def test_domains_are_leaves_subtrees_and_groups() -> None:
    free = [1, 2, 3, 4, 5, 6, 7, 8, 10, 11]
    assert take(make("domain", of="leaf", split=False), free, 2, TREE) == [2, 3]
    assert take(make("domain", of="leaf", split=False), free, 3, TREE) is None
    assert take(make("domain", of="subtree", split=False), free, 3, TREE) == [1, 2, 3]
    assert take(make("domain", of="subtree", split=False), free, 4, TREE) == [4, 5, 6, 7]
    assert take(make("domain", of="subtree"), free, 5, TREE) == [4, 5, 6, 7, 1]
    groups = make("domain", of="group", split=False)
    assert take(groups, list(range(3, 24)), 4, DRAGONFLY) == [6, 7, 8, 9]
    assert take(groups, list(range(3, 24)), 3, DRAGONFLY) == [3, 4, 5]
    assert take(make("domain", of="group", fit="first"), list(range(1, 24)), 5, DRAGONFLY) == [1, 2, 3, 4, 5]


def as_pattern(free: list[int], count: int, fabric: Fabric, kind: str, unit: int | None, **parameters: Any) -> Any:
    request = Request(count, rng(), lambda: Communication(kind, unit))
    return make("pattern", **parameters).allocate(free, request, fabric)


@given(busy=st.sets(st.integers(0, 23), max_size=16), count=st.integers(2, 8), wait=st.booleans())
def test_many_to_many_jobs_get_a_box_or_wait_if_they_may(busy: set[int], count: int, wait: bool) -> None:
    free = [host for host in range(24) if host not in busy]
    found = as_pattern(free, count, TORUS, "many-to-many", None, wait=wait)
    box = take(make("box", fit="best"), free, count, TORUS)
    if box is not None or wait:
        assert found == box
    else:
        assert (found is None) == (count > len(free))


def test_other_jobs_get_whole_units_from_the_smallest_holes() -> None:
    free = [0, 1, 2, 3, 4, 5, 8, 10, 11, 13, 14, 15]
    assert as_pattern(free, 4, TREE, "hybrid", 2) == [10, 11, 13, 14]
    assert as_pattern(free, 6, TREE, "nearest neighbour", 3) == [13, 14, 15, 0, 1, 2]
    assert as_pattern(free, 12, TREE, "hybrid", 4) is not None
    assert as_pattern(free, 13, TREE, "hybrid", 4) is None
    assert as_pattern(free, 3, TREE, "unclear", None) == [8, 10, 11]


def test_compact_places_on_trees_and_dragonflies_are_the_smallest_with_room() -> None:
    free = list(range(1, 16))
    assert as_pattern(free, 2, TREE, "many-to-many", None) == [2, 3]
    assert as_pattern(free, 3, TREE, "many-to-many", None) == [1, 2, 3]
    assert as_pattern(free, 4, TREE, "many-to-many", None) == [4, 5, 6, 7]
    assert as_pattern(list(range(3, 24)), 4, DRAGONFLY, "many-to-many", None) == [6, 7, 8, 9]


def test_a_scenarios_jobs_are_placed_by_what_they_send() -> None:
    jobs = [
        {"name": "dense", "ranks": 8, "workload": {"name": "all_to_all", "compute": "1 us"}},
        {"name": "pairs", "ranks": 8, "workload": {"name": "flood_pairs", "compute": "1 us"}},
    ]
    table = Scenario(fabric={"topology": "torus", "sides": [4, 4, 2]}, placement="pattern", jobs=jobs)
    dense, pairs = table.resolve().jobs
    assert len(pieces(torus(4, 4, 2), dense.hosts)) == 1
    assert sorted(dense.hosts) == [0, 1, 4, 5, 16, 17, 20, 21]
    assert not set(dense.hosts) & set(pairs.hosts)


def coming_and_going(*jobs: dict[str, Any], **more: Any) -> Scenario:
    workload = {"name": "all_to_all", "compute": "1 us"}
    return Scenario(
        fabric={"topology": "fat_tree", "hosts": 16, "levels": 2},
        jobs=[{"name": f"job-{number}", "workload": workload, **job} for number, job in enumerate(jobs)],
        **more,
    )


def test_a_job_that_arrives_later_gets_the_hosts_of_one_that_has_departed() -> None:
    early: dict[str, Any] = {"ranks": 10, "stop": "20 ms"}
    late: dict[str, Any] = {"ranks": 10, "start": "20 ms"}
    units = {"name": "units", "size": 2}
    for strategy in ("linear", "random", "packed", units, "fragmented"):
        hosts = [set(job.hosts) for job in coming_and_going(early, late, placement=strategy).resolve().jobs]
        assert len(hosts[0] & hosts[1]) >= 4, strategy
        whole: dict[str, Any] = {"ranks": 6}
        for order in permutations([whole, early, late]):
            jobs = coming_and_going(*order, placement=strategy).resolve().jobs
            (stays,) = (job for job in jobs if len(job.hosts) == 6)
            assert all(job is stays or not set(stays.hosts) & set(job.hosts) for job in jobs), strategy
    listed = {"name": "list", "hosts": [5, 3]}
    first = {"ranks": 2, "stop": "1 ms", "placement": listed}
    second = {"ranks": 2, "start": "1 ms", "placement": {"name": "list", "hosts": [3, 5]}}
    assert [job.hosts for job in coming_and_going(first, second).resolve().jobs] == [(5, 3), (3, 5)]
    simulation = Simulation(coming_and_going(first, second))
    simulation.run_for("1 ms")
    assert [sum(done) > 0 for done in simulation.progress().values()] == [True, False]
    simulation.run_for("1 ms")
    assert all(sum(done) for done in simulation.progress().values())


@pytest.mark.parametrize("stop", ["21 ms", 300, None])
def test_hosts_of_a_job_that_may_still_be_there_are_not_given_away(stop: Any) -> None:
    early, late = {"ranks": 10, "stop": stop}, {"ranks": 10, "start": "20 ms"}
    with pytest.raises(ScenarioError, match="the jobs need 20 hosts"):
        coming_and_going(early, late).resolve()
    listed = {"name": "list", "hosts": [5, 3]}
    with pytest.raises(ScenarioError, match=r"host 3 is in jobs\[0\].placement.hosts already"):
        coming_and_going(
            {**early, "ranks": 2, "placement": listed},
            {**late, "ranks": 2, "placement": {"name": "list", "hosts": [3, 4]}},
        ).resolve()


WRONG: list[tuple[Fabric, str, dict[str, Any], int, str, str]] = [
    (TORUS, "box", {"shape": [5, 1, 1]}, 4, "shape", "within 4 x 3 x 2"),
    (TORUS, "box", {"shape": [2, 2]}, 4, "shape", "within 4 x 3 x 2"),
    (TORUS, "box", {"shape": [2, 2, 1]}, 5, "shape", "at least 5 hosts"),
    (TORUS, "box", {"shape": "plane"}, 13, "shape", "boxes within 4 x 3 x 2"),
    (TREE, "box", {}, 4, "name", "torus"),
    (TORUS, "units", {"size": 5}, 4, "size", "1, 2, 3, 4, 6, 8, 12, 24"),
    (TREE, "units", {"size": 2, "curve": "snake"}, 4, "curve", "number"),
    (TREE, "linear", {"curve": "hilbert"}, 4, "curve", "number"),
    (TREE, "domain", {"of": "group"}, 4, "of", "leaf"),
    (TREE, "domain", {"of": "subtree", "level": 9}, 4, "level", "1 to 3"),
    (TORUS, "domain", {"of": "subtree"}, 4, "of", "leaf"),
]


@pytest.mark.parametrize(("fabric", "name", "parameters", "hosts", "key", "allowed"), WRONG)
def test_what_does_not_fit_the_fabric_is_named(
    fabric: Fabric, name: str, parameters: dict[str, Any], hosts: int, key: str, allowed: str
) -> None:
    with pytest.raises(Problems) as caught:
        make(name, **parameters).check(fabric, [hosts])
    (problem,) = caught.value.problems
    assert problem.key == key
    assert allowed in (problem.allowed or "")
    assert problem.value == parameters.get(key, name)


def scenario(placement: Any, *ranks: int) -> Scenario:
    jobs = [
        {"name": f"j{at}", "ranks": count, "workload": {"name": "all_to_all", "compute": "1 us"}}
        for at, count in enumerate(ranks)
    ]
    return Scenario(fabric={"topology": "torus", "sides": [4, 3, 2]}, placement=placement, jobs=jobs)


def test_scenarios_name_strategies_with_their_parameters() -> None:
    found = scenario({"name": "box", "shape": [2, 2, 2]}, 8, 8).resolve()
    assert [job.hosts for job in found.jobs] == [(0, 1, 4, 5, 12, 13, 16, 17), (2, 3, 6, 7, 14, 15, 18, 19)]
    found = scenario({"name": "units", "size": 2}, 4, 2, 4).resolve()
    assert [job.hosts for job in found.jobs] == [(0, 1, 6, 7), (2, 3), (4, 5, 8, 9)]


@pytest.mark.parametrize(
    ("placement", "words"),
    [
        ({"name": "box", "shpe": [2, 2, 2]}, "placement.shpe = [2, 2, 2]: unknown key"),
        ({"name": "box", "shape": "cub"}, "placement.shape"),
        ({"name": "units"}, "placement.size: missing"),
        ({"name": "units", "size": 7}, "placement.size = 7: does not divide the fabric's 24 hosts; allowed: 1, 2"),
        ({"name": "box", "shape": [5, 1, 1]}, "placement.shape = [5, 1, 1]: does not fit the grid; allowed: within"),
        ({"name": "domian"}, 'did you mean "domain"?'),
        (
            {"name": "linear", "size": 2},
            "allowed: name, seed, ranks_per_host, mapping, hosts, among, shared, curve, fit",
        ),
    ],
)
def test_wrong_parameters_are_refused_with_key_value_and_what_is_allowed(placement: Any, words: str) -> None:
    with pytest.raises(ScenarioError, match=re.escape(words)):
        scenario(placement, 4).resolve()


def test_a_job_that_no_free_box_holds_is_named_with_what_it_wanted() -> None:
    with pytest.raises(ScenarioError, match="'j2': 4 ranks need 4 hosts, 1 a host, and 8 are free, but not as a free"):
        scenario({"name": "box", "shape": [3, 3, 1]}, 8, 8, 4).resolve()


def test_every_strategy_has_a_line_about_it() -> None:
    assert set(entries()) == {*PLACEMENTS, LIST}
    assert all(entry.summary for entry in entries().values())
