"""Fabrics without levels or plan: switches around a circle, so that joined ones stand near each other."""

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import reverse_cuthill_mckee

from fairlane.fabric.view import Fabric
from fairlane.plot.fabric import parts
from fairlane.plot.legend import DOT, LINE
from fairlane.plot.panels import Drawn, Given
from fairlane.wording import plural

MOST_BY_SPECTRUM = 1500


def draw(fabric: Fabric, axes: Given = None) -> Drawn:
    """The picture."""
    cables, hosts = parts.cables(fabric), parts.hosts_of(fabric)
    order = _order(fabric.switches, list(cables))
    places = np.empty((fabric.switches, 2))
    places[order] = parts.circle(fabric.switches)
    panels = parts.blank(axes, 9, 9.4)
    [panel] = panels.axes
    alpha = float(np.clip(300 / max(len(cables), 1), 0.1, 0.8))
    widths = [0.8 + 0.5 * min(count - 1, 6) for count in cables.values()]
    parts.lines(panel, [(places[a], places[b]) for a, b in cables], parts.GLOBAL, widths, alpha, bend=0.2)
    parts.dots(panel, places, parts.SWITCH, float(np.clip(9000 / fabric.switches, 8, 260)))
    if fabric.switches <= 60:
        names = parts.cut(fabric.switch_names, 14)
        for switch, (x, y) in enumerate(places):
            name = names[switch]
            words = f"{name}\n{plural(hosts[switch], 'host')}" if hosts[switch] else name
            parts.words(panel, 1.13 * x, 1.13 * y, words, 8, "#555555")
    panel.set(xlim=(-1.28, 1.28), ylim=(-1.28, 1.28))
    parts.legend(panel, [("switch", parts.SWITCH, DOT), ("cable; wider: a trunk", parts.GLOBAL, LINE)])
    title = f"Fabric without levels: {plural(fabric.switches, 'switch', 'switches')}, {plural(fabric.hosts, 'host')}"
    return parts.headline(panels, title, f"{sum(cables.values())} cables between {len(cables)} pairs of switches.")


def _order(switches: int, pairs: list[parts.Pair]) -> list[int]:
    """The switches in an order in which joined ones are near each other.

    By angle in the plane of the Laplacian's second and third eigenvectors, which shows a ring as a ring; in large
    fabrics by reverse Cuthill-McKee.
    """
    if not pairs or switches < 4:
        return list(range(switches))
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
