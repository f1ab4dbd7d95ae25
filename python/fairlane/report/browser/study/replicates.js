/** Each placement's (or seed's) effect, with the mean and its interval: how certain the effects are. */

import { LEFT, changeAxis, nameAxis, roomFor, zeroLine } from "report/axes";
import { labelled, selection } from "report/card";
import { figure } from "report/chart";
import { data } from "report/data";
import { escaped, percent } from "report/format";
import { MEASURES, effectWords, runColour, runs } from "report/study/data";
import { colours } from "report/theme";
import { whiskers } from "report/whiskers";

const SPREAD = 0.5; // of a row over which its dots are spread

export function startReplicates() {
  if (!MEASURES.length) return;
  const { unit } = data.replicates;
  const measure = selection("replicates-measure", MEASURES, () => made.redraw());
  const shown = () => data.effects.treatment.filter((row) => row[measure.value] !== null);
  const names = () => shown().map((row) => runs[row.run].name);
  const of = (number) => data.replicates.rows.filter((row) => row.run === number && row[measure.value] !== null);
  const made = figure({
    responsive: true, id: "replicates", title: `Variation over ${unit}s`, sentence: data.sentences.replicates, height: () => nameAxis(names()).height + 12 * shown().length,
    controls: MEASURES.length > 1 ? [labelled("Measure", measure)] : [],
    note: `A dot is the mean over the jobs of one ${unit}. Upright line: mean; whiskers: its 95% interval, which needs three ${unit}s.`,
    option: (width) => {
      const all = shown();
      const room = roomFor(names(), width);
      const { height, ...parts } = nameAxis(names(), room);
      const { ink } = colours();
      const dots = all.flatMap((row, y) => of(row.run).map((one, at, every) => ({ y, at, one, place: every.length > 1 ? (at / (every.length - 1) - 0.5) * SPREAD : 0, run: row.run })));
      return {
        grid: { ...LEFT, left: room + 12 }, ...parts, xAxis: { ...changeAxis, name: "change of throughput" },
        tooltip: { formatter: ({ data: item }) => (item.one ? `<b>${escaped(runs[item.run].name)}</b>, ${unit} ${escaped(item.one.unit)}<br>${percent(item.one[measure.value], true)}` : tip(item.row)) },
        series: [
          { type: "custom", z: 3, encode: { x: 1, y: 0 }, data: dots.map(({ y, place, one, run }) => ({ value: [y, one[measure.value], place], one, run })), ...zeroLine(ink),
            renderItem: (parameters, api) => {
              const [x, y] = api.coord([api.value(1), api.value(0)]);
              const step = api.size([0, 1])[1];
              const { run } = dots[parameters.dataIndex];
              return { type: "circle", shape: { cx: x, cy: y + api.value(2) * step, r: 4 }, style: { fill: runColour(run), opacity: 0.75 } };
            } },
          { type: "scatter", symbol: "rect", symbolSize: [3, 18], z: 6, color: ink, data: all.map((row, y) => ({ value: [row[measure.value], y], row })) },
          whiskers(all.map((row) => ({ low: row[`${measure.value}_low`], high: row[`${measure.value}_high`] }))),
        ],
      };
    },
    csv: () => [["treatment", unit, ...MEASURES.map(([name]) => name)], ...data.replicates.rows.map((row) => [runs[row.run].name, row.unit, ...MEASURES.map(([name]) => row[name])])],
  });
  const tip = (row) => `<b>${escaped(runs[row.run].name)}</b>, mean of ${row.units} ${unit}s<br>${effectWords(row[measure.value], row[`${measure.value}_low`], row[`${measure.value}_high`])}`;
}
