"""What a mark of progress costs, ns: beside an empty loop and a read of the clock, in the same process.

The C library, as a program calls it, and the Python module. The least of ten rounds is printed: what others do on the
machine only adds to it.

Usage: ``python benches/progress.py``; it needs a C compiler and make.
"""

import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from fairlane import progress
from fairlane.progress.layout import build

PROGRAM = r"""
#define _POSIX_C_SOURCE 200809L
#include <fairlane_progress.h>
#include <stdio.h>
#include <time.h>

enum { ROUNDS = 10, CALLS = 1000000 };

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return 1e9 * (double)time.tv_sec + (double)time.tv_nsec;
}

#define MEASURE(name, call)                                                                  \
    do {                                                                                     \
        double least = 1e30;                                                                 \
        for (int round = 0; round < ROUNDS; round++) {                                       \
            double start = now();                                                            \
            for (volatile int i = 0; i < CALLS; i++) call;                                   \
            double spent = (now() - start) / CALLS;                                          \
            if (spent < least) least = spent;                                                \
        }                                                                                    \
        printf("%-34s %6.1f ns\n", name, least);                                             \
    } while (0)

int main(void) {
    struct timespec time;
    if (fairlane_progress_open() != 0) return 1;
    MEASURE("empty loop", (void)0);
    MEASURE("clock_gettime(CLOCK_MONOTONIC)", clock_gettime(CLOCK_MONOTONIC, &time));
    MEASURE("fairlane_mark_progress", fairlane_mark_progress());
    MEASURE("fairlane_mark_progress_fraction", fairlane_mark_progress_fraction(0.5));
    return 0;
}
"""


def least(call: Callable[[], object], calls: int = 100_000) -> float:
    """The least time of a call of a Python function, ns."""
    rounds = []
    for _ in range(10):
        start = time.perf_counter_ns()
        for _ in range(calls):
            call()
        rounds.append((time.perf_counter_ns() - start) / calls)
    return min(rounds)


def main() -> None:
    """Prints both tables."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch, "build")
        build(folder)
        (folder / "bench.c").write_text(PROGRAM)
        linked = ["-I.", "-L.", f"-Wl,-rpath,{folder}", "-lfairlane-progress"]
        subprocess.run(["cc", "-O2", "bench.c", "-o", "bench", *linked], cwd=folder, check=True)
        os.environ["FAIRLANE_PROGRESS_DIR"] = str(folder / "pages")
        print("C", flush=True)
        subprocess.run([folder / "bench"], check=True)
        print("Python")
        rows: dict[str, Callable[[], object]] = {
            "empty call": lambda: None,
            "time.monotonic_ns": time.monotonic_ns,
            "mark_progress": progress.mark_progress,
        }
        for name, call in rows.items():
            print(f"{name:34} {least(call):6.1f} ns")
        progress.close_progress()


if __name__ == "__main__":
    main()
