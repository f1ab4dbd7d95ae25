"""Quantities with units to whole numbers of base units, and back.

"3.2 GB/s" are bits per second, "4 KiB" bytes, "100 ns" picoseconds, "65 W" milliwatts.

Numbers are fractions throughout, so nothing is rounded: a quantity that is not a whole number of its base unit is an
error, and so is a bare number other than zero. Prefixes are decimal (k, M, G, T) or binary (Ki, Mi, Gi, Ti), and case
counts: "Gb" are bits, "GB" are bytes.
"""

import re
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, TypeVar

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema

if TYPE_CHECKING:
    import pint

__all__ = [
    "BANDWIDTH",
    "CLOCK_END",
    "DURATION",
    "ITERATION_RANGES",
    "POWER",
    "SIZE",
    "Bandwidth",
    "Duration",
    "Kind",
    "Power",
    "Size",
    "Written",
    "iteration_range",
    "whole_number",
]

_MOST_DIGITS = 100


def whole_number(digits: str) -> int:
    """``int(digits)``, whose limit of 4,300 digits no input reaches: those after the hundredth are cut off.

    What is that large is beyond every bound, before and after.
    """
    return int(digits.lstrip("0")[:_MOST_DIGITS] or "0") if len(digits) > _MOST_DIGITS else int(digits)


ITERATION_RANGES = "FIRST..LAST, FIRST.., ..LAST, ONE"
"""Forms of a range of iterations."""


def iteration_range(text: str) -> tuple[int | None, int | None] | None:
    """The first and the last of 3..9, 3.., ..9 or 3; None for anything else."""
    match = re.fullmatch(r"([0-9]{0,9})(\.\.)?([0-9]{0,9})", text.strip())
    if match is None or not (match[1] or match[3]):
        return None
    first, last = (int(number) if number else None for number in (match[1], match[3]))
    return (first, last) if match[2] else (first, first)


_DEFINITIONS = (
    *("pico- = 1e-12 = p-", "nano- = 1e-9 = n-", "micro- = 1e-6 = µ- = μ- = u-", "milli- = 1e-3 = m-"),
    *("kilo- = 1e3 = k-", "mega- = 1e6 = M-", "giga- = 1e9 = G-", "tera- = 1e12 = T-"),
    *("kibi- = 1024 = Ki-", "mebi- = 1048576 = Mi-", "gibi- = 1073741824 = Gi-", "tebi- = 1099511627776 = Ti-"),
    *("second = [time] = s = sec", "minute = 60 * second = min", "hour = 3600 * second = h"),
    *("bit = [information] = b", "byte = 8 * bit = B", "bps = bit / second", "Bps = byte / second"),
    "watt = [power] = W",
)
CLOCK_END = 2**62
"""The instant to which the simulator's clock reaches, in picoseconds; no quantity is larger, in its base unit."""
_MOST_EXPONENT = 400
_LONGEST = 100
"""Limits on exponents and characters of a quantity, far above any real one."""
_UNIT = re.compile(r"[A-Za-zµμ]+( */ *[A-Za-z]+)?")
_QUANTITY = re.compile(
    r"\s*(?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE](?P<exponent>[+-]?\d+))?)\s*(?P<unit>.*?)\s*", re.DOTALL
)


@cache
def _registry() -> "pint.UnitRegistry[Fraction]":
    """A registry of what an interconnect is measured in; metres and barns are unknown here."""
    import pint

    registry: pint.UnitRegistry[Fraction] = pint.UnitRegistry(None, non_int_type=Fraction)
    for definition in _DEFINITIONS:
        registry.define(definition)
    return registry


@dataclass(frozen=True)
class Kind:
    """A kind of quantity: its base unit, in which the simulator counts, and the units in which it is shown."""

    name: str
    base: str
    """The base unit in pint's words."""
    base_name: str
    example: str
    steps: tuple[tuple[int, str], ...]
    """Units from large to small, each with its size in base units; the last is the base unit."""
    decimals: int = 0
    """Greatest number of decimals of ``format``."""

    def parse(self, given: object) -> int:
        """``given`` in base units.

        Raises ``ValueError`` for what is not a quantity of this kind or not a whole, non-negative number of base units.
        """
        if given == 0 and not isinstance(given, bool | str):
            return 0
        if not isinstance(given, str):
            raise ValueError(f"a {self.name} is a number with its unit in a string, as {self.example}")
        match = _QUANTITY.fullmatch(given) if len(given) <= _LONGEST else None
        if match is None:
            raise ValueError(f"not a {self.name}: expected a number and a unit, as {self.example}")
        if match["exponent"] and abs(whole_number(match["exponent"])) > _MOST_EXPONENT:
            raise ValueError(f"too large or too small a {self.name}")
        amount = Fraction(match["number"]) * self._factor(match["unit"], amount=match["number"])
        if amount.denominator != 1:
            raise ValueError(f"not a whole number of {self.base_name}")
        if amount < 0:
            raise ValueError(f"a {self.name} cannot be negative")
        if amount > CLOCK_END:
            raise ValueError(f"too large: at most {self.format(CLOCK_END // self.steps[0][0] * self.steps[0][0])}")
        return int(amount)

    def _factor(self, unit: str, amount: str) -> Fraction:
        """Return the number of base units of one ``unit``."""
        if not unit:
            if Fraction(amount) == 0:
                return Fraction(1)
            raise ValueError(f"a {self.name} needs a unit, as {self.example}")
        factor = _factor(unit, self.base)
        if factor is None:
            units = ", ".join(name for _, name in self.steps)
            raise ValueError(f"{unit!r} is not a unit of {self.name}; allowed: {units} ...{self._nearest(unit)}")
        return factor

    def _nearest(self, unit: str) -> str:
        """A suggestion when only the case of letters is wrong: "KB", "gb/S"."""
        units = [name for _, name in self.steps]
        same = [name for name in units if name.lower() == unit.lower()]
        return f"; did you mean {' or '.join(map(repr, same))}?" if same else ""

    def format(self, amount: int) -> str:
        """``amount`` base units in the largest unit that shows it exactly; ``parse`` reads it back."""
        scale = 10**self.decimals
        fits = (step for step in self.steps if amount >= step[0] and amount * scale % step[0] == 0)
        size, unit = next(fits, self.steps[-1])
        return f"{(Decimal(amount * scale // size) / scale).normalize():f} {unit}"


@cache
def _factor(unit: str, base: str) -> Fraction | None:
    import pint

    if _UNIT.fullmatch(unit) is None:
        return None
    registry = _registry()
    try:
        return Fraction(registry.Quantity(Fraction(1), unit).to(base).magnitude)
    except (pint.PintError, AssertionError, AttributeError, TypeError, ValueError, SyntaxError):
        return None


_TIMES = ((10**12, "s"), (10**9, "ms"), (10**6, "us"), (10**3, "ns"), (1, "ps"))
_RATES = (
    (8 * 10**9, "GB/s"),
    (10**9, "Gb/s"),
    (8 * 10**6, "MB/s"),
    (10**6, "Mb/s"),
    (8000, "kB/s"),
    (1000, "kb/s"),
    (1, "b/s"),
)
_POWERS = ((10**6, "kW"), (1000, "W"), (1, "mW"))
_SIZES = ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"), (10**9, "GB"), (10**6, "MB"), (10**3, "kB"), (1, "B"))

DURATION = Kind("duration", "picosecond", "picoseconds", '"100 ns"', _TIMES, decimals=3)
"""Spans of time, in picoseconds."""
BANDWIDTH = Kind("bandwidth", "bit / second", "bits per second", '"3.2 GB/s"', _RATES, decimals=3)
"""Bandwidths, in bits per second."""
SIZE = Kind("size", "byte", "bytes", '"4 KiB"', _SIZES)
"""Numbers of bytes."""
POWER = Kind("power", "milliwatt", "milliwatts", '"65 W"', _POWERS, decimals=3)
"""Powers, in milliwatts."""


T = TypeVar("T")
if TYPE_CHECKING:
    Written: TypeAlias = T | Any
else:

    class Written:
        """``Written[T]``: the type of a field that is a ``T`` and is given as a ``T``, or as a user writes it.

        For type checkers such a field is ``T | Any``: it is read as a ``T``, and ``Job(start="1 ms")`` is right.
        """

        def __class_getitem__(cls, kind: Any) -> Any:
            return kind


def _field(kind: Kind) -> tuple[Any, ...]:
    """Return the annotations by which a model's field reads and writes a quantity, with its schema for editors."""
    quantity = {"type": "string", "pattern": r"^\s*[+-]?[\d.]+([eE][+-]?\d+)?\s*\S.*$"}
    schema = {"anyOf": [quantity, {"const": 0}], "examples": [kind.example.strip('"')]}
    return BeforeValidator(kind.parse), PlainSerializer(kind.format), WithJsonSchema(schema)


Duration = Annotated[Written[int], *_field(DURATION)]
"""A model's field that reads "100 ns" and holds picoseconds."""
Bandwidth = Annotated[Written[int], *_field(BANDWIDTH)]
"""A model's field that reads "3.2 GB/s" and holds bits per second."""
Size = Annotated[Written[int], *_field(SIZE)]
"""A model's field that reads "4 KiB" and holds bytes."""
Power = Annotated[Written[int], *_field(POWER)]
"""A model's field that reads "65 W" and holds milliwatts."""
