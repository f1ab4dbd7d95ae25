/** The change of each job between two runs, with its interval. */

import { opacity, whiskers } from "report/bars";
import { figure, nameAxis } from "report/chart";
import { comparison, jobNumber } from "report/data";
import { escaped, percent, seconds } from "report/format";
import { choose, subscribe } from "report/state";
import { PALETTE, colours } from "report/theme";

export function startComparison() {
  if (!comparison) return;
  const rows = comparison.jobs.map((row) => ({ ...row, job: jobNumber.get(row.name), low: row.change_low, high: row.change_high })).sort((a, b) => a.change - b.change);
  const apart = comparison.jobs_apart.length ? ` Jobs of one run only: ${comparison.jobs_apart.slice(0, 8).join(", ")}${comparison.jobs_apart.length > 8 ? " ..." : ""}.` : "";
  const axis = nameAxis(rows.map(({ name }) => name));
  const colour = ({ change, beyond_noise: certain }) => (certain ? (change > 0 ? PALETTE[0] : PALETTE[1]) : colours().muted);
  const made = figure({
    id: "comparison", title: `Change of jobs against ${comparison.meta.name}`, sentence: comparison.sentence, height: () => axis.height,
    note: `Throughput of this run against that of the other, over the iterations that both completed; of jobs without iterations, the mean message latency. Whiskers: 95% interval. Grey: within noise, or not known.${apart}`,
    click: ({ dataIndex, seriesType }) => seriesType !== "custom" && choose({ victim: [rows[dataIndex].job], aggressor: null }),
    option: () => {
      const { height, ...parts } = axis;
      return {
        grid: { left: 140, right: 34, top: 34, bottom: 46 }, ...parts, xAxis: { type: "value", name: "change of throughput", axisLabel: { hideOverlap: true, formatter: (value) => percent(value, true) } },
        tooltip: { formatter: ({ dataIndex }) => tip(rows[dataIndex]) },
        series: [{ type: "bar", barMaxWidth: 14, data: rows.map((row) => ({ value: row.change, itemStyle: { color: colour(row), opacity: opacity(row.job) } })) }, whiskers(rows)],
      };
    },
    csv: () => [["job", "of", "before_s", "after_s", "change", "change_low", "change_high", "beyond_noise"], ...rows.map((row) => [row.name, row.of, row.before, row.after, row.change, row.low, row.high, row.beyond_noise])],
  });
  subscribe(["victim", "aggressor"], made.redraw);
  function tip(row) {
    const verdict = row.beyond_noise === null ? "no interval" : row.beyond_noise ? "beyond noise" : "within noise";
    return `<b>${escaped(row.name)}</b>: ${percent(row.change, true)} (${verdict})<br>${escaped(row.of)}: ${seconds(row.before)} before, ${seconds(row.after)} now`;
  }
}
