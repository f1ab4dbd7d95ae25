"""Around simulations: a testbed of real processes, timelines, the server, and checks of an installation."""
