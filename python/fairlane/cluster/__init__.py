"""Real clusters: settings of OpenSM, counters of ports, and the agent that gives service levels to jobs."""
