/** The value of every link for what is chosen: a metric, an interval, a victim and an aggressor, a difference. */

import { comparison, data } from "report/data";
import { number, percent, seconds } from "report/format";
import { linkCount } from "report/run/data";
import { chosen } from "report/run/state";

const share = (value) => percent(value);
export const METRICS = {
  active: { label: "Utilisation", short: "Utilisation", unit: "share of time that the link transmits", form: share },
  stalled: { label: "Stalled", short: "Stalled", unit: "share of time that packets wait and no credits are there", form: share },
  queue: { label: "Queue length", short: "Packets", unit: "mean number of queued packets", form: number },
  jobs: { label: "Queueing delay between jobs", short: "Delay", unit: "queueing delay of the victim's packets that the aggressor caused", form: seconds },
};

/** Whether a pair of jobs is what is chosen. Without a choice of both, delay by a job's own packets does not count. */
export function pairWanted(victim, aggressor) {
  const { victim: victims, aggressor: aggressors } = chosen;
  if (victims && !victims.includes(victim)) return false;
  if (aggressors && !aggressors.includes(aggressor)) return false;
  return victim !== aggressor || (victims !== null && aggressors !== null);
}

function between(cells) {
  const found = new Float32Array(linkCount);
  if (!cells) return found;
  for (let row = 0; row < cells.link.length; row += 1) {
    if (pairWanted(cells.victim[row], cells.aggressor[row])) found[cells.link[row]] += cells.queueing_s[row];
  }
  return found;
}

function inInterval(metric, interval) {
  const { max, roots } = data.samples[metric];
  const found = new Float32Array(linkCount);
  const start = interval * linkCount;
  for (let link = 0; link < linkCount; link += 1) found[link] = max * (roots[start + link] / 255) ** 2;
  return found;
}

/** Whether the slider can be used with what is chosen. */
export const overTime = () => data.samples !== null && chosen.metric !== "jobs" && !chosen.difference;

/** One value for each link. */
export function linkValues() {
  const { metric, interval, difference } = chosen;
  if (overTime() && interval !== null) return inInterval(metric, interval);
  const own = metric === "jobs" ? between(data.by_jobs) : data.measured?.[metric] ?? new Float32Array(linkCount);
  if (!difference) return own;
  const other = metric === "jobs" ? between(comparison.by_jobs) : comparison.measured?.[metric] ?? new Float32Array(linkCount);
  return own.map((value, link) => value - other[link]);
}

/** The greatest value of a metric over all intervals, so that colours mean the same in each of them. */
export const highestSample = (metric) => data.samples[metric].max;

/** Pairs of jobs on a link with their queueing delay, s, the greatest first. */
export function pairsOf(link) {
  const found = [];
  const cells = data.by_jobs;
  if (!cells) return found;
  let [low, high] = [0, cells.link.length]; // rows are in the order of links
  while (low < high) {
    const middle = (low + high) >> 1;
    if (cells.link[middle] < link) low = middle + 1;
    else high = middle;
  }
  for (let row = low; row < cells.link.length && cells.link[row] === link; row += 1) {
    found.push({ victim: cells.victim[row], aggressor: cells.aggressor[row], seconds: cells.queueing_s[row] });
  }
  return found.sort((a, b) => b.seconds - a.seconds);
}
