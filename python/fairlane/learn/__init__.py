"""Fitted models: predictions of tables of counters, and of slowdowns in schedules of job logs."""
