"""Run times of timesteps from network counters: models, their errors on held-out runs, runs out of distribution.

``table.CounterTable`` reads counters; ``validation.compare`` and ``clusters.local`` cross-validate by run;
``model.fit`` makes a model to keep.
"""
