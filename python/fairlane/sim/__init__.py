"""From a scenario to tables: simulations, runs, controllers, and the analysis of a run."""
