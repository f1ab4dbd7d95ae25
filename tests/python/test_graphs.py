"""Slim Fly and random regular graphs: what their routings accept and how long paths are, against closed forms."""

from typing import Any

import numpy as np
import pytest
from scipy.sparse import coo_array
from scipy.sparse.csgraph import shortest_path

from fairlane import Scenario
from fairlane.model.fabric.view import Fabric
from fairlane.study.shipped.saturation import LoadSweep

Q, HOSTS = 5, 4
"""The Slim Fly on the Hoffman-Singleton graph: 50 switches of 4 hosts, with 7 cables to others each."""


def accepted(routing: str, **job: Any) -> float:
    """The share of a full load that the Slim Fly accepts."""
    pattern = job.pop("pattern", "uniform")
    load = {"name": "load", "ranks": 2 * Q * Q * HOSTS, "workload": {"name": "open_loop", "load": 1.0}, **job}
    scenario = Scenario(
        fabric={"topology": "slim_fly", "q": Q, "routing": routing}, jobs=[load], observe={"counters": False}
    )
    found = LoadSweep(scenario, loads=[1.0], replicates=2, duration="250 us", pattern=pattern).run()
    value: float = found.points["accepted"][0]
    return value


def test_uniform_traffic_on_minimal_paths_is_limited_by_the_links() -> None:
    # Between any two switches there is one shortest path. A link carries those of the pair that it joins and of 6 + 6
    # pairs at distance 2: 13 x 4 x 4 of the 200 x 199 pairs of hosts, so a host's load of 1 is 208 / 199 on each link.
    found = accepted("minimal")
    bound = 199 / 208
    # Random arrivals leave a NIC idle at times, and with the buffers for 15 packets each port does as well: 5%.
    assert 0.95 * bound < found <= bound * 1.01


def test_valiants_routing_accepts_half_of_uniform_traffic() -> None:
    # A shortest path to a random switch and one from there: 2 x (7 x 1 + 42 x 2) / 49 links, for the 196 of 199
    # destinations at other switches; 350 links of 200 hosts share them alike, for each looks the same.
    bound = 350 / 200 / (2 * 91 / 49 * 196 / 199)
    assert bound == pytest.approx(0.478, abs=0.001)
    assert 0.95 * bound < accepted("valiant") <= bound * 1.01


def neighbours() -> list[int]:
    """Hosts in such an order that complement traffic goes from each switch to one that it is joined with, and back.

    Of the switches (0, r, y) and (1, r, c) of a rack those with y = r r + c are joined.
    """
    pairs = [((2 * r) * Q + y, (2 * r + 1) * Q + (y - r * r) % Q) for r in range(Q) for y in range(Q)]
    first = [a * HOSTS + host for a, _ in pairs for host in range(HOSTS)]
    second = [b * HOSTS + host for _, b in pairs for host in range(HOSTS)]
    return first + second[::-1]


def test_all_hosts_of_a_switch_sending_to_a_neighbour_share_one_link_but_by_valiants_routing() -> None:
    worst = {"pattern": "complement", "placement": {"hosts": neighbours()}}
    # Minimal: one link carries what four hosts send.
    assert accepted("minimal", **worst) == pytest.approx(1 / 4, rel=0.01)
    # Valiant: a link carries the first halves of paths from its own switch to 7 intermediate switches, and from 6
    # neighbours to its far end, of 48 each; as many second halves. That of the pair itself carries a little less.
    bound = 1 / (2 * 13 / 48 * HOSTS)
    assert 0.95 * bound < accepted("valiant", **worst) <= bound * 1.01
    # UGAL uses both.
    assert accepted("ugal_l", **worst) > 0.95 * bound


def distances(fabric: Fabric) -> Any:
    """Links between switches, by two switches."""
    from_switch, to_switch = fabric.links["from_switch"], fabric.links["to_switch"]
    between = (from_switch >= 0) & (to_switch >= 0)
    ends = (from_switch[between], to_switch[between])
    graph = coo_array((np.ones(between.sum()), ends), shape=(fabric.switches, fabric.switches))
    return shortest_path(graph.tocsr(), unweighted=True)


def mean_between_hosts(fabric: Fabric) -> float:
    """Links between switches on a shortest path, the mean over all pairs of hosts."""
    at = fabric.links["to_switch"][fabric.links["from_host"] >= 0]
    return float(distances(fabric)[at][:, at].sum() / (len(at) * (len(at) - 1)))


def least_mean(switches: int, degree: int) -> float:
    """No graph has shorter paths on average (Cerf et al. 1974): as many switches at each distance as a tree has."""
    left, total, distance, here = switches - 1, 0, 1, degree
    while left > 0:
        found = min(left, here)
        left, total, distance, here = left - found, total + found * distance, distance + 1, here * (degree - 1)
    return total / (switches - 1)


@pytest.mark.parametrize(("switches", "degree"), [(60, 5), (98, 11), (200, 8), (300, 4)])
def test_paths_of_random_regular_graphs_are_nearly_as_short_as_can_be(switches: int, degree: int) -> None:
    """Jellyfish, figure 5: within a few per cent of the bound.

    How much above it: paths of up to i links have n_i = 1 + r + r (r - 1) + ... ends, each at any switch, so that a
    share of about exp(-n_i / N) of the switches is further away; the mean distance is the sum of these shares. Ends of
    one switch are at different switches, so paths are a little shorter: by 4% in the smallest of these graphs.
    """
    ends, here, expected = 1.0, float(degree), 1.0
    while np.exp(-ends / switches) > 1e-9:
        ends, here = ends + here, here * (degree - 1)
        expected += float(np.exp(-ends / switches))
    expected *= switches / (switches - 1)
    for seed in (1, 2):
        params = {"switches": switches, "degree": degree, "hosts_per_switch": 1, "seed": seed}
        found = distances(Fabric.build({"topology": "random_regular", "params": params, "routing": "minimal"}))
        mean = float(found.sum() / (switches * (switches - 1)))
        assert least_mean(switches, degree) <= mean
        assert mean == pytest.approx(expected, rel=0.05)


def test_jellyfish_has_more_hosts_and_shorter_paths_than_a_fat_tree_of_the_same_switches() -> None:
    """80 switches of 8 ports: a fat-tree of 128 hosts, or a random regular graph of 160 (Singla et al., NSDI 2012)."""
    tree = Fabric.build(
        {"topology": "fat_tree", "params": {"hosts": 128, "levels": 3, "radix": 8}, "routing": "d_mod_k"}
    )
    params = {"switches": 80, "degree": 6, "hosts_per_switch": 2, "seed": 3}
    random = Fabric.build({"topology": "random_regular", "params": params, "routing": "minimal"})
    assert (tree.switches, random.switches, tree.hosts, random.hosts) == (80, 80, 128, 160)
    # In the tree 3 others are at the same switch, 12 two links away and 112 four.
    assert mean_between_hosts(tree) == pytest.approx((12 * 2 + 112 * 4) / 127)
    assert mean_between_hosts(random) < 0.75 * mean_between_hosts(tree)
