"""Values that are drawn: a number or quantity, or a distribution of ``scipy.stats`` with its parameters.

For example ``"64 KiB"``, or ``{ dist = "lognorm", s = 1, scale = "64 KiB", max = "1 MiB" }``. Location, scale and
bounds have the unit of what is drawn, shapes have none. Bounds cut the distribution off: what lies beyond is never
drawn.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import isnan
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import PlainSerializer, PlainValidator, WithJsonSchema

from fairlane.core.errors import Problem
from fairlane.core.units import DURATION, SIZE, Kind
from fairlane.inputs.problems import Problems, unknown

if TYPE_CHECKING:
    import numpy

NAME = "dist"
_BOUNDS = ("min", "max")
_PLACE = ("loc", "scale")


LARGEST = 1e100  # the largest plain number


@dataclass(frozen=True)
class Distribution:
    """Distribution of a value."""

    given: Any  # as in the file
    kind: Kind | None  # what quantity it is; None for a plain number
    constant: float | None = None  # the value that it always has, in base units, if it has one
    law: Any = None  # the distribution with its parameters, in base units
    minimum: float = float("-inf")  # values below are never drawn
    maximum: float = float("inf")  # values above are never drawn

    def draw(self, rng: "numpy.random.Generator") -> float:
        """A value in base units; takes one number of the stream, whatever it is drawn from."""
        return self._at(rng.random())

    def quantiles(self, count: int) -> list[float]:
        """This many values in ascending order, each as likely, in base units."""
        return [self._at((at + 0.5) / count) for at in range(1 if self.constant is not None else count)]

    def _at(self, share: float) -> float:
        """The value below which this share of the draws lies."""
        if self.constant is not None:
            return self.constant
        low, high = float(self.law.cdf(self.minimum)), float(self.law.cdf(self.maximum))
        value = float(self.law.ppf(low + share * (high - low)))
        return min(max(value, self.minimum), self.maximum)

    def written(self, value: float, *, whole: bool = True) -> str | int | float:
        """A value as a file would give it."""
        if self.kind is not None:
            return self.kind.format(max(0, round(value)))
        return round(value) if whole else value


def distribution(given: Any, kinds: Sequence[Kind] = (DURATION, SIZE)) -> Distribution:
    """Reads a value or a table; ``Problems`` says what is wrong.

    ``kinds`` are the quantities that it may be, without any only a plain number; if there are several its units decide.
    """
    if isinstance(given, Distribution):
        return given
    if not isinstance(given, Mapping):
        kind = kinds[0] if len(kinds) == 1 else _kind_of(given, kinds)
        return Distribution(given, kind, _number("", given, kind))
    law = _law(given)
    known = [NAME, *_shapes(law), *(_PLACE if hasattr(law, "pdf") else _PLACE[:1]), *_BOUNDS]
    problems = [unknown(key, "key", key, known, given[key]) for key in given if key not in known]
    problems += [Problem(shape, "missing", allowed="a number") for shape in _shapes(law) if shape not in given]
    if problems:
        raise Problems(*problems)
    found_kinds = (_kind_of(given.get(key), kinds) for key in (*_PLACE, *_BOUNDS))
    kind = kinds[0] if len(kinds) == 1 else next(filter(None, found_kinds), None)
    values = {
        key: _number(key, value, kind if key in (*_PLACE, *_BOUNDS) else None)
        for key, value in given.items()
        if key != NAME
    }
    bounds = {f"{key}imum": values.pop(key) for key in _BOUNDS if key in values}
    read = Distribution(dict(given), kind, None, law(**values), **bounds)
    _check(read)
    return read


def _check(distribution: Distribution) -> None:
    low, high = (float(distribution.law.cdf(bound)) for bound in (distribution.minimum, distribution.maximum))
    if isnan(low + high + float(distribution.law.median())):
        raise Problems(
            Problem("", f"parameters that {distribution.given[NAME]} does not have", str(distribution.given))
        )
    if low >= high:
        raise Problems(Problem("min", "nothing lies between min and max", distribution.given.get("min")))


def _law(given: Mapping[str, Any]) -> Any:
    name = given.get(NAME)
    laws = _laws()
    if name is None:
        raise Problems(Problem(NAME, "missing", allowed="a distribution of scipy.stats, as lognorm"))
    if name not in laws:
        raise Problems(Problem.unknown(NAME, "distribution", str(name), list(laws), str(name)))
    return laws[name]


@cache
def _laws() -> dict[str, Any]:
    """The univariate distributions of ``scipy.stats`` by name."""
    from scipy import stats

    kinds = (stats.rv_continuous, stats.rv_discrete)
    return {name: law for name, law in vars(stats).items() if isinstance(law, kinds)}


def _shapes(law: Any) -> list[str]:
    return law.shapes.replace(" ", "").split(",") if law.shapes else []


def _kind_of(given: Any, kinds: Sequence[Kind]) -> Kind | None:
    """Return the kind, of these, of a quantity with a unit."""
    for kind in kinds:
        try:
            kind.parse(given.strip().lstrip("-"))
        except (AttributeError, ValueError):
            continue
        return kind
    return None


def _number(key: str, given: Any, kind: Kind | None) -> float:
    """A number, or a quantity in base units, which may be negative."""
    if kind is None:
        if isinstance(given, bool) or not isinstance(given, int | float):
            raise Problems(Problem(key, "not a number", str(given), "a number, or a table with `dist`"))
        if not abs(given) <= LARGEST:  # neither is what is not a number at all
            raise Problems(Problem(key, "not a finite number", str(given)[:40], f"up to {LARGEST:g}"))
        return float(given)
    try:
        if isinstance(given, str) and given.strip().startswith("-"):
            return -float(kind.parse(given.strip()[1:]))
        return float(kind.parse(given))
    except ValueError as error:
        raise Problems(Problem(key, str(error), given if isinstance(given, str | int | float) else None)) from None


def _field(kinds: Sequence[Kind], example: Any) -> tuple[Any, ...]:
    plain: dict[str, Any] = {"type": "string" if kinds else "number"}
    table = {"type": "object", "properties": {NAME: {"type": "string"}}, "required": [NAME]}
    return (
        PlainValidator(lambda given: distribution(given, kinds)),
        PlainSerializer(lambda value: value.given),
        WithJsonSchema({"anyOf": [plain, table], "examples": [example]}),
    )


NumberDistribution = Annotated[Distribution, *_field((), {"dist": "uniform", "loc": 0.3, "scale": 0.6})]
"""A model's field that takes a number or a distribution of one."""
DurationDistribution = Annotated[Distribution, *_field((DURATION,), {"dist": "expon", "scale": "5 ms"})]
"""A model's field that takes a duration or a distribution of one."""
SizeDistribution = Annotated[Distribution, *_field((SIZE,), {"dist": "lognorm", "s": 1, "scale": "16 KiB"})]
"""A model's field that takes a size or a distribution of one."""
