"""Pictures of fabrics whose hosts have several adapters: each host once, with all of its adapters."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from matplotlib.collections import LineCollection, PathCollection

from fairlane import Scenario
from fairlane.model.fabric.places import places_of
from fairlane.model.fabric.view import Fabric

TREE = {"topology": "fat_tree", "levels": 2, "leaf_down": 8, "leaf_up": 4, "bandwidth": "100 Gb/s"}
DRAGONFLY = {"topology": "dragonfly", "groups": 5, "switches_per_group": 4, "hosts_per_switch": 2, "global_links": 1}


def built(spec: Mapping[str, Any]) -> Fabric:
    job = {"ranks": 2, "workload": {"name": "ring", "compute": "1 us"}}
    return Fabric.build(Scenario.read({"fabric": spec, "duration": "1 us", "jobs": [job]}).fabric.spec)


@pytest.mark.parametrize("wiring", ["planes", "shared", "rail_optimised"])
@pytest.mark.parametrize("rails", [2, 4, 8])
def test_a_tree_has_a_dot_for_each_host_and_a_line_for_each_adapter(rails: int, wiring: str) -> None:
    spec = {**TREE, "hosts": 16 if wiring == "planes" else 16 * rails}
    axes = built({**spec, "rails": {"count": rails, "wiring": wiring}}).plot()
    dots = [np.shape(found.get_offsets())[0] for found in axes.collections if isinstance(found, PathCollection)]
    assert dots[0] == 16
    lines = [len(found.get_segments()) for found in axes.collections if isinstance(found, LineCollection)]
    assert lines == [16] * rails
    assert f"16 hosts with {rails} adapters each" in axes.figure.texts[0].get_text() + axes.get_title(loc="left")


@pytest.mark.parametrize(
    "spec",
    [{**TREE, "hosts": 16}, DRAGONFLY, {"topology": "torus", "sides": [4, 3]}, {"topology": "torus", "sides": [6]}],
    ids=["tree", "dragonfly", "torus", "ring"],
)
def test_all_planes_have_places_in_a_page(spec: Mapping[str, Any]) -> None:
    """A page of a torus with rails stopped with an IndexError: only the first plane had places."""
    one, two = built(spec), built({**spec, "rails": 2})
    places = places_of(two)
    assert places.switches.shape == (2 * one.switches, 2)
    assert places.hosts.shape == (one.hosts, 2)
    both = np.concatenate([places.switches, places.hosts])
    assert np.isfinite(both).all()
    assert len(np.unique(both.round(6), axis=0)) == len(both), "no two at one place"


def test_a_dragonfly_with_planes_is_drawn_by_its_first_plane() -> None:
    one, two = built(DRAGONFLY).plot(), built({**DRAGONFLY, "rails": 2}).plot()
    dots, same = (
        [np.shape(found.get_offsets())[0] for found in axes.collections if isinstance(found, PathCollection)]
        for axes in (one, two)
    )
    assert dots == same
    assert "Drawn is one of 2 planes" in " ".join(text.get_text() for text in two.figure.texts).replace("\n", " ")
