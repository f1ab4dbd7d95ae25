"""Placement strategies: laws that hold for each, and what is particular to each."""

from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlane.placement import LIST, STRATEGIES, hosts_needed, place, summaries
from fairlane.seeds import Purpose, stream


@dataclass
class Leaves:
    """A fabric of which only the leaf switches are known."""

    leaf_of: list[int]

    @property
    def hosts(self) -> int:
        return len(self.leaf_of)


def rng(seed: int = 1) -> np.random.Generator:
    return stream(seed, Purpose.PLACEMENT, 0)


def leaves_used(fabric: Leaves, hosts: list[int]) -> int:
    return len({fabric.leaf_of[host] for host in hosts})


free_hosts = st.lists(st.integers(0, 15), min_size=1, unique=True).map(sorted)
fabric = Leaves([host // 4 for host in range(16)])


@pytest.mark.parametrize("name", STRATEGIES)
@given(free=free_hosts, data=st.data())
def test_every_strategy_takes_free_hosts_and_fills_them_in_order(
    name: str, free: list[int], data: st.DataObject
) -> None:
    per_host = data.draw(st.integers(1, 3))
    ranks = data.draw(st.integers(1, len(free) * per_host))
    hosts = place(free, ranks, per_host, fabric, rng(), strategy=STRATEGIES[name])
    groups = [hosts[start : start + per_host] for start in range(0, ranks, per_host)]
    assert all(len(set(group)) == 1 for group in groups)
    assert len({group[0] for group in groups}) == len(groups) == hosts_needed(ranks, per_host)
    assert set(hosts) <= set(free)


@given(free=free_hosts, data=st.data())
def test_packed_uses_as_few_leaves_as_possible(free: list[int], data: st.DataObject) -> None:
    count = data.draw(st.integers(1, len(free)))
    room = {leaf: sum(fabric.leaf_of[host] == leaf for host in free) for leaf in range(4)}
    fewest = next(
        size
        for size in range(1, 5)
        if any(sum(room[leaf] for leaf in chosen) >= count for chosen in combinations(room, size))
    )
    assert leaves_used(fabric, place(free, count, 1, fabric, rng(), strategy=STRATEGIES["packed"])) == fewest


@given(free=free_hosts, data=st.data())
def test_spread_uses_as_many_leaves_as_possible(free: list[int], data: st.DataObject) -> None:
    count = data.draw(st.integers(1, len(free)))
    most = min(count, leaves_used(fabric, free))
    assert leaves_used(fabric, place(free, count, 1, fabric, rng(), strategy=STRATEGIES["spread"])) == most


def test_linear_takes_the_lowest_and_a_list_its_own_order() -> None:
    assert place([9, 3, 5, 4], 3, 1, fabric, rng(), strategy=STRATEGIES["linear"]) == [3, 4, 5]
    assert place([9, 3, 5, 4], 4, 2, fabric, rng(), strategy=None) == [9, 9, 3, 3]


@given(free=free_hosts, data=st.data())
def test_fragments_keep_the_order_of_hosts(free: list[int], data: st.DataObject) -> None:
    count = data.draw(st.integers(1, len(free)))
    hosts = place(free, count, 1, fabric, rng(data.draw(st.integers(0, 99))), strategy=STRATEGIES["fragmented"])
    assert hosts == sorted(hosts)


def test_fragments_are_longer_than_single_hosts_and_no_longer_than_leaves_in_a_row() -> None:
    large = Leaves([host // 16 for host in range(4096)])
    hosts = np.array(place(list(range(4096)), 512, 1, large, rng(), strategy=STRATEGIES["fragmented"]))
    runs = 1 + int((np.diff(hosts) > 1).sum())
    # Runs have 1 to 16 hosts, 8.5 on average; an eighth of them is taken, and some of those are neighbours.
    assert 512 / 16 < runs < 1.2 * 512 / 8.5
    taken_at_random = 512 * (1 - 512 / 4096)
    assert runs < taken_at_random / 4


def test_random_depends_on_the_seed_alone_and_is_fair() -> None:
    free = list(range(16))
    picked = [place(free, 4, 1, fabric, rng(seed), strategy=STRATEGIES["random"]) for seed in range(2000)]
    assert picked[0] == place(free, 4, 1, fabric, rng(0), strategy=STRATEGIES["random"])
    counts = np.bincount(np.array(picked).ravel(), minlength=16)
    # Each host is picked with probability 1/4: 500 of 2000 times, with a standard deviation of sqrt(2000/4*3/4) = 19.4.
    assert np.abs(counts - 500).max() < 5 * 19.4


def test_too_few_hosts_are_told_with_the_numbers() -> None:
    with pytest.raises(ValueError, match="9 ranks need 5 hosts, 2 a host, and 4 are free"):
        place([0, 1, 2, 3], 9, 2, fabric, rng())


def test_every_strategy_has_a_line_about_it() -> None:
    assert set(summaries()) == {*STRATEGIES, LIST}
    assert all(summaries().values())
