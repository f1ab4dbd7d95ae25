"""The agent: from the jobs of Slurm to service levels on the real fabric, by predictions of a digital twin.

``config.AgentConfig`` is ``agent.toml`` as read; an ``agent.Agent`` with an open ``journal.Journal`` decides, and a
backend of ``backends.BACKENDS`` carries it out. ``journal.status_of`` reads what a journal says.
"""
