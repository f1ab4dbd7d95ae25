"""Names as Slurm takes them: letters, digits, ``-``, ``_`` and ``.`` only, and no name twice."""

import re
from collections.abc import Container, Iterable, Sequence
from itertools import count

_NAME = re.compile(r"[A-Za-z0-9_.-]+")
_OTHER = re.compile(r"[^A-Za-z0-9_.-]+")


def can_hold(name: str) -> bool:
    """Whether Slurm takes this name for a host or a switch."""
    return _NAME.fullmatch(name) is not None


def slurm_names(names: Sequence[str], taken: Iterable[str] = (), word: str = "host") -> list[str]:
    """The names, with those changed that Slurm does not take.

    Every run of other characters becomes one ``_``. Names that Slurm takes stay as they are; one that would then be
    there twice, or is among ``taken``, gets a number: ``_2`` and so on. A name with nothing left is ``word``.
    """
    used = {name for name in names if can_hold(name)} | set(taken)
    found: dict[str, str] = {}
    for name in names:
        if can_hold(name) or name in found:
            continue
        plain = _OTHER.sub("_", name).strip("_") or word
        found[name] = unused(plain, used)
        used.add(found[name])
    return [found.get(name, name) for name in names]


def unused(name: str, used: Container[str]) -> str:
    """The name, or if it is used with the lowest number, from ``_2``, with which it is not."""
    numbered = (f"{name}_{number}" for number in count(2))
    return name if name not in used else next(one for one in numbered if one not in used)
