"""A CSV file with a line for each cable, as ``fairlane fabric import`` reads it.

Lines without a second end and with 0 cables come first: they name the hosts in the order of their numbers.
"""

import csv
import io

from fairlane.errors import Problem, ScenarioError
from fairlane.fabric.export.notes import Written, left_out
from fairlane.fabric.wiring import Cable, Wiring
from fairlane.units import BANDWIDTH, DURATION

HEADER = ("from", "to", "from_port", "to_port", "bandwidth", "latency", "cables", "from_kind", "to_kind")
"""The columns."""


def write_csv(wiring: Wiring) -> Written:
    """The file. Raises ``ScenarioError`` for a name that a line cannot hold."""
    hosts = set(wiring.hosts)
    for name in (*wiring.hosts, *wiring.switches):
        if name != name.strip() or name.startswith("#") or len(name.splitlines()) > 1:
            words = "cannot be in a CSV file: it begins with # or a space, ends with one, or has several lines"
            raise ScenarioError(Problem("name", words, name))
    out = io.StringIO()
    rows = csv.writer(out, lineterminator="\n")
    rows.writerow(HEADER)
    for name in wiring.hosts:
        rows.writerow((name, "", "", "", "", "", "0", "host", ""))
    for cable in wiring.cables:
        rows.writerow(_row(cable, hosts))
    return Written(out.getvalue(), tuple(left_out(wiring, bandwidths=False, latencies=False)))


def _kind(name: str, hosts: set[str]) -> str:
    return "host" if name in hosts else "switch"


def _row(cable: Cable, hosts: set[str]) -> tuple[str, ...]:
    ports = ("", "") if cable.ports is None else tuple(map(str, cable.ports))
    rate = "" if cable.bandwidth is None else BANDWIDTH.format(cable.bandwidth)
    delay = "" if cable.latency is None else DURATION.format(cable.latency)
    return (*cable.ends, *ports, rate, delay, "1", *(_kind(end, hosts) for end in cable.ends))
