/** Tables of a study that measures: each as a figure of two of its columns, and as rows. */

import { isWide } from "report/axes";
import { labelled, selection } from "report/card";
import { figure } from "report/chart";
import { data } from "report/data";
import { escaped, number } from "report/format";
import { tableCard } from "report/table";
import { PALETTE } from "report/theme";

const MOST_SERIES = 8;

/** Columns to begin with: a number that varies most against a factor, and another factor for the colours. */
function usual({ columns, numeric }) {
  const distinct = (name) => new Set(columns[name]).size;
  const names = Object.keys(columns);
  const y = [...numeric].sort((a, b) => distinct(b) - distinct(a))[0];
  const factors = names.filter((name) => name !== y && distinct(name) > 1).sort((a, b) => distinct(a) - distinct(b));
  const x = factors.find((name) => numeric.includes(name)) ?? factors[0] ?? names.find((name) => name !== y) ?? y;
  return { x, y, series: factors.find((name) => name !== x && distinct(name) <= MOST_SERIES) ?? "" };
}

function explore(name, table) {
  const { columns, numeric, total } = table;
  const names = Object.keys(columns);
  const count = columns[names[0]]?.length ?? 0;
  if (!count || !numeric.length) return;
  const id = `table-${name}`;
  const redraw = () => {
    made.sentence.textContent = sentence();
    made.redraw();
  };
  const first = usual(table);
  const [x, y, series] = [selection(`${id}-x`, names.map((one) => [one, one]), redraw), selection(`${id}-y`, numeric.map((one) => [one, one]), redraw), selection(`${id}-series`, [["", "none"], ...names.map((one) => [one, one])], redraw)];
  for (const [control, value] of [[x, first.x], [y, first.y], [series, first.series]]) control.value = value;
  const numbers = () => numeric.includes(x.value);
  const groups = () => {
    const found = new Map();
    for (let row = 0; row < count; row += 1) {
      const key = series.value ? String(columns[series.value][row]) : name;
      if (!found.has(key)) found.set(key, []);
      if (columns[y.value][row] !== null) found.get(key).push([columns[x.value][row], columns[y.value][row]]);
    }
    return [...found].slice(0, MOST_SERIES);
  };
  const scaleOf = (values) => (isWide(values) ? { type: "log" } : { type: "value", scale: true });
  const sentence = () => {
    const values = columns[y.value].filter((value) => value !== null);
    return values.length ? `${y.value} from ${number(Math.min(...values))} to ${number(Math.max(...values))} in ${total.toLocaleString("en-US")} rows.` : `${y.value} has no value.`;
  };
  const made = figure({
    id, title: `Table ${name}`, sentence: sentence(), height: () => 380, controls: [labelled("Horizontal", x), labelled("Vertical", y), labelled("Colours", series)],
    note: `A dot is a row.${total > count ? ` ${count} of ${total} rows, evenly spaced.` : ""} Logarithmic where values span a wide range. At most ${MOST_SERIES} colours.`,
    option: () => {
      return {
        grid: { left: 84, right: 30, top: 40, bottom: 56 }, legend: { top: 0, type: "scroll" },
        xAxis: { ...(numbers() ? scaleOf(columns[x.value]) : { type: "category", data: [...new Set(columns[x.value].map(String))] }), name: x.value, axisLabel: { hideOverlap: true } },
        yAxis: { ...scaleOf(columns[y.value]), name: y.value, nameGap: 62, axisLabel: { formatter: number } },
        tooltip: { formatter: ({ seriesName, value }) => `<b>${escaped(seriesName)}</b><br>${escaped(x.value)}: ${escaped(value[0])}<br>${escaped(y.value)}: ${number(value[1])}` },
        series: groups().map(([key, rows], at) => ({ type: "scatter", name: key, color: PALETTE[at % PALETTE.length], symbolSize: 6, itemStyle: { opacity: 0.75 }, data: rows.map(([a, b]) => [numbers() ? a : String(a), b]) })),
      };
    },
    csv: () => csv(),
  });
  const rows = Array.from({ length: count }, (_, row) => row);
  const csv = () => [names, ...rows.map((row) => names.map((one) => columns[one][row]))];
  tableCard({
    id: `${id}-rows`, title: `Rows of ${name}`, sentence: `${total.toLocaleString("en-US")} rows, ${names.length} columns.`, filter: "Only rows with", rows: () => rows, csv,
    columns: names.map((one) => ({ title: one, number: numeric.includes(one), value: (row) => columns[one][row], text: (row) => { const value = columns[one][row]; return value === null ? "–" : typeof value === "number" ? number(value) : String(value); } })),
  });
}

export function startMeasured() {
  for (const [name, table] of Object.entries(data.measured ?? {})) explore(name, table);
}
