"""The PMPI shim: programs that are not changed are marked at the calls that are asked for, and run as they would."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fairlane.progress.layout import build
from marking import marks, surroundings
from possible import fortran, no_compiler, no_mpi
from waiting import HANG_S, wait_for

pytestmark = pytest.mark.live("progress", absent=lambda: no_mpi() or no_compiler())

RANKS, ITERATIONS = 2, 12
C = """
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv) {
    int rank, one = 1, sum = 0, provided;
    char name[20];
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < 12; i++) {
        MPI_Request request;
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Ibcast(&sum, 1, MPI_INT, 0, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Sendrecv(&rank, 1, MPI_INT, 1 - rank, 0, &one, 1, MPI_INT, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        one = 1;
    }
    snprintf(name, sizeof name, "%d.done", rank);
    fprintf(fopen(name, "w"), "%d", sum);
    while (access("go", F_OK) != 0) usleep(10000);
    return MPI_Finalize();
}
"""
FORTRAN = """
program calls
  {use}
  implicit none
  {include}
  integer :: rank, one, total, i, ended
  character(len=20) :: name
  logical :: there
  call MPI_Init(ended)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ended)
  one = 1
  do i = 1, 12
    call MPI_Allreduce(one, total, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ended)
    call MPI_Barrier(MPI_COMM_WORLD, ended)
  end do
  write (name, "(i0,a)") rank, ".done"
  open (7, file=name)
  write (7, "(i0)", advance="no") total
  close (7)
  do
    inquire (file="go", exist=there)
    if (there) exit
    call sleep(1)
  end do
  call MPI_Finalize(ended)
end program calls
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pmpi") / "build"
    build(folder)
    (folder / "calls.c").write_text(C)
    subprocess.run(["mpicc", "-o", "calls", "calls.c"], cwd=folder, check=True)
    return folder


@contextmanager
def running(folder: Path, program: str, place: Path, **settings: str) -> Iterator[subprocess.Popen[bytes]]:
    """A program whose ranks have made all their calls, and end when the block ends."""
    place.mkdir()
    own = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    chosen = {"LD_PRELOAD": str(folder / "libfairlane-pmpi.so"), **settings}
    command = ["mpirun", "--oversubscribe", "--mca", "mpi_yield_when_idle", "1", "-np", str(RANKS), "env"]
    command += [*(f"{name}={value}" for name, value in chosen.items()), str(folder / program)]
    environment = surroundings(place / "pages", FAIRLANE_JOB="j", **own)
    with (
        (place / "error").open("w") as error,
        subprocess.Popen(command, cwd=place, env=environment, stderr=error) as started,
    ):
        try:
            for rank in range(RANKS):
                wait_for((place / f"{rank}.done").exists, f"rank {rank}", started)
            yield started
        finally:
            (place / "go").touch()
            started.wait(HANG_S)


def of_all(count: int) -> dict[tuple[str, int], float]:
    return {("j", rank): count for rank in range(RANKS)}


@pytest.mark.parametrize(
    ("settings", "count"),
    [
        ({"CALL": "MPI_Allreduce"}, ITERATIONS),
        ({"CALL": "MPI_Wait"}, ITERATIONS),
        ({"CALL": "MPI_Ibcast", "EVERY": "3"}, ITERATIONS // 3),
        ({"CALL": "MPI_Gather"}, None),
        ({"EVERY": "1"}, 5 * ITERATIONS),
        ({"EVERY": "7"}, 5 * ITERATIONS // 7),
    ],
    ids=str,
)
def test_calls_are_marked(settings: dict[str, str], count: int | None, folder: Path, tmp_path: Path) -> None:
    chosen = {f"FAIRLANE_PROGRESS_{name}": value for name, value in settings.items()}
    with running(folder, "calls", tmp_path / "run", **chosen) as started:
        assert marks(tmp_path / "run" / "pages") == ({} if count is None else of_all(count))
    assert started.returncode == 0
    assert "fairlane" not in (tmp_path / "run" / "error").read_text()
    assert not count or list((tmp_path / "run" / "pages").iterdir()) == []


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"CALL": "MPI_Alreduce"}, ('FAIRLANE_PROGRESS_CALL = "MPI_Alreduce": unknown call', '"MPI_Allreduce"?')),
        ({"CALL": "mpi_barrier"}, ("MPI_Barrier, MPI_Bcast, ", 'did you mean "MPI_Barrier"?')),
        ({"CALL": "x" * 300}, ("unknown call; allowed: MPI_Barrier",)),
        ({"CALL": "MPI_Barrier", "EVERY": "0"}, ('FAIRLANE_PROGRESS_EVERY = "0": not a number', "1 or more")),
        ({"EVERY": "-3"}, ('"-3": not a number',)),
        ({"EVERY": "9" * 30}, ("not a number of calls",)),
        ({}, ("set FAIRLANE_PROGRESS_CALL, FAIRLANE_PROGRESS_EVERY or both",)),
    ],
    ids=str,
)
def test_wrong_settings_are_reported_once_and_nothing_is_marked(
    settings: dict[str, str], words: tuple[str, ...], folder: Path, tmp_path: Path
) -> None:
    chosen = {f"FAIRLANE_PROGRESS_{name}": value for name, value in settings.items()}
    with running(folder, "calls", tmp_path / "run", **chosen) as started:
        assert not (tmp_path / "run" / "pages").exists()
    error = (tmp_path / "run" / "error").read_text()
    assert (started.returncode, error.count("fairlane: no progress is marked: ")) == (0, 1)
    assert [word for word in words if word not in error] == []
    assert {(tmp_path / "run" / f"{rank}.done").read_text() for rank in range(RANKS)} == {str(RANKS)}


@pytest.mark.skipif(fortran() is None, reason="no Fortran compiler (gfortran)")
@pytest.mark.parametrize("binding", ["mpif.h", "mpi_f08"])
def test_calls_from_fortran_are_marked(binding: str, folder: Path, tmp_path: Path) -> None:
    parts = {"use": "", "include": f"include '{binding}'"} if binding == "mpif.h" else {"use": f"use {binding}"}
    source = folder / f"{binding.replace('.', '_')}.f90"
    source.write_text(FORTRAN.format(**({"include": ""} | parts)))
    compiler = os.environ | {"OMPI_FC": str(fortran())}
    command = ["mpifort", "-o", source.stem, source.name, "-lgfortran"]
    done = subprocess.run(command, cwd=folder, env=compiler, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"mpifort cannot compile a program with {binding}: {done.stderr.strip()[:200]}")
    with running(folder, source.stem, tmp_path / "run", FAIRLANE_PROGRESS_CALL="MPI_Allreduce"):
        assert marks(tmp_path / "run" / "pages") == of_all(ITERATIONS)
    assert (tmp_path / "run" / "0.done").read_text().strip() == str(RANKS)
