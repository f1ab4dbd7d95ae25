/** Effects by the values of a parameter that the study varies, as lines. */

import { changeAxis, isWide } from "report/axes";
import { labelled, selection } from "report/card";
import { figure } from "report/chart";
import { data } from "report/data";
import { escaped, seconds, timeTick } from "report/format";
import { MEASURES, effectWords, runColour, runSymbol, runs } from "report/study/data";
import { uprightWhiskers } from "report/whiskers";

const TIME = "seconds_per_iteration";

export function startSweeps() {
  if (!data.sweeps.length) return;
  const parameter = selection("sweeps-parameter", data.sweeps.map(({ name }, at) => [at, name]), () => { offer(); made.redraw(); });
  const workload = selection("sweeps-workload", [], () => made.redraw());
  const measures = [...MEASURES, [TIME, "Time per iteration"]];
  const measure = selection("sweeps-measure", measures, () => made.redraw());
  const sweep = () => data.sweeps[Number(parameter.value)];
  const offer = () => workload.replaceChildren(...selection("", [...new Set(sweep().rows.map((row) => row.workload))].map((name) => [name, name])).children);
  offer();
  const isTime = () => measure.value === TIME;
  const ends = ["", "_low", "_high"];
  const words = (row) => effectWords(...ends.map((end) => row[`${measure.value}${end}`]), isTime() ? seconds : undefined);
  const lines = () => runs.map((run, number) => ({
    run, number, rows: sweep().rows.filter((row) => row.run === number && row.workload === workload.value && row[measure.value] !== null).sort((a, b) => a.value - b.value),
  })).filter(({ rows }) => rows.length);
  const place = (row) => (sweep().numeric ? sweep().values[row.value] : row.value);
  const wide = () => { const { numeric, values } = sweep(); return numeric && isWide(values); };
  const made = figure({
    id: "sweeps", wide: true, responsive: true, title: "Effects by parameter", sentence: data.sentences.sweeps, height: () => 380,
    controls: [labelled("Parameter", parameter), labelled("Measure", measure), labelled("Workload", workload)],
    note: `Means over all other parameters, placements and seeds. Whiskers: 95% interval over ${data.unit}s.`,
    option: (width) => {
      const { numeric, values, name } = sweep();
      const all = lines();
      return {
        grid: { left: 84, right: 30, top: 40, bottom: numeric ? 50 : 76 }, legend: { top: 0, type: "scroll", data: all.map(({ run }) => run.name) },
        xAxis: numeric ? { type: wide() ? "log" : "value", scale: true, name } : { type: "category", data: values, name, nameGap: 52, axisLabel: { interval: 0, width: (width - 130) / values.length, overflow: "break", lineHeight: 14 } },
        yAxis: { ...(isTime() ? { type: "value", min: 0, axisLabel: { formatter: timeTick } } : changeAxis), name: isTime() ? "time per iteration" : "change of throughput", nameGap: 62 },
        tooltip: { formatter: ({ data: item, seriesName }) => `<b>${escaped(seriesName)}</b>, ${escaped(workload.value)}<br>${escaped(name)}: ${escaped(values[item.row.value])}<br>${words(item.row)}` },
        series: all.flatMap(({ run, number, rows }) => [
          { type: "line", name: run.name, color: runColour(number), symbol: runSymbol(number), symbolSize: 9, lineStyle: { width: 2 }, data: rows.map((row) => ({ value: [place(row), row[measure.value]], row })) },
          uprightWhiskers(rows.map((row) => [place(row), row[`${measure.value}_low`], row[`${measure.value}_high`]]), runColour(number)),
        ]),
      };
    },
    csv: () => [["parameter", "value", "treatment", "workload", ...ends.map((end) => `${TIME.replace("seconds", "time")}${end}_s`), ...MEASURES.flatMap(([name]) => ends.map((end) => `${name}${end}`))],
      ...data.sweeps.flatMap(({ name, values, rows }) => rows.map((row) => [name, values[row.value], runs[row.run].name, row.workload, ...[TIME, ...MEASURES.map(([key]) => key)].flatMap((key) => ends.map((end) => row[`${key}${end}`]))]))],
  });
}
