"""The table ``network`` of a scenario: packets, buffers, switches, transports and what happens to lost packets."""

from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from fairlane.core.errors import Problem
from fairlane.core.units import SIZE, Duration, Size, Written
from fairlane.inputs.parameters import Parameterised, table_of_name
from fairlane.inputs.problems import Problems
from fairlane.inputs.table import Table


class Switch(Parameterised):
    """Switch architecture, the place where packets wait, with its parameters (see ``fairlane list switches``)."""

    of_table = "switch"
    name: str
    """Name of the architecture."""


class Transport(Parameterised):
    """Transport, which starts the packets of a flow, with its parameters (see ``fairlane list transports``)."""

    of_table = "transport"
    name: str
    """Name of the transport."""


class PortBuffer(Table):
    """Memory of an input port, divided among the virtual lanes in use."""

    size: Annotated[Size, Field(gt=0)] | None = None
    """Bytes of all lanes together; at least one full packet for each. Not with ``lanes``."""
    sharing: Literal["even", "dynamic"] = "even"
    """``even``: every lane has an equal part; ``dynamic``: one full packet is reserved for each lane, and all lanes
    share the rest."""
    lanes: list[Annotated[Size, Field(gt=0)]] = Field(default_factory=list)
    """In place of ``size``, the bytes of each lane in use: of the channels of virtual lane 0, then of the next lane."""

    @model_validator(mode="after")
    def _size_or_lanes(self) -> Self:
        if self.size is None and not self.lanes:
            raise Problems(Problem("size", "is missing; allowed: a size, or lanes with a size for each"))
        if self.size is not None and self.lanes:
            message = "cannot be given together with size, which it replaces; allowed: one of the two"
            raise Problems(Problem("lanes", message, f"{len(self.lanes)} sizes"))
        if self.lanes and self.sharing == "dynamic":
            raise Problems(Problem("sharing", "lanes of given sizes share nothing; allowed: only with size", "dynamic"))
        return self

    @property
    def spec(self) -> dict[str, Any]:
        """The table as the simulator takes it."""
        return {"lanes": self.lanes} if self.lanes else {"size": self.size, "sharing": self.sharing}


class FlowControl(Table):
    """What keeps a sender from overrunning the input buffer at the far end of its link, on lanes that lose nothing."""

    name: Literal["credits", "pfc"] = "credits"
    """``credits``, as in InfiniBand; ``pfc``: priority flow control, as in Ethernet (IEEE 802.1Qbb)."""
    xoff: Annotated[Size, Field(gt=0)] | None = None
    """With ``pfc``: a buffer with more bytes sends PAUSE. Default: the buffer less the headroom of its link."""
    xon: Size | None = None
    """With ``pfc``: a buffer with at most so many bytes sends RESUME. Default: two full packets less than ``xoff``."""
    response: Duration | None = None
    """With ``pfc``: time from the end of a PAUSE at the sender until it takes effect. Default: 0."""
    watchdog: Annotated[Duration, Field(gt=0)] | None = None
    """With ``pfc``: a lane of a switch that has been paused for so long drops its packets until it is resumed. Default:
    none does."""

    @model_validator(mode="after")
    def _of_pfc(self) -> Self:
        given = next((key for key, value in self if key != "name" and value is not None), None)
        if self.name == "credits" and given is not None:
            raise Problems(Problem(given, "credits have no parameters; allowed: only with name = pfc", "credits"))
        if self.xon is not None and self.xoff is not None and self.xon > self.xoff:
            raise Problems(Problem("xon", "is above xoff", SIZE.format(self.xon), f"at most {SIZE.format(self.xoff)}"))
        return self

    @property
    def spec(self) -> dict[str, Any]:
        """The table as the simulator takes it."""
        return {key: value for key, value in self if value is not None}


def _size_alone(given: Any) -> Any:
    """A size alone is that of a memory divided evenly."""
    return given if isinstance(given, dict | PortBuffer) else {"size": given}


class Network(Table):
    """Packets, buffers and switches."""

    mtu: Size = Field(default=4096, gt=0)
    """Payload of the largest packet."""
    header: Size = 26
    """Header bytes of each packet on the wire; 26 are InfiniBand's LRH, BTH and CRCs."""
    buffer: Annotated[Size, Field(gt=0)] | None = Field(default=65536, json_schema_extra={"default": "64 KiB"})
    """Input buffer of each link and virtual lane: its credits."""
    port_buffer: (
        Annotated[Written[PortBuffer], BeforeValidator(_size_alone, json_schema_input_type=PortBuffer | Size)] | None
    ) = None
    """In place of ``buffer``, the memory of each input port for all virtual lanes in use: its size, or a table with
    size and sharing, or with the size of each lane."""
    flow_control: Annotated[
        Written[FlowControl], BeforeValidator(table_of_name, json_schema_input_type=FlowControl | str)
    ] = Field(default="credits", validate_default=True)
    """What keeps senders from overrunning input buffers: ``credits``, ``pfc``, or a table with name and parameters."""
    switch_latency: Duration = 100_000
    """Time from a packet's arrival at a switch until it is in its output queue."""
    switching: Literal["cut_through", "store_and_forward"] = "cut_through"
    """Whether a switch forwards a packet before its tail has arrived."""
    switch: Annotated[Written[Switch], BeforeValidator(table_of_name, json_schema_input_type=Switch | str)] = Field(
        default="output_queued", validate_default=True
    )
    """Architecture of the switches: its name, or a table with name and parameters."""
    transport: Annotated[Written[Transport], BeforeValidator(table_of_name, json_schema_input_type=Transport | str)] = (
        Field(default="credits_only", validate_default=True)
    )
    """Transport, which starts packets at NICs: its name, or a table with name and parameters."""
    injection: Literal["messages", "queue_pairs", "fifo", "adapter_fifo"] = "messages"
    """Whose packets take turns at a NIC: those of all messages of a virtual lane; of queue pairs (pairs of ranks, which
    send one message after another, as InfiniBand does); or nobody's: one message after another on each virtual lane
    (``fifo``) or at all (``adapter_fifo``)."""
    retransmission_timeout: Annotated[Duration, Field(gt=0, le=1000 * 10**12)] = Field(
        default=4_194_304_000, json_schema_extra={"default": "4.194304 ms"}
    )
    """Time from the loss of a packet to its retransmission; the default is 2^10 times 4.096 us."""
    retransmission: Literal["selective", "go_back_n"] = "selective"
    """What is retransmitted: the lost packets, or the first of them and all that its flow has sent since, which
    receivers discard (``go_back_n``, as RoCE adapters do; not with adaptive routing or ``qos.trim_vl``)."""
    retry_count: int = Field(default=7, ge=0, le=7)
    """Number of retransmissions of a packet. Its job fails when the timeout of the next loss has passed."""
    sweep_time: Annotated[Duration, Field(gt=0, le=1000 * 10**12)] = Field(
        default=10**10, json_schema_extra={"default": "10 ms"}
    )
    """Time from a change of the fabric until routes are recomputed; adaptive routings react at once."""

    @model_validator(mode="before")
    @classmethod
    def _one_buffer(cls, given: Any) -> Any:
        """Without ``buffer`` there is its default, unless there is a ``port_buffer``."""
        if not isinstance(given, dict) or given.get("buffer") is not None:
            return given
        others = {key: value for key, value in given.items() if key != "buffer"}
        return others if given.get("port_buffer") is None else {**others, "buffer": None}

    @model_validator(mode="after")
    def _room_for_a_packet(self) -> Self:
        if self.buffer is None:
            return self
        if self.port_buffer is not None:
            message = "cannot be given together with network.buffer, which it replaces; allowed: one of the two"
            given = f"{self.port_buffer.size} B" if self.port_buffer.size else f"{len(self.port_buffer.lanes)} lanes"
            raise Problems(Problem("port_buffer", message, given))
        if self.buffer < self.mtu + self.header:
            message = f"too small for one packet of {self.mtu + self.header} B"
            raise Problems(Problem("buffer", message, f"{self.buffer} B"))
        return self

    @property
    def spec(self) -> dict[str, Any]:
        """The table as the simulator takes it; the default architecture, transport and flow control are not named."""
        written = {key: value for key, value in self if value is not None}
        if self.port_buffer is not None:
            written["port_buffer"] = self.port_buffer.spec
        control: FlowControl = written.pop("flow_control")
        if control.name != "credits":
            written["flow_control"] = control.spec
        for key, usual in (("switch", "output_queued"), ("transport", "credits_only")):
            chosen: Switch | Transport = written.pop(key)
            if chosen.name != usual:
                written[key] = {"name": chosen.name, "params": chosen.parameters}
        return written
