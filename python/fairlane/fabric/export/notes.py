"""What a writer makes: the text, and what it does not say of the fabric."""

from dataclasses import dataclass

from fairlane.fabric.identities import ports_of
from fairlane.fabric.wiring import Wiring
from fairlane.wording import plural, some

_SHOWN = 3  # hosts or switches that a note names


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


def renumbered(wiring: Wiring, again: Wiring) -> list[str]:
    """Notes on rails, hosts, switches and links that have other numbers when the file is read ``again``."""
    before, after = ports_of(wiring), ports_of(again)
    found = []
    if rails := [host for host in wiring.hosts if before[host] != after[host]]:
        words = f"{plural(len(rails), 'host has', 'hosts have')} other rails when the file is read again"
        found.append(f"{words}, by port number: {some(rails, _SHOWN)}")
    for what, same in (("hosts", wiring.hosts == again.hosts), ("switches", wiring.switches == again.switches)):
        if not same:
            found.append(f"{what} have other numbers when the file is read again; names and cables are the same")
    switches = [name for name in wiring.switches if before[name] != after[name]]
    if switches and wiring.switches == again.switches:
        words = f"links of {plural(len(switches), 'switch has', 'switches have')} another order when the file is read"
        found.append(f"{words} again: {some(switches, _SHOWN)}; ties of routings may be decided otherwise")
    return found
