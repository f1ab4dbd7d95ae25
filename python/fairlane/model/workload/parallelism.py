"""A transformer divided among GPUs: groups of ranks, and sizes and times of a layer.

Source of the groups: Megatron-LM, ``megatron/core/parallel_state.py``. Sizes follow Narayanan et al., "Efficient
large-scale language model training on GPU clusters using Megatron-LM", SC '21.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar, Self

from pydantic import Field, model_validator
from typing_extensions import override

from fairlane.core.errors import Problem
from fairlane.core.units import Duration
from fairlane.inputs.problems import Problems
from fairlane.model.workload.base import Count, Workload
from fairlane.model.workload.builder import Rank

ELEMENT = 2
"""Bytes of a number of 16 bits."""
FLOPS = 4.0e14
"""Floating-point operations per second that a GPU achieves: 40% of those of an H100 at 16 bits."""


class Groups:
    """The ranks of a job by coordinates, one for each degree; that of the first degree varies fastest."""

    def __init__(self, degrees: Mapping[str, int]) -> None:
        self._degrees = dict(degrees)

    def coordinates(self, rank: int) -> dict[str, int]:
        """The coordinates of a rank."""
        places = {}
        for name, degree in self._degrees.items():
            rank, places[name] = divmod(rank, degree)
        return places

    def rank(self, coordinates: Mapping[str, int]) -> int:
        """The rank at these coordinates."""
        number = 0
        for name in reversed(self._degrees):
            number = number * self._degrees[name] + coordinates[name]
        return number

    def members(self, rank: int, vary: Sequence[str]) -> list[int]:
        """The ranks that differ from ``rank`` in the coordinates ``vary`` only, in ascending order."""
        members = [self.coordinates(rank)]
        for name in vary:
            members = [{**member, name: place} for member in members for place in range(self._degrees[name])]
        return sorted(map(self.rank, members))


class Transformer(Workload):
    """A transformer of layers with grouped-query attention and a gated feed-forward network, dense or of experts.

    Embedding and output layers are left out. Numbers have 16 bits.
    """

    on_gpus: ClassVar[bool] = True
    unused: ClassVar[frozenset[str]] = frozenset({"message_size", "messages_per_iteration", "compute_share"})
    unused_because: ClassVar[str] = "messages and times follow from the model"
    compute: Duration | None = 0

    layers: Count = Field(default=80, description="layers of the model")
    hidden: Count = Field(default=8192, description="hidden size")
    key_value: Count = Field(default=1024, description="size of a token's keys, and of its values, in a layer")
    feed_forward: Count = Field(default=28672, description="inner size of the feed-forward network, or of an expert")
    experts: int = Field(default=0, ge=0, description="experts of a layer; 0: dense")
    top_k: Count = Field(default=2, description="experts of a token")
    expert_imbalance: float = Field(
        default=1.0,
        ge=1,
        description="tokens for the busiest GPU of an expert-parallel group over the mean: one GPU of each, which the "
        "seed chooses for each layer",
    )
    tensor: Count = Field(default=1, description="tensor-parallel degree")
    expert: Count = Field(default=1, description="expert-parallel degree")
    flops: float = Field(default=FLOPS, gt=0, description="floating-point operations per second that a GPU achieves")

    @model_validator(mode="after")
    def _degrees_divide(self) -> Self:
        for of in ("hidden", "key_value", "feed_forward"):
            self.check_divides("tensor", of)
        if self.expert > 1 or self.experts:
            if not self.experts:
                raise Problems(Problem("expert", "the layers have no experts", self.expert, "1, or set experts, too"))
            self.check_divides("expert", "experts")
            if self.top_k > self.experts:
                raise Problems(Problem("top_k", "more than experts", self.top_k, f"at most experts = {self.experts}"))
        if self.expert_imbalance > self.expert:
            allowed = f"at most expert = {self.expert}: one GPU cannot get more than all tokens"
            raise Problems(Problem("expert_imbalance", "out of range", self.expert_imbalance, allowed))
        return self

    def check_divides(self, key: str, of: str) -> None:
        """Raises ``Problems`` unless the value of ``key`` divides that of ``of``."""
        value, whole = getattr(self, key), getattr(self, of)
        if whole % value:
            raise Problems(Problem(key, f"does not divide {of}", value, f"a divisor of {of} = {whole}"))

    @override
    def whole_numbers(self) -> dict[str, int]:
        counted = ("layers", "micro_batches", "requests", "messages_per_iteration", "variant", "distinct_iterations")
        return {name: value for name, value in super().whole_numbers().items() if name in counted}

    @property
    def attention_parameters(self) -> int:
        """Parameters of the attention of a layer on a GPU: query, key, value and output matrices."""
        return 2 * self.hidden * (self.hidden + self.key_value) // self.tensor

    @property
    def network_parameters(self) -> int:
        """Parameters of the feed-forward network, or of an expert, of a layer on a GPU: three matrices."""
        return 3 * self.hidden * self.feed_forward // self.tensor

    def activations(self, tokens: float) -> int:
        """Bytes of the activations of so many tokens, of a GPU on average, between two layers."""
        return round(tokens * self.hidden * ELEMENT)

    def reduce(self, rank: Rank, tokens: int) -> None:
        """Writes the allreduce of the activations of so many tokens in the rank's tensor-parallel group."""
        if self.tensor > 1:
            rank.collective("allreduce", self.activations(tokens), comm=rank.job.communicators["tensor_parallel"])

    def attention_time(self, tokens: int, context: float) -> int:
        """Time of the attention of ``tokens`` in a layer, each to ``context`` others on average, ps."""
        operations = 2 * tokens * self.attention_parameters + 4 * tokens * context * self.hidden / self.tensor
        return round(operations / self.flops * 1e12)

    def network_time(self, tokens: float) -> int:
        """Time of the feed-forward network of ``tokens`` in a layer, or of those for the experts of a GPU, ps."""
        return round(2 * tokens * self.network_parameters / self.flops * 1e12)

    def loads(self, rank: Rank, layer: int) -> list[float]:
        """The tokens for each GPU of an expert-parallel group over the mean, in a layer of the model."""
        hot = rank.job.drawn(f"experts of layer {layer}", lambda rng: int(rng.integers(self.expert)))
        others = (self.expert - self.expert_imbalance) / max(1, self.expert - 1)
        return [self.expert_imbalance if place == hot else others for place in range(self.expert)]

    def experts_of(
        self, rank: Rank, comm: int, place: int, tokens: float, layer: int, *, passes: int = 1, least: int = 0
    ) -> None:
        """Writes dispatch, work and combine of the experts of a layer for the ``tokens`` of a rank on average.

        ``place`` is the rank's in the expert-parallel group ``comm``; the work is done ``passes`` times,
        and takes at least ``least`` ps.
        """
        loads = self.loads(rank, layer)
        sent = self.activations(tokens * self.top_k)
        blocks = [round(sent * load / self.expert) for load in loads]
        if self.expert > 1:
            rank.collective("alltoall", blocks, comm=comm)
        rank.compute(max(least, passes * self.network_time(tokens * self.tensor * self.top_k * loads[place])))
        if self.expert > 1:
            rank.collective("alltoall", [blocks[place]] * self.expert, comm=comm)


def product_text(degrees: Iterable[tuple[str, int]]) -> str:
    """The product of degrees in words, as ``tensor x pipeline = 16``."""
    names, product = [], 1
    for name, degree in degrees:
        names.append(name)
        product *= degree
    return f"{' x '.join(names)} = {product}"
