/** The machine over time: utilisation, waiting jobs, the hosts that these ask for. */

import { labelled, selection } from "report/card";
import { figure } from "report/chart";
import { data } from "report/data";
import { escaped, number, percent } from "report/format";
import { colourOf, sides } from "report/schedule/data";

const HOUR = 3600;
const MEASURES = { utilisation: ["Utilisation", "allocated share of hosts", percent], waiting: ["Waiting jobs", "waiting jobs", number], wanted: ["Hosts that waiting jobs ask for", "hosts", number] };

export function startLoad() {
  if (!data.load.length) return;
  const measure = selection("load-measure", Object.entries(MEASURES).map(([name, [title]]) => [name, title]), () => made.redraw());
  const form = (value) => MEASURES[measure.value][2](value);
  const made = figure({
    id: "load", wide: true, title: "Machine over time", sentence: data.sentences.load, controls: [labelled("Show", measure)], height: () => 340,
    note: "Means over 300 intervals of the schedule. Stretch the slider for other times.",
    option: () => ({
      grid: { left: 70, right: 24, top: 40, bottom: 86 }, legend: { top: 0, type: "scroll" },
      tooltip: { trigger: "axis", formatter: (items) => `${number(items[0].value[0])} h<br>${items.map(({ marker, seriesName, value }) => `${marker}${escaped(seriesName)}: ${form(value[1])}`).join("<br>")}` },
      xAxis: { type: "value", name: "time, h", scale: true, axisLabel: { hideOverlap: true, formatter: number } },
      yAxis: { type: "value", min: 0, max: measure.value === "utilisation" ? 1 : null, name: MEASURES[measure.value][1], nameGap: 48, axisLabel: { formatter: (value) => form(value).replace(".0%", "%") } },
      dataZoom: [{ type: "slider", bottom: 6, height: 20, filterMode: "none", labelFormatter: (value) => `${number(value)} h` }],
      series: sides.flatMap(({ of, suffix, type }) => of.load.map((line) => ({ type: "line", name: `${line.allocator}${suffix}`, color: colourOf(line.allocator), showSymbol: false, step: "start", lineStyle: { width: 1.6, type }, data: line.at_s.map((at, row) => [at / HOUR, line[measure.value][row]]) }))),
    }),
    csv: () => [["schedules", "allocator", "until_s", ...Object.keys(MEASURES)], ...sides.flatMap(({ of, name }) => of.load.flatMap((line) => line.at_s.map((at, row) => [name, line.allocator, at, ...Object.keys(MEASURES).map((key) => line[key][row])])))],
  });
}
