/** The value of every link for what is chosen: a metric, an interval, a victim and an aggressor, a difference. */

import { number, percent, seconds } from "fairlane/kit";
import { chosen } from "fairlane/state";

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
    const found = [];
    for (let row = at.indexOf(link); row >= 0 && at[row] === link; row += 1) found.push({ victim: victim[row], aggressor: aggressor[row], seconds: delay[row] });
    return found.sort((a, b) => b.seconds - a.seconds);
  };
  /** The greatest value of a metric over all intervals, so that colours mean the same in each of them. */
  const highest = () => (overTime() && chosen.interval !== null ? data.samples[chosen.metric].max : 0);
  return { current, overTime, pairsOf, highest };
}
