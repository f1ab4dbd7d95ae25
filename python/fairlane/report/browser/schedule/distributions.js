/** Distributions of waits and slowdowns: the share of jobs above each value, by allocator. */

import { logarithmicEnds } from "report/axes";
import { figure } from "report/chart";
import { data } from "report/data";
import { duration, escaped, number, percent } from "report/format";
import { colourOf, sides } from "report/schedule/data";

const FIGURES = {
  wait: { title: "Waits", axis: "wait, s", form: duration, least: 1, note: "Waits below 1 s are at the left end." },
  bounded_slowdown: { title: "Bounded slowdowns", axis: "bounded slowdown", form: number, least: 1, note: "(Wait + time that a job ran) over the run time of the log, of which at least 10 s count." },
  slowdown: { title: "Run slowdowns", axis: "run slowdown", form: number, least: 0, note: "Time that a job ran over the run time of the log." },
};

function distribution(id, { title, axis, form, least, note }) {
  const sentence = data.sentences[id];
  if (!sentence) return;
  const lines = sides.flatMap(({ of, suffix, type, name }) => of.distributions[id].map((line) => ({ ...line, name, label: `${line.allocator}${suffix}`, type })));
  const at = (value) => Math.max(value, least);
  const ends = logarithmicEnds(lines.flatMap(({ value }) => value.map(at)));
  figure({
    id, title, sentence, height: () => 340, note: `Share of jobs above each value; the horizontal axis is logarithmic. ${note}`,
    option: () => ({
      grid: { left: 64, right: 24, top: 40, bottom: 50 }, legend: { top: 0, type: "scroll" },
      tooltip: { trigger: "axis", axisPointer: { label: { formatter: ({ value }) => form(value) } }, formatter: (items) => `above ${form(items[0].value[0])}<br>${items.map(({ marker, seriesName, value }) => `${marker}${escaped(seriesName)}: ${percent(value[1])}`).join("<br>")}` },
      xAxis: { type: "log", name: axis, ...ends, axisLabel: { formatter: number, hideOverlap: true } },
      yAxis: { type: "value", min: 0, max: 1, name: "share of jobs above", nameGap: 46, axisLabel: { formatter: (value) => `${Math.round(100 * value)}%` } },
      series: lines.map((line) => ({ type: "line", name: line.label, color: colourOf(line.allocator), showSymbol: false, lineStyle: { width: 2, type: line.type }, data: line.value.map((value, row) => [at(value), line.above[row]]) })),
    }),
    csv: () => [["schedules", "allocator", id === "wait" ? "wait_s" : id, "share_of_jobs_above"], ...lines.flatMap((line) => line.value.map((value, row) => [line.name, line.allocator, value, line.above[row]]))],
  });
}

export function startDistributions() {
  for (const [id, given] of Object.entries(FIGURES)) distribution(id, given);
}
