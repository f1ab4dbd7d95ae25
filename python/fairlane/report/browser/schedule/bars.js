/**
 * Bars of many jobs, fast: all bars of one colour are one path, so thousands move without delay.
 * ECharts does not know single bars then; which one is at a place is found here.
 */

const THIN = 0.25; // px below which a bar is not drawn
const GAP = 0.5; // px between bars that are next to each other

const Bars = echarts.graphic.extendShape({
  type: "bars",
  shape: { rects: [] },
  buildPath(context, { rects }) {
    for (let at = 0; at < rects.length; at += 4) context.rect(rects[at], rects[at + 1], rects[at + 2], rects[at + 3]);
  },
});
echarts.graphic.registerShape("bars", Bars);

/** Bars of a schedule as columns: begin and end, h; lowest place and the one above the highest; job. */
export function barsOf(schedule, hour) {
  const { bar_job: job, bar_low: low, bar_high: high } = schedule;
  return { job, low, high, begin: Float64Array.from(job, (one) => schedule.start[one] / hour), end: Float64Array.from(job, (one) => schedule.end[one] / hour) };
}

/** The number of the bar at a time, h, and a place of hosts; -1 if there is none. */
export function barAt({ begin, end, low, high, job }, time, place) {
  for (let at = 0; at < job.length; at += 1) if (begin[at] <= time && time < end[at] && low[at] <= place && place < high[at]) return at;
  return -1;
}

/** What a custom series draws: those of the bars with these numbers that are inside of the grid, at least so wide (px). */
export function drawn(bars, { coordSys: box }, api, numbers, style, least = 0) {
  const [x0, y0] = api.coord([0, 0]);
  const [x1, y1] = api.coord([1, 1]);
  const [wide, high] = [x1 - x0, y1 - y0];
  const [left, right] = [box.x, box.x + box.width];
  const rects = [];
  for (const at of numbers) {
    const from = Math.max(x0 + wide * bars.begin[at], left);
    const to = Math.min(Math.max(x0 + wide * bars.end[at], from + least), right);
    if (to - from < THIN) continue;
    const top = y0 + high * bars.high[at];
    rects.push(from, top, to - from > 4 * GAP ? to - from - GAP : to - from, Math.max(y0 + high * bars.low[at] - top - GAP, GAP));
  }
  return rects.length ? { type: "bars", shape: { rects }, style } : null;
}
