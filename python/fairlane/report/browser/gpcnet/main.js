/** The cards of GPCNeT: congestion impact factors by network test and transport, and the values that they come from. */

import { LEFT, isWide, logarithmicEnds, nameAxis, roomFor } from "report/axes";
import { labelled, selection } from "report/card";
import { WIDE } from "report/constants";
import { figure } from "report/chart";
import { comparison, data } from "report/data";
import { escaped, number } from "report/format";
import { tableCard } from "report/table";
import { PALETTE, colours } from "report/theme";
import { whiskers } from "report/whiskers";

const { impact, trials } = data;
const transports = [...new Set(impact.map(({ transport }) => transport))];
const tests = [...new Map(impact.map(({ test, title }) => [test, title]))];
const MEASURES = [["impact", "mean"], ["impact_p99", "99th percentile"]];
const colourOf = (transport) => PALETTE[transports.indexOf(transport) % PALETTE.length];
const other = (row) => comparison?.impact.find(({ test, transport }) => test === row.test && transport === row.transport);
const within = (row, name) => row?.text[name] ?? "–";

function factors() {
  const of = selection("factors-of", MEASURES, () => made.redraw());
  const rows = () => tests.flatMap(([test]) => transports.map((name) => impact.find((row) => row.test === test && row.transport === name))).filter((row) => row && row[of.value] !== null);
  const labels = () => rows().map(({ title, transport }) => (transports.length > 1 ? `${title}, ${transport}` : title));
  const dots = (all, transport, more) => ({ type: "scatter", z: 6, symbolSize: 11, color: colourOf(transport), data: all.map((row, y) => ({ row, y })).filter(({ row }) => row && row.transport === transport && row[of.value] !== null).map(({ row, y }) => ({ value: [row[of.value], y], row })), ...more });
  const made = figure({
    id: "factors", wide: true, responsive: true, title: "Congestion impact factors", sentence: data.sentences.factors, height: () => nameAxis(labels()).height + 24,
    controls: [labelled("Of the", of)],
    note: `Congested over isolated; of a bandwidth, isolated over congested. 1: no impact. Whiskers: 95% interval over assignments of hosts.${comparison ? ` Hollow: ${comparison.meta.name}.` : ""} Logarithmic if factors differ by more than a factor of ${WIDE}.`,
    option: (width) => {
      const all = rows();
      const compared = all.map(other);
      const room = roomFor(labels(), width);
      const { height, ...shown } = nameAxis(labels(), room);
      const { ink, card } = colours();
      const values = [...all, ...compared].map((row) => row?.[of.value] ?? null);
      const series = transports.map((name) => dots(all, name, { name }));
      if (series.length) Object.assign(series[0], { markLine: { silent: true, symbol: "none", label: { show: false }, lineStyle: { color: ink, type: "dashed", width: 1.2 }, data: [{ xAxis: 1 }] } });
      return {
        grid: { ...LEFT, top: 46, left: room + 12 }, ...shown, legend: { top: 0, type: "scroll", data: transports },
        xAxis: { ...(isWide(values) ? { type: "log", ...logarithmicEnds([1, ...values.filter((value) => value !== null)]) } : { type: "value", scale: true }), name: "impact factor", axisLabel: { formatter: number } },
        tooltip: { formatter: ({ data: { row } }) => `<b>${escaped(row.title)}</b>, ${escaped(row.transport)}${MEASURES.map(([name, words]) => `<br>${words}: ${within(row, name)}`).join("")}<br>${row.replicates} assignments of hosts` },
        series: [
          ...series,
          ...(comparison ? transports.map((name) => dots(compared, name, { name: `${name}, ${comparison.meta.name}`, z: 5, itemStyle: { color: card, borderColor: colourOf(name), borderWidth: 2 } })) : []),
          whiskers(all.map((row) => ({ low: row[`${of.value}_low`], high: row[`${of.value}_high`] }))),
        ],
      };
    },
    csv: () => {
      const names = Object.keys(impact[0] ?? {}).filter((name) => name !== "text");
      return [["benchmark", ...names], ...[[data.meta.name, impact], ...(comparison ? [[comparison.meta.name, comparison.impact]] : [])].flatMap(([name, rows]) => rows.map((row) => [name, ...names.map((key) => row[key])]))];
    },
  });
}

function values() {
  const column = (title, name) => ({ title, number: true, value: (row) => row[name], text: (row) => within(row, name) });
  const exported = Object.keys(trials[0] ?? {});
  const nonBreaking = (text) => text.replaceAll(" ", "\u00a0");
  tableCard({
    id: "values", wide: true, title: "Network tests", rows: () => impact, sentence: data.sentences.values,
    columns: [
      { title: "transport", value: (row) => row.transport },
      { title: "network test", value: (row) => row.title, text: (row) => nonBreaking(row.title) },
      { title: "unit", value: (row) => row.unit },
      column("isolated, mean", "isolated"), column("congested, mean", "congested"),
      column("isolated, 99%", "isolated_p99"), column("congested, 99%", "congested_p99"),
      column("impact, mean", "impact"), column("impact, 99%", "impact_p99"),
    ],
    note: "±, in brackets after factors: 95% interval over assignments of hosts. Of a bandwidth, 99% is the value that 99% of the iterations reach or exceed. The CSV has every trial.",
    csv: () => [exported, ...trials.map((row) => exported.map((name) => row[name]))],
  });
}

export function start() {
  factors();
  values();
}
