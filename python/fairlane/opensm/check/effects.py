"""Compares the shares of links that exported options give with those that were simulated, before any port is read."""

from pathlib import Path

from fairlane.opensm.check.difference import EXPORTED, Compared, Difference
from fairlane.opensm.scenario_qos import PACKET
from fairlane.opensm.settings import Settings
from fairlane.opensm.shares import SHARES_FILE, differ, read_shares, shares_of, shown


def compare_shares(settings: Settings, exported: Path) -> tuple[int, Compared]:
    """Wire size of a full packet, bytes, and what differs.

    Exported is a folder of ``fairlane qos export``. Shares that its tables were known not to give exactly are a note;
    those that are others than it says are a difference: the options are not the ones that it has written.
    """
    file = exported / SHARES_FILE
    if not file.exists():
        words = f"shares of links are not compared: there is no {SHARES_FILE}, which qos export writes"
        return PACKET, Compared({}, (), (words,))
    packet, rows = read_shares(file)
    simulated = {row.lane: row.simulated for row in rows}
    stated = {row.lane: row.exported for row in rows}
    found = shares_of(settings.in_force(), packet)
    differences, notes = [], []
    if differ(found, stated):
        words = "shares of a link"
        differences.append(Difference("opensm.conf", "all", words, shown(simulated), shown(found), EXPORTED))
    elif differ(found, simulated):
        notes.append(f"shares of a link are approximated: simulated {shown(simulated)}, exported {shown(found)}")
    return packet, Compared({"lanes with a share of links": len(rows)}, tuple(differences), tuple(notes))
