"""Adapters of its hosts that the messages of a job use."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from fairlane.core.errors import Problem
from fairlane.core.units import Size, Written
from fairlane.inputs.problems import Problems
from fairlane.inputs.table import Table

if TYPE_CHECKING:
    import numpy


MOST_ADAPTERS = 255
"""Adapters of a host of an imported fabric that can be told apart."""


class RailPolicy(Table):
    """Adapter (rail) of its host that each message of a job uses, and that of the receiving host.

    Adapter ``k`` of a host sends to adapter ``k`` of the other. If that has fewer, or no path between switches joins
    the two, the messages go to one that is joined. The control messages of a payload use its adapters.
    """

    policy: Literal["round_robin", "stripe", "by_destination", "by_source", "by_rank", "only"] = "round_robin"
    """``round_robin``: each rank uses the rails in cyclic order, payload by payload. ``stripe``: payloads above
    ``above`` are divided into equal parts, one for each rail, and are complete when all parts are; other messages use
    round-robin. ``by_destination``: the receiving rank modulo the number of rails. ``by_source``: a fixed rail for each
    sending rank. ``by_rank``: each rank sends and receives over the adapter of its own, as one next to its accelerator:
    number ``k mod n`` of ``n`` for rank number ``k`` of its host. ``only``: one rail for all messages; ``only = 0``
    implies it."""
    only: int | None = Field(default=None, ge=0, lt=MOST_ADAPTERS)
    """For policy ``only``: the number of the rail."""
    to: int | None = Field(default=None, ge=0, lt=MOST_ADAPTERS)
    """For policy ``only``: the rail of the receivers. Default: the same rail."""
    above: Size = 16384
    """For ``stripe``: the largest payload that is not striped."""
    order: Literal["rank", "random"] = "rank"
    """For ``by_source``: the rail of a rank is its number modulo the number of rails; or the ranks of each host are
    assigned round-robin in a random order, as libraries do that assign adapters in the order of opening them."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if (self.policy == "only") != (self.only is not None):
            raise Problems(Problem("only", "belongs to policy 'only': give both or neither", self.only))
        for key, policy in (("to", "only"), ("above", "stripe"), ("order", "by_source")):
            # A written scenario has all keys, including those that do not apply.
            if self.policy != policy and getattr(self, key) != type(self).model_fields[key].default:
                raise Problems(Problem(key, f"belongs to policy {policy!r}", self.policy))
        return self

    def spec(self, hosts: Sequence[int], adapters: Mapping[int, int], rng: "numpy.random.Generator") -> dict[str, Any]:
        """The policy as the simulator takes it, for ranks on these ``hosts``, which have so many ``adapters`` each."""
        extra: dict[str, Callable[[], dict[str, Any]]] = {
            "only": lambda: {"only": self.only, **({} if self.to is None else {"to": self.to})},
            "stripe": lambda: {"above": self.above},
            "by_source": lambda: {"ranks": _assigned(hosts, adapters, rng) if self.order == "random" else []},
            "by_rank": lambda: {"ranks": _assigned(hosts, adapters)},
        }
        return {"policy": self.policy, **extra.get(self.policy, dict)()}


def _assigned(
    hosts: Sequence[int], adapters: Mapping[int, int], rng: "numpy.random.Generator | None" = None
) -> list[int]:
    """The rail of each rank: assigned round-robin to those of a host, in a random order if ``rng`` draws one."""
    taken, rails = Counter[int](), [0] * len(hosts)
    for rank in range(len(hosts)) if rng is None else rng.permutation(len(hosts)).tolist():
        rails[rank] = taken[hosts[rank]] % adapters[hosts[rank]]
        taken[hosts[rank]] += 1
    return rails


def _name(given: Any) -> Any:
    """A name alone is a policy; a table with ``only`` says which."""
    if isinstance(given, dict) and "only" in given:
        return {"policy": "only", **given}
    return {"policy": given} if isinstance(given, str) else given


RailPolicyField = Annotated[Written[RailPolicy], BeforeValidator(_name, json_schema_input_type=RailPolicy | str)]
"""A model's field that takes a policy's name, or a table."""
