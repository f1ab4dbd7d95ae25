"""A testbed: a small real network on this machine, MPI jobs on it, and the simulator's prediction of what they do.

``file`` is the TOML file, ``plan`` the namespaces and devices, ``machine`` makes and removes them. ``script`` and
``replay.c`` are what ranks do, ``mpi`` starts them, ``control`` is the memory through which they are measured, and
``measure`` has the phases. ``simulate`` predicts, ``controlled`` lets the agent decide, ``results`` and ``experiment``
put measured and predicted values together.
"""
