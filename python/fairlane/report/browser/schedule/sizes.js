/** Mean waits and slowdowns by the size of jobs. */

import { labelled, selection } from "report/card";
import { figure } from "report/chart";
import { data } from "report/data";
import { duration, escaped, number } from "report/format";
import { colourOf, sides } from "report/schedule/data";
import { colours } from "report/theme";

const HOUR = 3600;
const MEASURES = { wait: ["Wait", "mean wait, h", (value) => duration(value * HOUR)], bounded_slowdown: ["Bounded slowdown", "mean bounded slowdown", number], slowdown: ["Run slowdown", "mean run slowdown", (value) => value.toFixed(3)] };

export function startSizes() {
  if (!data.sentences.sizes) return;
  const { classes } = data.sizes;
  const measure = selection("sizes-measure", Object.entries(MEASURES).filter(([name]) => name !== "slowdown" || data.sentences.slowdown).map(([name, [title]]) => [name, title]), () => made.redraw());
  const form = (value) => MEASURES[measure.value][2](value);
  const of = (side, row, name) => { const at = side.of.sizes.classes.indexOf(name); const value = at < 0 ? null : row[measure.value][at]; return value === null || measure.value !== "wait" ? value : value / HOUR; };
  const made = figure({
    id: "sizes", title: "By size of jobs", sentence: data.sentences.sizes, height: () => 340, controls: [labelled("Mean of", measure)], note: "Classes of the number of hosts of a job.",
    option: () => ({
      grid: { left: 76, right: 20, top: 40, bottom: 50 }, legend: { top: 0, type: "scroll" },
      xAxis: { type: "category", data: classes, name: "hosts of a job", splitLine: { show: false }, axisLabel: { hideOverlap: true } },
      yAxis: { type: "value", min: measure.value === "wait" ? 0 : 1, name: MEASURES[measure.value][1], nameGap: 56, axisLabel: { formatter: number } },
      tooltip: { formatter: ({ seriesName, name, value, data: item }) => `<b>${escaped(seriesName)}</b>, ${escaped(name)} hosts<br>${MEASURES[measure.value][0].toLowerCase()}: ${form(value)}<br>${number(item.jobs)} jobs` },
      series: sides.flatMap((side) => side.of.sizes.rows.map((row) => ({
        type: "bar", name: `${row.allocator}${side.suffix}`, barMaxWidth: 22, color: colourOf(row.allocator), itemStyle: side.suffix ? { color: colours().card, borderColor: colourOf(row.allocator), borderWidth: 1.5 } : {},
        data: classes.map((name) => ({ value: of(side, row, name), jobs: row.jobs[side.of.sizes.classes.indexOf(name)] ?? 0 })),
      }))),
    }),
    csv: () => [["schedules", "allocator", "hosts", "jobs", "mean_wait_s", "mean_bounded_slowdown", "mean_slowdown"], ...sides.flatMap((side) => side.of.sizes.rows.flatMap((row) => side.of.sizes.classes.map((name, at) => [side.name, row.allocator, name, row.jobs[at], row.wait[at], row.bounded_slowdown[at], row.slowdown[at]])))],
  });
}
