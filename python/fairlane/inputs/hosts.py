"""Hosts as scenarios name them: numbers, names, lists as Slurm writes them, and lists of all these."""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Annotated, Any

from pydantic import BeforeValidator

from fairlane.errors import Problem, nearest
from fairlane.inputs.problems import Problems
from fairlane.slurm import is_list, members, shortened, slurm_names
from fairlane.units import Written

Host = int | str  # a host by its number, from 0, or by its name
Hosts = tuple[Host, ...]
_ALLOWED = 'numbers from 0, names, or lists as "cn[001-016,020],login1"'
_ONE_BY_ONE = 3  # more unknown names are one problem


def read_hosts(given: Any) -> Any:
    """The hosts that a scenario names, in its order, lists of Slurm's spread out; ``Problems`` for what is none."""
    if given is None:
        return None
    whole = isinstance(given, list | tuple)
    hosts: list[Host] = []
    problems = []
    for at, item in enumerate(given if whole else [given]):
        try:
            hosts += _hosts(item)
        except ValueError as error:
            problems.append(Problem(f"[{at}]" if whole else "", str(error), item, _ALLOWED))
    if not problems and not hosts:
        problems = [Problem("", "names no host", given, _ALLOWED)]
    if problems:
        raise Problems(*problems)
    return tuple(hosts)


HostsField = Annotated[
    Written[Hosts | None], BeforeValidator(read_hosts, json_schema_input_type=Host | list[Host] | None)
]
"""A key of a scenario that names hosts."""


def host_numbers(hosts: Sequence[Host], names: Sequence[str]) -> list[int]:
    """The numbers of hosts of a fabric whose hosts have these ``names``; ``Problems`` for those that it does not have.

    A name is one of the fabric's, or what it is called for Slurm. Digits that are no name are a number.
    """
    numbers: dict[str, int] | None = None
    chosen, problems, unknown = [], [], []
    for host in hosts:
        if isinstance(host, str):
            numbers = numbers or _numbers(tuple(names))
            number = numbers.get(host, int(host) if re.fullmatch(r"0|[1-9][0-9]{0,9}", host) else None)
        else:
            number = host
        if number is None:
            unknown.append(str(host))
        elif number < len(names):
            chosen.append(number)
        else:
            problems.append(Problem("", f"there is no host {number}", allowed=f"0 to {len(names) - 1}"))
    there = f"the {len(names)} hosts of the fabric: {shortened(names, 60)}" if unknown else ""
    if len(unknown) > _ONE_BY_ONE:
        message = f"the fabric has no hosts with these {len(unknown)} names"
        problems.append(Problem("", message, shortened(unknown, 60), there, nearest(unknown[0], names)))
    else:
        message = "the fabric has no host with this name"
        problems += [Problem("", message, host, there, nearest(host, names)) for host in unknown]
    if problems:
        raise Problems(*problems)
    return chosen


def _hosts(item: Any) -> Iterator[Host]:
    if isinstance(item, str):
        # A fabric's own name may have blanks and commas, which Slurm's lists have not.
        yield from members(item) if "[" in item or not item.strip() or is_list(item) else [item]
    elif isinstance(item, int) and not isinstance(item, bool):
        if item < 0:
            raise ValueError("hosts are numbered from 0")
        yield item
    else:
        raise ValueError("is no host")


@lru_cache(4)  # the jobs of a scenario name hosts of one fabric
def _numbers(names: tuple[str, ...]) -> dict[str, int]:
    """Hosts by name; their own names come before those that they have for Slurm."""
    return {
        **{name: number for number, name in enumerate(slurm_names(names))},
        **{name: number for number, name in enumerate(names)},
    }
