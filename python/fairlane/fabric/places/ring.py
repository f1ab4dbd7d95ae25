"""Fabrics without levels or plan: switches around a circle, so that joined ones stand near each other."""

import numpy as np

from fairlane.fabric.places import base
from fairlane.fabric.places.base import Floats, Pair
from fairlane.fabric.view import Fabric

MOST_BY_SPECTRUM = 1500


def places(fabric: Fabric) -> tuple[Floats, Floats, Floats]:
    """All switches, the way from each to its hosts, and the room that these have (see ``places.places_of``)."""
    found = around(fabric)
    room = 2 * np.pi * 1.15 / max(fabric.switches, 1)
    return found, 0.15 * found, np.array([0.9 * room, 0.04])


def around(fabric: Fabric) -> Floats:
    """All switches around a circle."""
    found = np.empty((fabric.switches, 2))
    found[_order(fabric.switches, list(base.cables(fabric)))] = base.circle(fabric.switches)
    return found


def _order(switches: int, pairs: list[Pair]) -> list[int]:
    """The switches in an order in which joined ones are near each other.

    By angle in the plane of the Laplacian's second and third eigenvectors, which shows a ring as a ring; in large
    fabrics by reverse Cuthill-McKee. By number if that is nearer, as where all eigenvectors are equally good.
    """
    natural = list(range(switches))
    return min(_by_neighbours(switches, pairs), natural, key=lambda order: _apart(order, pairs))


def _apart(order: list[int], pairs: list[Pair]) -> int:
    """Steps around the circle between joined switches, summed."""
    place = {switch: number for number, switch in enumerate(order)}
    steps = (abs(place[a] - place[b]) for a, b in pairs)
    return sum(min(step, len(order) - step) for step in steps)


def _by_neighbours(switches: int, pairs: list[Pair]) -> list[int]:
    if not pairs or switches < 4:
        return list(range(switches))
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    a, b = np.array(pairs).T
    graph = coo_array((np.ones(len(a)), (a, b)), shape=(switches, switches)).tocsr()
    graph = graph + graph.T
    if switches > MOST_BY_SPECTRUM:
        found: list[int] = reverse_cuthill_mckee(graph, symmetric_mode=True).tolist()
        return found
    joined = graph.toarray()
    _, vectors = np.linalg.eigh(np.diag(joined.sum(axis=0)) - joined)
    order: list[int] = np.argsort(np.arctan2(vectors[:, 2], vectors[:, 1]), kind="stable").tolist()
    return order
