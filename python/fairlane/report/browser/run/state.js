/** What is chosen on the page of a run. */

import { stateOf } from "report/state";

export const { chosen, choose, subscribe } = stateOf({
  metric: "active", // what links are coloured by: active, stalled, queue or jobs
  victim: null, // numbers of jobs, or null for all
  aggressor: null,
  interval: null, // number of the interval of samples, or null for the whole run
  difference: false, // whether links and matrix show the difference to the other run
  link: null,
  vertex: null,
});

/** Whether a job is among the chosen ones; all are if none is chosen. */
export const standsOut = (job) => {
  const wanted = [...(chosen.victim ?? []), ...(chosen.aggressor ?? [])];
  return wanted.length === 0 || wanted.includes(job);
};

export const opacity = (job) => (standsOut(job) ? 1 : 0.3);
