/** The forest plot: effects with their intervals, in order, by treatment, workload, job or condition. */

import { LEFT, changeAxis, nameAxis, roomFor, zeroLine } from "report/axes";
import { labelled, selection } from "report/card";
import { figure } from "report/chart";
import { data } from "report/data";
import { escaped } from "report/format";
import { MEASURES, effectWords, runColour, runOptions, runSymbol, runs } from "report/study/data";
import { colours } from "report/theme";
import { whiskers } from "report/whiskers";

const LEVELS = { treatment: "treatment", workload: "workload", job: "job", condition: "condition" };
const KEYS = { treatment: null, workload: "workload", job: "name", condition: "condition" };

export function startEffects() {
  if (!MEASURES.length) return;
  const measure = selection("effects-measure", MEASURES, () => made.redraw());
  const level = selection("effects-level", Object.keys(data.effects).map((name) => [name, `by ${LEVELS[name]}`]), () => made.redraw());
  const run = selection("effects-run", [["", "all treatments"], ...runOptions(data.effects.treatment)], () => made.redraw());
  const rows = () => data.effects[level.value]
    .filter((row) => row[measure.value] !== null && (run.value === "" || row.run === Number(run.value)))
    .map((row) => ({ ...row, label: label(row), value: row[measure.value], low: row[`${measure.value}_low`], high: row[`${measure.value}_high`], beyond: row[`${measure.value}_beyond`] }))
    .sort((a, b) => b.value - a.value);
  const label = (row) => {
    const key = KEYS[level.value];
    if (!key) return runs[row.run].name;
    return run.value === "" && shownRuns().length > 1 ? `${row[key]}, ${runs[row.run].name}` : String(row[key]);
  };
  const shownRuns = () => [...new Set(data.effects[level.value].filter((row) => row[measure.value] !== null).map((row) => row.run))];
  const names = () => rows().map((row) => row.label);
  const made = figure({
    responsive: true, wide: true, id: "effects", title: MEASURES[0][0] === "improvement" ? "Effects of the treatments" : "Co-running jobs against isolated ones", sentence: data.sentences.effects, height: () => nameAxis(names()).height + 24,
    controls: [labelled("Measure", measure), labelled("Rows", level), ...(runs.length > 1 ? [labelled("Treatment", run)] : [])],
    note: `Means over jobs, placements and seeds. Whiskers: 95% interval over ${data.unit}s; of a single run, that within it. Filled: beyond noise (at most 5% of such findings are expected to be false); hollow: within noise, or without an interval.`,
    option: (width) => {
      const all = rows();
      const room = roomFor(names(), width);
      const { height, ...parts } = nameAxis(names(), room);
      const { ink, card } = colours();
      const series = shownRuns().map((number) => ({
        type: "scatter", name: runs[number].name, symbol: runSymbol(number), symbolSize: 11, z: 6, color: runColour(number),
        data: all.map((row, y) => ({ row, y })).filter(({ row }) => row.run === number).map(({ row, y }) => ({
          value: [row.value, y], row, itemStyle: row.beyond ? { color: runColour(number) } : { color: card, borderColor: runColour(number), borderWidth: 2 },
        })),
      }));
      if (series.length) Object.assign(series[0], zeroLine(ink));
      return {
        grid: { ...LEFT, top: 46, left: room + 12 }, ...parts, xAxis: { ...changeAxis, scale: false, name: "change of throughput" }, legend: { top: 0, type: "scroll", data: series.map(({ name }) => name) },
        tooltip: { formatter: ({ data: item }) => tip(item.row) }, series: [...series, whiskers(all)],
      };
    },
    csv: () => [["level", "treatment", "workload", "job", "condition", "units", ...MEASURES.flatMap(([name]) => [name, `${name}_low`, `${name}_high`, `${name}_beyond_noise`])],
      ...Object.entries(data.effects).flatMap(([name, of]) => of.map((row) => [name, runs[row.run].name, row.workload, row.name, row.condition, row.units, ...MEASURES.flatMap(([key]) => [row[key], row[`${key}_low`], row[`${key}_high`], row[`${key}_beyond`]])]))],
  });
  function tip(row) {
    const verdict = row.beyond === null ? "not known whether beyond noise" : row.beyond ? "beyond noise" : "within noise";
    const other = MEASURES.filter(([name]) => name !== measure.value).map(([name, words]) => `<br>${words}: ${effectWords(row[name], row[`${name}_low`], row[`${name}_high`])}`).join("");
    return `<b>${escaped(row.label)}</b><br>${effectWords(row.value, row.low, row.high)}: ${verdict}${other}<br>${row.units} ${data.unit}s`;
  }
}
