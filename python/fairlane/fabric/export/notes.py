"""What a writer makes: the text, and what it does not say of the fabric."""

from dataclasses import dataclass

from fairlane.fabric.wiring import Wiring, by_rails
from fairlane.wording import plural, some

_SHOWN = 3  # hosts that a note names


@dataclass(frozen=True)
class Written:
    """A file's text, with what the format has no place for."""

    text: str
    notes: tuple[str, ...] = ()
    """One sentence for each property of the fabric that is left out."""


def left_out(wiring: Wiring, *, bandwidths: bool = True, latencies: bool = True, tables: bool = True) -> list[str]:
    """Notes on what a format leaves out: with ``bandwidths`` cables' bandwidths, and so on."""
    found = []
    if bandwidths and any(cable.bandwidth is not None for cable in wiring.cables):
        found.append("bandwidths are left out: the format has none; fabric.bandwidth sets that of all cables")
    if latencies and any(cable.latency is not None for cable in wiring.cables):
        found.append("latencies are left out: the format has none; fabric.latency sets that of all cables")
    if tables and wiring.tables:
        found.append("forwarding tables are left out: the format has none")
    if wiring.groups:
        words = "groups and classes of links are left out: routings of fabrics of groups need the saved file"
        found.append(words)
    return found


def renumbered(wiring: Wiring) -> list[str]:
    """A note on hosts whose rails are not in the order of their ports, which is that of formats without an order."""
    hosts = set(wiring.hosts)
    pairs = zip(wiring.cables, by_rails(wiring.cables, wiring.hosts), strict=True)
    changed = dict.fromkeys(end for one, other in pairs if one is not other for end in one.ends if end in hosts)
    if not changed:
        return []
    words = (
        f"{plural(len(changed), 'host has', 'hosts have')} other rails when the file is read again: numbered by port"
    )
    return [f"{words}: {some(changed, _SHOWN)}"]
