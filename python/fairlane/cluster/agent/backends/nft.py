"""Marks of senders: a table of nftables on each host that sets the DSCP of packets by their source address.

The table ``ip fairlane`` has one chain at the hook ``output``, and a rule for each address with a mark. One transaction
replaces it, so every packet has its old mark or its new one; without marks there is no table. A table of that name with
anything else is refused. Forwarded packets and IPv6 are not marked.
"""

import re
from collections.abc import Mapping, Sequence
from ipaddress import IPv4Address
from json import JSONDecodeError
from typing import Any

from fairlane.cluster.agent.system import BackendError, NoAnswerError, call
from fairlane.inputs.files import NestingError, parse_json

TABLE = "fairlane"
"""Name of the table."""
Marks = dict[str, int]
"""DSCP by IPv4 address."""
_CHAIN = {"family": "ip", "table": TABLE, "name": "marks", "type": "filter", "hook": "output"}
_CHAIN_PLACE = {"prio": -150, "policy": "accept"}  # mangle
LIST = ("-j", "-n", "list", "ruleset", "ip")
"""Words after ``nft`` that list the table, and are no error where it is missing."""


def read(command: Sequence[str], timeout_s: float) -> Marks:
    """The marks of a host on which ``command`` runs nft.

    Raises ``NoAnswerError`` if it fails, and ``BackendError`` if the host has another table of this name.
    """
    return _read(command, timeout_s) or {}


def write(command: Sequence[str], timeout_s: float, before: Marks, marks: Marks) -> None:
    """Turns the marks of a host into others. Raises ``BackendError``; nothing has changed then."""
    # Somebody may have flushed the agent's table, which then has no marks but is there.
    is_there = bool(before) or _read(command, timeout_s) is not None
    call([*command, "-f", "-"], timeout_s, BackendError, transaction(marks, is_there=is_there))


def _read(command: Sequence[str], timeout_s: float) -> Marks | None:
    """The marks of a host; None if it has no table for them."""
    shown = " ".join([*command, *LIST])
    text = call([*command, *LIST], timeout_s, NoAnswerError)
    try:
        return marks_in(parse_json(text)["nftables"])
    except (JSONDecodeError, NestingError, LookupError, TypeError, AttributeError):
        raise BackendError(f"{shown}: printed no rules as JSON") from None
    except ValueError as error:
        raise BackendError(f"{shown}: {error}") from None


def marks_in(objects: Sequence[Mapping[str, Any]]) -> Marks | None:
    """Marks of a ruleset as ``nft --json`` lists it; None if it has no table for them.

    Raises ``ValueError`` for a table that has something else.
    """
    marks: Marks = {}
    others = []
    has_table = has_chain = False
    for kind, entry in (pair for listed in objects for pair in listed.items()):
        if kind == "table" and entry["name"] == TABLE:
            has_table = True
        elif entry.get("table") != TABLE:
            continue
        elif kind == "chain" and (_CHAIN | _CHAIN_PLACE).items() <= entry.items() and not has_chain:
            has_chain = True
        elif kind == "rule" and (mark := _mark(entry["expr"])) and mark[0] not in marks:
            marks[mark[0]] = mark[1]
        else:
            others.append(f"{kind} {entry.get('name', entry.get('handle', ''))}")
    if has_table and (others or not has_chain):
        message = f"table ip {TABLE} is not the agent's: it has {', '.join(others) or 'no chain marks'}"
        raise ValueError(f"{message}; give it another name")
    return marks if has_table else None


def transaction(marks: Marks, *, is_there: bool) -> str:
    """Lines of nft that replace the table as a whole, if it is there; one that somebody makes meanwhile is an error."""
    lines = [f"table ip {TABLE} {{}}", f"delete table ip {TABLE}"] if is_there else []
    if marks:
        lines += [
            f"create table ip {TABLE}",
            f"add chain ip {TABLE} marks {{ type filter hook output priority mangle; policy accept; }}",
        ]
    for address, dscp in marks.items():
        lines.append(f"add rule ip {TABLE} marks ip saddr {IPv4Address(address)} ip dscp set {dscp:d}")
    return "".join(f"{line}\n" for line in lines)


def _mark(expressions: Any) -> tuple[str, int] | None:
    """The address and DSCP of a rule that sets a mark; None for any other."""
    match expressions:
        case [{"match": {"right": str(address)}}, {"mangle": {"value": int(dscp)}}] if re.fullmatch(r"[\d.]+", address):
            return (address, dscp) if expressions == _rule(address, dscp) else None
    return None


def _rule(address: str, dscp: int) -> list[dict[str, Any]]:
    source, mark = ({"payload": {"protocol": "ip", "field": field}} for field in ("saddr", "dscp"))
    return [{"match": {"op": "==", "left": source, "right": address}}, {"mangle": {"key": mark, "value": dscp}}]
