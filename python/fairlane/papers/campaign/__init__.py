"""Campaigns: measurements of jobs beside each other on a real machine, predicted before they are compared.

A campaign is a folder. ``campaign.toml`` says what the victims and aggressors do, which scenario is the model and what
of it is not known (``file``); a table has the **cells**, each a victim of one message size beside an aggressor on so
many nodes, and what was measured (``cells``); predictions are registered in it and never changed (``registry``). A
prediction is made of simulations (``simulating``), parameters are fitted on isolated runs only (``fitting``), comparing
needs a registered prediction (``comparing``), and what remains unknown is a map (``robustness``).

``script`` writes what measures the cells on a user's own machine: ``measure.c``, ``run.bash`` and batch scripts;
``namespaces`` runs them on a testbed. ``reading`` makes the tables of a campaign from results, those of CRAB too
(``crab``).
"""
