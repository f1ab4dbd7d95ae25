"""Places of hosts and switches of a fabric in the plane, by its plan: for pages that draw every link.

The places are those of the pictures of ``views.drawing.fabric``, for fabrics of any size: rings of groups, grids of
grids, rows of levels, circles. Hosts stand around their switches.
"""

from dataclasses import dataclass

import numpy as np

from fairlane.model.fabric.places import shapes
from fairlane.model.fabric.places.shapes import Floats
from fairlane.model.fabric.view import Fabric

TREE_SHAPE = 1.8  # width over height of a tree


@dataclass(frozen=True)
class Places:
    """Places of hosts and switches; x to the right and y upwards, in a unit of their own."""

    kind: str
    """The plan: ``groups``, ``grid``, ``tree`` or ``ring``."""
    switches: Floats
    """Shape (switches, 2)."""
    hosts: Floats
    """Shape (hosts, 2)."""


def places_of(fabric: Fabric) -> Places:
    """Places in which links between neighbours are short, by the fabric's plan."""
    row = None
    match fabric.plan["kind"]:
        case "groups":
            shape = shapes.Shape.of(fabric)
            kind, (switches, outward, room) = "groups", shapes.places_of_groups(shape)
        case "grid":
            kind, (switches, outward, room) = "grid", shapes.places_of_grid(fabric)
        case _ if len(set(fabric.levels)) > 1 or fabric.switches == 1:
            kind, (switches, outward, room) = "tree", shapes.places_of_levels(fabric, TREE_SHAPE)
            row = shapes.row_of_hosts(fabric, TREE_SHAPE)
        case _:
            kind, (switches, outward, room) = "ring", shapes.places_of_ring(fabric)
    return Places(kind, switches, _hosts(fabric, switches, outward, room, row))


def _hosts(fabric: Fabric, switches: Floats, outward: Floats, room: Floats, row: Floats | None) -> Floats:
    """Each host in a row across the direction in which its switch has room, or in a ``row`` of all.

    A host of several switches stands at the first of them, and hosts without a switch in a row of their own below.

    Args:
        fabric: The fabric.
        switches: Places of its switches, shape (switches, 2).
        outward: From each switch to the middle of its row of hosts, shape (switches, 2).
        room: Greatest length of the row and of a step in it, shape (2,).
        row: Places of hosts in a row of all, NaN for those without a switch.
    """
    spots = np.full((fabric.hosts, 2), np.nan) if row is None else row
    for switch, hosts in shapes.hosts_at(fabric).items():
        here = [host for host in sorted(hosts) if np.isnan(spots[host, 0])]
        out = outward[switch]
        along = np.array([out[1], -out[0]]) / np.hypot(*out)
        along *= -1 if along[0] < 0 else 1
        step = min(float(room[1]), float(room[0]) / max(len(here), 1))
        offsets = (np.arange(len(here)) - (len(here) - 1) / 2) * step
        spots[here] = switches[switch] + out + offsets[:, None] * along
    lonely = np.flatnonzero(np.isnan(spots[:, 0]))
    low = np.fmin.reduce(np.concatenate([switches, spots]), axis=0, initial=0.0)
    spots[lonely] = np.column_stack([low[0] + np.arange(len(lonely)) * room[1], np.full(len(lonely), low[1] - 0.5)])
    return spots
