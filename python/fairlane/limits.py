"""The limit on waiting for other programs and processes: it is for those that hang, however slow the machine is."""

HANG_S = 1800.0
"""How long a program may take that takes a second on a machine with nothing else to do, s."""
