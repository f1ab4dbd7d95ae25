"""Programs that mark their progress, one for each language: they do what the lines of their input say."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fairlane.cluster.agent.progress import Snapshot, scan
from fairlane.progress.layout import build
from possible import fortran

LAUNCHERS = ("FAIRLANE_", "SLURM", "OMPI_COMM", "PMIX_", "PMI_", "PBS_", "LSB_", "FLUX_", "XDG_RUNTIME")
"""How variables begin that say where a process belongs."""
C = r"""
#include <fairlane_progress.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void *mark(void *count) {
    for (long i = 0; i < *(long *)count; i++) fairlane_mark_progress();
    return NULL;
}

int main(int argc, char **argv) {
    char line[200], word[100];
    double value;
    (void)argc;
    setbuf(stdin, NULL); /* what is left of the input is for the program after exec */
    while (fgets(line, sizeof line, stdin) != NULL && sscanf(line, "%99s %lf", word, &value) == 2) {
        long count = (long)value;
        if (strcmp(word, "mark") == 0) mark(&count);
        if (strcmp(word, "fraction") == 0) fairlane_mark_progress_fraction(value);
        if (strcmp(word, "open") == 0) count = fairlane_progress_open();
        if (strcmp(word, "close") == 0) fairlane_progress_close();
        if (strcmp(word, "exec") == 0) execv(argv[0], argv);
        if (strcmp(word, "fork") == 0) { /* it is the child that answers */
            if (fork() != 0) continue;
            mark(&count);
        }
        if (strcmp(word, "child") == 0 && fork() == 0) {
            mark(&count);
            exit(0);
        }
        if (strcmp(word, "wait") == 0 || strcmp(word, "child") == 0) wait(NULL);
        if (strcmp(word, "threads") == 0) {
            pthread_t threads[4];
            for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, mark, &count);
            for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
        }
        printf("%s %ld %ld\n", word, count, (long)getpid());
        fflush(stdout);
        if (strcmp(word, "fork") == 0) pause();
    }
    return 0;
}
"""
FORTRAN = """
program marks
  use fairlane_progress
  use, intrinsic :: iso_c_binding, only: c_double
  implicit none
  character(len=100) :: word
  double precision :: value
  integer :: i, ended
  do
    read (*, *, iostat=ended) word, value
    if (ended /= 0) exit
    if (word == "mark") then
      do i = 1, int(value)
        call fairlane_mark_progress()
      end do
    end if
    if (word == "fraction") call fairlane_mark_progress_fraction(real(value, c_double))
    if (word == "close") call fairlane_progress_close()
    if (word == "open") i = fairlane_progress_open()
    print "(a,i0)", trim(word) // " ", i
    flush (6)
  end do
end program marks
"""
PYTHON = """
import os, signal, sys, threading
from fairlane import progress

def mark(count):
    for _ in range(int(count)):
        progress.mark_progress()

for line in iter(sys.stdin.readline, ""):
    word, value = line.split()
    count = float(value)
    if word == "mark":
        mark(count)
    elif word == "fraction":
        progress.mark_progress_fraction(count)
    elif word == "open":
        progress.open_progress()
    elif word == "close":
        progress.close_progress()
    elif word == "fork":
        if os.fork():
            continue
        mark(count)
    elif word == "child":
        if not os.fork():
            mark(count)
            sys.exit()
        os.wait()
    elif word == "wait":
        os.wait()
    elif word == "threads":
        threads = [threading.Thread(target=mark, args=(count,)) for _ in range(4)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
    print(word, 0 if word == "fraction" else int(count), os.getpid(), flush=True)
    if word == "fork":
        signal.pause()
"""


def compiled(folder: Path) -> Path:
    """The C program, linked with the library, which ``build`` has made."""
    build(folder)
    (folder / "marks.c").write_text(C)
    strict = ("-std=c11", "-D_POSIX_C_SOURCE=200809L", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-pthread")
    files = ("-I", folder, "-o", folder / "marks", folder / "marks.c", folder / "libfairlane-progress.a")
    subprocess.run(["cc", *strict, *files], check=True)
    return folder / "marks"


def compiled_fortran(folder: Path) -> Path:
    """The Fortran program, linked with the library."""
    compiler = fortran()
    assert compiler is not None
    build(folder, FC=compiler)
    (folder / "marks.f90").write_text(FORTRAN)
    libraries = ("fairlane_progress_fortran.o", "libfairlane-progress.a", "-lgfortran", "-pthread")
    subprocess.run([compiler, "-o", "marks_fortran", "marks.f90", *libraries], cwd=folder, check=True)
    return folder / "marks_fortran"


def surroundings(pages: Path, **more: str) -> dict[str, str]:
    """Variables of a process with its page in a folder, which no launcher of this test run has set."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(LAUNCHERS)}
    return kept | {"FAIRLANE_PROGRESS_DIR": str(pages)} | more


class Marking:
    """A program that marks its progress."""

    def __init__(self, command: list[str], environment: Mapping[str, str]) -> None:
        pipe = subprocess.PIPE
        self.process: subprocess.Popen[str] = subprocess.Popen(
            command, env=environment, stdin=pipe, stdout=pipe, stderr=pipe, text=True
        )

    def do(self, word: str, value: float = 0) -> list[int]:
        """What the program answers when it has done this."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{word} {value}\n")
        self.process.stdin.flush()
        return self.answer(word)

    def answer(self, word: str) -> list[int]:
        """The numbers of its next answer."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line.startswith(f"{word} "), (line, self.process.poll())
        return [int(number) for number in line.split()[1:]]

    def end(self) -> str:
        """Ends the program as it ends by itself; what it has said on standard error."""
        _, error = self.process.communicate()
        assert self.process.returncode == 0
        return error


@contextmanager
def marking(command: list[str], pages: Path, **more: str) -> Iterator[Marking]:
    """Runs a program; kills it if it still runs afterwards."""
    started = Marking(command, surroundings(pages, **more))
    try:
        yield started
    finally:
        with started.process:
            started.process.kill()


def python() -> list[str]:
    """The command of the Python program."""
    return [sys.executable, "-W", "always", "-c", PYTHON]


def marks(pages: Path) -> dict[Any, float]:
    """The marks of every job and rank."""
    return {key: one.marks for key, one in snapshot(pages).by_rank.items()}


def snapshot(pages: Path) -> Snapshot:
    """What the pages of a folder say."""
    return scan([pages])
