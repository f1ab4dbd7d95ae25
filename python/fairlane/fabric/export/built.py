"""The wiring of a fabric that was built from a topology: the same hosts, switches, ports and cables, by name."""

from fairlane.fabric.view import Fabric
from fairlane.fabric.wiring import Cable, Wiring


def wiring_of(fabric: Fabric) -> Wiring:
    """The cables of a fabric, each once, in the order of its links.

    On fabrics of groups cables keep the classes of their links; the levels of other fabrics are inferred again.
    """
    keys = ("from_name", "from_port", "to_name", "to_port", "bandwidth", "latency", "class", "role")
    groups = fabric.plan["kind"] == "groups"
    seen: set[tuple[str, int]] = set()
    cables = []
    for begin, port, end, far, rate, delay, kind, role in zip(
        *(fabric.links[key].tolist() for key in keys), strict=True
    ):
        if (begin, port) in seen:
            continue
        seen.add((end, far))
        name = fabric.classes[kind] if groups and role != "host" else None
        cables.append(Cable((begin, end), (port, far), rate, delay, link_class=name))
    shape = (fabric.plan["switches"], fabric.plan["row"]) if groups else None
    return Wiring(tuple(fabric.host_names), tuple(cables), groups=shape)
