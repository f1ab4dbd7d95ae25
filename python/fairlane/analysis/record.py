"""What the simulator recorded of one job in one stretch of time: its messages, its waits, and packets that left."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

_ENDS = ["since_ps", "end_ps", "partner_at_ps"]
_INSTANTS = ["sent_at_ps", "posted_at_ps", "received_at_ps", "acknowledged_at_ps"]


@dataclass(frozen=True)
class Record:
    """The tables of a record; instants are picoseconds, signed here so that they can be subtracted."""

    job: str
    """The job that was recorded."""
    number: int
    """Its number in the run."""
    from_ps: int
    """When the stretch begins."""
    to_ps: int
    """When it ends."""
    messages: pl.DataFrame
    """One row per message between two ranks of the job."""
    waits: pl.DataFrame
    """One row per time that a rank of the job was blocked."""
    departures: pl.DataFrame
    """One row per packet, of any job, and link that it left over."""

    @classmethod
    def of(
        cls,
        job: str,
        number: int,
        span: tuple[int, int],
        *,
        messages: pl.DataFrame,
        waits: pl.DataFrame,
        departures: pl.DataFrame,
    ) -> Record:
        """The record with its tables as the simulator writes them."""
        signed = [pl.col(_INSTANTS).cast(pl.Int64), pl.col("bytes").cast(pl.Int64)]
        waited = [pl.col(_ENDS).cast(pl.Int64), pl.col("message").cast(pl.UInt64)]
        left = departures.select(
            pl.col("time_ps", "queueing_ps", "bytes").cast(pl.Int64),
            pl.col("link", "job", "token", "packet").cast(pl.UInt32),
            pl.col("lane", "stage").cast(pl.UInt8),
        )
        return cls(
            job,
            number,
            *span,
            messages.with_columns(*signed, pl.col("message").cast(pl.UInt64)),
            waits.with_columns(*waited),
            left,
        )

    def cut(self, from_ps: int, to_ps: int) -> Record:
        """What a record of a shorter stretch within this one would hold."""
        ended = pl.coalesce("acknowledged_at_ps", pl.when("eager").then("received_at_ps"), pl.lit(to_ps))
        return Record(
            self.job,
            self.number,
            from_ps,
            to_ps,
            self.messages.filter(pl.col("sent_at_ps") < to_ps, ended >= from_ps),
            self.waits.filter(pl.col("end_ps").is_between(from_ps, to_ps, closed="left")),
            self.departures.filter(pl.col("time_ps").is_between(from_ps, to_ps, closed="left")),
        )

    @property
    def seconds(self) -> float:
        """How long the stretch is, s."""
        return (self.to_ps - self.from_ps) * 1e-12
