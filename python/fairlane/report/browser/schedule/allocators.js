/** Allocators compared: a small chart for each metric. */

import { figure } from "report/chart";
import { comparison, data } from "report/data";
import { duration, escaped, percent } from "report/format";
import { colourOf, sides } from "report/schedule/data";
import { colours } from "report/theme";

const WIDE = 300; // px of a chart, at least
const TOP = 26;
const GAP = 34;
const factor = (value) => value.toFixed(3);
const METRICS = [
  ["utilisation", "utilisation", percent], ["useful", "useful", percent], ["mean_wait", "mean wait", duration], ["median_wait", "median wait", duration],
  ["mean_bounded_slowdown", "mean bounded slowdown", (value) => value.toFixed(2)], ["mean_slowdown", "mean run slowdown", factor], ["weighted_slowdown", "run slowdown by hosts' time", factor],
  ["interference", "lost to neighbours", percent], ["fragmentation", "fragmented", percent], ["makespan", "makespan", duration],
];

export function startAllocators() {
  const rows = sides.flatMap(({ of, suffix }) => of.allocators.map((row) => ({ ...row, label: `${row.allocator}${suffix}`, other: suffix !== "" })));
  const slowed = rows.some((row) => row.mean_slowdown !== 1);
  const shown = METRICS.filter(([name]) => slowed || !["useful", "mean_slowdown", "weighted_slowdown", "interference"].includes(name));
  const columns = (width) => Math.max(1, Math.min(shown.length, Math.floor(width / WIDE)));
  const high = 26 * rows.length;
  let last = 1;
  figure({
    id: "allocators", wide: true, responsive: true, title: "Allocators compared", sentence: comparison ? `${data.sentences.allocators} Against ${comparison.meta.name}: ${comparison.sentence}` : data.sentences.allocators,
    note: `Utilisation, wait and slowdown as docs/scheduling.md defines them. Scales begin at zero, of slowdowns at one.${comparison ? " Hollow: the other schedules." : ""}`,
    height: () => { last = columns(document.getElementById("allocators-plot")?.clientWidth || 1000); return Math.ceil(shown.length / last) * (TOP + high + GAP); },
    option: (width = 1000) => {
      const many = columns(width);
      const each = width / many;
      const room = Math.min(150, each * 0.4);
      const { ink } = colours();
      const place = (at) => ({ left: (at % many) * each, top: Math.floor(at / many) * (TOP + high + GAP) });
      return {
        title: shown.map(([, title], at) => ({ text: title, left: place(at).left + room, top: place(at).top, textStyle: { fontSize: 13, color: ink } })),
        grid: shown.map((_, at) => ({ left: place(at).left + room, top: place(at).top + TOP, width: each - room - 84, height: high })),
        xAxis: shown.map(([name], at) => ({ type: "value", gridIndex: at, min: name.includes("slowdown") ? 1 : 0, max: name.includes("slowdown") && rows.every((row) => row[name] === 1) ? 2 : null, axisLabel: { show: false }, splitLine: { show: false } })),
        yAxis: shown.map((_, at) => ({ type: "category", gridIndex: at, inverse: true, data: rows.map(({ label }) => label), splitLine: { show: false }, axisLabel: { interval: 0, width: room - 12, overflow: "truncate" } })),
        tooltip: { formatter: ({ seriesIndex, dataIndex }) => `<b>${escaped(rows[dataIndex].label)}</b><br>${shown[seriesIndex][1]}: ${shown[seriesIndex][2](rows[dataIndex][shown[seriesIndex][0]])}` },
        series: shown.map(([name, title, form], at) => ({
          type: "bar", name: title, xAxisIndex: at, yAxisIndex: at, barMaxWidth: 16, label: { show: true, position: "right", color: ink, formatter: ({ dataIndex }) => form(rows[dataIndex][name]) },
          data: rows.map((row) => ({ value: row[name], itemStyle: row.other ? { color: "transparent", borderColor: colourOf(row.allocator), borderWidth: 2 } : { color: colourOf(row.allocator) } })),
        })),
      };
    },
    csv: () => {
      const keys = Object.keys(data.allocators[0]);
      return [["schedules", ...keys], ...sides.flatMap(({ of, name }) => of.allocators.map((row) => [name, ...keys.map((key) => row[key])]))];
    },
  });
}
