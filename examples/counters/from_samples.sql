-- From samples of counters, as monitoring keeps them, to a table for `fairlane predict`.
--
-- samples.csv: run, time, component, and counters that only grow: flits_vc0, stalls_vc0, flits_vc1 ... (any number)
-- steps.csv:   run, timestep, begin, seconds, in the same clock as time
--
-- What a component counted in a timestep is the difference of its last and its first sample within, so there must be
-- two samples at least, best one at either end. Then come sum, mean and maximum over the run's components.
COPY (
    WITH counted AS (
        SELECT run, timestep, seconds, component,
               max(COLUMNS('^\w+_vc\d+$')) - min(COLUMNS('^\w+_vc\d+$')) AS '\0'
        FROM 'steps.csv' JOIN 'samples.csv' USING (run)
        WHERE time BETWEEN begin AND begin + seconds
        GROUP BY run, timestep, seconds, component
    )
    SELECT run, timestep, seconds,
           sum(COLUMNS('^(\w+)_(vc\d+)$')) AS '\1_sum_\2',
           mean(COLUMNS('^(\w+)_(vc\d+)$')) AS '\1_mean_\2',
           max(COLUMNS('^(\w+)_(vc\d+)$')) AS '\1_max_\2'
    FROM counted
    GROUP BY run, timestep, seconds
    ORDER BY run, timestep
) TO 'counters.parquet'
