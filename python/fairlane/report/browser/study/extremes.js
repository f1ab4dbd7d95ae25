/** What each treatment does to its worst, average and best job. */

import { LEFT, changeAxis, nameAxis, roomFor, zeroLine } from "report/axes";
import { labelled, selection } from "report/card";
import { figure } from "report/chart";
import { data } from "report/data";
import { escaped } from "report/format";
import { MEASURES, effectWords, runColour, runs } from "report/study/data";
import { PALETTE, colours } from "report/theme";
import { whiskers } from "report/whiskers";

const MARKS = { worst: ["triangle", 1], mean: ["circle"], best: ["diamond", 0] };

export function startExtremes() {
  if (!data.sentences.extremes) return;
  const measure = selection("extremes-measure", MEASURES, () => made.redraw());
  const rows = () => {
    const name = measure.value;
    const of = (row) => row && { ...row, value: row[name], low: row[`${name}_low`], high: row[`${name}_high`] };
    return runs.map((run, number) => {
      const jobs = data.effects.job.filter((row) => row.run === number && row[name] !== null).sort((a, b) => a[name] - b[name]);
      const mean = data.effects.treatment.find((row) => row.run === number && row[name] !== null);
      return { run, number, worst: of(jobs[0]), best: of(jobs.at(-1)), mean: of(mean), worse: jobs.filter((row) => row[name] < 0).length, jobs: jobs.length };
    }).filter(({ worst }) => worst).sort((a, b) => b.worst.value - a.worst.value);
  };
  const names = () => rows().map(({ run }) => run.name);
  const made = figure({
    responsive: true, id: "extremes", title: "Cost to the worst job, gain of the best", sentence: data.sentences.extremes, height: () => nameAxis(names()).height + 40,
    controls: MEASURES.length > 1 ? [labelled("Measure", measure)] : [],
    note: "Jobs are compared by their means over placements and seeds. The treatment that costs its worst job least is at the top. Whiskers: 95% interval of the worst job.",
    option: (width) => {
      const all = rows();
      const room = roomFor(names(), width);
      const { height, ...parts } = nameAxis(names(), room);
      const { ink, faint } = colours();
      const bars = {
        type: "custom", silent: true, z: 1, encode: { x: [1, 2], y: 0 }, data: all.map(({ worst, best }, y) => [y, worst.value, best.value]),
        renderItem: (_, api) => {
          const [left, y] = api.coord([api.value(1), api.value(0)]);
          const [right] = api.coord([api.value(2), api.value(0)]);
          return { type: "rect", shape: { x: left, y: y - 3, width: right - left, height: 6 }, style: { fill: faint } };
        },
      };
      const marks = Object.entries(MARKS).map(([name, [symbol, colour]]) => ({
        type: "scatter", name: `${name}${name === "mean" ? "" : " job"}`, symbol, symbolSize: 11, z: 6, color: PALETTE[colour] ?? ink,
        data: all.flatMap((row, y) => (row[name] ? [{ value: [row[name].value, y], row, mark: name, ...(name === "mean" && { itemStyle: { color: runColour(row.number) } }) }] : [])),
      }));
      Object.assign(marks[0], zeroLine(ink));
      return {
        grid: { ...LEFT, top: 46, left: room + 12 }, ...parts, xAxis: { ...changeAxis, name: "change of throughput" }, legend: { top: 0, data: marks.map(({ name }) => name) },
        tooltip: { formatter: ({ data: item }) => tip(item) }, series: [bars, ...marks, whiskers(all.map(({ worst }) => worst))],
      };
    },
    csv: () => [["treatment", "measure", "which", "job", "workload", "value", "low", "high", "jobs_below_zero", "jobs"], ...rows().flatMap((row) => ["worst", "mean", "best"].map((which) => [row.run.name, measure.value, which, row[which]?.name, row[which]?.workload, row[which]?.value, row[which]?.low, row[which]?.high, row.worse, row.jobs]))],
  });
  function tip({ row, mark }) {
    const one = row[mark];
    const who = mark === "mean" ? "mean over jobs" : `${mark} job: ${escaped(one.name)} (${escaped(one.workload)})`;
    return `<b>${escaped(row.run.name)}</b><br>${who}<br>${effectWords(one.value, one.low, one.high)}<br>${row.worse} of ${row.jobs} jobs below zero`;
  }
}
