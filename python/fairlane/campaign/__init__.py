"""Campaigns: jobs measured on a real machine, alone and beside an aggressor, and predicted by the simulator.

``script`` writes what measures a campaign's cells on a user's machine: ``measure.c``, ``run.bash`` and batch scripts;
``namespaces`` runs them on a testbed of this machine. ``reading`` makes tables of their results, and with ``crab`` of
those of CRAB.
"""
