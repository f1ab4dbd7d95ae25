/** The interference matrix of a run in progress: rows are victims, columns aggressors. */

import { figure } from "report/chart";
import { escaped, percent, seconds } from "report/format";
import { scaleOf } from "report/scale";
import { colours } from "report/theme";

const MOST_JOBS = 40; // rows: of more jobs, those with the greatest delays
const BINS = 32;

/** The matrix of the state that `current` returns. */
export function matrixFigure(current) {
  /** Jobs that are shown, in the order of the scenario. */
  const shown = () => {
    const { jobs, matrix } = current();
    const sums = new Float64Array(jobs.name.length);
    matrix.victim.forEach((victim, at) => {
      sums[victim] += matrix.queueing_s[at];
      if (matrix.aggressor[at] !== victim) sums[matrix.aggressor[at]] += matrix.queueing_s[at];
    });
    const order = jobs.name.map((_, job) => job).filter((job) => sums[job] > 0);
    return order.sort((a, b) => sums[b] - sums[a]).slice(0, MOST_JOBS).sort((a, b) => a - b);
  };
  const cells = () => {
    const { jobs, matrix, measured_s: time } = current();
    const place = new Map(shown().map((job, at) => [job, at]));
    return matrix.victim.map((victim, at) => ({ victim, aggressor: matrix.aggressor[at], delay: matrix.queueing_s[at] }))
      .filter(({ victim, aggressor }) => place.has(victim) && place.has(aggressor))
      .map((cell) => ({ ...cell, x: place.get(cell.aggressor), y: place.get(cell.victim), share: cell.delay / (jobs.ranks[cell.victim] * time), itself: cell.victim === cell.aggressor }));
  };
  const side = () => Math.max(14, Math.min(58, 560 / Math.max(shown().length, 1)));
  const words = () => {
    const { jobs, matrix, measured_s: time } = current();
    const others = cells().filter(({ itself }) => !itself).sort((a, b) => b.delay - a.delay);
    const omitted = matrix.kept < 0.9995 ? ` The cells have ${percent(matrix.kept)} of all queueing delay.` : "";
    if (!others.length) return `Up to ${seconds(time)} no job's packets were delayed by another job's.${omitted}`;
    const [{ victim, aggressor, share }] = others;
    return `Up to ${seconds(time)}, ${jobs.name[victim]} is delayed most by ${jobs.name[aggressor]}: ${percent(share)} of its rank time.${omitted}`;
  };
  const option = () => {
    const { jobs } = current();
    const all = cells();
    const { faint, ink, card } = colours();
    const scale = scaleOf(all.filter(({ itself }) => !itself).map(({ share }) => share), BINS);
    const names = shown().map((job) => jobs.name[job]);
    const axis = { type: "category", data: names, splitLine: { show: false }, axisLabel: { interval: 0, fontSize: names.length > 12 ? 10 : 12, width: 110, overflow: "truncate" } };
    return {
      grid: { left: 130, right: 90, top: 12, bottom: 132 },
      xAxis: { ...axis, name: "aggressor", nameGap: 112, axisLabel: { ...axis.axisLabel, rotate: 60 } },
      yAxis: { ...axis, name: "victim", nameGap: 116, inverse: true },
      visualMap: { type: "continuous", min: 0, max: 1, dimension: 2, right: 0, top: "middle", text: [scale.high, scale.low].map((value) => percent(value)), textStyle: { color: ink }, inRange: { color: scale.colours }, itemHeight: 160 },
      tooltip: { formatter: ({ value: [x, y, , delay, share, itself] }) => `<b>${escaped(names[y])}</b>, delayed by <b>${itself ? "its own packets" : escaped(names[x])}</b><br>queueing delay ${seconds(delay)}<br>${percent(share)} of the victim's rank time` },
      series: [{
        type: "heatmap", progressive: 0, itemStyle: { borderColor: card, borderWidth: names.length > 12 ? 0.5 : 1.5 }, emphasis: { itemStyle: { borderColor: ink, borderWidth: 1.5 } },
        data: all.map(({ x, y, delay, share, itself }) => ({ value: [x, y, itself ? -1 : scale.of(share) ?? 0, delay, share, itself], ...(itself && { visualMap: false, itemStyle: { color: faint } }) })),
      }],
    };
  };
  const made = figure({
    id: "live-matrix", title: "Interference matrix, so far", sentence: words(), option,
    note: "A cell is the queueing delay of the victim's packets that the aggressor's packets caused, as a share of the victim's rank time. Grey: a job's own packets.",
    height: () => 150 + side() * shown().length,
    width: () => Math.max(320, 230 + side() * shown().length),
    csv: () => [["victim", "aggressor", "queueing_s", "share_of_rank_time"], ...cells().map(({ victim, aggressor, delay, share }) => [current().jobs.name[victim], current().jobs.name[aggressor], delay, share])],
  });
  document.getElementById("live-matrix").classList.add("wide");
  return { ...made, words };
}
