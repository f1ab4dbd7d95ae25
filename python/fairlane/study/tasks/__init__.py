"""Tasks: what is computed by itself, stored once, and found again when it is wanted again.

A **task** is a pure function of a description that can be pickled and has a digest (``task``). A **store** is a folder
with one answer for each task, by digest, with a checksum (``store``). An **executor** performs tasks in a pool (threads
or processes of this machine: ``pools``; Dask or Slurm: ``cluster``): it computes what the store does not have, tries
again what fails, reports progress, and keeps to a limit of processor time. Studies, sweeps of loads, advice, models of
slowdowns and reproductions of papers are such tasks, so ``--resume`` means the same for all of them.
"""
