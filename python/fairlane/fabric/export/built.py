"""The wiring of a fabric that was built from a topology: the same hosts, switches, ports and cables, by name."""

from fairlane.fabric.view import Fabric
from fairlane.fabric.wiring import Cable, Wiring, in_order


def wiring_of(fabric: Fabric) -> Wiring:
    """The cables of a fabric, each once, in an order that keeps the numbers of its switches and links.

    On fabrics of groups cables keep the classes of their links; the levels of other fabrics are inferred again.
    Where each rail has groups of its own, these are not kept: an imported fabric has them once. Nor are they, and the
    numbers, where no list of cables names the switches in order, as with leaves without hosts; a remark says so.
    """
    keys = ("from_name", "from_port", "to_name", "to_port", "bandwidth", "latency", "class", "role")
    plan, between = fabric.plan, fabric.links["role"] != "host"
    groups = plan["kind"] == "groups" and len(set(fabric.links["rail"][between].tolist())) <= 1
    known: dict[tuple[str, int], int] = {}
    places: dict[str, list[int]] = {name: [] for name in (*fabric.host_names, *fabric.switch_names)}
    cables: list[Cable] = []
    for begin, port, end, far, rate, delay, kind, role in zip(
        *(fabric.links[key].tolist() for key in keys), strict=True
    ):
        if (begin, port) not in known:
            known[end, far] = len(cables)
            name = fabric.classes[kind] if groups and role != "host" else None
            places[begin].append(len(cables))
            cables.append(Cable((begin, end), (port, far), rate, delay, link_class=name))
        else:
            places[begin].append(known[begin, port])
    order = in_order(places, fabric.switch_names)
    if order is None:
        words = "switches and links have other numbers when the file is read again, and there are no groups"
        remark = f"{words}: no list of cables has the switches of this fabric in order; ties of routings may differ"
        return Wiring(tuple(fabric.host_names), tuple(cables), remarks=(remark,))
    shape = (plan["switches"], plan["row"]) if groups else None
    return Wiring(tuple(fabric.host_names), tuple(cables[at] for at in order), groups=shape)
