"""How a job shares its messages among the adapters of its hosts."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from fairlane.errors import Problem
from fairlane.fabric.table import MAX_RAILS
from fairlane.inputs.problems import Problems
from fairlane.inputs.table import Table
from fairlane.units import Size, Written

if TYPE_CHECKING:
    import numpy


class RailPolicy(Table):
    """Which adapter (rail) of its host each message of a job uses."""

    policy: Literal["round_robin", "stripe", "by_destination", "by_source", "only"] = "round_robin"
    """``round_robin``: each rank uses the rails in cyclic order, message by message. ``stripe``: payloads above
    ``above`` are divided into equal parts, one for each rail, and are complete when all parts are; other messages use
    round-robin. ``by_destination``: the receiving rank modulo the number of rails. ``by_source``: a fixed rail for each
    sending rank. ``only``: one rail for all messages; ``only = 0`` implies it."""
    only: int | None = Field(default=None, ge=0, lt=MAX_RAILS)
    """For policy ``only``: the number of the rail."""
    above: Size = 16384
    """For ``stripe``: the largest payload that is not striped."""
    order: Literal["rank", "random"] = "rank"
    """For ``by_source``: the rail of a rank is its number modulo the number of rails; or the ranks of each host are
    assigned round-robin in a random order, as libraries do that assign adapters in the order of opening them."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if (self.policy == "only") != (self.only is not None):
            raise Problems(Problem("only", "belongs to policy 'only': give both or neither", self.only))
        for key, policy in (("above", "stripe"), ("order", "by_source")):
            # A written scenario has all keys, including those that do not apply.
            if self.policy != policy and getattr(self, key) != type(self).model_fields[key].default:
                raise Problems(Problem(key, f"belongs to policy {policy!r}", self.policy))
        return self

    def spec(self, hosts: Sequence[int], rails: int, rng: "numpy.random.Generator") -> dict[str, Any]:
        """The policy as the simulator takes it, for ranks on these ``hosts`` of so many ``rails``."""
        extra: dict[str, dict[str, Any]] = {
            "only": {"only": self.only},
            "stripe": {"above": self.above},
            "by_source": {"ranks": _assigned(hosts, rails, rng) if self.order == "random" else []},
        }
        return {"policy": self.policy, **extra.get(self.policy, {})}


def rail_notes(
    name: str, policy: RailPolicy | None, adapters: Mapping[int, int], rails: int, called: Callable[[int], str]
) -> Iterator[str]:
    """What a user should know of a job that uses fewer adapters than its hosts have.

    ``adapters`` are those of each of its hosts, ``rails`` those of a host of the fabric with an address of their own,
    ``called`` a host's name by number.
    """
    fewest, most = min(adapters.values()), max(adapters.values())
    if policy is None and rails == 1:
        if most > 1:
            has = f"{fewest} to {most}" if fewest < most else f"{most}"
            yield f"job {name!r} sends over the first adapter of each host only; its hosts have {has}: see jobs.rails"
    elif fewest < most and not (policy and policy.policy == "only"):
        short = [host for host, count in adapters.items() if count == fewest]
        others = f" (and {len(short) - 1} more of its hosts)" if len(short) > 1 else ""
        has = f"has {fewest} adapter{'s' * (fewest != 1)}"
        words = f"job {name!r} is limited to {fewest} of {most} rails"
        yield f"{words}: {called(short[0])}{others} {has}, and a job uses only rails that all of its hosts have"


def _assigned(hosts: Sequence[int], rails: int, rng: "numpy.random.Generator") -> list[int]:
    """The rail of each rank: assigned round-robin to those of a host in a random order, beginning with rail 0."""
    taken, found = Counter[int](), [0] * len(hosts)
    for rank in rng.permutation(len(hosts)).tolist():
        found[rank] = taken[hosts[rank]] % rails
        taken[hosts[rank]] += 1
    return found


def _name(given: Any) -> Any:
    """A name alone is a policy; a table with ``only`` says which."""
    if isinstance(given, dict) and "only" in given:
        return {"policy": "only", **given}
    return {"policy": given} if isinstance(given, str) else given


RailPolicyField = Annotated[Written[RailPolicy], BeforeValidator(_name, json_schema_input_type=RailPolicy | str)]
"""A model's field that takes a policy's name, or a table."""
