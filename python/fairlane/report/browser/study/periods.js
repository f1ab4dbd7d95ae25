/** What controllers did from period to period. */

import { figure } from "report/chart";
import { data } from "report/data";
import { escaped, number } from "report/format";
import { PALETTE, colours } from "report/theme";

export function startPeriods() {
  const lines = data.periods;
  if (!lines) return;
  figure({
    id: "periods", title: "Iterations by period", sentence: data.sentences.periods,
    note: "Iterations of all jobs in each period, mean over points.",
    option: () => ({
      grid: { left: 70, right: 24, top: 40, bottom: 46 }, legend: { top: 0, type: "scroll" },
      tooltip: { formatter: ({ seriesName, value }) => `<b>${escaped(seriesName)}</b>, period ${number(value[0])}<br>${number(value[1])} iterations` },
      xAxis: { type: "value", name: "period", scale: true }, yAxis: { type: "value", name: "iterations", nameGap: 50, scale: true },
      series: lines.map(({ treatment, period, iterations }, at) => ({ type: "line", name: treatment, color: treatment === "default" ? colours().muted : PALETTE[at % PALETTE.length], symbolSize: 4, showSymbol: period.length < 80, data: period.map((x, row) => [x, iterations[row]]) })),
    }),
    csv: () => [["treatment", "period", "iterations"], ...lines.flatMap(({ treatment, period, iterations }) => period.map((x, row) => [treatment, x, iterations[row]]))],
  });
}
