/** What is chosen in the fabric and in the matrix, who wants to know when that changes, and the value of every link. */

import { number, percent, seconds } from "fairlane/kit";

const state = {
  metric: "active", // what links are coloured by: active, stalled, queue, jobs or rail
  victim: null, // numbers of jobs, or null for all
  aggressor: null,
  interval: null, // number of the interval of samples, or null for the whole run
  difference: false, // whether links and matrix show the difference to the other run
  link: null,
  vertex: null,
};
const listeners = [];
export const chosen = new Proxy(state, { set: () => false });

/** Changes some of the state, and calls everybody who subscribed to one of these keys, once. */
export function choose(changes) {
  const changed = Object.keys(changes).filter((key) => state[key] !== changes[key]);
  Object.assign(state, changes);
  for (const { keys, call } of listeners) if (changed.some((key) => keys.includes(key))) call();
}

export const subscribe = (keys, call) => listeners.push({ keys, call });

const share = (value) => percent(value, chosen.difference);
export const METRICS = {
  active: { label: "Utilisation", unit: "share of time that the link transmits", form: share },
  stalled: { label: "Stalled", unit: "share of time that packets wait and no credits are there", form: share },
  queue: { label: "Queue length", unit: "mean number of queued packets", form: number },
  jobs: { label: "Queueing delay between jobs", unit: "queueing delay of the victim's packets that the aggressor caused", form: seconds },
  rail: { label: "Rail", unit: "number of the adapter of a host, from 1 on", form: (value) => (value ? String(value) : "–") },
};

/** Whether a pair of jobs is what is chosen. Without a choice of both, delay by a job's own packets does not count. */
function wanted(victim, aggressor) {
  const { victim: victims, aggressor: aggressors } = chosen;
  if (victims && !victims.includes(victim)) return false;
  if (aggressors && !aggressors.includes(aggressor)) return false;
  return victim !== aggressor || (victims !== null && aggressors !== null);
}

/** The rows of a table, sorted by link, of one link. */
export function rowsOf(links, link) {
  const first = links.indexOf(link);
  return first < 0 ? [] : Array.from({ length: links.lastIndexOf(link) - first + 1 }, (_, at) => first + at);
}

export function valuesOf(data, count) {
  const nothing = new Float32Array(count);
  const between = (cells) => {
    const found = new Float32Array(count);
    cells?.link.forEach((link, row) => { if (wanted(cells.victim[row], cells.aggressor[row])) found[link] += cells.queueing_s[row]; });
    return found;
  };
  const of = ({ by_jobs: cells, measured }, metric) => (metric === "jobs" ? between(cells) : measured?.[metric] ?? nothing);
  /** Whether the slider can be used with what is chosen. */
  const overTime = () => data.samples !== null && chosen.metric in data.samples && !chosen.difference;
  const current = () => {
    const { metric, interval, difference } = chosen;
    if (metric === "rail") return Float32Array.from(data.fabric.links.rail, (rail) => (rail === 255 ? 0 : rail + 1));
    if (overTime() && interval !== null) {
      const { max, roots } = data.samples[metric];
      return Float32Array.from({ length: count }, (_, link) => max * (roots[interval * count + link] / 255) ** 2);
    }
    const own = of(data, metric);
    if (!difference) return own;
    const other = of(data.compare, metric);
    return own.map((value, link) => value - other[link]);
  };
  /** Pairs of jobs on a link with their queueing delay, s, the greatest first. */
  const pairsOf = (link) => {
    const { link: at, victim, aggressor, queueing_s: delay } = data.by_jobs ?? { link: [] };
    return rowsOf(at, link).map((row) => ({ victim: victim[row], aggressor: aggressor[row], seconds: delay[row] })).sort((a, b) => b.seconds - a.seconds);
  };
  /** The greatest value of a metric over all intervals, so that colours mean the same in each of them. */
  const highest = () => (overTime() && chosen.interval !== null ? data.samples[chosen.metric].max : 0);
  return { current, overTime, pairsOf, highest };
}
