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
    found: list[Host] = []
    problems = []
    for at, one in enumerate(given if whole else [given]):
        try:
            found += _hosts(one)
        except ValueError as error:
            problems.append(Problem(f"[{at}]" if whole else "", str(error), one, _ALLOWED))
    if not problems and not found:
        problems = [Problem("", "names no host", given, _ALLOWED)]
    if problems:
        raise Problems(*problems)
    return tuple(found)


HostsField = Annotated[
    Written[Hosts | None], BeforeValidator(read_hosts, json_schema_input_type=Host | list[Host] | None)
]
"""A key of a scenario that names hosts."""


def host_numbers(hosts: Sequence[Host], names: Sequence[str]) -> list[int]:
    """The numbers of hosts of a fabric whose hosts have these ``names``; ``Problems`` for those that it does not have.

    A name is one of the fabric's, or what it is called for Slurm. Digits that are no name are a number.
    """
    numbers: dict[str, int] | None = None
    found, problems, unknown = [], [], []
    for one in hosts:
        if isinstance(one, str):
            numbers = numbers or _numbers(tuple(names))
            number = numbers.get(one, int(one) if re.fullmatch(r"0|[1-9][0-9]{0,9}", one) else None)
        else:
            number = one
        if number is None:
            unknown.append(str(one))
        elif number < len(names):
            found.append(number)
        else:
            problems.append(Problem("", f"there is no host {number}", allowed=f"0 to {len(names) - 1}"))
    there = f"the {len(names)} hosts of the fabric: {shortened(names, 60)}" if unknown else ""
    if len(unknown) > _ONE_BY_ONE:
        words = f"the fabric has no hosts with these {len(unknown)} names"
        problems.append(Problem("", words, shortened(unknown, 60), there, nearest(unknown[0], names)))
    else:
        words = "the fabric has no host with this name"
        problems += [Problem("", words, one, there, nearest(one, names)) for one in unknown]
    if problems:
        raise Problems(*problems)
    return found


def _hosts(one: Any) -> Iterator[Host]:
    if isinstance(one, str):
        # A fabric's own name may have blanks and commas, which Slurm's lists have not.
        yield from members(one) if "[" in one or not one.strip() or is_list(one) else [one]
    elif isinstance(one, int) and not isinstance(one, bool):
        if one < 0:
            raise ValueError("hosts are numbered from 0")
        yield one
    else:
        raise ValueError("is no host")


@lru_cache(4)  # the jobs of a scenario name hosts of one fabric
def _numbers(names: tuple[str, ...]) -> dict[str, int]:
    """Hosts by name; their own names come before those that they have for Slurm."""
    return {
        **{name: number for number, name in enumerate(slurm_names(names))},
        **{name: number for number, name in enumerate(names)},
    }
