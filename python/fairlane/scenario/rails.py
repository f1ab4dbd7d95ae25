"""The adapters of a fabric's hosts, and how a job shares its messages among them."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from fairlane.errors import Problem
from fairlane.inputs.problems import Problems
from fairlane.units import Bandwidth, Duration, Size

if TYPE_CHECKING:
    import numpy

__all__ = ["MAX_RAILS", "RailPolicy", "RailPolicyField", "Rails", "RailsField"]

MAX_RAILS = 8
"""More adapters than any host has."""


class Adapter(BaseModel):
    """An adapter that is not as the topology's links say."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, use_attribute_docstrings=True)

    bandwidth: Annotated[Bandwidth, Field(gt=0)] | None = None
    """Bandwidth of its cable, both ways; without it the topology's."""
    latency: Annotated[Duration, Field(gt=0)] | None = None
    """Latency of its cable, both ways; without it the topology's."""
    message_gap: Duration = 0
    """Least time from one message that it sends to the next: the inverse of its message rate, LogP's gap."""


class Rails(BaseModel):
    """Adapters of each host, where there are several."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, use_attribute_docstrings=True)

    count: int = Field(ge=1, le=MAX_RAILS)
    """How many adapters each host has."""
    wiring: Literal["planes", "shared"] = "planes"
    """``planes``: each adapter to a copy of the topology with switches of its own. ``shared``: all to one fabric; the
    topology's hosts are adapters then, and consecutive ones make a host."""
    adapters: list[Adapter] = Field(default_factory=list)
    """What is particular to each, in their order; without it all are alike."""

    @model_validator(mode="after")
    def _one_for_each(self) -> Self:
        if self.adapters and len(self.adapters) != self.count:
            words = f"describes {len(self.adapters)} of {self.count} adapters"
            raise Problems(Problem("adapters", words, allowed=f"none, or one table for each of the {self.count}"))
        return self

    def spec(self) -> dict[str, Any]:
        """The rails as the simulator takes them."""
        return {"count": self.count, "wiring": self.wiring, "adapters": [dict(one) for one in self.adapters]}


class RailPolicy(BaseModel):
    """Which of its host's adapters each message of a job goes through."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, use_attribute_docstrings=True)

    policy: Literal["round_robin", "stripe", "by_destination", "by_source", "only"] = "round_robin"
    """``round_robin``: each rank sends over one rail after the other, message by message. ``stripe``: payloads above
    ``above`` are cut into equal parts, one for each rail, and have come when all parts have; other messages go round
    robin. ``by_destination``: by the number of the rank that receives, modulo the rails. ``by_source``: each rank has a
    rail of its own. ``only``: one rail for all; it need not be named beside the rail's number."""
    only: int | None = Field(None, ge=0, lt=MAX_RAILS)
    """The number of that rail."""
    above: Size = 16384
    """The largest payload that is not striped."""
    order: Literal["rank", "random"] = "rank"
    """For ``by_source``: the rail of a rank is its number modulo the rails; or the ranks of each host are dealt to the
    rails in turn in a random order, as libraries do that go by which process opens an adapter first."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if (self.policy == "only") != (self.only is not None):
            raise Problems(Problem("only", "belongs to policy 'only': give both or neither", self.only))
        for key, policy in (("above", "stripe"), ("order", "by_source")):
            # A scenario that is written out says everything, what does not apply too.
            if self.policy != policy and getattr(self, key) != type(self).model_fields[key].default:
                raise Problems(Problem(key, f"belongs to policy {policy!r}", self.policy))
        return self

    def spec(self, hosts: Sequence[int], rails: int, rng: "numpy.random.Generator") -> dict[str, Any]:
        """The policy as the simulator takes it, for ranks on these ``hosts`` of so many ``rails``."""
        extra: dict[str, dict[str, Any]] = {
            "only": {"only": self.only},
            "stripe": {"above": self.above},
            "by_source": {"ranks": _dealt(hosts, rails, rng) if self.order == "random" else []},
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


def _dealt(hosts: Sequence[int], rails: int, rng: "numpy.random.Generator") -> list[int]:
    """The rail of each rank: those of a host take turns in a random order, beginning with rail 0."""
    turns, found = Counter[int](), [0] * len(hosts)
    for rank in rng.permutation(len(hosts)).tolist():
        found[rank] = turns[hosts[rank]] % rails
        turns[hosts[rank]] += 1
    return found


def _count(given: Any) -> Any:
    """A number alone is that many adapters, all alike."""
    return {"count": given} if isinstance(given, int) and not isinstance(given, bool) else given


def _name(given: Any) -> Any:
    """A name alone is a policy; a table with ``only`` says which."""
    if isinstance(given, dict) and "only" in given:
        return {"policy": "only", **given}
    return {"policy": given} if isinstance(given, str) else given


RailsField = Annotated[Rails, BeforeValidator(_count, json_schema_input_type=Rails | int)]
"""A model's field that takes how many adapters there are, or a table."""

RailPolicyField = Annotated[RailPolicy, BeforeValidator(_name, json_schema_input_type=RailPolicy | str)]
"""A model's field that takes a policy's name, or a table."""
