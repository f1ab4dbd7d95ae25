"""Training of a transformer: 1F1B pipeline, tensor, data, expert and context parallelism.

Sources: Narayanan et al., SC '21 (1F1B without flushes within a step; tensor-parallel allreduces); Rajbhandari et al.,
"ZeRO", SC '20 (gradients by reduce-scatter, parameters by allgather: stage 1); Liu et al., "Ring attention" (2023).
"""

from collections.abc import Mapping, Sequence
from math import prod
from typing import Literal, Self

from pydantic import Field, model_validator
from typing_extensions import override

from fairlane.core.errors import Problem
from fairlane.inputs.problems import Problems
from fairlane.model.workload.base import Count
from fairlane.model.workload.builder import Rank
from fairlane.model.workload.parallelism import ELEMENT, Groups, Transformer, product_text
from fairlane.model.workload.writer import Request

Degree = Literal["tensor", "context", "data", "pipeline"]
_FORWARD, _BACKWARD = 0, 1
"""Tags of messages between stages of the pipeline."""


class Training(Transformer):
    """Steps of the training of a transformer; an iteration is a step of ``layers / fold`` layers.

    Each stage of the pipeline runs 1F1B. A layer has two tensor-parallel allreduces forward and two backward. Gradients
    of a layer are reduced and scattered while the backward pass of the last micro-batch goes on; its parameters are
    gathered while the layers before it compute in the next step.
    """

    fold: Count = Field(
        default=1,
        description="layers of which one is simulated, in full size: a step takes so much longer",
    )
    sequence: Count = Field(default=8192, description="tokens of a sequence")
    micro_batch: Count = Field(default=1, description="sequences of a micro-batch")
    micro_batches: Count = Field(default=16, description="micro-batches of a step, for each data-parallel replica")
    pipeline: Count = Field(default=1, description="pipeline-parallel degree: stages")
    context: Count = Field(default=1, description="context-parallel degree")
    data: Count | None = Field(
        default=None, description="data-parallel degree. Default: ranks / (tensor x context x pipeline)"
    )
    order: list[Degree] = Field(
        default=["tensor", "context", "data", "pipeline"],
        description="how ranks are numbered: the degree in which successive ranks differ first, then the next",
    )
    gradient_bytes: Literal[2, 4] = Field(default=2, description="bytes of a gradient")

    @model_validator(mode="after")
    def _parts_divide(self) -> Self:
        self.check_divides("fold", "layers")
        self.check_divides("context", "sequence")
        if self.layers // self.fold % self.pipeline:
            allowed = f"a divisor of layers / fold = {self.layers // self.fold}"
            raise Problems(Problem("pipeline", "stages of one size are needed", self.pipeline, allowed))
        if self.tokens % self.tensor:
            allowed = f"a divisor of micro_batch x sequence / context = {self.tokens}"
            raise Problems(Problem("tensor", "does not divide the tokens of a micro-batch", self.tensor, allowed))
        if sorted(self.order) != ["context", "data", "pipeline", "tensor"]:
            allowed = "each of tensor, context, data and pipeline once"
            raise Problems(Problem("order", "is no order of the degrees", self.order, allowed))
        return self

    @property
    def tokens(self) -> int:
        """Tokens of a micro-batch on a GPU."""
        return self.micro_batch * self.sequence // self.context

    @property
    def replica(self) -> int:
        """GPUs of one replica of the model."""
        return self.tensor * self.context * self.pipeline

    def degrees(self, ranks: int) -> dict[str, int]:
        """The degrees by name, in the order of ranks."""
        data = ranks // self.replica if self.data is None else self.data
        by_name = {"tensor": self.tensor, "context": self.context, "data": data, "pipeline": self.pipeline}
        return {name: by_name[name] for name in self.order}

    @override
    def problem_with(self, ranks: int) -> str | None:
        degrees = self.degrees(ranks)
        known = [(name, degree) for name, degree in degrees.items() if name != "data" or self.data is not None]
        if prod(degrees.values()) != ranks or ranks < self.replica:
            of = "a multiple of " if self.data is None else ""
            return f"{of}{product_text(known)}"
        if degrees["data"] % self.expert:
            return f"a data-parallel degree that expert = {self.expert} divides; it is {degrees['data']}"
        return super().problem_with(ranks)

    @override
    def repeats(self) -> bool:
        return True

    def members(self, rank: Rank) -> dict[str, list[int]]:
        """The ranks in each communicator of ``rank``, by kind."""
        groups = Groups(self.degrees(rank.ranks))
        data = groups.members(rank.index, ["data"])
        place = data.index(rank.index)
        first = place - place % self.expert
        replicas = groups.members(rank.index, ["data", "context"])
        same = [other for other in replicas if groups.coordinates(other)["data"] % self.expert == place % self.expert]
        return {
            "tensor_parallel": groups.members(rank.index, ["tensor"]),
            "context_parallel": groups.members(rank.index, ["context"]),
            "pipeline": groups.members(rank.index, ["pipeline"]),
            "data_parallel": replicas,
            "expert_parallel": data[first : first + self.expert],
            "expert_data_parallel": same,
        }

    @override
    def write(self, rank: Rank, stages: list[list[int]]) -> None:
        for kind, members in self.members(rank).items():
            rank.communicator(kind, members)
        super().write(rank, stages)

    @override
    def communicate(self, rank: Rank, iteration: int) -> None:
        _Step(self, rank, self.members(rank)).write()


class _Step:
    """A step of one rank, in the making."""

    def __init__(self, training: Training, rank: Rank, members: Mapping[str, Sequence[int]]) -> None:
        self._training = training
        self._rank = rank
        self._members = members
        self._comm = rank.job.communicators
        self._stage = members["pipeline"].index(rank.index)
        self._last = self._stage == training.pipeline - 1
        self._layers = training.layers // training.fold // training.pipeline
        self._boundary = training.activations(training.tokens) // training.tensor  # bytes between two stages
        self._sends: list[Request] = []
        self._reductions: list[Request] = []
        self._parameters: list[list[Request]] = []

    def write(self) -> None:
        """Writes 1F1B: forward passes until the pipeline is full, then one of each, then the backward passes left."""
        count = self._training.micro_batches
        full = min(self._training.pipeline - 1 - self._stage, count)
        self._forward_comes = None if self._stage == 0 else self._receive(_FORWARD)
        self._backward_comes = None if self._last else self._receive(_BACKWARD)
        self._parameters = [self._gather()]
        for number in range(full):
            self._forward(number)
        for number in range(full, count):
            self._forward(number)
            self._backward(number - full)
        for number in range(count - full, count):
            self._backward(number)
        self._rank.wait_all([*self._sends, *self._reductions])

    def _receive(self, tag: int) -> Request:
        stage = self._stage + (1 if tag == _BACKWARD else -1)
        return self._rank.irecv(stage, tag=tag, comm=self._comm["pipeline"])

    def _send(self, tag: int) -> None:
        stage = self._stage + (1 if tag == _FORWARD else -1)
        self._sends.append(self._rank.isend(stage, self._boundary, tag=tag, comm=self._comm["pipeline"]))

    def _forward(self, number: int) -> None:
        more = number + 1 < self._training.micro_batches
        if self._forward_comes is not None:
            self._rank.wait(self._forward_comes)
            self._forward_comes = self._receive(_FORWARD) if more else None
        for layer in range(self._layers):
            if number == 0:
                self._rank.wait_all(self._parameters.pop())
                self._parameters.append(self._gather() if layer + 1 < self._layers else [])
            self._layer(layer, 1)
        if not self._last:
            self._send(_FORWARD)

    def _backward(self, number: int) -> None:
        more = number + 1 < self._training.micro_batches
        if self._backward_comes is not None:
            self._rank.wait(self._backward_comes)
            self._backward_comes = self._receive(_BACKWARD) if more else None
        for layer in reversed(range(self._layers)):
            self._layer(layer, 2)
            if not more:
                self._reductions += self._of_parameters("reduce_scatter", self._training.gradient_bytes)
        if self._stage > 0:
            self._send(_BACKWARD)

    def _layer(self, layer: int, passes: int) -> None:
        """A layer forward, or backward in ``passes`` = 2 times the work."""
        training, rank = self._training, self._rank
        self._attention(passes)
        self._training.reduce(self._rank, self._training.tokens)
        if training.experts:
            place, comm = self._members["expert_parallel"].index(rank.index), self._comm["expert_parallel"]
            number = self._stage * self._layers + layer
            training.experts_of(rank, comm, place, training.tokens // training.tensor, number, passes=passes)
        else:
            rank.compute(passes * training.network_time(training.tokens))
        self._training.reduce(self._rank, self._training.tokens)

    def _attention(self, passes: int) -> None:
        """Attention; keys and values of the other parts of the sequence come round a ring while those here are used."""
        training, rank, parts = self._training, self._rank, self._training.context
        time = passes * training.attention_time(training.tokens, training.sequence / 2) // parts
        place, comm = self._members["context_parallel"].index(rank.index), self._comm["context_parallel"]
        size = passes * 2 * training.tokens * training.key_value // training.tensor * ELEMENT
        for _ in range(parts - 1):
            requests = [
                rank.irecv((place - 1) % parts, comm=comm),
                rank.isend((place + 1) % parts, size, comm=comm),
            ]
            rank.compute(time)
            rank.wait_all(requests)
        rank.compute(time)

    def _gather(self) -> list[Request]:
        return self._of_parameters("allgather", ELEMENT)

    def _of_parameters(self, kind: Literal["allgather", "reduce_scatter"], size: int) -> list[Request]:
        """Starts a collective of the parameters of a layer, ``size`` bytes each, among the GPUs that have the same."""
        training = self._training
        experts = training.experts // training.expert * training.network_parameters
        shared = training.attention_parameters + (0 if training.experts else training.network_parameters)
        requests = []
        for group, parameters in (("data_parallel", shared), ("expert_data_parallel", experts)):
            members = len(self._members[group])
            if parameters and members > 1:
                block = -(-parameters * size // members)
                requests.append(self._rank.icollective(kind, block, comm=self._comm[group]))
        return requests
