/** Axes that figures have in common. */

import { WIDE } from "report/constants";
import { percent } from "report/format";

const MOST_BARS = 36; // categories that are shown at a time

/** Room for an axis of names. */
export const LEFT = { left: 140, right: 34, top: 34, bottom: 46 };

export const percentAxis = { type: "value", axisLabel: { hideOverlap: true, formatter: (value) => percent(value).replace(".0%", "%") } };
/** The same for changes. */
export const changeAxis = { type: "value", axisLabel: { hideOverlap: true, formatter: (value) => percent(value, true).replace(".0%", "%") } };

/** Room for names, px, in a chart of some width: at most a third of it. */
export const roomFor = (names, width) => Math.min(Math.max(60, Math.round(6.6 * Math.max(0, ...names.map((name) => name.length)))), Math.max(120, width / 3));

/** A vertical axis of names, from the top; of many a part at a time. Returns parts of an option, and a height. */
export function nameAxis(names, room = 130) {
  const many = names.length > MOST_BARS;
  return {
    yAxis: { type: "category", data: names, inverse: true, splitLine: { show: false }, axisLabel: { interval: 0, width: room, overflow: "truncate" } },
    dataZoom: many ? [{ type: "slider", yAxisIndex: 0, startValue: 0, endValue: MOST_BARS - 1, width: 14, right: 4, showDetail: false, brushSelect: false }] : [],
    height: 90 + 19 * Math.min(names.length, MOST_BARS),
  };
}

/** Ends of a logarithmic axis near the extremes of what it shows. */
export function logarithmicEnds(values) {
  const round = (value, to) => to(value / 10 ** Math.floor(Math.log10(value))) * 10 ** Math.floor(Math.log10(value));
  return { min: round(Math.min(...values), Math.floor), max: round(Math.max(...values), Math.ceil) };
}

/** Whether an axis of these numbers is logarithmic: see views/scales.py. */
export function isWide(values) {
  const positive = values.filter((value) => value !== null);
  return positive.length > 1 && Math.min(...positive) > 0 && Math.max(...positive) > WIDE * Math.min(...positive);
}
