"""What a socket draws, how fast it runs under a cap, and how much longer that makes a computation.

At the share ``f`` of its full frequency a busy socket draws

    P(f) = idle + e (busy - idle) f^3

because dynamic power goes with the square of the voltage times the frequency, and the voltage with the frequency
(K. Choi, R. Soma, M. Pedram, DATE 2004; X. Fan, W.-D. Weber, L. Barroso, ISCA 2007 measure the idle part). ``e`` is the
socket's own: manufacturing makes sockets draw different power at one frequency, so under one cap they run at different
speeds (B. Rountree et al., HPPAC 2012; Y. Inadomi et al., SC 2015). A cap sets the greatest ``f`` with P(f) <= cap.

A computation of which the part ``m`` waits for memory, which keeps its own clock, takes

    T(f) = T(1) (m + (1 - m) / f)

times as long (C.-H. Hsu and U. Kremer, PLDI 2003).
"""

from dataclasses import dataclass

__all__ = ["Socket", "stretch"]


@dataclass(frozen=True)
class Socket:
    """One socket: powers in watts."""

    idle: float
    """Power when nothing computes, W."""
    busy: float
    """Power of the mean socket when all its cores compute at full frequency, W."""
    factor: float = 1.0
    """``e``: its dynamic power over the mean socket's at the same frequency; more is worse."""

    def dynamic(self, frequency: float) -> float:
        """Dynamic power at this relative frequency, W."""
        return self.factor * (self.busy - self.idle) * frequency**3

    def frequency(self, cap: float | None) -> float:
        """The relative frequency under a cap; exactly 1 without a cap, or if the cap is not reached."""
        if cap is None or self.idle + self.dynamic(1.0) <= cap:
            return 1.0
        return float(((cap - self.idle) / self.dynamic(1.0)) ** (1 / 3))


def stretch(frequency: float, memory_bound: float) -> float:
    """Relative duration of a computation at this relative frequency; exactly 1 at full frequency."""
    return 1.0 if frequency == 1.0 else memory_bound + (1.0 - memory_bound) / frequency
