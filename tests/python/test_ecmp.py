"""ECMP: packets take the paths that the hash on the model page gives, on every kind of fabric."""

from collections import defaultdict
from typing import Any

import pytest

from oracle import core
from oracle.case import Case, Datagram, Job, Op
from oracle.ecmp import Ecmp
from oracle.fabrics import built

FABRICS = [
    ("fat_tree", {"hosts": 54, "levels": 3, "radix": 6}),
    ("dragonfly", {"groups": 5, "switches_per_group": 4, "hosts_per_switch": 2, "global_links": 2}),
    ("torus", {"sides": [4, 3]}),
    ("hyperx", {"sides": [3, 4], "hosts_per_switch": 2}),
    ("slim_fly", {"q": 4, "hosts_per_switch": 1}),
    ("random_regular", {"switches": 16, "degree": 5, "hosts_per_switch": 2}),
]


@pytest.mark.parametrize(("topology", "params"), FABRICS, ids=[name for name, _ in FABRICS])
@pytest.mark.parametrize("seed", [0, 7])
def test_packets_take_the_paths_of_the_hash(topology: str, params: dict[str, Any], seed: int) -> None:
    fabric = built(topology, params, seed=seed)
    hosts = 1 + max(source for source, _ in fabric.routes)
    # Two jobs on all hosts, every rank with a packet for the hosts 1, 5, 11 and half of all further on.
    steps = [1, 5, 11, hosts // 2]
    scripts: list[list[Op]] = [[Datagram((rank + step) % hosts, 64) for step in steps] for rank in range(hosts)]
    case = Case(fabric, [Job(list(range(hosts)), scripts) for _ in range(2)])
    paths: dict[tuple[int, int], list[int]] = defaultdict(list)
    for departure in sorted(core.simulate(case).departures):
        paths[departure.job, departure.message].append(departure.link)
    ecmp, ends = Ecmp(fabric.links, seed), [(link.from_host, link.to_host) for link in fabric.links]
    assert len(paths) == 2 * hosts * len(steps)
    for (job, _), path in paths.items():
        source, to = ends[path[0]][0], ends[path[-1]][1]
        assert source is not None
        assert to is not None
        assert path == ecmp.path(source, to, job, 0)
    assert len({tuple(path) for path in paths.values()}) > hosts, "paths differ"
