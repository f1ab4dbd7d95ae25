"""Inference of a transformer with prefill and decode on different GPUs, under Poisson arrivals.

Sources: Zhong et al., "DistServe", OSDI '24 (prefill and decode apart; time to first token and between tokens); Qin et
al., "Mooncake", FAST '25 (keys and values transferred layer by layer during prefill); DeepSeek-V3 (2024), section 3.4
(dispatch and combine of experts).
"""

from collections.abc import Iterator
from typing import ClassVar, Self

from pydantic import Field, model_validator
from typing_extensions import override

from fairlane.core.errors import Problem
from fairlane.core.units import Bandwidth, Duration
from fairlane.inputs.problems import Problems
from fairlane.model.workload.base import CLOSED_LOOP, Count
from fairlane.model.workload.builder import JobScript, Rank
from fairlane.model.workload.parallelism import ELEMENT, Transformer

_TOKEN = 4  # bytes of a token's number, in a request


class Inference(Transformer):
    """Requests are prefilled one by one, their keys and values go to GPUs that decode, in steps of constant batch.

    Ranks: those of the prefill instances, those of the decode instances, and at last a router, where requests arrive.
    Table ``serving`` of the results has times to the first token and between tokens.
    """

    measures: ClassVar[bool] = True
    iterates: ClassVar[bool] = False
    stops: ClassVar[bool] = False
    unused: ClassVar[frozenset[str]] = CLOSED_LOOP | {"message_size"}

    prefill: Count = Field(default=1, description="prefill instances; requests go to them round-robin")
    prefill_gpus: Count = Field(
        default=8, description="GPUs of a prefill instance; its tensor-parallel groups divide the prompt"
    )
    decode: Count = Field(default=1, description="decode instances; requests go to them round-robin")
    decode_gpus: Count = Field(
        default=8, description="GPUs of a decode instance; its tensor-parallel groups divide the requests"
    )
    tensor: Count = Field(default=8, description="tensor-parallel degree")
    rate: float = Field(default=10.0, gt=0, description="requests per second, a Poisson process of the seed")
    requests: Count = Field(default=100, description="requests that arrive")
    prompt: Count = Field(default=4096, description="tokens of a prompt")
    output: Count = Field(default=128, description="tokens of an answer")
    batch: Count = Field(default=32, description="requests that a tensor-parallel group decodes in each step, always")
    transfers: Count = Field(
        default=8,
        description="messages in which a GPU sends keys and values of a prompt, each when its layers are done",
    )
    memory_bandwidth: Bandwidth = Field(
        default=26_800_000_000_000, ge=1_000_000, description="rate at which a GPU reads its memory in decode steps"
    )
    first_token_objective: Duration | None = Field(default=None, description="objective of the time to the first token")
    token_objective: Duration | None = Field(default=None, description="objective of the time between tokens")

    @model_validator(mode="after")
    def _instances_divide(self) -> Self:
        for gpus in ("prefill_gpus", "decode_gpus"):
            self.check_divides("tensor", gpus)
            if self.experts:
                self.check_divides("expert", gpus)
        self.check_divides("transfers", "layers")
        if self.prompt % self.prefill_gpus:
            allowed = f"a multiple of prefill_gpus = {self.prefill_gpus}"
            raise Problems(Problem("prompt", "is not divisible among the GPUs of an instance", self.prompt, allowed))
        return self

    @override
    def problem_with(self, ranks: int) -> str | None:
        needed = self.prefill * self.prefill_gpus + self.decode * self.decode_gpus + 1
        sum_of_gpus = "prefill x prefill_gpus + decode x decode_gpus + 1, a router"
        return None if ranks == needed else f"{needed} ranks: {sum_of_gpus}"

    def instance(self, rank: int) -> tuple[str, int, int] | None:
        """Stage, number and first rank of the instance of a rank; None for the router."""
        first_decode = self.prefill * self.prefill_gpus
        if rank < first_decode:
            number = rank // self.prefill_gpus
            return "prefill", number, number * self.prefill_gpus
        number = (rank - first_decode) // self.decode_gpus
        first = first_decode + number * self.decode_gpus
        return ("decode", number, first) if number < self.decode else None

    def prefilled_by(self, request: int) -> int:
        """The first rank of the instance that prefills a request."""
        return request % self.prefill * self.prefill_gpus

    def decoded_by(self, request: int) -> int:
        """The first rank of the tensor-parallel group that decodes a request."""
        round_number, number = divmod(request, self.decode)
        group = round_number % (self.decode_gpus // self.tensor)
        return self.prefill * self.prefill_gpus + number * self.decode_gpus + group * self.tensor

    def arrivals(self, job: JobScript) -> list[int]:
        """Times between the arrivals of requests, ps."""
        return job.drawn(
            "arrivals", lambda rng: [round(gap) for gap in rng.exponential(1e12 / self.rate, self.requests).tolist()]
        )

    @override
    def write(self, rank: Rank, stages: list[list[int]]) -> None:
        rank.communicator("kv_transfer", range(rank.ranks))
        instance = self.instance(rank.index)
        if instance is None:
            self._route(rank)
            return
        stage, _, first = instance
        place = rank.index - first
        groups = {
            "tensor_parallel": self.tensor,
            "expert_parallel": self.expert,
            stage: self.prefill_gpus if stage == "prefill" else self.decode_gpus,
        }
        for kind, size in groups.items():
            start = first + place - place % size
            rank.communicator(kind, range(start, start + size))
        if stage == "prefill":
            self._prefill(rank, first)
        else:
            self._decode(rank)

    def _route(self, rank: Rank) -> None:
        """Marks every arrival, and hands the request over."""
        for request, gap in enumerate(self.arrivals(rank.job)):
            rank.compute(gap)
            rank.mark_progress()
            sent = rank.isend(self.prefilled_by(request), self.prompt * _TOKEN)
            rank.request_free(sent)

    def _prefill(self, rank: Rank, first: int) -> None:
        """The first rank of an instance marks every first token, and the end of every transfer."""
        comms, groups = rank.job.communicators, self.prefill_gpus // self.tensor
        tokens, layers = self.prompt // groups, self.layers // self.transfers
        size = layers * 2 * tokens * self.key_value // self.tensor * ELEMENT
        for request in range(self.requests):
            if self.prefilled_by(request) != first:
                continue
            if rank.index == first:
                rank.recv(rank.ranks - 1)
            rank.collective("bcast", self.prompt * _TOKEN, comm=comms["prefill"])
            sends = []
            to = self.decoded_by(request) + (rank.index - first) % self.tensor
            for transfer in range(self.transfers):
                for layer in range(layers):
                    number = transfer * layers + layer
                    self._layer(rank, tokens, self.attention_time(tokens, self.prompt / 2), number)
                sends.append(rank.isend(to, size, comm=comms["kv_transfer"]))
            if rank.index == first:
                rank.mark_progress()
            rank.wait_all(sends)
            rank.collective("barrier", comm=comms["prefill"])
            if rank.index == first:
                rank.mark_progress()

    def _decode(self, rank: Rank) -> None:
        """The first rank of a tensor-parallel group marks the end of every step."""
        place = (rank.index - self.prefill * self.prefill_gpus) % self.decode_gpus % self.tensor
        for source in self._sources(rank.index - place, place):
            rank.request_free(rank.irecv(source, comm=rank.job.communicators["kv_transfer"]))
        with rank.repeat():
            for layer in range(self.layers):
                self._layer(rank, self.batch, self._step_time, layer, decode=True)
            if place == 0:
                rank.mark_progress()

    def _sources(self, first: int, place: int) -> Iterator[int]:
        """Yield the senders to the GPU at this place of the group that begins at rank ``first``, message by message."""
        for request in range(self.requests):
            if self.decoded_by(request) == first:
                for group in range(self.prefill_gpus // self.tensor):
                    source = self.prefilled_by(request) + group * self.tensor + place
                    yield from [source] * self.transfers

    @property
    @override
    def network_parameters(self) -> int:
        """The same; a tensor-parallel group is part of an expert-parallel one, whose GPUs have whole experts."""
        divided = self.tensor // min(self.tensor, self.expert) if self.experts else self.tensor
        return 3 * self.hidden * self.feed_forward // divided

    @property
    def _step_time(self) -> int:
        """Time of attention in a layer of a decode step, ps: of reading weights, keys and values, or of computing."""
        context = self.prompt + self.output / 2
        values = self.attention_parameters + 2 * self.batch * context * self.key_value / self.tensor
        reading = values * ELEMENT * 8 / self.memory_bandwidth * 1e12
        return max(round(reading), self.attention_time(self.batch, context))

    def _layer(self, rank: Rank, tokens: int, attention: int, layer: int, *, decode: bool = False) -> None:
        comms = rank.job.communicators
        rank.compute(attention)
        self.reduce(rank, tokens)
        held = self.experts // self.expert if self.experts else 1
        reading = held * self.network_parameters * ELEMENT * 8 / self.memory_bandwidth * 1e12 if decode else 0.0
        if self.experts:
            instance = self.instance(rank.index)
            assert instance is not None, "invariant: the router has no layers"
            place = (rank.index - instance[2]) % self.expert
            share, comm = tokens / self.tensor, comms["expert_parallel"]
            self.experts_of(rank, comm, place, share, layer, least=round(reading))
        else:
            rank.compute(max(round(reading), self.network_time(tokens)))
        self.reduce(rank, tokens)
